//! Each fault: how it strikes, how it is healed, and how it is seen to have been one.

use crate::clusters::PATIENCE;
use crate::hit::Memory;
use crate::instances::THIRD;
use crate::stand::Stand;
use crate::support::record::Record;
use crate::support::stamp::Stamp;
use crate::support::transaction::Transaction;
use crate::support::workload::{field, fill};
use crate::traffic::{MAIN, far_off, too_large};
use kafka_harness::{Broker, Link, Toll, Traffic, Way};
use proof::plan::{Fault, INSTANCES, Reach, Side, Trouble, Victim};
use std::num::NonZeroU64;
use std::time::Duration;

/// For how long an effect is waited for.
const SEEN: Duration = Duration::from_secs(15);
/// What a slow or refusing target lets pile up, in records.
const PILE: i64 = 1000;
/// Records of a topic that comes and goes, for each of its partitions.
const EACH: u64 = 200;
/// Records of a transaction, for each partition.
const IN_TRANSACTION: u64 = 40;
/// Bytes a second, compressed, that a quota leaves of each broker.
const QUOTA: &str = "producer_byte_rate=2000";
/// Settings of a topic.
const IN_SYNC: &str = "min.insync.replicas";
const TAKES: &str = "max.message.bytes";
const CONFIGS: &str = "kafka.admin.ConfigCommand";

/// What was seen already, and what healing has to know.
type Struck = (Option<String>, Memory);

fn seen(effect: impl Into<String>) -> Struck {
    (Some(effect.into()), Memory::Nothing)
}

const UNSEEN: Struck = (None, Memory::Nothing);

impl Stand<'_> {
    /// Does it.
    pub fn strike(&mut self, fault: Fault) -> Struck {
        match fault {
            Fault::BrokerKilled(victim) => {
                self.broker(victim).kill().expect("killed");
                self.fenced(victim)
            }
            Fault::BrokerFrozen(victim) => {
                self.broker(victim).freeze().expect("frozen");
                self.fenced(victim)
            }
            Fault::BrokerRestarted(victim) => {
                let before = self.broker(victim).pid();
                self.broker(victim).restart().expect("restarted");
                let after = self.broker(victim).pid();
                seen(format!("process {before:?} became {after:?}"))
            }
            Fault::BrokerDiskFull(victim) => {
                self.broker(victim).fill_disk().expect("its disk is full");
                match self.broker(victim).wait_ended(SEEN).expect("asked") {
                    Some(status) => seen(format!("it ended: {status}")),
                    None => UNSEEN,
                }
            }
            Fault::MirrorKilled(index) => {
                let in_flight = self.in_flight_of(index);
                self.instances.kill(index);
                cut_off(in_flight)
            }
            Fault::MirrorFrozen(index) => self.freeze(index),
            Fault::MirrorLeaves(index) => {
                let in_flight = self.in_flight_of(index);
                let code = self.instances.terminate(index);
                seen(format!(
                    "it drained {in_flight} in flight and ended with {code:?}"
                ))
            }
            Fault::MirrorJoins => {
                self.instances.start(THIRD);
                let joined = self.sees(SEEN, |s| {
                    s.instances.number("partitions", |i| i == THIRD) > 0
                });
                let got = self.instances.number("partitions", |i| i == THIRD);
                (
                    joined.then(|| format!("it got {got} partitions")),
                    Memory::Nothing,
                )
            }
            Fault::Network(reach, trouble) => {
                let before = self.tolls(reach);
                self.each(reach, |broker| spoil(broker, trouble));
                (None, Memory::Tolls(before))
            }
            Fault::TopicGrown => self.grow(),
            Fault::TopicCreated => {
                let topic = self.fresh("new");
                self.source.create(&topic, 3, &[]);
                self.load.add(field(&topic, 3));
                (None, Memory::Topic(topic, 3))
            }
            Fault::TopicDeleted => self.delete_topic().1,
            Fault::TopicReplaced => self.replace_topic(),
            Fault::Reloaded => {
                let before = self.generations();
                self.instances.reload();
                self.reloaded(before)
            }
            Fault::ReloadBroken => {
                let before = self.instances.logged("reload_rejected").len();
                self.instances.break_file();
                let so = |s: &Self| s.instances.logged("reload_rejected").len() > before;
                let rejected = self.sees(SEEN, so);
                (
                    rejected.then(|| "it was rejected".to_owned()),
                    Memory::Nothing,
                )
            }
            Fault::RetentionPassed => self.pass_position(),
            Fault::Transactions => self.transact(),
            Fault::RefusedBySize => {
                self.target.set(&self.topics.name("main"), TAKES, "150");
                self.wait_pile()
            }
            Fault::RefusedByInSync(broker) => {
                let victim = self.broker(at_target(broker));
                self.target.set(&self.topics.name("main"), IN_SYNC, "3");
                victim.kill().expect("killed");
                self.wait_pile()
            }
            Fault::RefusedByAcl => {
                self.clusters
                    .target
                    .acl_add(&self.forbidden())
                    .expect("forbidden");
                let refused = self.sees(SEEN, |s| s.instances.reasons().contains("target_refuses"));
                (
                    refused.then(|| "mirror named it".to_owned()),
                    Memory::Nothing,
                )
            }
            Fault::RefusedByQuota => {
                self.quota("--add-config", QUOTA);
                self.wait_pile()
            }
            Fault::RecordsTooLarge => {
                let worked = self.topics.name("work");
                self.load.change(|topic| topic == worked, too_large);
                (None, Memory::Count(self.skipped()))
            }
            Fault::ClockOff => {
                self.load.change(|_| true, far_off);
                (None, Memory::Count(self.load.written()))
            }
        }
    }

    /// Undoes it; what is seen only now.
    pub fn heal(&mut self, fault: Fault, memory: Memory) -> Option<String> {
        match (fault, memory) {
            (Fault::BrokerFrozen(victim), _) => {
                self.broker(victim).thaw().expect("thawed");
                None
            }
            (Fault::BrokerKilled(victim) | Fault::BrokerDiskFull(victim), _) => {
                self.broker(victim).restart().expect("restarted");
                self.whole(victim)
            }
            (Fault::BrokerRestarted(victim), _) => self.whole(victim),
            (Fault::MirrorKilled(index) | Fault::MirrorLeaves(index), _) => {
                self.instances.start(index);
                None
            }
            (Fault::MirrorFrozen(index), _) => {
                self.instances.thaw(index);
                None
            }
            (Fault::MirrorJoins, _) => {
                self.instances.terminate(THIRD);
                None
            }
            (Fault::Network(reach, _), Memory::Tolls(before)) => {
                self.each(reach, |broker| broker.proxy().heal());
                paid(&before, &self.tolls(reach))
            }
            (_, Memory::Topic(topic, partitions)) => self
                .sees(SEEN, |s| s.target.partitions(&topic) == partitions)
                .then(|| format!("the target has {partitions} partitions of {topic}")),
            (Fault::TopicReplaced, _) => {
                let named = self.sees(SEEN, |s| !s.instances.logged("topic_replaced").is_empty());
                named.then(|| "it was named".to_owned())
            }
            (Fault::RetentionPassed, Memory::Count(before)) => {
                let gaps = |s: &Self| s.instances.logged("gap").len() as u64;
                let named = self.sees(2 * SEEN, |s| gaps(s) > before);
                named.then(|| format!("{} gaps were named", gaps(self) - before))
            }
            (Fault::ReloadBroken, _) => {
                self.instances.mend();
                None
            }
            (Fault::Transactions, Memory::Open(open)) => {
                open.abort();
                None
            }
            (Fault::RefusedBySize, _) => {
                self.target.set(&self.topics.name("main"), TAKES, "1048588");
                None
            }
            (Fault::RefusedByInSync(broker), _) => {
                self.broker(at_target(broker)).restart().expect("restarted");
                self.whole(at_target(broker));
                self.target.set(&self.topics.name("main"), IN_SYNC, "2");
                None
            }
            (Fault::RefusedByAcl, _) => {
                self.clusters
                    .target
                    .acl_remove(&self.forbidden())
                    .expect("allowed again");
                None
            }
            (Fault::RefusedByQuota, _) => {
                self.quota("--delete-config", "producer_byte_rate");
                None
            }
            (Fault::RecordsTooLarge, Memory::Count(before)) => {
                self.load.change(|_| true, |_, _| {});
                self.sees(SEEN, |s| s.skipped() > before)
                    .then(|| format!("{} were skipped", self.skipped().saturating_sub(before)))
            }
            (Fault::ClockOff, Memory::Count(before)) => {
                self.load.change(|_| true, |_, _| {});
                let written = self.load.written() - before;
                (written > 0).then(|| format!("{written} records were written meanwhile"))
            }
            _ => None,
        }
    }

    fn broker(&self, victim: Victim) -> &Broker {
        self.clusters.of(victim.side).broker(victim.broker)
    }

    /// Its cluster goes on without it.
    fn fenced(&self, victim: Victim) -> Struck {
        let others = self.clusters.others(victim);
        let cluster = self.clusters.of(victim.side);
        match cluster.wait_members(&others, SEEN) {
            Ok(()) => seen(format!("brokers {others:?} went on")),
            Err(_) => UNSEEN,
        }
    }

    fn whole(&self, victim: Victim) -> Option<String> {
        let cluster = self.clusters.of(victim.side);
        cluster.wait_members(&[1, 2, 3], PATIENCE).expect("whole");
        None
    }

    fn each(&self, reach: Reach, what: impl FnMut(&Broker)) {
        self.brokers(reach).for_each(what);
    }

    fn brokers(&self, reach: Reach) -> impl Iterator<Item = &Broker> {
        let all = self.clusters.of(reach.side()).brokers().iter();
        all.filter(move |broker| match reach {
            Reach::One(victim) => victim.broker == broker.id(),
            Reach::All(_) => true,
        })
    }

    fn tolls(&self, reach: Reach) -> Vec<Toll> {
        self.brokers(reach).map(|b| b.proxy().toll()).collect()
    }

    fn in_flight_of(&self, index: usize) -> u64 {
        self.instances.number("in_flight_records", |i| i == index)
    }

    /// Stops one until the others own more than before.
    fn freeze(&mut self, index: usize) -> Struck {
        let others = |s: &Self| s.instances.number("partitions", |i| i != index);
        let (before, in_flight) = (others(self), self.in_flight_of(index));
        self.instances.freeze(index);
        let moved = self.sees(SEEN, |s| others(s) > before);
        let words = || format!("its group moved on while it had {in_flight} in flight");
        (moved.then(words), Memory::Nothing)
    }

    fn grow(&mut self) -> Struck {
        let (topic, from) = (self.topics.name("grow"), self.grown);
        self.grown += 2;
        self.source.grow(&topic, self.grown.unsigned_abs() as usize);
        self.load
            .add(field(&topic, self.grown).only(from..self.grown));
        (None, Memory::Topic(topic, self.grown))
    }

    /// Makes a topic, lets it be copied, deletes it at the source: its name, and whether mirror saw that.
    fn delete_topic(&mut self) -> (String, Struck) {
        let topic = self.fresh("gone");
        self.source.create(&topic, 2, &[]);
        self.extra.join(fill(
            &self.clusters.source.bootstrap(),
            &[field(&topic, 2)],
            EACH,
        ));
        let copied = |s: &Self| {
            s.target.partitions(&topic) == 2 && s.target.end_sum(&topic) >= 2 * EACH as i64
        };
        // What is not copied yet stays.
        if !self.sees(SEEN, copied) {
            return (topic, UNSEEN);
        }
        let known = |s: &Self| s.instances.number("topics", |_| true);
        let before = known(self);
        self.source.delete(&topic);
        let gone = self.sees(SEEN, |s| known(s) < before);
        let struck = (
            gone.then(|| format!("mirror saw that {topic} is gone")),
            Memory::Nothing,
        );
        (topic, struck)
    }

    fn replace_topic(&mut self) -> Struck {
        let (topic, (gone, _)) = self.delete_topic();
        if gone.is_some() {
            self.source.create(&topic, 2, &[]);
            let again = field(&topic, 2).prefix("again-");
            let written = fill(&self.clusters.source.bootstrap(), &[again], EACH / 2);
            self.extra.join(written);
        }
        UNSEEN
    }

    fn generations(&self) -> u64 {
        let of = |m: &crate::support::process::Mirror| m.status()?["generation"].as_u64();
        self.instances.running().filter_map(|(_, m)| of(m)).sum()
    }

    fn reloaded(&self, before: u64) -> Struck {
        let applied = self.sees(SEEN, |s| s.generations() > before);
        (
            applied.then(|| "it was applied".to_owned()),
            Memory::Nothing,
        )
    }

    /// Kills every instance, lets the source delete what came since, and starts them again.
    fn pass_position(&mut self) -> Struck {
        let ran: Vec<usize> = self.instances.running().map(|(i, _)| i).collect();
        ran.iter().for_each(|index| self.instances.kill(*index));
        let written = self.load.written();
        self.sees(SEEN, |s| s.load.written() > written + PILE.unsigned_abs());
        let topic = self.topics.name("main");
        for partition in 0..MAIN / 2 {
            let end = self.source.watermarks(&topic, partition).1;
            let log_start = (end - 10).max(0);
            self.source.delete_records(&topic, partition, log_start);
            self.deleted.push(((topic.clone(), partition), log_start));
        }
        let before = self.instances.logged("gap").len();
        (0..INSTANCES).for_each(|index| self.instances.start(index));
        (None, Memory::Count(before as u64))
    }

    fn transact(&mut self) -> Struck {
        let topic = self.fresh("tx");
        self.source.create(&topic, 2, &[]);
        let records = |label: &str| -> Vec<(i32, Record)> {
            let of = |n: u64| {
                let stamp = Stamp {
                    label: label.to_owned(),
                    partition: (n % 2) as i32,
                    sequence: n / 2,
                };
                (stamp.partition, stamp.record(80))
            };
            (0..2 * IN_TRANSACTION).map(of).collect()
        };
        let bootstrap = self.clusters.source.bootstrap();
        let committed = records(&topic);
        // Nobody expects the label of those that are aborted: one of them at the target is invented.
        let aborted = records(&format!("aborted-{topic}"));
        Transaction::open(&bootstrap, &topic, &aborted).abort();
        Transaction::open(&bootstrap, &topic, &committed).commit();
        let open = Transaction::open(&bootstrap, &topic, &aborted);
        for (partition, record) in committed {
            self.extra
                .push(&(topic.clone(), partition), record.fingerprint());
        }
        let words = format!(
            "{} committed, {} aborted",
            2 * IN_TRANSACTION,
            4 * IN_TRANSACTION
        );
        (Some(words), Memory::Open(open))
    }

    /// Records of the source that are not settled, as far as those who answer know.
    fn lag(&self) -> i64 {
        let lag = |status: &serde_json::Value| {
            let of = |route: &str| status["routes"][route]["lag"].as_i64().unwrap_or(0);
            of("plain") + of("worked")
        };
        let all = self.instances.running().filter_map(|(_, m)| m.status());
        all.map(|status| lag(&status)).sum()
    }

    /// Waits until records have piled up.
    fn wait_pile(&self) -> Struck {
        let before = self.lag();
        let effect = self.sees(SEEN, |s| s.lag() > before + PILE);
        let words = || format!("the lag grew from {before} to {}", self.lag());
        (effect.then(words), Memory::Nothing)
    }

    fn skipped(&self) -> u64 {
        self.instances.logged("record_failed").len() as u64
    }

    fn forbidden(&self) -> [&'static str; 8] {
        [
            "--deny-principal",
            "User:mirror",
            "--operation",
            "Write",
            "--topic",
            "*",
            "--deny-host",
            "*",
        ]
    }

    fn quota(&self, verb: &str, what: &str) {
        let whose = ["--entity-type", "users", "--entity-name", "mirror"];
        let change = ["--alter", verb, what];
        self.clusters
            .target
            .admin(CONFIGS, &[&change[..], &whose].concat())
            .expect("the quota is changed");
    }
}

fn at_target(broker: i32) -> Victim {
    let side = Side::Target;
    Victim { side, broker }
}

fn cut_off(in_flight: u64) -> Struck {
    match in_flight {
        0 => UNSEEN,
        _ => seen(format!("{in_flight} of its own were cut off")),
    }
}

/// Makes the network of one broker bad.
fn spoil(broker: &Broker, trouble: Trouble) {
    let way = Way::default();
    let ms = Duration::from_millis;
    let deaf = Way {
        traffic: Traffic::Swallowed,
        ..way
    };
    let link = match trouble {
        Trouble::Reset => return broker.proxy().reset(),
        Trouble::Delay(late) => Link::both(Way {
            delay: ms(late),
            ..way
        }),
        Trouble::Jitter(late) => Link::both(Way {
            jitter: ms(late),
            ..way
        }),
        Trouble::Bandwidth(bytes) => Link::both(Way {
            bytes_per_second: NonZeroU64::new(bytes),
            ..way
        }),
        Trouble::Partition => Link::both(Way {
            traffic: Traffic::Held,
            ..way
        }),
        Trouble::DeafClients => Link {
            to_client: deaf,
            ..Link::default()
        },
        Trouble::DeafBrokers => Link {
            to_broker: deaf,
            ..Link::default()
        },
    };
    broker.proxy().set(link);
}

/// What the proxies did meanwhile that they do not do in good weather.
fn paid(before: &[Toll], after: &[Toll]) -> Option<String> {
    let sum = |of: fn(&Toll) -> u64| {
        let total = |tolls: &[Toll]| tolls.iter().map(of).sum::<u64>();
        total(after) - total(before)
    };
    let all = [
        (sum(|t| t.delayed), "bytes late"),
        (sum(|t| t.held), "bytes held"),
        (sum(|t| t.swallowed), "bytes swallowed"),
        (sum(|t| t.reset), "connections reset"),
    ];
    let some = all.iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> = some
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}
