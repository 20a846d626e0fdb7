//! A rebalance listener is called in KIP-3's order: with old and new assignment before the first fetch, before the
//! release and after our commit, and when partitions are lost.

use crate::support::cluster::{Admin, pair, settings};
use crate::support::flow::Flow;
use crate::support::reader::compare;
use crate::support::route::{cluster, flow_spec, route, workers};
use crate::support::wait::{self, PATIENCE};
use crate::support::workload::{Load, Writer, field, fill};
use kafka_harness::Cluster;
use mirror::config::spec::{ListenerSpec, RouteSpec};
use mirror::flow::listener::{RebalanceContext, RebalanceListener};
use mirror::flow::{Environment, FlowExit};
use mirror::observe::{Counters, FlowView};
use mirror::record::TopicPartition;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};

/// One call, and what was true while it was made.
#[derive(Clone, Debug)]
enum Call {
    Assigned {
        old: Vec<TopicPartition>,
        new: Vec<TopicPartition>,
        fetched: u64,
    },
    Revoked {
        released: Vec<TopicPartition>,
        committed: BTreeMap<i32, i64>,
        views: BTreeMap<i32, Option<i64>>,
    },
    Lost {
        lost: Vec<TopicPartition>,
    },
}

/// Notes every call.
struct Witness {
    source: String,
    group: String,
    topic: String,
    view: OnceLock<Arc<FlowView>>,
    calls: Mutex<Vec<Call>>,
}

impl Witness {
    fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    fn note(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
    }

    fn fetched(&self) -> u64 {
        self.view
            .get()
            .map_or(0, |v| Counters::get(&v.counters.fetched_records))
    }
}

impl RebalanceListener for Witness {
    fn assigned(&self, _: &RebalanceContext<'_>, old: &[TopicPartition], new: &[TopicPartition]) {
        let fetched = self.fetched();
        self.note(Call::Assigned {
            old: old.to_vec(),
            new: new.to_vec(),
            fetched,
        });
    }

    fn revoked(&self, _: &RebalanceContext<'_>, released: &[TopicPartition]) {
        let committed = Admin::new(&self.source).committed(&self.group, &self.topic);
        let watermark = |view: &FlowView| {
            let of = |tp: &TopicPartition| view.partitions().get(tp).and_then(|p| p.committed);
            released.iter().map(|tp| (tp.partition, of(tp))).collect()
        };
        let views = self.view.get().map(|v| watermark(v)).unwrap_or_default();
        self.note(Call::Revoked {
            released: released.to_vec(),
            committed,
            views,
        });
    }

    fn lost(&self, _: &RebalanceContext<'_>, lost: &[TopicPartition]) {
        self.note(Call::Lost {
            lost: lost.to_vec(),
        });
    }
}

fn witnessed(topic: &str, source: &Cluster, target: &Cluster) -> (Flow, Arc<Witness>) {
    let witness = Arc::new(Witness {
        source: source.bootstrap(),
        group: format!("mirror.default.{topic}.source.target"),
        topic: topic.to_owned(),
        view: OnceLock::new(),
        calls: Mutex::default(),
    });
    let mut environment = Environment::default();
    environment.listeners.register("witness", witness.clone());
    let spec = RouteSpec {
        rebalance_listener: Some(ListenerSpec::Registered("witness".into())),
        ..route(topic, topic, workers(1))
    };
    let mut from = cluster("source", &source.bootstrap());
    let session = mirror::config::secret::Secret::new("3000");
    from.properties.insert("session.timeout.ms".into(), session);
    from.properties.insert(
        "heartbeat.interval.ms".into(),
        mirror::config::secret::Secret::new("500"),
    );
    let flow = Flow::start_in(
        flow_spec(spec, from, cluster("target", &target.bootstrap())),
        &environment,
    );
    let _ = witness.view.set(flow.view().clone());
    (flow, witness)
}

#[test]
fn it_is_called_before_the_first_fetch_and_before_the_release_after_our_commit() {
    let topic = "listener";
    let pair = pair();
    let source = pair.source.bootstrap();
    Admin::new(&source).create(topic, 6, &[]);
    let load = Load::start(&source, &[field(topic, 6)], 3000);
    let (first, witness) = witnessed(topic, &pair.source, &pair.target);
    first.wait_settled(3000, PATIENCE);
    let Some(Call::Assigned { old, new, fetched }) = witness.calls().first().cloned() else {
        panic!("{:?}", witness.calls())
    };
    assert_eq!(
        (old.len(), new.len(), fetched),
        (0, 6, 0),
        "before the first fetch"
    );

    let in_flight = first.in_flight();
    let (second, other) = witnessed(topic, &pair.source, &pair.target);
    wait::until("the second has its share", PATIENCE, || {
        second.partitions().len() == 3 && second.delivered() > 0
    });
    println!("{topic}: the second joined with {in_flight} in flight");
    let calls = witness.calls();
    let revoked = calls.iter().find_map(|c| match c {
        Call::Revoked {
            released,
            committed,
            views,
        } => Some((released, committed, views)),
        _ => None,
    });
    let (released, committed, views) = revoked.unwrap_or_else(|| panic!("{calls:?}"));
    assert_eq!(released.len(), 3);
    for tp in released {
        let ours = views.get(&tp.partition).copied().flatten();
        assert!(
            ours.is_some_and(|at| at > 0),
            "{tp} was not committed: {views:?}"
        );
        assert_eq!(
            committed.get(&tp.partition).copied(),
            ours,
            "{tp}: committed before the release"
        );
    }
    // Its first assignment is empty: the protocol gives only what the other has released.
    let got: Vec<BTreeSet<TopicPartition>> = other
        .calls()
        .into_iter()
        .filter_map(|c| match c {
            Call::Assigned { new, .. } => Some(new.into_iter().collect()),
            _ => None,
        })
        .collect();
    assert_eq!(got.first().map(BTreeSet::len), Some(0), "{got:?}");
    let wanted = released.iter().cloned().collect();
    assert_eq!(got.last(), Some(&wanted), "what one released the other got");
    drop(load.stop());
    assert_eq!(second.drain(), FlowExit::Drained);
    let last = other.calls().pop();
    assert!(
        matches!(&last, Some(Call::Revoked { released, .. }) if released.len() == 3),
        "{last:?}"
    );
    assert_eq!(first.drain(), FlowExit::Drained);
}

#[test]
fn it_is_told_of_a_loss() {
    let topic = "listener-lost";
    let pair = pair();
    let source = settings(Cluster::builder("frozen")).start().unwrap();
    Admin::new(&source.bootstrap()).create(topic, 3, &[]);
    let fields = [field(topic, 3)];
    // Nobody writes while the broker stands still: the writer's client may never get over that.
    let expected = fill(&source.bootstrap(), &fields, 5000);
    let (flow, witness) = witnessed(topic, &source, &pair.target);
    flow.wait_settled(1000, PATIENCE);
    // There need be none: what is lost are the partitions, and all may have been copied by now.
    let in_flight = flow.in_flight();
    source.broker(1).freeze().unwrap();
    println!("{topic}: the source's broker frozen with {in_flight} in flight");
    wait::until("the partitions are lost", PATIENCE, || {
        witness
            .calls()
            .iter()
            .any(|c| matches!(c, Call::Lost { lost } if lost.len() == 3))
    });
    source.broker(1).thaw().unwrap();
    let mut writer = Writer::resume(&source.bootstrap(), expected);
    writer.fill(&fields, 1000);
    let expected = writer.finish();
    wait::until("all is there", PATIENCE, || {
        Admin::new(&pair.target.bootstrap()).end_sum(topic) as u64 >= expected.total()
    });
    flow.wait_no_lag(PATIENCE);
    assert_eq!(flow.drain(), FlowExit::Drained);
    compare(&pair.target.bootstrap(), &expected).assert_complete();
}
