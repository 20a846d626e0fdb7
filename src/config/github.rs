//! Diagnostics as workflow commands of GitHub Actions, which shows them at their lines.

use crate::config::diagnostic::Diagnostic;
use crate::config::place::Sources;

/// One line for each diagnostic: `::error file=…,line=…,col=…,title=…::message`.
pub fn annotations(diagnostics: &[Diagnostic], sources: &Sources) -> String {
    diagnostics
        .iter()
        .map(|d| annotation(d, sources) + "\n")
        .collect()
}

fn annotation(diagnostic: &Diagnostic, sources: &Sources) -> String {
    let place = &diagnostic.place;
    let mut out = format!(
        "::{} file={}",
        diagnostic.severity().as_str(),
        property(&place.file.display().to_string())
    );
    if let (Some(start), Some(end)) = (&place.position, sources.end(place)) {
        out += &format!(",line={},endLine={}", start.line, end.line);
        // A column counts within one line only.
        if start.line == end.line {
            out += &format!(",col={},endColumn={}", start.column, end.column);
        }
    }
    out += &format!(
        ",title={}::{}",
        diagnostic.code.as_str(),
        data(&diagnostic.message)
    );
    for (place, message) in &diagnostic.related {
        out += &data(&format!("\n{place}: {message}"));
    }
    if let Some(help) = &diagnostic.help {
        out += &data(&format!("\nhelp: {help}"));
    }
    out
}

/// What is behind the `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// The value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::diagnostic::Code;
    use crate::config::place::Span;

    #[test]
    fn a_line_for_each_with_what_has_a_meaning_escaped() {
        let mut sources = Sources::default();
        let file = sources.add("a,b.yaml".into(), "x: 1\n".into());
        let span = |start, end| Span { file, start, end };
        let place = sources.place(span(0, 1));
        let found = Diagnostic::new(Code::UnknownKey, place, "100% unknown")
            .related(sources.place(span(3, 4)), "here")
            .help("take it away");
        assert_eq!(
            annotations(&[found], &sources),
            "::error file=a%2Cb.yaml,line=1,endLine=1,col=1,endColumn=2,title=E0301::100%25 unknown%0Aa,b.yaml:1:4: here%0Ahelp: take it away\n"
        );
        let whole = Diagnostic::of_file(Code::Empty, "m.yaml", "empty");
        assert_eq!(
            annotations(&[whole], &sources),
            "::error file=m.yaml,title=E0103::empty\n"
        );
    }
}
