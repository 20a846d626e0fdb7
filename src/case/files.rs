//! Test files: `*.test.yaml`, beside the configuration that they test.

use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::document::Document;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What a test file may say: `version` is what editors like to see first.
const MEMBERS: [&str; 3] = ["version", "tests", "include"];

/// Whether `path` is called like a test file.
pub fn is_test_file(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| {
        [".test.yaml", ".test.yml"]
            .iter()
            .any(|e| name.ends_with(e))
    })
}

/// The test files beside a configuration. One whose name begins with that of another file there
/// (`hub.test.yaml`, `hub.masks.test.yaml` beside `hub.yaml`) belongs to that one alone.
pub fn beside(configuration: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    for path in configuration {
        let folder = match path.is_dir() {
            true => path.as_path(),
            false => path.parent().unwrap_or(Path::new("")),
        };
        let here = files_of(folder);
        let tests = here.iter().filter(|file| is_test_file(file));
        let ours = tests.filter(|test| owner(test, &here).is_none_or(|owner| is_of(path, owner)));
        found.extend(ours.cloned());
    }
    found.into_iter().collect()
}

/// Whether `owner` is the configuration at `path`, or in it.
fn is_of(path: &Path, owner: &Path) -> bool {
    path.is_dir() || path.file_name() == owner.file_name()
}

/// The configuration that the name of a test file begins with.
fn owner<'f>(test: &Path, files: &'f [PathBuf]) -> Option<&'f Path> {
    let test = test.file_name()?.to_string_lossy().into_owned();
    let others = files.iter().filter(|file| !is_test_file(file));
    let mut owners = others.filter(|file| {
        let stem = file.file_stem().map(|s| s.to_string_lossy().into_owned());
        stem.is_some_and(|stem| test.starts_with(&format!("{stem}.")))
    });
    owners.next().map(PathBuf::as_path)
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let opened = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let entries = std::fs::read_dir(opened).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let yaml = names.filter(|name| name.ends_with(".yaml") || name.ends_with(".yml"));
    let mut files: Vec<PathBuf> = yaml
        .filter(|name| !name.starts_with('.'))
        .map(|name| folder.join(name))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

/// Reports what test files say beside tests: it would hold in the tests and nowhere else.
pub fn refuse_others(document: &Document, found: &mut Vec<Diagnostic>) {
    let files = document.sources.iter();
    let is_test: Vec<bool> = files.map(|file| is_test_file(&file.path)).collect();
    if !is_test.contains(&true) {
        return;
    }
    let mut seen = BTreeSet::new();
    for (pointer, spot) in document.spots.iter() {
        let member = pointer.split('/').nth(1).unwrap_or_default();
        let in_test = is_test.get(spot.value.file) == Some(&true);
        let other = in_test && spot.key.is_some() && !MEMBERS.contains(&member);
        if !other || !seen.insert((spot.value.file, member.to_owned())) {
            continue;
        }
        let place = document.place_of_key(&pointer);
        let message = format!("a test file has only `tests:`, not `{member}`");
        let help = "what stands here would hold in the tests and not in what runs";
        found.push(Diagnostic::new(Code::NotATest, place, message).help(help));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[PathBuf]) -> Vec<String> {
        let name = |p: &PathBuf| p.file_name().unwrap().to_string_lossy().into_owned();
        paths.iter().map(name).collect()
    }

    #[test]
    fn a_test_file_belongs_to_the_configuration_that_it_is_called_like_or_to_all() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let files = [
            "a.yaml",
            "b.yaml",
            "a.test.yaml",
            "a.x.test.yaml",
            "all.test.yml",
        ];
        for file in files {
            std::fs::write(here.join(file), "").unwrap();
        }
        let of = |file: &str| names(&beside(&[here.join(file)]));
        assert_eq!(
            of("a.yaml"),
            ["a.test.yaml", "a.x.test.yaml", "all.test.yml"]
        );
        assert_eq!(of("b.yaml"), ["all.test.yml"]);
        assert_eq!(of(""), ["a.test.yaml", "a.x.test.yaml", "all.test.yml"]);
    }
}
