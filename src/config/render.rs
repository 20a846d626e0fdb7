//! Diagnostics as the compiler prints them: source line, caret, help.

use crate::config::diagnostic::{Diagnostic, Severity};
use crate::config::place::{Place, Sources};
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::ops::Range;

/// Whether the text is coloured. Colour never alone carries meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// With ANSI escapes.
    Always,
}

/// Diagnostics that are shown with their lines at most; nobody reads more, and each costs a look
/// through its file.
const MOST: usize = 500;

/// The `diagnostics`, one below the other, with a blank line between them.
pub fn render(diagnostics: &[Diagnostic], sources: &Sources, colour: Colour) -> String {
    let renderer = match colour {
        Colour::Never => Renderer::plain(),
        Colour::Always => Renderer::styled(),
    };
    let mut text = String::new();
    for diagnostic in diagnostics.iter().take(MOST) {
        text.push_str(&renderer.render(&[group(diagnostic, sources)]));
        text.push_str("\n\n");
    }
    if let Some(more) = diagnostics.len().checked_sub(MOST).filter(|more| *more > 0) {
        text.push_str(&format!("and {more} more, which `--format json` lists\n\n"));
    }
    text
}

fn group<'a>(diagnostic: &'a Diagnostic, sources: &'a Sources) -> Group<'a> {
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level
        .primary_title(diagnostic.message.as_str())
        .id(diagnostic.code.as_str());
    let mut group = Group::with_title(title);
    group = match snippet(diagnostic, sources) {
        Some(snippet) => group.element(snippet),
        None => group.element(Origin::path(diagnostic.place.file.display().to_string())),
    };
    for (place, message) in elsewhere(diagnostic) {
        if let Some(snippet) = related_snippet(place, message, sources) {
            group = group.element(snippet);
        }
    }
    match &diagnostic.help {
        Some(help) => group.element(Level::HELP.message(help.as_str())),
        None => group,
    }
}

/// The window around the place, with the related places of the same file in it.
fn snippet<'a>(
    diagnostic: &'a Diagnostic,
    sources: &'a Sources,
) -> Option<Snippet<'a, Annotation<'a>>> {
    let place = &diagnostic.place;
    let text = sources.shown(&place.file)?;
    let mut snippet = Snippet::source(text)
        .path(place.file.display().to_string())
        .annotation(AnnotationKind::Primary.span(range(place, text)?));
    for (other, message) in &diagnostic.related {
        if other.file == place.file {
            let span = range(other, text)?;
            snippet = snippet.annotation(AnnotationKind::Context.span(span).label(message));
        }
    }
    Some(snippet)
}

fn elsewhere(diagnostic: &Diagnostic) -> impl Iterator<Item = &(Place, String)> {
    let here = &diagnostic.place.file;
    diagnostic
        .related
        .iter()
        .filter(move |(p, _)| p.file != *here)
}

fn related_snippet<'a>(
    place: &'a Place,
    message: &'a str,
    sources: &'a Sources,
) -> Option<Snippet<'a, Annotation<'a>>> {
    let text = sources.shown(&place.file)?;
    let span = range(place, text)?;
    Some(
        Snippet::source(text)
            .path(place.file.display().to_string())
            .annotation(AnnotationKind::Context.span(span).label(message)),
    )
}

/// The place's bytes, kept inside `text`.
fn range(place: &Place, text: &str) -> Option<Range<usize>> {
    let position = place.position.as_ref()?;
    Some(position.start.min(text.len())..position.end.min(text.len()))
}
