//! A file of many routes as they are: two clusters for each ten of them, patterns that say whose topics
//! they are, a shared chain and handlers of their own.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Routes that share a pair of clusters.
const TOGETHER: usize = 10;

const HEAD: &str = "version: 1
group: many

handlers: # named chains, for `use:`
  hygiene:
    - filter: { drop: tombstone }
    - reformat: { unset: [header.x-debug, 'header.internal-*', value.customer.phone] }

defaults:
  topic_creation: { replication_factor: 3 }
  limits: { in_flight: 16MiB }

";

/// Writes a file of `routes` routes; `round` stands in one of them, so that another round is a change of
/// that one.
pub fn write(folder: &Path, routes: usize, round: usize) -> PathBuf {
    let file = folder.join(format!("{routes}.yaml"));
    std::fs::write(&file, text(routes, round)).expect("the file is written");
    file
}

fn text(routes: usize, round: usize) -> String {
    let mut text = HEAD.to_owned();
    text += "clusters:\n";
    for region in 0..routes.div_ceil(TOGETHER) {
        let _ = write!(
            text,
            "  region-{region}:
    bootstrap_servers: [kafka-1.r{region}.example:9092, kafka-2.r{region}.example:9092]
    access: read
  hub-{region}:
    bootstrap_servers: [hub-1.h{region}.example:9092, hub-2.h{region}.example:9092]
    properties: {{ client.rack: rack-{region} }}
"
        );
    }
    text += "\nroutes:\n";
    for n in 0..routes {
        let region = n / TOGETHER;
        let round = if n == routes / 2 { round } else { 0 };
        let _ = write!(
            text,
            "  team-{n}:
    about: The orders and payments of team {n}, paid ones only.
    source: region-{region}
    target: hub-{region}
    topics:
      include: [team-{n}\\.orders, 'team-{n}\\.payments\\.[a-z]+']
      exclude: ['.+\\.test']
    handlers:
      - use: hygiene
      - filter: {{ keep: {{ value.status: paid, value.amount: {{ gt: 100 }} }} }}
        name: paid
      - filter: {{ drop: \"value.country == 'XX' && value.items.size() > {n}\" }}
      - rename: {{ topic: '{{source}}.{{topic}}' }}
      - reformat: {{ set: {{ header.x-dc: '{{source}}', header.x-round: '{round}' }} }}
      - reformat: {{ mask: {{ fields: [value.user.email], with: redact }} }}
        on_error: dead_letter
    dead_letter: {{ topic: rejected.team-{n} }}
    partitions: key_hash
    commit_interval: 1s
"
        );
    }
    text
}
