//! Where a flow starts, and that it goes on where it stopped.

use crate::support::cluster::{Admin, pair};
use crate::support::expected::Expected;
use crate::support::flow::Flow;
use crate::support::reader::compare;
use crate::support::route::{route, shapes, workers};
use crate::support::wait::PATIENCE;
use crate::support::workload::{Load, Writer, field, fill, noise};
use mirror::config::spec::{RouteSpec, Start, Until};
use mirror::flow::FlowExit;

fn leave_out_first(expected: &mut Expected, topic: &str, partitions: i32, records: u64) {
    for partition in 0..partitions {
        (0..records).for_each(|n| expected.leave_out((topic.to_owned(), partition), n));
    }
}

#[test]
fn latest_begins_at_the_end_once_and_what_is_found_later_at_its_beginning() {
    let source = pair().source.bootstrap();
    let admin = Admin::new(&source);
    admin.create("latest-old", 3, &[]);
    let mut old = fill(&source, &[field("latest-old", 3)], 500);
    leave_out_first(&mut old, "latest-old", 3, 500);
    let spec = || RouteSpec {
        start: Start::Latest,
        ..route("latest", "latest-.*", workers(2))
    };
    let flow = Flow::copy(spec());
    flow.wait_running(3);
    let mut writer = Writer::resume(&source, old);
    writer.fill(&[field("latest-old", 3)], 200);
    // Filled before it is found.
    admin.create("latest-new", 2, &[]);
    writer.fill(&[field("latest-new", 2)], 300);
    admin.grow("latest-old", 5);
    writer.fill(&[field("latest-old", 5).only(3..5)], 300);
    let expected = writer.finish();
    flow.wait_settled(expected.total(), PATIENCE);
    flow.wait_no_lag(PATIENCE);
    assert_eq!(flow.drain(), FlowExit::Drained);

    // Down, and the source goes on: latest applied once.
    let mut writer = Writer::resume(&source, expected);
    writer.fill(&[field("latest-old", 5), field("latest-new", 2)], 100);
    let expected = writer.finish();
    let flow = Flow::copy(spec());
    flow.wait_settled(700, PATIENCE);
    assert_eq!(flow.drain(), FlowExit::Drained);
    compare(&pair().target.bootstrap(), &expected).assert_perfect();
}

#[test]
fn drains_under_load_repeat_nothing() {
    for shape in shapes(&[workers(2)]) {
        let topic = format!("restarts-{shape}");
        let source = pair().source.bootstrap();
        Admin::new(&source).create(&topic, 6, &[]);
        let load = Load::start(&source, &[field(&topic, 6)], 4000);
        for _ in 0..5 {
            let flow = Flow::copy(route(&topic, &topic, shape));
            flow.wait_settled(1500, PATIENCE);
            let in_flight = flow.wait_in_flight();
            assert_eq!(flow.drain(), FlowExit::Drained);
            println!("{topic}: drained with {in_flight} in flight");
        }
        let expected = load.stop();
        let flow = Flow::copy(RouteSpec {
            until: Until::End,
            ..route(&topic, &topic, shape)
        });
        assert_eq!(flow.wait_exit(PATIENCE), FlowExit::CaughtUp);
        compare(&pair().target.bootstrap(), &expected).assert_perfect();
    }
}

#[test]
fn until_end_of_a_halted_partition_fails_and_of_an_empty_topic_ends() {
    let source = pair().source.bootstrap();
    let (admin, hub) = (Admin::new(&source), Admin::new(&pair().target.bootstrap()));
    admin.create("until-empty", 3, &[]);
    let spec = |name: &str| RouteSpec {
        until: Until::End,
        ..route(name, name, workers(1))
    };
    assert_eq!(
        Flow::copy(spec("until-empty")).wait_exit(PATIENCE),
        FlowExit::CaughtUp
    );

    admin.create("until-halted", 1, &[]);
    hub.create("until-halted", 1, &[("max.message.bytes", "2000")]);
    let mut writer = Writer::new(&source);
    writer.write(&field("until-halted", 1), 0, |record| {
        record.value = Some(noise(50_000))
    });
    writer.finish();
    let exit = Flow::copy(spec("until-halted")).wait_exit(PATIENCE);
    assert!(
        matches!(&exit, FlowExit::Failed(reason) if reason.code() == "poison_record"),
        "{exit:?}"
    );
}

/// The same as users meet it: exit 0 when everything is there, exit 1 when something is held.
#[test]
fn exit_codes_of_until_caught_up() {
    use crate::support::process::{Setup, cluster, route};
    use serde_json::json;
    let (source, target) = (pair().source.bootstrap(), pair().target.bootstrap());
    let admin = Admin::new(&source);
    admin.create("exits", 1, &[]);
    Admin::new(&target).create("exits", 1, &[("max.message.bytes", "2000")]);
    let setup = Setup::new(
        json!({ "source": cluster(&source), "target": cluster(&target) }),
        json!({ "exits": route("source", "target", "exits") }),
    );
    let expected = fill(&source, &[field("exits", 1)], 100);
    let run = || setup.run(&["--until-caught-up"]).wait(PATIENCE).code();
    assert_eq!(run(), Some(0));
    let mut writer = Writer::resume(&source, expected);
    writer.write(&field("exits", 1), 0, |record| {
        record.value = Some(noise(50_000))
    });
    writer.finish();
    assert_eq!(run(), Some(1), "a record is held");
}
