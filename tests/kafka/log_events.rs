//! What happens to a source log is named and never silent: retention, deletion, aborted transactions.

use crate::support::checker::check;
use crate::support::cluster::{Admin, pair};
use crate::support::flow::Flow;
use crate::support::reader::read;
use crate::support::record::Record;
use crate::support::route::{cluster, flow_spec, route, workers};
use crate::support::transaction::{abort, commit};
use crate::support::wait::{self, PATIENCE};
use crate::support::workload::{Writer, field, fill};
use mirror::config::spec::{OnGap, RouteSpec, Until};
use mirror::flow::FlowExit;
use mirror::observe::{Counters, Reason};
use mirror::record::TopicPartition;

fn start(spec: RouteSpec) -> Flow {
    let pair = pair();
    let source = cluster("source", &pair.source.bootstrap());
    Flow::start(flow_spec(
        spec,
        source,
        cluster("target", &pair.target.bootstrap()),
    ))
}

/// Copies 1,000 records, stops, writes 1,000 more and lets retention take 1,300.
fn gap(topic: &str) -> (crate::support::expected::Expected, TopicPartition) {
    let source = pair().source.bootstrap();
    let admin = Admin::new(&source);
    admin.create(topic, 1, &[]);
    let first = fill(&source, &[field(topic, 1)], 1000);
    let flow = start(route(topic, topic, workers(1)));
    flow.wait_settled(1000, PATIENCE);
    assert_eq!(flow.drain(), FlowExit::Drained);
    let mut writer = Writer::resume(&source, first);
    writer.fill(&[field(topic, 1)], 1000);
    let expected = writer.finish();
    admin.delete_records(topic, 0, 1300);
    (expected, TopicPartition::new(topic, 0))
}

#[test]
fn retention_that_passes_the_position_stops_the_partition_with_the_exact_range() {
    let topic = "events-gap-stop";
    let (_, tp) = gap(topic);
    let flow = start(route(topic, topic, workers(1)));
    let view = flow.wait_reason(&tp, "gap", PATIENCE);
    assert_eq!(
        view.condition.reason,
        Some(Reason::Gap {
            from: 1000,
            to: 1300
        })
    );
    assert_eq!(Counters::get(&flow.counters().fetched_records), 0);
}

#[test]
fn retention_that_passes_the_position_is_counted_where_the_user_says_go_on() {
    let topic = "events-gap-earliest";
    let (mut expected, _) = gap(topic);
    let flow = start(RouteSpec {
        on_gap: OnGap::Earliest,
        ..route(topic, topic, workers(1))
    });
    flow.wait_settled(700, PATIENCE);
    flow.wait_no_lag(PATIENCE);
    assert_eq!(Counters::get(&flow.counters().gap_records), 300);
    assert_eq!(flow.drain(), FlowExit::Drained);
    (1000..1300).for_each(|n| expected.leave_out((topic.to_owned(), 0), n));
    check(
        &expected,
        &read(&pair().target.bootstrap(), [topic]),
        str::to_owned,
    )
    .assert_perfect();
}

#[test]
fn retention_passes_a_held_partition_while_mirror_runs() {
    let topic = "events-gap-live";
    let source = pair().source.bootstrap();
    let (admin, hub) = (Admin::new(&source), Admin::new(&pair().target.bootstrap()));
    admin.create(topic, 1, &[]);
    hub.create(topic, 1, &[("max.message.bytes", "2000")]);
    let field = field(topic, 1);
    let mut writer = Writer::new(&source);
    writer.fill(std::slice::from_ref(&field), 500);
    let noise: Vec<u8> = (0..50_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    writer.write(&field, 0, |record| record.value = Some(noise));
    writer.fill(std::slice::from_ref(&field), 500);
    let _expected = writer.finish();
    let flow = start(route(topic, topic, workers(1)));
    let tp = TopicPartition::new(topic, 0);
    flow.wait_reason(&tp, "poison_record", PATIENCE);
    admin.delete_records(topic, 0, 800);
    let view = flow.wait_reason(&tp, "gap", PATIENCE);
    assert_eq!(
        view.condition.reason,
        Some(Reason::Gap { from: 500, to: 800 })
    );
}

#[test]
fn a_trailing_aborted_transaction_leaves_no_lag() {
    let topic = "events-aborted";
    let source = pair().source.bootstrap();
    Admin::new(&source).create(topic, 2, &[]);
    let expected = fill(&source, &[field(topic, 2)], 500);
    let record = |n: i32| Record {
        key: None,
        value: Some(format!("transaction {n}").into_bytes()),
        headers: Vec::new(),
        timestamp: 1_700_000_000_000,
    };
    let written: Vec<(i32, Record)> = (0..1000).map(|n| (n % 2, record(n))).collect();
    commit(&source, topic, &written[..10]);
    abort(&source, topic, &written);

    let flow = start(route("events-aborted-on", topic, workers(1)));
    flow.wait_settled(expected.total() + 10, PATIENCE);
    flow.wait_no_lag(PATIENCE);
    assert_eq!(flow.drain(), FlowExit::Drained);
    let committed =
        Admin::new(&source).committed("mirror.default.events-aborted-on.source.target", topic);
    for (partition, offset) in committed {
        let end = Admin::new(&source).watermarks(topic, partition).1;
        assert_eq!(offset, end, "partition {partition} is committed to its end");
    }
    // `until: end` comes to its end as well, and copies no aborted record.
    let ended = start(RouteSpec {
        until: Until::End,
        ..route("events-aborted-end", topic, workers(1))
    });
    assert_eq!(ended.wait_exit(PATIENCE), FlowExit::CaughtUp);
    let sights = read(&pair().target.bootstrap(), [topic]);
    let strange =
        |s: &&crate::support::checker::Sight| matches!(s, crate::support::checker::Sight::Strange);
    let transactional: usize = sights
        .values()
        .map(|s| s.iter().filter(strange).count())
        .sum();
    assert_eq!(
        transactional,
        2 * 10,
        "twice the committed ones, no aborted one"
    );
}

#[test]
fn a_source_topic_deleted_and_created_again_is_named_and_not_mixed_up() {
    let topic = "events-replaced";
    let source = pair().source.bootstrap();
    let admin = Admin::new(&source);
    admin.create(topic, 2, &[]);
    fill(&source, &[field(topic, 2)], 2000);
    let flow = start(route(topic, topic, workers(1)));
    flow.wait_settled(4000, PATIENCE);
    flow.wait_no_lag(PATIENCE);

    admin.delete(topic);
    admin.create(topic, 2, &[]);
    let new = fill(&source, &[field(topic, 2).prefix("new-")], 3000);
    // Either the position is known to belong to the old topic, and the partitions say so; or the old positions went
    // with the topic, and the new one is copied from its beginning. Never from somewhere in its middle.
    let outcome = wait::find("the new topic is named or copied", PATIENCE, || {
        let views = flow.partitions();
        let named = views.values().any(|v| {
            v.condition
                .reason
                .as_ref()
                .is_some_and(|r| r.code() == "topic_replaced")
        });
        if named {
            return Some("named");
        }
        (flow.delivered() >= 4000 + new.total()).then_some("copied")
    });
    println!("{topic}: {outcome}: {:?}", flow.partitions());
    let sights = read(&pair().target.bootstrap(), [topic]);
    let news: usize = sights
        .values()
        .flatten()
        .filter(|s| matches!(s, crate::support::checker::Sight::Stamped { lane, .. } if lane.0.starts_with("new-")))
        .count();
    let wanted = if outcome == "named" { 0 } else { new.total() };
    assert_eq!(news as u64, wanted, "{outcome}");
}
