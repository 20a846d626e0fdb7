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
    assert!(
        matches!(routes["copy"], RouteResult::Restarted { .. }),
        "{routes:?}"
    );
    assert_eq!(routes["other"], RouteResult::Kept);
    let (copy_after, other_after) = views();
    assert!(!Arc::ptr_eq(&copy_before, &copy_after));
    assert!(Arc::ptr_eq(&other_before, &other_after));

    a.produce("orders", &records(100, 200));
    wait_until("the rest is copied", || b.count("orders") >= 200);
    assert_eq!(supervised.stop(), Outcome::Drained);
    let all = b.read("orders");
    assert_eq!(all.len(), 200, "nothing twice");
    assert!(all[..100].iter().all(|r| r.headers.is_empty()));
    assert!(all[100..].iter().all(|r| r.headers.len() == 1));
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
