//! A reload by the supervisor: what changed changes, what did not is not touched, nothing is lost.

use crate::embedded::{Cluster, Rec, wait_until};
use crate::embedded_running::{File, Supervised, copy};
use mirror::supervisor::{Outcome, ReloadVerdict, RouteResult};
use std::sync::Arc;

const OTHER: &str = "  other:
    source: a
    target: b
    topics: { include: [prices] }
";

fn records(from: usize, to: usize) -> Vec<Rec> {
    let numbers = from..to;
    numbers.map(|n| Rec::new(0, &n.to_string(), "x")).collect()
}

#[test]
fn a_changed_route_goes_on_and_its_neighbour_is_not_touched() {
    let (a, b) = (Cluster::start(), Cluster::start());
    a.create_topic("orders", 1, &[]);
    a.create_topic("prices", 1, &[]);
    a.produce("orders", &records(0, 100));
    a.produce("prices", &records(0, 100));
    let file = File::new(&(copy(&a, &b, "") + OTHER));
    let supervised = Supervised::start(&file);
    let copied = |topic: &str, count| b.count(topic) == count;
    wait_until("both are copied", || {
        copied("orders", 100) && copied("prices", 100)
    });
    let views = || {
        let snapshot = supervised.board.snapshot();
        let mut views = snapshot.routes.values().map(|r| r.flows[0].view.clone());
        (views.next().expect("copy"), views.next().expect("other"))
    };
    let (copy_before, other_before) = views();

    let step = "    handlers: [{ reformat: { set: { header.x-dc: '{source}' } } }]\n";
    file.write(&(copy(&a, &b, step) + OTHER));
    let ReloadVerdict::Applied { routes, .. } = supervised.reload() else {
        panic!("not applied");
    };
    let changed = vec!["handlers".to_owned()];
    assert_eq!(routes["copy"], RouteResult::Changed { changed });
    assert_eq!(routes["other"], RouteResult::Kept);
    let (copy_after, other_after) = views();
    assert!(Arc::ptr_eq(&copy_before, &copy_after), "the flow goes on");
    assert!(Arc::ptr_eq(&other_before, &other_after));

    a.produce("orders", &records(100, 200));
    wait_until("the rest is copied", || b.count("orders") >= 200);
    assert_eq!(supervised.stop(), Outcome::Drained);
    let all = b.read("orders");
    assert_eq!(all.len(), 200, "nothing twice");
    assert!(all[..100].iter().all(|r| r.headers.is_empty()));
    assert!(all[100..].iter().all(|r| r.headers.len() == 1));
}

fn number(supervised: &Supervised, name: &str) -> u64 {
    let snapshot = supervised.board.snapshot();
    let route = snapshot.routes.values().next();
    route.map_or(0, |route| route.flows[0].totals().get(name))
}

fn applied(supervised: &Supervised) -> RouteResult {
    match supervised.reload() {
        ReloadVerdict::Applied { routes, .. } => routes["copy"].clone(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_chain_with_a_new_target_topic_waits_for_it_and_nothing_is_lost_or_twice() {
    let (a, b) = (Cluster::start(), Cluster::start());
    a.create_topic("orders", 2, &[]);
    a.produce("orders", &records(0, 100));
    let file = File::new(&copy(&a, &b, "    handler_threads: 2\n"));
    let supervised = Supervised::start(&file);
    wait_until("the first are copied", || b.count("orders") == 100);
    let step = "    handler_threads: 2\n    handlers: [{ rename: { topic: 'new.{topic}' } }]\n";
    let rebalances = number(&supervised, "rebalances");
    file.write(&copy(&a, &b, step));
    assert!(matches!(applied(&supervised), RouteResult::Changed { .. }));
    a.produce("orders", &records(100, 200));
    wait_until("the rest is elsewhere", || b.count("new.orders") == 100);
    assert_eq!(number(&supervised, "rebalances"), rebalances);
    assert_eq!(supervised.stop(), Outcome::Drained);
    assert_eq!(b.count("orders"), 100);
    let keys: Vec<_> = b.read("new.orders").into_iter().map(|r| r.key).collect();
    let wanted: Vec<_> = records(100, 200).into_iter().map(|r| r.key).collect();
    assert_eq!(keys, wanted, "in their order");
}

#[test]
fn topics_come_and_go_live_and_come_back_where_they_were() {
    let (a, b) = (Cluster::start(), Cluster::start());
    for topic in ["orders", "orders.late", "prices"] {
        a.create_topic(topic, 1, &[]);
        a.produce(topic, &records(0, 50));
    }
    let narrow = |more: &str| copy(&a, &b, "").replace("'orders.*'", more);
    let file = File::new(&narrow("orders, 'orders\\.late'"));
    let supervised = Supervised::start(&file);
    let copied = |topic: &str, count| b.count(topic) == count;
    wait_until("both are copied", || {
        copied("orders", 50) && copied("orders.late", 50)
    });
    file.write(&narrow("orders, prices"));
    assert!(matches!(applied(&supervised), RouteResult::Changed { .. }));
    wait_until("what came is copied", || copied("prices", 50));
    a.produce("orders.late", &records(50, 60));
    a.produce("orders", &records(50, 60));
    wait_until("what stayed goes on", || copied("orders", 60));
    assert!(copied("orders.late", 50), "what went is not copied");
    file.write(&narrow("orders, 'orders\\.late'"));
    assert!(matches!(applied(&supervised), RouteResult::Changed { .. }));
    wait_until("it comes back where it was", || copied("orders.late", 60));
    assert_eq!(number(&supervised, "flow_restarts"), 0);
    assert_eq!(supervised.stop(), Outcome::Drained);
    assert!(copied("orders", 60) && copied("orders.late", 60) && copied("prices", 50));
}

#[test]
fn on_error_changed_live_frees_what_it_held() {
    let (a, b) = (Cluster::start(), Cluster::start());
    a.create_topic("orders", 1, &[]);
    a.produce(
        "orders",
        &[Rec::new(0, "k", "no json"), Rec::new(0, "k", "{\"a\":1}")],
    );
    let step = "    handlers: [{ filter: { keep: { value.a: 1 } }, on_error: stop }]\n";
    let file = File::new(&copy(&a, &b, step));
    let supervised = Supervised::start(&file);
    wait_until("the bad record holds the partition", || {
        number(&supervised, "failed_records") > 0
    });
    assert_eq!(b.count("orders"), 0);
    file.write(&copy(
        &a,
        &b,
        &step.replace("on_error: stop", "on_error: skip"),
    ));
    assert!(matches!(applied(&supervised), RouteResult::Changed { .. }));
    wait_until("the good one passes", || b.count("orders") == 1);
    assert_eq!(number(&supervised, "skipped_records"), 1);
    assert_eq!(supervised.stop(), Outcome::Drained);
}

#[test]
fn a_file_with_a_mistake_changes_nothing() {
    let (a, b) = (Cluster::start(), Cluster::start());
    a.create_topic("orders", 1, &[]);
    let file = File::new(&copy(&a, &b, ""));
    let supervised = Supervised::start(&file);
    file.write(&copy(&a, &b, "    partition: match\n"));
    let ReloadVerdict::Rejected { error, .. } = supervised.reload() else {
        panic!("not rejected");
    };
    assert!(error.contains("partition"), "{error}");
    a.produce("orders", &records(0, 10));
    wait_until("the old configuration goes on", || b.count("orders") == 10);
    assert_eq!(supervised.stop(), Outcome::Drained);
}

#[test]
fn a_renamed_route_goes_on_where_it_was_and_one_that_only_looks_so_is_refused() {
    let (a, b) = (Cluster::start(), Cluster::start());
    a.create_topic("orders", 2, &[]);
    a.produce("orders", &records(0, 100));
    let file = File::new(&copy(&a, &b, ""));
    let supervised = Supervised::start(&file);
    wait_until("the first are copied", || b.count("orders") == 100);
    let renamed = |more: &str| copy(&a, &b, more).replace("  copy:", "  moved:");
    file.write(&renamed(""));
    let ReloadVerdict::Rejected { error, .. } = supervised.reload() else {
        panic!("not refused");
    };
    assert!(error.contains("`was: copy`"), "{error}");
    file.write(&renamed("    was: copy\n"));
    let ReloadVerdict::Applied { routes, .. } = supervised.reload() else {
        panic!("not applied");
    };
    assert_eq!(routes["moved"], RouteResult::Started);
    a.produce("orders", &records(100, 200));
    wait_until("the rest is copied", || b.count("orders") >= 200);
    assert_eq!(supervised.stop(), Outcome::Drained);
    assert_eq!(b.count("orders"), 200, "nothing twice");
    // What is written on stays true: a second start finds positions of its own.
    a.produce("orders", &records(200, 210));
    let supervised = Supervised::start(&file);
    wait_until("it goes on", || b.count("orders") >= 210);
    assert_eq!(supervised.stop(), Outcome::Drained);
    assert_eq!(b.count("orders"), 210);
}
