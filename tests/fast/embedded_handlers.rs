//! Handlers inside a flow: what they make of records, and what becomes of those they fail on.

use crate::embedded::{Cluster, Rec, wait_until};
use crate::embedded_running::{File, copy};
use mirror::config::spec::Until;
use mirror::flow::{Environment, FlowExit};
use mirror::handler::{Failure, FailureCode, Handler, Reads};
use mirror::observe::{Counters, Reason};
use mirror::record::Record;
use std::sync::Arc;

fn clusters(records: &[Rec]) -> (Cluster, Cluster) {
    let (a, b) = (Cluster::start(), Cluster::start());
    a.create_topic("orders", 1, &[]);
    a.produce("orders", records);
    (a, b)
}

fn values(cluster: &Cluster, topic: &str) -> Vec<String> {
    let records = cluster.read(topic);
    records.iter().map(|r| r.text().to_owned()).collect()
}

/// One good record, one that is not JSON, one more good one.
fn with_a_bad_one() -> Vec<Rec> {
    vec![
        Rec::new(0, "1", r#"{"id":1}"#),
        Rec::new(0, "2", "no json").header("h", Some("v")),
        Rec::new(0, "3", r#"{"id":3}"#),
    ]
}

const NEEDS_JSON: &str =
    "    handlers: [{ rename: { topic: 'out-{value.id}', allow: ['out-.+', out-1, out-3] } }]\n";

#[test]
fn filter_rename_and_reformat() {
    let mut tombstone = Rec::new(0, "t", "");
    tombstone.value = None;
    let (a, b) = clusters(&[
        tombstone,
        Rec::new(0, "1", r#"{"ok":true, "n":1}"#).header("x-debug", Some("1")),
        Rec::new(0, "2", r#"{"ok":false, "n":2}"#),
    ]);
    let chain = "    handlers:
      - filter: { drop: tombstone }
      - filter: { keep: { value.ok: true } }
      - rename: { topic: '{source}.{topic}' }
      - reformat: { unset: [header.x-debug] }
      - reformat: { set: { header.x-dc: '{source}', value.seen: true } }
";
    File::new(&copy(&a, &b, chain)).copy_all();
    let expected = Rec::new(0, "1", r#"{"ok":true, "n":1,"seen":true}"#).header("x-dc", Some("a"));
    assert_eq!(b.read("a.orders"), [expected]);
    assert_eq!(b.partitions("orders"), 0);
}

#[test]
fn a_split_is_counted_once_and_arrives_whole() {
    let (a, b) = clusters(&[
        Rec::new(0, "1", r#"{"id":1,"items":["x","y","z"]}"#),
        Rec::new(0, "2", r#"{"id":2,"items":[]}"#),
        Rec::new(0, "3", r#"{"id":3,"items":["w"]}"#),
    ]);
    let chain = "    handlers:
      - reformat: { split: { array: value.items, into: value.item, carry: [value.id] } }
";
    let file = File::new(&copy(&a, &b, chain));
    let running = file.start(Until::End);
    assert_eq!(running[0].exit(), FlowExit::CaughtUp);
    let counters = &running[0].handle.view.counters;
    assert_eq!(Counters::get(&counters.fetched_records), 3);
    assert_eq!(Counters::get(&counters.delivered_records), 2);
    assert_eq!(Counters::get(&counters.dropped_records), 1);
    assert_eq!(Counters::get(&counters.produced_records), 4);
    assert_eq!(b.count("orders"), 4);
    assert_eq!(values(&b, "orders")[3], r#"{"id":3,"item":"w"}"#);
}

#[test]
fn skip_leaves_the_bad_record_out() {
    let (a, b) = clusters(&with_a_bad_one());
    let file = File::new(&copy(&a, &b, &format!("{NEEDS_JSON}    on_error: skip\n")));
    let running = file.start(Until::End);
    assert_eq!(running[0].exit(), FlowExit::CaughtUp);
    assert_eq!(values(&b, "out-1"), [r#"{"id":1}"#]);
    assert_eq!(values(&b, "out-3"), [r#"{"id":3}"#]);
    let counters = &running[0].handle.view.counters;
    assert_eq!(Counters::get(&counters.skipped_records), 1);
}

#[test]
fn a_dead_letter_keeps_the_bytes_and_says_why() {
    let (a, b) = clusters(&with_a_bad_one());
    let more =
        format!("{NEEDS_JSON}    on_error: dead_letter\n    dead_letter: {{ topic: rejected }}\n");
    File::new(&copy(&a, &b, &more)).copy_all();
    let letters = b.read("rejected");
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].text(), "no json");
    assert_eq!(letters[0].headers[0].0, "h");
    let header = |name: &str| {
        let found = letters[0].headers.iter().find(|(n, _)| n == name);
        let value = found.and_then(|(_, v)| v.clone()).unwrap_or_default();
        String::from_utf8(value).expect("text")
    };
    assert_eq!(header("mirror.source.topic"), "orders");
    assert_eq!(header("mirror.source.offset"), "1");
    assert_eq!(header("mirror.error.code"), "not_json");
    assert_eq!(values(&b, "out-3"), [r#"{"id":3}"#]);
}

#[test]
fn stop_holds_the_partition_and_says_where() {
    let (a, b) = clusters(&with_a_bad_one());
    let file = File::new(&copy(&a, &b, NEEDS_JSON));
    let running = file.start(Until::Stopped);
    let view = &running[0].handle.view;
    wait_until("the partition is held", || {
        let partitions = view.partitions();
        let mut reasons = partitions
            .values()
            .filter_map(|p| p.condition.reason.as_ref());
        reasons.any(|r| matches!(r, Reason::PoisonRecord { offset: 1, .. }))
    });
    wait_until("what came before is committed", || {
        let committed = a.committed("mirror.default.copy.a.b", "orders", 0);
        committed.is_some_and(|(offset, _)| offset == 1)
    });
    assert_eq!(running[0].drain(), FlowExit::Drained);
    assert_eq!(b.count("out-1"), 1);
    assert_eq!(b.count("out-3"), 0);
}

/// Counts in words, and panics on one record.
struct Shouts;

impl Handler for Shouts {
    fn reads(&self) -> Reads {
        Reads::Value
    }

    fn handle<'a>(
        &'a self,
        mut record: Record<'a>,
        out: &mut Vec<Record<'a>>,
    ) -> Result<(), Failure> {
        let text =
            String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned();
        match text.as_str() {
            "panic" => panic!("on purpose"),
            "fail" => {
                return Err(Failure {
                    code: FailureCode::WrongType,
                    detail: "on purpose".into(),
                });
            }
            _ => {}
        }
        record.value = Some(text.to_uppercase().into_bytes().into());
        out.push(record);
        Ok(())
    }
}

#[test]
fn a_registered_handler_may_fail_and_panic() {
    let words = ["a", "panic", "fail", "b"];
    let records = words.map(|w| Rec::new(0, w, w));
    let (a, b) = clusters(&records);
    let mut environment = Environment::default();
    environment.handlers.register("shouts", Arc::new(Shouts));
    let text = copy(
        &a,
        &b,
        "    handlers: [{ use: shouts }]\n    on_error: skip\n",
    );
    File::embedding(&text, environment).copy_all();
    assert_eq!(values(&b, "orders"), ["A", "B"]);
}
