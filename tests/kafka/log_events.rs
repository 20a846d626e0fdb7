//! What happens to a source log is named and never silent: retention, deletion, open and aborted transactions.

use crate::support::checker::{Sight, Sights, check};
use crate::support::cluster::{Admin, pair};
use crate::support::expected::Expected;
use crate::support::flow::Flow;
use crate::support::process::{self, Mirror, Setup, in_shape};
use crate::support::reader::{compare, read};
use crate::support::record::Record;
use crate::support::route::{Shape, chain, handlers, route, shapes, workers};
use crate::support::transaction::Transaction;
use crate::support::wait::{self, PATIENCE};
use crate::support::workload::{Writer, field, fill, noise};
use mirror::config::spec::{OnGap, RouteSpec, Until};
use mirror::flow::FlowExit;
use mirror::observe::{Counters, Reason};
use mirror::record::TopicPartition;
use serde_json::{Value, json};

/// Copies 1,000 records, stops, writes 1,000 more and lets retention take 1,300.
fn gap(topic: &str, shape: Shape) -> (Expected, TopicPartition) {
    let source = pair().source.bootstrap();
    let admin = Admin::new(&source);
    admin.create(topic, 1, &[]);
    let first = fill(&source, &[field(topic, 1)], 1000);
    let flow = Flow::copy(route(topic, topic, shape));
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
    for shape in shapes(&[workers(1)]) {
        let topic = format!("events-gap-stop-{shape}");
        let (_, tp) = gap(&topic, shape);
        let flow = Flow::copy(route(&topic, &topic, shape));
        let view = flow.wait_reason(&tp, "gap", PATIENCE);
        let missing = Reason::Gap {
            from: 1000,
            to: 1300,
        };
        assert_eq!(view.condition.reason, Some(missing));
        assert_eq!(Counters::get(&flow.counters().fetched_records), 0);
        wait::until("the lag counts from the position", PATIENCE, || {
            flow.view().lag() == (1000, true)
        });
    }
}

#[test]
fn retention_that_passes_the_position_is_counted_where_the_user_says_go_on() {
    for shape in shapes(&[handlers(3)]) {
        let topic = format!("events-gap-earliest-{shape}");
        let (mut expected, _) = gap(&topic, shape);
        let flow = Flow::copy(RouteSpec {
            on_gap: OnGap::Earliest,
            ..route(&topic, &topic, shape)
        });
        flow.wait_settled(700, PATIENCE);
        flow.wait_no_lag(PATIENCE);
        assert_eq!(Counters::get(&flow.counters().gap_records), 300);
        assert_eq!(flow.drain(), FlowExit::Drained);
        (1000..1300).for_each(|n| expected.leave_out((topic.clone(), 0), n));
        compare(&pair().target.bootstrap(), &expected).assert_perfect();
    }
}

#[test]
fn retention_passes_a_held_partition_while_mirror_runs() {
    for shape in shapes(&[workers(1)]) {
        let topic = format!("events-gap-live-{shape}");
        let source = pair().source.bootstrap();
        let (admin, hub) = (Admin::new(&source), Admin::new(&pair().target.bootstrap()));
        admin.create(&topic, 1, &[]);
        hub.create(&topic, 1, &[("max.message.bytes", "2000")]);
        let field = field(&topic, 1);
        let mut writer = Writer::new(&source);
        writer.fill(std::slice::from_ref(&field), 500);
        writer.write(&field, 0, |record| record.value = Some(noise(50_000)));
        writer.fill(std::slice::from_ref(&field), 500);
        writer.finish();
        let flow = Flow::copy(route(&topic, &topic, shape));
        let tp = TopicPartition::new(topic.as_str(), 0);
        flow.wait_reason(&tp, "poison_record", PATIENCE);
        admin.delete_records(&topic, 0, 800);
        let view = flow.wait_reason(&tp, "gap", PATIENCE);
        let missing = Reason::Gap { from: 500, to: 800 };
        assert_eq!(view.condition.reason, Some(missing));
    }
}

/// A record that belongs to no workload, for transactions.
fn plain(n: i32) -> (i32, Record) {
    let record = Record {
        key: None,
        value: Some(format!("transaction {n}").into_bytes()),
        headers: Vec::new(),
        timestamp: 1_700_000_000_000,
    };
    (n % 2, record)
}

/// Records at the target that belong to no workload.
fn plain_ones(sights: &Sights) -> usize {
    let all = sights.values().flatten();
    all.filter(|s| matches!(s, Sight::Strange)).count()
}

#[test]
fn a_trailing_aborted_transaction_leaves_no_lag() {
    for shape in shapes(&[workers(1)]) {
        let topic = format!("events-aborted-{shape}");
        let source = pair().source.bootstrap();
        Admin::new(&source).create(&topic, 2, &[]);
        let expected = fill(&source, &[field(&topic, 2)], 500);
        let written: Vec<(i32, Record)> = (0..1000).map(plain).collect();
        Transaction::open(&source, &topic, &written[..10]).commit();
        Transaction::open(&source, &topic, &written).abort();

        let name = format!("events-aborted-on-{shape}");
        let flow = Flow::copy(route(&name, &topic, shape));
        flow.wait_settled(expected.total() + 10, PATIENCE);
        flow.wait_no_lag(PATIENCE);
        assert_eq!(flow.drain(), FlowExit::Drained);
        let group = format!("mirror.default.{name}.source.target");
        for (partition, offset) in Admin::new(&source).committed(&group, &topic) {
            let end = Admin::new(&source).watermarks(&topic, partition).1;
            assert_eq!(offset, end, "partition {partition} is committed to its end");
        }
        // `until: end` comes to its end as well, and copies no aborted record.
        let ended = Flow::copy(RouteSpec {
            until: Until::End,
            ..route(&format!("events-aborted-end-{shape}"), &topic, shape)
        });
        assert_eq!(ended.wait_exit(PATIENCE), FlowExit::CaughtUp);
        let copied = plain_ones(&read(&pair().target.bootstrap(), [&topic]));
        assert_eq!(copied, 2 * 10, "twice the committed ones, no aborted one");
    }
}

#[test]
fn an_open_transaction_is_what_its_partition_waits_for() {
    for shape in shapes(&[handlers(3)]) {
        let topic = format!("events-open-{shape}");
        let source = pair().source.bootstrap();
        Admin::new(&source).create(&topic, 2, &[]);
        let mut expected = fill(&source, &[field(&topic, 2)], 500);
        let flow = Flow::copy(route(&topic, &topic, shape));
        flow.wait_settled(1000, PATIENCE);

        // Only partition 0 is in it; what follows there has to wait too, and is not counted as lag.
        let written: Vec<(i32, Record)> = (0..10).map(|n| plain(2 * n)).collect();
        let open = Transaction::open(&source, &topic, &written);
        let mut writer = Writer::resume(&source, expected);
        writer.fill(&[field(&topic, 2)], 100);
        expected = writer.finish();
        let tp = |partition| TopicPartition::new(topic.as_str(), partition);
        let view = flow.wait_reason(&tp(0), "open_transaction", PATIENCE);
        let reason = Some(Reason::OpenTransaction { offset: 500 });
        assert_eq!(view.condition.reason, reason);
        wait::until("the flow says so too", PATIENCE, || {
            flow.view().condition().reason == reason
        });
        flow.wait_settled(1100, PATIENCE);
        flow.wait_no_lag(PATIENCE);
        assert_eq!(flow.partitions()[&tp(1)].condition.reason, None);
        assert_eq!(flow.delivered(), 1100, "nothing of what is held back");
        // `until: end` ends at the last stable offset.
        let until_end = RouteSpec {
            until: Until::End,
            chain: chain(json!([{ "rename": { "topic": "{route}.{topic}" } }])),
            ..route(&format!("{topic}-end"), &topic, shape)
        };
        let exit = Flow::copy(until_end).wait_exit(PATIENCE);
        assert_eq!(exit, FlowExit::CaughtUp);

        open.commit();
        flow.wait_settled(1210, PATIENCE);
        wait::until("nothing is waited for", PATIENCE, || {
            flow.partitions()[&tp(0)].condition.reason.is_none()
        });
        flow.wait_no_lag(PATIENCE);
        assert_eq!(flow.drain(), FlowExit::Drained);
        let verdict = compare(&pair().target.bootstrap(), &expected);
        let of_the_transaction = written.len() as u64;
        assert_eq!(verdict.invented, of_the_transaction, "{verdict}");
        assert_eq!(
            (verdict.lost, verdict.reordered, verdict.repeated),
            (0, 0, 0)
        );
    }
}

/// How a topic is replaced.
#[derive(Clone, Copy)]
enum Replaced {
    /// Mirror sees that it is gone, and later that it is there again.
    Slowly,
    /// It is there again before anybody looks, and soon longer than the old one was.
    AtOnce,
}

/// A topic's id, by Kafka's own program.
fn topic_id(topic: &str) -> String {
    let pair = pair();
    let server = pair.source.bootstrap();
    let args = [
        "--bootstrap-server",
        &server,
        "--describe",
        "--topic",
        topic,
    ];
    let said = pair
        .source
        .tool("org.apache.kafka.tools.TopicCommand", &args);
    let said = said.expect("the topic is described");
    let id = said
        .split("TopicId: ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next());
    id.expect("an id").to_owned()
}

/// What the route's partitions are held for, once both are.
fn wait_replaced(mirror: &mut Mirror) -> Vec<Value> {
    wait::find("both partitions are named", PATIENCE, || {
        mirror.assert_running();
        let status = mirror.status()?;
        let listed = status["routes"]["copy"]["flows"][0]["partitions_listed"].as_array()?;
        let named = |p: &&Value| p["reason"]["code"] == "topic_replaced";
        let named: Vec<Value> = listed.iter().filter(named).cloned().collect();
        (named.len() == 2).then_some(named)
    })
}

/// With `start: latest`, which must not be applied to the new topic: it would pass over what is in it.
fn replaced(topic: &str, shape: Shape, how: Replaced) {
    let (source, target) = (pair().source.bootstrap(), pair().target.bootstrap());
    let admin = Admin::new(&source);
    admin.create(topic, 2, &[]);
    let mut copy = in_shape(process::route("source", "target", topic), shape);
    copy["start"] = json!("latest");
    let setup = Setup::new(
        json!({ "source": process::cluster(&source), "target": process::cluster(&target) }),
        json!({ "copy": copy }),
    );
    let mut mirror = setup.run(&[]);
    mirror.wait_no_lag("copy");
    let old = fill(&source, &[field(topic, 2)], 2000);
    mirror.wait_delivered("copy", 4000);
    mirror.wait_no_lag("copy");
    // A stop names what was not committed when its topic went.
    wait::until("all is committed", PATIENCE, || {
        let committed = admin.committed("mirror.default.copy.source.target", topic);
        committed.values().sum::<i64>() == 4000
    });
    let was = topic_id(topic);

    admin.delete(topic);
    if matches!(how, Replaced::Slowly) {
        wait::until("mirror sees that the topic is gone", PATIENCE, || {
            mirror.number("copy", "topics") == 0
        });
    }
    admin.create(topic, 2, &[]);
    let new = fill(&source, &[field(topic, 2).prefix("new-")], 3000);
    let held = wait_replaced(&mut mirror);
    let now = topic_id(topic);
    for partition in &held {
        let text = partition["reason"]["text"].as_str().unwrap_or_default();
        assert!(text.contains(&was) && text.contains(&now), "{text}");
    }
    let logged = setup.logged("topic_replaced");
    for partition in 0..2 {
        let named = json!({ "cluster": "source", "topic": topic, "partition": partition, "was": was, "now": now });
        let says = |line: &&Value| {
            named
                .as_object()
                .unwrap()
                .iter()
                .all(|(k, v)| &line[k] == v)
        };
        assert!(
            logged.iter().any(|line| says(&line)),
            "{named} is not in {logged:?}"
        );
    }
    wait::until("all of the new topic is lag", PATIENCE, || {
        mirror
            .status()
            .is_some_and(|s| s["routes"]["copy"]["lag"] == new.total())
    });
    let early = mirror.number("copy", "delivered_records") - old.total();
    println!("{topic}: {early} records of the new topic were copied before it was noticed");
    assert_eq!(mirror.terminate().code(), Some(0));

    // The restart is the user's word: the new topic is copied from its beginning.
    let mut last = setup.run(&["--until-caught-up"]);
    assert_eq!(last.wait(PATIENCE).code(), Some(0));
    let mut expected = old;
    expected.join(new);
    let verdict = check(&expected, &read(&target, [topic]), |_| topic.to_owned());
    println!("{topic}: {verdict}");
    assert_eq!((verdict.lost, verdict.altered, verdict.invented), (0, 0, 0));
    assert!(verdict.repeated <= early, "{verdict}");
    if early == 0 {
        verdict.assert_perfect();
    }
}

#[test]
fn a_source_topic_deleted_and_created_again_is_named_and_held() {
    for shape in shapes(&[workers(2)]) {
        replaced(&format!("events-replaced-{shape}"), shape, Replaced::Slowly);
    }
}

#[test]
fn a_source_topic_replaced_at_once_is_named_and_held() {
    for shape in shapes(&[handlers(3)]) {
        replaced(&format!("events-swapped-{shape}"), shape, Replaced::AtOnce);
    }
}
