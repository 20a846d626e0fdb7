//! file → parse with positions → schema → validate (pure, all errors at once) → [`spec::Spec`].
//!
//! [`load`] is the summary. A value of [`spec::Spec`] comes from nowhere else.

pub mod branch;
pub mod chains;
pub mod conform;
pub mod defaults;
pub mod diagnostic;
pub mod document;
pub mod door;
pub mod effective;
pub mod events;
pub mod explain;
pub mod forms;
pub mod github;
pub mod interpolate;
pub mod laid;
pub mod language;
pub mod loss;
pub mod mask;
pub mod pattern;
mod pieces;
pub mod place;
pub mod pointer;
pub mod raw;
pub mod read;
pub mod render;
pub mod sarif;
pub mod scalar;
pub mod schema;
pub mod secret;
pub mod settings;
mod siblings;
pub mod spec;
pub mod spots;
pub mod story;
pub mod suggest;
pub mod tree;
pub mod units;
pub mod validate;
pub mod watch;
pub mod words;
pub mod written;

use crate::case::{self, Case};
use crate::flow::listener::Listeners;
use crate::handler::Registry;
use crate::redact;
use diagnostic::{Code, Diagnostic, Severity};
use document::Document;
use interpolate::{Environment, Outside, Variables};
use place::Sources;
use render::Colour;
use spec::Spec;
use std::path::PathBuf;

/// What a configuration is read with.
pub struct LoadOptions<'a> {
    /// Where `${NAME}` comes from.
    pub environment: &'a Environment<'a>,
    /// Which variables may be taken, and what becomes of those that are not set.
    pub variables: &'a Variables,
    /// Handlers that the program registered, for `use:`.
    pub registry: &'a Registry,
    /// Listeners that the program registered, for `rebalance_listener:`.
    pub listeners: &'a Listeners,
    /// The configuration that the process runs, if it does: what is the same in both is held once.
    pub running: Option<&'a Spec>,
}

/// The variables of this process.
pub fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A configuration that may run.
#[derive(Debug)]
pub struct Loaded {
    /// What it says.
    pub spec: Spec,
    /// What is odd about it.
    pub warnings: Vec<Diagnostic>,
    /// SHA-256 of all files that were used, in hexadecimal.
    pub hash: String,
    /// Those files, those of `${file:…}` included.
    pub files: Vec<PathBuf>,
    /// The `tests:`.
    pub tests: Vec<Case>,
    /// The document, for places.
    pub document: Document,
}

/// A configuration that is refused.
#[derive(Debug)]
pub struct Rejected {
    /// All that was found: at least one error.
    pub diagnostics: Vec<Diagnostic>,
    /// SHA-256 of all files that were used, in hexadecimal.
    pub hash: String,
    /// Those files, those of `${file:…}` included.
    pub files: Vec<PathBuf>,
    /// The texts, for rendering.
    pub sources: Sources,
}

impl Loaded {
    /// The warnings as text with source lines.
    pub fn render(&self, colour: Colour) -> String {
        render::render(&self.warnings, &self.document.sources, colour)
    }
}

impl Rejected {
    /// The diagnostics as text with source lines.
    pub fn render(&self, colour: Colour) -> String {
        render::render(&self.diagnostics, &self.sources, colour)
    }

    /// The first error in one line, for logs and `status`.
    pub fn first_error(&self) -> String {
        let errors = self.diagnostics.iter();
        let mut errors = errors.filter(|d| d.severity() == Severity::Error);
        errors.next().map(Diagnostic::one_line).unwrap_or_default()
    }
}

/// Reads, and checks, files as one configuration. Asks no cluster.
///
/// # Errors
/// Everything that is wrong, each with its place.
pub fn load(paths: &[PathBuf], options: &LoadOptions<'_>) -> Result<Loaded, Box<Rejected>> {
    let outside = Outside {
        environment: options.environment,
        variables: options.variables,
    };
    let mut reading = read::read(paths, &outside);
    redact::remember(reading.secrets.iter().map(String::as_str));
    let (hash, files) = (reading.hash(), reading.paths());
    let mut found = std::mem::take(&mut reading.found);
    let nothing = reading.trees.is_empty();
    let mut document = Document::join(reading.trees, reading.sources, &mut found);
    let sound = !nothing && readable(&found);
    let spec = sound.then(|| {
        case::files::refuse_others(&document, &mut found);
        let wrong = conform::conform(&mut document, &mut found);
        validate::validate(&document, options, &wrong, &mut found)
    });
    found.iter_mut().for_each(Diagnostic::redact);
    document.sources.redact();
    diagnostic::arrange(&mut found);
    let refused = found.iter().any(|d| d.severity() == Severity::Error);
    match spec.flatten().filter(|_| !refused) {
        Some((spec, tests)) => Ok(Loaded {
            spec,
            warnings: found,
            hash,
            files,
            tests,
            document,
        }),
        None => Err(Box::new(Rejected {
            diagnostics: explained(found, &files),
            hash,
            files,
            sources: document.sources,
        })),
    }
}

/// Whether every file could be read: a file that is missing from the whole would make every name
/// in it unknown.
fn readable(found: &[Diagnostic]) -> bool {
    let fatal = [
        Code::Unreadable,
        Code::Syntax,
        Code::Empty,
        Code::SecondDocument,
        Code::Unsupported,
        Code::TooLarge,
        Code::WrongType,
    ];
    !found.iter().any(|d| fatal.contains(&d.code))
}

/// A rejection says why, also if nothing was named at all.
fn explained(mut found: Vec<Diagnostic>, files: &[PathBuf]) -> Vec<Diagnostic> {
    if !found.iter().any(|d| d.severity() == Severity::Error) {
        let file = files.first().cloned().unwrap_or_default();
        found.push(Diagnostic::of_file(Code::Empty, file, "no configuration"));
    }
    found
}

#[cfg(test)]
pub(crate) mod config_tests;
#[cfg(test)]
mod example_tests;
#[cfg(test)]
mod meaning_tests;
#[cfg(test)]
mod setting_tests;
#[cfg(test)]
mod verdict_tests;
