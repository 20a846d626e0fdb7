//! What a reload takes beside the configuration that runs.

use crate::allocations::held_by;
use mirror::config::interpolate::Variables;
use mirror::config::render::Colour;
use mirror::config::spec::Spec;
use mirror::config::{LoadOptions, load};
use mirror::flow::listener::Listeners;
use mirror::handler::Registry;
use std::fmt::Write;
use std::path::Path;

const ROUTES: usize = 200;

/// A file in which the route in the middle says `round`.
fn text(round: usize) -> String {
    let mut text = "version: 1
clusters:
  region: { bootstrap_servers: ['r:1'], access: read }
  hub: { bootstrap_servers: ['h:1'] }
routes:
"
    .to_owned();
    for n in 0..ROUTES {
        let round = if n == ROUTES / 2 { round } else { 0 };
        let _ = write!(
            text,
            "  team-{n}:
    source: region
    target: hub
    topics:
      include: [team-{n}\\.orders, 'team-{n}\\.payments\\.[a-z]+']
      exclude: ['.+\\.test']
    handlers:
      - filter: {{ keep: {{ value.status: paid, value.amount: {{ gt: 100 }} }} }}
        name: paid
      - filter: {{ drop: \"value.country == 'XX' && value.items.size() > {n}\" }}
      - rename: {{ topic: '{{source}}.{{topic}}' }}
      - reformat: {{ set: {{ header.x-dc: '{{source}}', header.x-round: '{round}' }} }}
"
        );
    }
    text
}

fn loaded(path: &Path, running: Option<&Spec>) -> Spec {
    let options = LoadOptions {
        environment: &|_| None,
        variables: &Variables::default(),
        registry: &Registry::default(),
        listeners: &Listeners::default(),
        running,
    };
    let loaded = load(&[path.to_path_buf()], &options);
    loaded
        .unwrap_or_else(|rejected| panic!("{}", rejected.render(Colour::Never)))
        .spec
}

#[test]
fn a_reload_takes_the_document_and_little_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mirror.yaml");
    let file = |round: usize| {
        let text = text(round);
        std::fs::write(&path, &text).unwrap();
        text.len() as isize
    };
    file(0);
    let (running, _, whole) = held_by(|| loaded(&path, None));
    let bytes = file(1);
    let (wanted, most, more) = held_by(|| loaded(&path, Some(&running)));
    assert_ne!(running, wanted);
    // The tree of a file is some ten times as large as the file.
    assert!(most < 19 * bytes, "{most} bytes for a file of {bytes}");
    assert!(more < whole / 4, "{more} bytes more, beside {whole}");
}
