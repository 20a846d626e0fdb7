//! `mirror test`: the `tests:` of a configuration, without Kafka.

use super::program::{Coverage, TestRequest, Update};
use super::{ColorChoice, Program, TestArgs, TestFormat, files, text};
use crate::case::{self, Case, Report, files as test_files, machine};
use crate::config::render::Colour;
use crate::config::{self, LoadOptions, Loaded};
use crate::exit::Exit;
use regex::Regex;
use std::path::PathBuf;

pub(super) fn test(
    args: TestArgs,
    config: Vec<PathBuf>,
    color: ColorChoice,
    program: &Program,
) -> Exit {
    let (tests, named): (Vec<PathBuf>, Vec<PathBuf>) = args
        .files
        .into_iter()
        .partition(|path| test_files::is_test_file(path));
    if let Some(missing) = tests.iter().find(|path| !path.exists()) {
        return text::fail(&format!("{}: no such file", missing.display()), Exit::No);
    }
    match files::find(named, config) {
        Ok(files) => (program.test)(&TestRequest {
            files,
            variables: program.variables.clone(),
            tests,
            only: args.only,
            coverage: match args.coverage {
                true => Coverage::Shown,
                false => Coverage::Hidden,
            },
            update: match args.update {
                true => Update::Written,
                false => Update::Never,
            },
            format: args.format,
            colour: text::colour_of_stdout(color),
        }),
        Err(missing) => text::fail(&missing, Exit::No),
    }
}

/// Loads, runs and prints.
pub(super) fn run(request: &TestRequest, options: &LoadOptions<'_>, colour: Colour) -> Exit {
    let loaded = match load(request, options, colour) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let chosen = match Chosen::of(request.only.as_deref()) {
        Ok(chosen) => chosen,
        Err(message) => return text::fail(&message, Exit::Usage),
    };
    let report = case::run(&loaded, &|case| chosen.takes(case));
    if report.results.is_empty() {
        return text::fail(&nothing_to_do(&loaded, request), Exit::No);
    }
    if request.update == Update::Written && report.failed() > 0 {
        return match rewrite(&report, &loaded) {
            // What was written is read again and run again: it has to pass.
            Ok(()) => again(request, options, colour),
            Err(message) => text::fail(&message, Exit::No),
        };
    }
    if let Err(message) = print(&report, request, colour) {
        return text::fail(&message, Exit::Bug);
    }
    match report.failed() {
        0 => Exit::Done,
        _ => Exit::No,
    }
}

/// Writes what came out into the tests, and says what was changed.
fn rewrite(report: &Report<'_>, loaded: &Loaded) -> Result<(), String> {
    let update = case::update::update(report, &loaded.document);
    for (place, words) in &update.changed {
        text::err(&format!("{place}: {words}"));
    }
    for (place, why) in &update.left {
        text::err(&format!("{place}: not changed: {why}"));
    }
    for (path, text) in &update.files {
        std::fs::write(path, text)
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    }
    Ok(())
}

fn again(request: &TestRequest, options: &LoadOptions<'_>, colour: Colour) -> Exit {
    let request = TestRequest {
        update: Update::Never,
        ..request.clone()
    };
    run(&request, options, colour)
}

fn load(request: &TestRequest, options: &LoadOptions<'_>, colour: Colour) -> Result<Loaded, Exit> {
    let mut files = request.files.clone();
    match request.tests.as_slice() {
        [] => files.extend(test_files::beside(&request.files)),
        tests => files.extend_from_slice(tests),
    }
    config::load(&files, options).map_err(|rejected| {
        text::err(rejected.render(colour).trim_end());
        Exit::No
    })
}

fn nothing_to_do(loaded: &Loaded, request: &TestRequest) -> String {
    match (&request.only, loaded.tests.len()) {
        (Some(only), all) if all > 0 => format!("none of {all} tests is called like `{only}`"),
        _ => {
            "there are no tests: write some under `tests:`, or into a *.test.yaml file beside the \
              configuration"
                .to_owned()
        }
    }
}

fn print(report: &Report<'_>, request: &TestRequest, colour: Colour) -> Result<(), String> {
    match request.format {
        TestFormat::Text => {
            let mut text = case::text::report(report, colour);
            if request.coverage == Coverage::Shown {
                text.push_str(&case::text::coverage(&report.coverage, colour));
            }
            text::out(&text);
        }
        TestFormat::Json => text::out(&format!("{:#}", machine::json(report))),
        TestFormat::Junit => text::out(&machine::junit(report)?),
    }
    Ok(())
}

/// Which tests `--only` means: those whose name contains its text, or matches it as a regex.
struct Chosen<'o> {
    text: &'o str,
    regex: Option<Regex>,
}

impl<'o> Chosen<'o> {
    fn of(only: Option<&'o str>) -> Result<Self, String> {
        let text = only.unwrap_or_default();
        match Regex::new(text) {
            Ok(regex) => Ok(Self {
                text,
                regex: Some(regex),
            }),
            // A name may well have a bracket in it.
            Err(_) if text.chars().any(char::is_alphanumeric) => Ok(Self { text, regex: None }),
            Err(error) => Err(format!("--only: {error}")),
        }
    }

    fn takes(&self, case: &Case) -> bool {
        let matches = |regex: &Regex| regex.is_match(&case.name);
        case.name.contains(self.text) || self.regex.as_ref().is_some_and(matches)
    }
}
