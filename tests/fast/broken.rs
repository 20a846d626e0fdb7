//! Files that are wrong, each with what must be said about it, and where.
//!
//! `tests/broken/*.yaml`: the comments at the head say `expect: LINE:COLUMN CODE` for each
//! diagnostic (`-` for the file as a whole), and `with: OPTION` where an option is needed.

use mirror::cli::check::{self, Ask, CheckOptions, Demand, Format, Outcome, Warnings};
use mirror::config::LoadOptions;
use mirror::config::interpolate::{Unset, Variables};
use mirror::flow::listener::Listeners;
use mirror::handler::Registry;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// What the head of a file says behind `word`.
fn head<'t>(text: &'t str, word: &str) -> Vec<&'t str> {
    let lines = text.lines().take_while(|line| line.starts_with('#'));
    let said = lines.filter_map(|line| line.strip_prefix("# ")?.strip_prefix(word));
    said.map(str::trim).collect()
}

/// `LINE:COLUMN CODE` of every diagnostic, and what came out.
fn said(path: &Path, text: &str) -> (Vec<String>, Outcome) {
    let with = head(text, "with:");
    let (registry, listeners) = (Registry::default(), Listeners::default());
    let variables = Variables {
        unset: match with.contains(&"--allow-unset") {
            true => Unset::Empty,
            false => Unset::Refused,
        },
        ..Variables::default()
    };
    let options = CheckOptions {
        load: LoadOptions {
            environment: &|_| None,
            variables: &variables,
            registry: &registry,
            listeners: &listeners,
            running: None,
        },
        format: Format::Json,
        warnings: Warnings::Deny,
        demand: match with.contains(&"--no-data-loss") {
            true => Demand::NoDataLoss,
            false => Demand::Sound,
        },
        ask: Ask::Nobody,
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let outcome = check::run(&[path.to_path_buf()], &options, &mut out, &mut err).unwrap();
    let result: Value = serde_json::from_slice(&out).unwrap();
    let line = |d: &Value| {
        let (place, code) = (&d["place"], d["code"].as_str().unwrap());
        match place["line"].as_u64() {
            Some(line) => format!("{line}:{} {code}", place["column"]),
            None => format!("- {code}"),
        }
    };
    let mut said: Vec<String> = result["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(line)
        .collect();
    said.sort();
    (said, outcome)
}

#[test]
fn every_broken_file_is_answered_as_it_says() {
    let mut wrong = Vec::new();
    let files = files();
    assert!(files.len() >= 60);
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut expected: Vec<String> = head(&text, "expect:")
            .into_iter()
            .map(str::to_owned)
            .collect();
        expected.sort();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(!expected.is_empty(), "{name} expects nothing");
        let errors = expected.iter().any(|line| line.contains(" E"));
        let (said, outcome) = said(&path, &text);
        let code = if errors { 1 } else { 3 };
        if said != expected || outcome.code() != code {
            wrong.push(format!(
                "{name}: exit {}, said {said:?}, expected {expected:?}",
                outcome.code()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A code that a file alone can have stands in one of the files.
#[test]
fn every_code_of_a_file_is_among_them() {
    let texts: String = files()
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    for code in mirror::config::diagnostic::Code::ALL {
        let offline = code
            .story()
            .wrong
            .iter()
            .all(|e| e.seen == mirror::config::story::Seen::Offline);
        // Of two files.
        let several = code.story().wrong.len() > 1;
        if offline && !several {
            assert!(
                texts.contains(&format!(" {}\n", code.as_str())),
                "{}",
                code.as_str()
            );
        }
    }
}
