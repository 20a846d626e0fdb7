//! Each finding from its facts, and none without them.

use super::judge;
use crate::client::native::{
    GroupDescription, GroupState, MemberDescription, PartitionDescription, Right, Rights,
    TopicDescription,
};
use crate::config::spec::{Name, Spec};
use crate::config::{self, LoadOptions};
use crate::flow::listener::Listeners;
use crate::handler::Registry;
use crate::online::arrivals::SampledRecord;
use crate::online::ask::Answers;
use crate::online::facts::{ClusterFacts, LogFacts, Question};
use crate::online::needs::needs;
use crate::online::outlook::{Behind, Outlook, TopicCreated, TopicGrown, outlooks};
use crate::online::trouble::{Cause, Trouble};
use crate::record::TopicPartition;
use rdkafka::types::RDKafkaErrorCode as Code;
use std::collections::BTreeMap;

const GROUP: &str = "mirror.default.r.a.b";
const DAY_MS: i64 = 86_400_000;
const NOW_MS: i64 = 20_000 * DAY_MS;

/// Two clusters with one topic that is copied, and nothing wrong with either.
struct World {
    route: &'static str,
    source: Result<ClusterFacts, Trouble>,
    target: Result<ClusterFacts, Trouble>,
}

impl World {
    fn fine() -> Self {
        let mut source = cluster("id-a");
        for partition in 0..2 {
            let log = LogFacts {
                start: Some(0),
                stable: Some(100),
                end: Some(100),
            };
            source.logs.insert(TopicPartition::new("t", partition), log);
        }
        let group = GroupDescription {
            state: GroupState::Empty,
            members: Vec::new(),
            rights: Some(Rights::of(&Right::ALL)),
        };
        source.groups.insert(GROUP.into(), Ok(group));
        source
            .positions
            .insert(GROUP.into(), Ok(BTreeMap::new().into_iter().collect()));
        Self {
            route: "",
            source: Ok(source),
            target: Ok(cluster("id-b")),
        }
    }

    fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut world = Self::fine();
        change(&mut world);
        world
    }

    fn source(&mut self) -> &mut ClusterFacts {
        self.source.as_mut().unwrap()
    }

    fn target(&mut self) -> &mut ClusterFacts {
        self.target.as_mut().unwrap()
    }

    fn configure(facts: &mut ClusterFacts, key: &str, value: &str) {
        let configs = facts.configs.get_mut("t").unwrap().as_mut().unwrap();
        configs.insert(key.into(), value.into());
    }

    fn grant(facts: &mut ClusterFacts, rights: &[Right]) {
        let topic = facts.described.get_mut("t").unwrap().as_mut().unwrap();
        topic.rights = Some(Rights::of(rights));
    }

    fn drop_topic(facts: &mut ClusterFacts) {
        facts.topics.clear();
        facts
            .described
            .insert("t".into(), Err(Code::UnknownTopicOrPartition));
        facts.configs.clear();
    }

    fn commit(&mut self, partition: i32, offset: i64, beside: &str) {
        let positions = self.source().positions.get_mut(GROUP).unwrap();
        let tp = TopicPartition::new("t", partition);
        let positions = positions.as_mut().unwrap();
        positions.insert(tp, (offset, beside.as_bytes().to_vec()));
    }

    fn sample(&mut self, key: Option<&str>, timestamp: i64) {
        let record = SampledRecord {
            key: key.map(|k| k.as_bytes().to_vec()),
            value: Some(b"12345".to_vec()),
            timestamp: Some(timestamp),
            ..SampledRecord::default()
        };
        self.source()
            .samples
            .entry("t".into())
            .or_default()
            .push(record);
    }

    fn answers(&self) -> (Spec, Answers) {
        let spec = spec(self.route);
        let clusters: BTreeMap<_, _> = [("a", &self.source), ("b", &self.target)]
            .into_iter()
            .map(|(name, facts)| (Name::new(name).unwrap(), facts.clone()))
            .collect();
        let flows = needs(&spec, &|cluster| {
            let facts = clusters.get(&cluster.name)?.as_ref().ok()?;
            Some(facts.topics.clone())
        });
        let answers = Answers {
            clusters,
            flows,
            now_ms: NOW_MS,
        };
        (spec, answers)
    }

    /// Each finding's code and place.
    fn says(&self) -> Vec<String> {
        let (spec, answers) = self.answers();
        let found = judge(&spec, &answers).into_iter();
        found
            .map(|f| format!("{} {}", f.code.as_str(), f.at))
            .collect()
    }

    fn outlook(&self) -> Outlook {
        outlooks(&self.answers().1).remove(0)
    }
}

fn cluster(id: &str) -> ClusterFacts {
    let mut facts = ClusterFacts::default();
    facts.description.id = Some(id.into());
    facts.description.brokers = vec![1, 2, 3];
    facts.topics.insert("t".into(), 2);
    let partition = PartitionDescription {
        leader: Some(1),
        replicas: vec![1, 2, 3],
        in_sync: vec![1, 2, 3],
    };
    let topic = TopicDescription {
        id: Some("topic-id".into()),
        partitions: vec![partition; 2],
        rights: Some(Rights::of(&Right::ALL)),
    };
    facts.described.insert("t".into(), Ok(topic));
    facts.configs.insert("t".into(), Ok(BTreeMap::new()));
    facts.broker = Some(BTreeMap::new());
    facts
}

fn spec(route: &str) -> Spec {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.yaml");
    let text = format!(
        "version: 1\nclusters:\n  a: {{ bootstrap_servers: ['a:1'] }}\n  b: {{ bootstrap_servers: ['b:1'] }}\n\
         routes:\n  r:\n    source: a\n    target: b\n    topics: {{ include: [t] }}\n{route}"
    );
    std::fs::write(&file, text).unwrap();
    let options = LoadOptions {
        environment: &|_| None,
        variables: &crate::config::interpolate::Variables::default(),
        registry: &Registry::default(),
        listeners: &Listeners::default(),
        running: None,
    };
    let loaded = config::load(&[file], &options);
    loaded
        .unwrap_or_else(|r| panic!("{:?}", r.diagnostics))
        .spec
}

const CLOSED: &str = "    topic_creation: { enabled: false }\n";

#[test]
fn nothing_is_said_of_what_is_fine() {
    assert_eq!(World::fine().says(), [""; 0]);
}

#[test]
fn who_does_not_answer_and_who_is_another() {
    let world = |cause| {
        World::with(|w| {
            w.target = Err(Trouble {
                cause,
                words: vec![],
            });
        })
    };
    let cases = [
        (Cause::Unresolvable, "E0801 /clusters/b/bootstrap_servers"),
        (Cause::Refused, "E0802 /clusters/b/bootstrap_servers"),
        (Cause::Silent, "E0803 /clusters/b/bootstrap_servers"),
        (Cause::Tls, "E0804 /clusters/b/tls"),
        (Cause::Protocol, "E0805 /clusters/b/bootstrap_servers"),
        (Cause::Authentication, "E0806 /clusters/b/sasl"),
        (Cause::Settings, "E0819 /clusters/b/tls"),
    ];
    for (cause, said) in cases {
        assert_eq!(world(cause).says(), [said]);
    }
    let same = World::with(|w| w.target().description.id = Some("id-a".into()));
    assert_eq!(
        same.says(),
        [
            "W0801 /clusters/b/bootstrap_servers",
            "E0808 /routes/r/target"
        ]
    );
    let apart = World::with(|w| {
        w.target().description.id = Some("id-a".into());
        w.target().topics.insert("copy-t".into(), 2);
        w.route = "    handlers: [{ rename: { topic: 'copy-{topic}' } }]\n";
    });
    assert_eq!(apart.says(), ["W0801 /clusters/b/bootstrap_servers"]);
    let late = World::with(|w| {
        let refusal = (Code::OperationTimedOut, "no answer in time".into());
        w.source().unanswered.insert(Question::Offsets, refusal);
    });
    assert_eq!(late.says(), ["E0803 /clusters/a/bootstrap_servers"]);
    let old = World::with(|w| {
        w.source()
            .described
            .get_mut("t")
            .unwrap()
            .as_mut()
            .unwrap()
            .id = None;
    });
    assert_eq!(old.says(), ["W0814 /clusters/a/bootstrap_servers"]);
}

#[test]
fn rights_now_and_later_on_both_sides() {
    let source = |rights: &[Right]| World::with(|w| World::grant(w.source(), rights)).says();
    assert_eq!(source(&[Right::Read, Right::Describe]), [""; 0]);
    assert_eq!(source(&[Right::Describe]), ["E0809 /routes/r/source"]);
    let target = |rights: &[Right]| World::with(|w| World::grant(w.target(), rights)).says();
    let all = [Right::Write, Right::Describe, Right::Alter];
    assert_eq!(target(&all), [""; 0]);
    assert_eq!(target(&all[1..]), ["E0809 /routes/r/target"]);
    assert_eq!(target(&all[..2]), ["W0816 /routes/r/target"]);

    let hidden = World::with(|w| {
        w.source().topics.clear();
        let refused = Err(Code::TopicAuthorizationFailed);
        w.source().described.insert("t".into(), refused);
    });
    assert_eq!(hidden.says(), ["E0809 /routes/r/source"]);
    let group = World::with(|w| {
        let refused = Err(Code::GroupAuthorizationFailed);
        w.source().groups.insert(GROUP.into(), refused);
    });
    assert_eq!(group.says(), ["E0809 /routes/r/source"]);
    let create = World::with(|w| {
        World::drop_topic(w.target());
        let key = ("t".to_owned(), None);
        w.target()
            .not_created
            .insert(key, Code::TopicAuthorizationFailed);
    });
    assert_eq!(create.says(), ["E0809 /routes/r/target"]);
    let unseen = World::with(|w| {
        let refused = Err(Code::TopicAuthorizationFailed);
        w.target().configs.insert("t".into(), refused);
    });
    assert_eq!(unseen.says(), ["W0813 /routes/r/target"]);
    // Brokers before 2.8 want a right of its own for idempotence.
    let old = |rights: &[Right]| {
        World::with(|w| {
            w.target()
                .described
                .get_mut("t")
                .unwrap()
                .as_mut()
                .unwrap()
                .id = None;
            w.target().description.rights = Some(Rights::of(rights));
        })
        .says()
    };
    let ids = "W0814 /clusters/b/bootstrap_servers";
    assert_eq!(old(&[Right::IdempotentWrite]), [ids]);
    assert_eq!(old(&[]), [ids, "E0809 /routes/r/target"]);
}

#[test]
fn topics_that_are_not_there_or_not_large_enough() {
    let none = World::with(|w| World::drop_topic(w.source()));
    assert_eq!(none.says(), ["W0802 /routes/r/topics"]);
    let missing = |route| {
        World::with(|w| {
            World::drop_topic(w.target());
            w.route = route;
        })
    };
    assert_eq!(missing(CLOSED).says(), ["E0810 /routes/r/topic_creation"]);
    assert_eq!(missing("").says(), [""; 0]);
    let created = TopicCreated {
        topic: "t".into(),
        partitions: 2,
        replication_factor: None,
    };
    assert_eq!(missing("").outlook().creates, Some(vec![created]));
    assert_eq!(missing(CLOSED).outlook().creates, Some(vec![]));

    let few = |route| {
        World::with(|w| {
            w.target().topics.insert("t".into(), 1);
            w.route = route;
        })
    };
    assert_eq!(few("").says(), [""; 0]);
    let grown = TopicGrown {
        topic: "t".into(),
        from: 1,
        to: 2,
    };
    assert_eq!(few("").outlook().grows, Some(vec![grown]));
    assert_eq!(few(CLOSED).says(), ["E0812 /routes/r/partitions"]);
    let modulo = "    topic_creation: { enabled: false }\n    partitions: { policy: match, on_fewer: modulo }\n";
    assert_eq!(few(modulo).says(), ["W0803 /routes/r/partitions"]);
    assert_eq!(
        few("    partitions: { fixed: 1 }\n").says(),
        ["E0812 /routes/r/partitions"]
    );

    let policy = World::with(|w| {
        World::drop_topic(w.target());
        w.target()
            .not_created
            .insert(("t".into(), None), Code::PolicyViolation);
    });
    assert_eq!(policy.says(), ["E0811 /routes/r/topic_creation"]);
}

#[test]
fn replicas_that_are_missing() {
    let factor = |factor: &str, in_sync: &str| {
        World::with(|w| {
            World::drop_topic(w.target());
            let broker = w.target().broker.as_mut().unwrap();
            broker.insert("default.replication.factor".into(), factor.into());
            broker.insert("min.insync.replicas".into(), in_sync.into());
        })
        .says()
    };
    let place = "/routes/r/topic_creation/replication_factor";
    assert_eq!(factor("3", "2"), [""; 0]);
    assert_eq!(factor("4", "2"), [format!("E0813 {place}")]);
    assert_eq!(factor("1", "2"), [format!("E0814 {place}")]);
    let there = |replicas: &[i32], in_sync: &[i32]| {
        World::with(|w| {
            World::configure(w.target(), "min.insync.replicas", "2");
            let topic = w.target().described.get_mut("t").unwrap().as_mut().unwrap();
            topic.partitions[1].replicas = replicas.to_vec();
            topic.partitions[1].in_sync = in_sync.to_vec();
        })
        .says()
    };
    assert_eq!(there(&[1, 2, 3], &[1, 2]), [""; 0]);
    assert_eq!(there(&[1, 2, 3], &[1]), ["W0815 /routes/r/target"]);
    assert_eq!(there(&[1], &[1]), ["E0814 /routes/r/target"]);
    let leaderless = World::with(|w| {
        let topic = w.source().described.get_mut("t").unwrap().as_mut().unwrap();
        topic.partitions[0].leader = None;
    });
    assert_eq!(leaderless.says(), ["W0815 /routes/r/source"]);
}

/// What is said when source and target have these settings.
fn settings(
    source: &[(&str, &str)],
    target: &[(&str, &str)],
    more: impl FnOnce(&mut World),
) -> Vec<String> {
    World::with(|w| {
        for (key, value) in source {
            World::configure(w.source(), key, value);
        }
        for (key, value) in target {
            World::configure(w.target(), key, value);
        }
        more(w);
    })
    .says()
}

#[test]
fn settings_that_refuse_change_or_delete_records() {
    let nothing = |_: &mut World| {};
    let target = "/routes/r/target";
    let size = [("max.message.bytes", "2000")];
    assert_eq!(settings(&size, &size, nothing), [""; 0]);
    assert_eq!(
        settings(&size, &[("max.message.bytes", "1000")], nothing),
        [format!("W0804 {target}")]
    );
    let append = [("message.timestamp.type", "LogAppendTime")];
    assert_eq!(settings(&[], &append, nothing), [format!("W0805 {target}")]);
    assert_eq!(settings(&append, &[], nothing), [""; 0]);

    let old = |w: &mut World| w.sample(Some("k"), NOW_MS - 2 * DAY_MS);
    let ahead = |w: &mut World| w.sample(Some("k"), NOW_MS + 2 * DAY_MS);
    let day = DAY_MS.to_string();
    let before = [("message.timestamp.before.max.ms", day.as_str())];
    let after = [("message.timestamp.after.max.ms", day.as_str())];
    assert_eq!(settings(&[], &before, old), [format!("E0815 {target}")]);
    assert_eq!(settings(&[], &before, ahead), [""; 0]);
    assert_eq!(settings(&[], &after, ahead), [format!("E0815 {target}")]);
    let either = [("message.timestamp.difference.max.ms", day.as_str())];
    assert_eq!(settings(&[], &either, old), [format!("E0815 {target}")]);
    let retention = [("retention.ms", day.as_str())];
    assert_eq!(settings(&[], &retention, old), [format!("W0809 {target}")]);
    assert_eq!(settings(&[], &retention, ahead), [""; 0]);

    for (codec, said) in [("producer", 0), ("lz4", 0), ("zstd", 1)] {
        let says = settings(&[], &[("compression.type", codec)], nothing);
        assert_eq!(says.len(), said, "{codec}: {says:?}");
    }
}

#[test]
fn compaction_wants_keys_and_deletes() {
    let compact = [("cleanup.policy", "compact,delete")];
    let delete = [("cleanup.policy", "delete")];
    let target = "/routes/r/target";
    let nothing = |_: &mut World| {};
    assert_eq!(settings(&compact, &compact, nothing), [""; 0]);
    assert_eq!(
        settings(&delete, &compact, nothing),
        [format!("W0806 {target}")]
    );
    assert_eq!(
        settings(&compact, &delete, nothing),
        [format!("W0806 {target}")]
    );
    let keyless = |w: &mut World| w.sample(None, NOW_MS);
    assert_eq!(
        settings(&compact, &compact, keyless),
        [format!("E0816 {target}")]
    );
    // What counts is what the handlers leave: a key given, a key taken, a record dropped.
    let given = |w: &mut World| {
        w.sample(None, NOW_MS);
        w.route = "    handlers: [{ reformat: { set: { key: '{topic}' } } }]\n";
    };
    assert_eq!(settings(&compact, &compact, given), [""; 0]);
    let taken = |w: &mut World| {
        w.sample(Some("k"), NOW_MS);
        w.route = "    handlers: [{ reformat: { set: { key: null } } }]\n";
    };
    assert_eq!(
        settings(&compact, &compact, taken),
        [format!("E0816 {target}")]
    );
    let dropped = |w: &mut World| {
        w.sample(None, NOW_MS);
        w.route = "    handlers: [{ filter: { drop: null_key } }]\n";
    };
    assert_eq!(settings(&compact, &compact, dropped), [""; 0]);
    let tombstones = |w: &mut World| w.route = "    handlers: [{ filter: { drop: tombstone } }]\n";
    assert_eq!(
        settings(&compact, &compact, tombstones),
        ["W0807 /routes/r/handlers"]
    );
    assert_eq!(settings(&delete, &delete, tombstones), [""; 0]);
}

#[test]
fn groups_that_others_use() {
    let member = |client_id: &str| {
        World::with(|w| {
            let group = w.source().groups.get_mut(GROUP).unwrap().as_mut().unwrap();
            group.members.push(MemberDescription {
                client_id: client_id.into(),
                host: "/10.0.0.1".into(),
            });
        })
        .says()
    };
    assert_eq!(member("mirror"), [""; 0]);
    assert_eq!(member("stranger"), ["E0817 /routes/r/source"]);
    let foreign = World::with(|w| w.commit(0, 7, "somebody's"));
    assert_eq!(foreign.says(), ["W0811 /routes/r/source"]);
}

#[test]
fn where_each_partition_begins() {
    let fresh = World::fine().outlook();
    assert_eq!(fresh.begins.unwrap().in_words(), "2 earliest");
    assert_eq!(
        fresh.behind.unwrap(),
        Behind {
            records: 200,
            bytes: None
        }
    );
    let latest = World::with(|w| w.route = "    start: latest\n").outlook();
    assert_eq!(latest.begins.unwrap().in_words(), "2 latest");
    assert_eq!(latest.behind.unwrap().records, 0);
    // Once started, what has no position was found later, whatever `start` says.
    let later = World::with(|w| {
        w.route = "    start: latest\n";
        w.commit(0, 40, "m1;t=topic-id;c=id-b;s");
        w.sample(Some("k"), NOW_MS);
    });
    assert_eq!(later.says(), [""; 0]);
    assert_eq!(
        later.outlook().begins.unwrap().in_words(),
        "1 committed, 1 earliest"
    );
    let behind = Behind {
        records: 160,
        bytes: Some(960),
    };
    assert_eq!(later.outlook().behind.unwrap(), behind);
}

#[test]
fn positions_that_lead_nowhere() {
    let at = |offset: i64, beside: &'static str, route: &'static str| {
        World::with(|w| {
            w.source()
                .logs
                .get_mut(&TopicPartition::new("t", 0))
                .unwrap()
                .start = Some(50);
            w.commit(0, offset, beside);
            w.route = route;
        })
        .says()
    };
    let ours = "m1;t=topic-id;c=id-b;s";
    let place = "/routes/r/on_gap";
    assert_eq!(at(60, ours, ""), [""; 0]);
    assert_eq!(at(40, ours, ""), [format!("E0818 {place}")]);
    assert_eq!(
        at(40, ours, "    on_gap: earliest\n"),
        [format!("W0812 {place}")]
    );
    assert_eq!(at(101, ours, ""), [format!("E0818 {place}")]);
    assert_eq!(
        at(60, "m1;t=another;c=id-b;s", ""),
        [format!("E0818 {place}")]
    );
    assert_eq!(
        at(60, "m1;t=topic-id;c=another;s", ""),
        [format!("E0818 {place}")]
    );
}

#[test]
fn retention_that_is_faster_than_the_copy() {
    let safe_from = |offset: i64, route: &'static str| {
        World::with(|w| {
            w.commit(0, 40, "m1;t=topic-id;c=id-b;s");
            w.commit(1, 40, "m1;t=topic-id;c=id-b");
            w.source()
                .expiring
                .insert(TopicPartition::new("t", 0), offset);
            w.route = route;
        })
        .says()
    };
    assert_eq!(safe_from(40, ""), [""; 0]);
    assert_eq!(safe_from(45, ""), ["W0810 /routes/r/source"]);
    assert_eq!(
        safe_from(45, "    on_gap: earliest\n"),
        ["W0810 /routes/r/source"]
    );
    // A flow that has not begun, and may skip what is gone, counts on nothing.
    let fresh = World::with(|w| {
        w.source().expiring.insert(TopicPartition::new("t", 0), 45);
        w.route = "    on_gap: earliest\n";
    });
    assert_eq!(fresh.says(), [""; 0]);
}

#[test]
fn many_names_are_counted() {
    let names = |count: usize| (0..count).map(|n| format!("t{n}")).collect::<Vec<_>>();
    assert_eq!(super::listed(names(2)), "t0, t1");
    assert_eq!(super::listed(names(5)), "t0, t1, t2, t3, t4");
    assert_eq!(super::listed(names(7)), "t0, t1, t2, t3 and 3 more");
    assert_eq!(super::the_topics(&names(1)), "topic t0");
}
