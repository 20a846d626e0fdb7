//! The native data plane: what it reads of a log is what is in it, however it was written.

use crate::support::cluster::{Admin, pair};
use crate::support::flow::Flow;
use crate::support::reader::compare;
use crate::support::route::{handlers, route, workers};
use crate::support::transaction::Transaction;
use crate::support::wait::PATIENCE;
use crate::support::workload::{Field, Writer, field};
use mirror::config::spec::{DataPlane, RouteSpec, Until};
use mirror::flow::FlowExit;
use mirror::flow::planes::Plane;

/// More than is asked for of a partition at once.
const LARGE: usize = 3 << 20;

/// Topics that the broker writes in different ways, with the setting that makes it do so.
const WAYS: [(&str, &str, &str); 6] = [
    ("native-plain", "compression.type", "uncompressed"),
    ("native-gzip", "compression.type", "gzip"),
    ("native-snappy", "compression.type", "snappy"),
    ("native-lz4", "compression.type", "lz4"),
    ("native-zstd", "compression.type", "zstd"),
    ("native-large", "max.message.bytes", "8000000"),
];

/// A broker that compresses by itself writes header names anew, and those that are not UTF-8 are others then.
fn readable(topic: &str) -> Field {
    Field {
        change: |_, record| {
            let is_text = |name: &[u8]| std::str::from_utf8(name).is_ok();
            record.headers.retain(|(name, _)| is_text(name));
        },
        ..field(topic, 3)
    }
}

fn natively(name: &str) -> RouteSpec {
    RouteSpec {
        data_plane: DataPlane::Native,
        until: Until::End,
        ..route(name, "native-.*", workers(1))
    }
}

#[test]
fn every_codec_aborted_transactions_and_records_larger_than_a_fetch_are_copied() {
    let pair = pair();
    let (source, target) = (
        Admin::new(&pair.source.bootstrap()),
        pair.target.bootstrap(),
    );
    let fields: Vec<Field> = WAYS.iter().map(|(topic, ..)| readable(topic)).collect();
    for (topic, key, value) in WAYS {
        source.create(topic, 3, &[(key, value)]);
    }
    Admin::new(&target).create("native-large", 3, &[("max.message.bytes", "8000000")]);
    let mut writer = Writer::new(&pair.source.bootstrap());
    let large = Field {
        value_bytes: LARGE,
        ..readable("native-large")
    };
    for _ in 0..3 {
        writer.fill(&fields, 200);
        writer.fill(std::slice::from_ref(&large), 1);
    }
    let expected = writer.finish();
    // What was aborted stands at the end of one log, and nothing of it may come.
    let stray = (0..20).map(|n| {
        let record = crate::support::record::Record {
            key: None,
            value: Some(format!("aborted {n}").into_bytes()),
            headers: Vec::new(),
            timestamp: 1,
        };
        (n % 3, record)
    });
    let stray: Vec<_> = stray.collect();
    Transaction::open(&pair.source.bootstrap(), "native-zstd", &stray).abort();

    for (name, shape) in [("native-w", workers(2)), ("native-h", handlers(2))] {
        let spec = RouteSpec {
            threads: route(name, "", shape).threads,
            ..natively("native")
        };
        // The second finds nothing: the first has committed to the ends, markers included.
        let flow = Flow::copy(spec);
        assert_eq!(flow.view().planes().map(|p| &p.fetch), Some(&Plane::Native));
        assert_eq!(flow.wait_exit(2 * PATIENCE), FlowExit::CaughtUp, "{name}");
    }
    compare(&target, &expected).assert_perfect();
}
