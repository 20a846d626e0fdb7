//! The examples, whole and mutilated; and anything at all as a file.

use super::config_tests::{file, lines, load_paths, load_text};
use super::*;
use std::collections::BTreeSet;
use std::path::Path;

fn examples() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut examples = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "yaml") {
            let text = std::fs::read_to_string(&path).unwrap();
            examples.push((path, text));
        }
    }
    assert!(examples.len() >= 4);
    examples
}

#[test]
fn every_example_is_sound_and_without_warnings() {
    for (path, _) in examples() {
        match load_paths(&[path]) {
            Ok(loaded) => assert!(
                loaded.warnings.is_empty(),
                "{}",
                loaded.render(Colour::Never)
            ),
            Err(rejected) => panic!("{}", rejected.render(Colour::Never)),
        }
    }
}

/// Keys of the file's own grammar: not names, not properties, not inside steps, not what the
/// records of tests hold.
fn is_grammar(pointer: &str) -> bool {
    let steps: Vec<&str> = pointer.split('/').skip(1).collect();
    let is_name = matches!(
        steps.as_slice(),
        ["clusters" | "routes" | "handlers", _] | ["handlers", ..]
    );
    let held = ["/key/", "/value/", "/headers/", "/headers_exactly/"];
    let is_held = steps.first() == Some(&"tests") && held.iter().any(|h| pointer.contains(h));
    let elsewhere = steps.contains(&"handlers") || pointer.contains("/properties/");
    !(is_name || is_held || elsewhere)
}

#[test]
fn every_key_of_the_examples_with_one_letter_changed_is_refused() {
    for (path, text) in examples() {
        let mut sources = Sources::default();
        let index = sources.add(path.clone(), text.clone());
        let tree = tree::parse(&sources, index, &mut Vec::new()).unwrap();
        let mut seen = BTreeSet::new();
        for (pointer, spot) in tree.spots.iter() {
            let Some(key) = spot.key.filter(|_| is_grammar(&pointer)) else {
                continue;
            };
            if !seen.insert(key) {
                continue;
            }
            let mut mutated = text.clone();
            mutated.replace_range(key.end - 1..key.end, "q");
            let place = sources.place(key);
            let rejected = load_text(&mutated).err();
            let rejected = rejected.unwrap_or_else(|| panic!("accepted: {pointer} of {place}"));
            assert!(
                rejected
                    .diagnostics
                    .iter()
                    .any(|d| d.code == Code::UnknownKey),
                "{pointer}: {:?}",
                lines(&rejected.diagnostics)
            );
        }
    }
}

mod any_input {
    use super::*;
    use proptest::prelude::*;

    fn never_panics(bytes: &[u8]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.yaml");
        std::fs::write(&path, bytes).unwrap();
        if let Err(rejected) = load_paths(&[path]) {
            assert!(!rejected.first_error().is_empty());
            rejected.render(Colour::Never);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            never_panics(&bytes);
        }

        #[test]
        fn yaml_like(text in "[a-z${}\\[\\]:,&*<>!|'\"#%\\\\ \n\tü0-9~-]{0,120}") {
            never_panics(text.as_bytes());
        }

        #[test]
        fn mutilated(at in 0usize..900, with in "[\\[\\]{}:'\"$\n -]{1,3}") {
            let mut text = file(", sasl: { mechanism: PLAIN, username: u, password: p }", "    partitions: { fixed: 1 }\n    handlers: [{ use: h }]\n", "handlers: { h: [] }\ninclude: ['x*.yaml']\n");
            let at = at.min(text.len());
            text.insert_str(at, &with);
            never_panics(text.as_bytes());
        }
    }
}
