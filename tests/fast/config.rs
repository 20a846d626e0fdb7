//! The configuration from outside: what a user of the library sees of a file.

use mirror::config::interpolate::Variables;
use mirror::config::render::Colour;
use mirror::config::{LoadOptions, Loaded, Rejected, load};
use mirror::flow::listener::Listeners;
use mirror::handler::Registry;
use std::path::PathBuf;

fn load_text(text: &str) -> Result<Loaded, Box<Rejected>> {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("mirror.yaml");
    std::fs::write(&path, text).unwrap();
    let (registry, listeners) = (Registry::default(), Listeners::default());
    let options = LoadOptions {
        environment: &|_| None,
        variables: &Variables::default(),
        registry: &registry,
        listeners: &listeners,
        running: None,
    };
    load(&[path], &options)
}

#[test]
fn a_file_with_several_mistakes_shows_all_of_them() {
    let rejected = load_text(
        "version: 1\n\
         clusters:\n\
         \x20 hub: { bootstrap_servers: ['h:1'], acces: read }\n\
         routes:\n\
         \x20 feed: { source: hub, target: lake, topics: { include: ['(?!a).+'] }, workers: many }\n",
    )
    .unwrap_err();
    let codes: Vec<&str> = rejected
        .diagnostics
        .iter()
        .map(|d| d.code.as_str())
        .collect();
    assert_eq!(codes, ["E0301", "E0402", "E0406", "E0303"]);
    let text = rejected.render(Colour::Never);
    assert!(text.contains("did you mean `access`?"), "{text}");
}

#[test]
fn an_empty_file_is_never_no_routes() {
    for text in ["", "# nothing\n", "version: 1\nclusters: {}\nroutes:\n"] {
        assert!(load_text(text).is_err(), "{text:?}");
    }
}
