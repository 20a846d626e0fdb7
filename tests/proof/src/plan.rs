//! What is done to a mirror in one run: from a seed and nothing else, so that its number is all it takes to replay it.
//!
//! The first seeds strike with one kind of fault each, so that all of them have been met alone; later ones mix. Faults that need
//! the same thing, a broker or an instance, do not overlap; all others may.

use super::random::Random;
use std::fmt;
use std::ops::Range;

/// Brokers of each cluster.
pub const BROKERS: u64 = 3;
/// Instances that run from the beginning.
pub const INSTANCES: usize = 2;
/// Before the first fault something has been copied.
const QUIET_MS: u64 = 3_000;
/// Of a soak: how long what was added has to be taken up, between two instances that are started again.
const SETTLING_MS: u64 = 20_000;
/// Tries to find room for a fault.
const TRIES: usize = 20;

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its number.
    pub seed: u64,
    /// Threads of the routes.
    pub shape: Shape,
    /// Protocol of their groups.
    pub protocol: Protocol,
    /// What happens, by time of its beginning.
    pub strikes: Vec<Strike>,
}

/// Threads of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// So many that each do everything.
    Workers(usize),
    /// So many behind one that fetches.
    Handlers(usize),
}

/// Who assigns partitions to members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// One of the members.
    Classic,
    /// The coordinator (KIP-848).
    Consumer,
}

/// A fault with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strike {
    /// Milliseconds from the beginning.
    pub at: u64,
    /// Milliseconds until it is healed.
    pub lasts: u64,
    /// What happens.
    pub fault: Fault,
}

/// One of the two clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where records come from.
    Source,
    /// Where they go.
    Target,
}

/// A broker of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Whose it is.
    pub side: Side,
    /// Its id.
    pub broker: i32,
}

/// What a network does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// So many milliseconds late.
    Delay(u64),
    /// Up to so many milliseconds late.
    Jitter(u64),
    /// Connections are reset.
    Reset,
    /// Requests come, responses do not: half-open.
    DeafClients,
    /// Requests do not come.
    DeafBrokers,
    /// So many bytes a second.
    Bandwidth(u64),
    /// Nothing comes through.
    Partition,
}

/// Whose network it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// One broker's.
    One(Victim),
    /// That of all brokers of a cluster.
    All(Side),
}

impl Reach {
    /// The cluster.
    pub fn side(self) -> Side {
        match self {
            Self::One(victim) => victim.side,
            Self::All(side) => side,
        }
    }
}

/// What happens. Most are healed some time later; how, is said where it is not clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `kill -9`; started again.
    BrokerKilled(Victim),
    /// SIGSTOP, SIGCONT.
    BrokerFrozen(Victim),
    /// SIGTERM, and started again at once.
    BrokerRestarted(Victim),
    /// No file grows, so it ends; started again with room.
    BrokerDiskFull(Victim),
    /// `kill -9`; started again.
    MirrorKilled(usize),
    /// SIGSTOP until its group has moved on, SIGCONT.
    MirrorFrozen(usize),
    /// SIGTERM; started again.
    MirrorLeaves(usize),
    /// A third instance; SIGTERM.
    MirrorJoins,
    /// Between mirror and brokers.
    Network(Reach, Trouble),
    /// A source topic has more partitions from now on.
    TopicGrown,
    /// A new source topic.
    TopicCreated,
    /// A source topic is deleted.
    TopicDeleted,
    /// A source topic is deleted and created again.
    TopicReplaced,
    /// Every instance gets a valid file with another handler.
    Reloaded,
    /// Every instance gets a file that is wrong; then the one before.
    ReloadBroken,
    /// While no instance runs, the source deletes records that were not copied.
    RetentionPassed,
    /// One transaction is committed, one aborted, one stays open and is aborted.
    Transactions,
    /// The target topic takes only tiny records.
    RefusedBySize,
    /// A few records are too large for a target topic, whose route skips such.
    RecordsTooLarge,
    /// The target takes nothing from mirror.
    RefusedByAcl,
    /// The target slows mirror down.
    RefusedByQuota,
    /// The target topic wants all its copies in sync, and this broker of the target is killed.
    RefusedByInSync(i32),
    /// Records have timestamps years away.
    ClockOff,
}

/// A fault without its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    MirrorKilled,
    BrokerKilledAtTarget,
    BrokerKilledAtSource,
    MirrorFrozen,
    NetworkReset,
    NetworkPartition,
    NetworkHalfOpen,
    MirrorLeaves,
    MirrorJoins,
    RetentionPassed,
    BrokerFrozen,
    NetworkDelay,
    NetworkJitter,
    NetworkBandwidth,
    TopicGrown,
    TopicCreated,
    TopicDeleted,
    TopicReplaced,
    Reloaded,
    ReloadBroken,
    Transactions,
    RefusedBySize,
    RecordsTooLarge,
    RefusedByAcl,
    RefusedByQuota,
    RefusedByInSync,
    BrokerRestarted,
    BrokerDiskFull,
    ClockOff,
}

/// All kinds, in the order in which the first seeds meet them alone.
pub const KINDS: [Kind; 29] = [
    Kind::MirrorKilled,
    Kind::BrokerKilledAtTarget,
    Kind::BrokerKilledAtSource,
    Kind::MirrorFrozen,
    Kind::NetworkReset,
    Kind::NetworkPartition,
    Kind::NetworkHalfOpen,
    Kind::MirrorLeaves,
    Kind::MirrorJoins,
    Kind::RetentionPassed,
    Kind::BrokerFrozen,
    Kind::NetworkDelay,
    Kind::NetworkJitter,
    Kind::NetworkBandwidth,
    Kind::TopicGrown,
    Kind::TopicCreated,
    Kind::TopicDeleted,
    Kind::TopicReplaced,
    Kind::Reloaded,
    Kind::ReloadBroken,
    Kind::Transactions,
    Kind::RefusedBySize,
    Kind::RecordsTooLarge,
    Kind::RefusedByAcl,
    Kind::RefusedByQuota,
    Kind::RefusedByInSync,
    Kind::BrokerRestarted,
    Kind::BrokerDiskFull,
    Kind::ClockOff,
];

impl Plan {
    /// The run of a seed, with faults for so long.
    pub fn of(seed: u64, lasts_ms: u64) -> Self {
        let random = &mut Random::new(seed);
        let Some(kind) = index(seed).and_then(|i| KINDS.get(i)).copied() else {
            return Self::mixed(random, seed, lasts_ms);
        };
        let mut plan = Self::bare(random, seed);
        for _ in 0..(lasts_ms / 12_000).max(1) {
            plan.add(Some(kind), lasts_ms, random);
        }
        plan.strikes.sort_by_key(|strike| strike.at);
        plan
    }

    /// Nothing happens yet.
    fn bare(random: &mut Random, seed: u64) -> Self {
        let shape = random.pick(&[
            Shape::Workers(1),
            Shape::Workers(2),
            Shape::Workers(4),
            Shape::Handlers(3),
        ]);
        let protocol = random.pick(&[Protocol::Classic, Protocol::Classic, Protocol::Consumer]);
        Self {
            seed,
            shape,
            protocol,
            strikes: Vec::new(),
        }
    }

    /// The run of a seed for hours: all kinds mixed, so that what grows slowly is seen growing. Now and then nothing strikes
    /// ([`is_quiet`]). What is to be followed has to live, and to have as much to do late as early: from the second quarter on
    /// the first instance lives, and nothing is added to what it copies for good. Just before, each instance is started again:
    /// a topic that was replaced is held until then.
    pub fn soak(seed: u64, lasts_ms: u64) -> Self {
        let mut plan = Self::mixed(&mut Random::new(seed), seed, lasts_ms);
        let quarter = lasts_ms / 4;
        let restarts = (0..INSTANCES).map(|index| Strike {
            at: quarter.saturating_sub(SETTLING_MS * (INSTANCES - index) as u64),
            lasts: SETTLING_MS / 4,
            fault: Fault::MirrorLeaves(index),
        });
        let restarts: Vec<Strike> = restarts.collect();
        let settles = restarts.iter().map(|r| r.at).min().unwrap_or(quarter);
        plan.strikes.retain(|strike| {
            let ends_first = strike.fault.needs().contains(&Need::Instance(0))
                && !matches!(strike.fault, Fault::MirrorFrozen(_));
            let ends = strike.at + strike.lasts;
            let is_late = (ends_first && ends > quarter) || (strike.fault.adds() && ends > settles);
            let is_apart = !restarts.iter().any(|restart| restart.excludes(strike));
            is_apart && !(is_quiet(strike.at) || is_quiet(ends) || is_late)
        });
        plan.strikes.extend(restarts);
        plan.strikes.sort_by_key(|strike| strike.at);
        plan
    }

    fn mixed(random: &mut Random, seed: u64, lasts_ms: u64) -> Self {
        let mut plan = Self::bare(random, seed);
        let wanted = random.within(4..8) * lasts_ms.max(40_000) / 40_000;
        for _ in 0..wanted.max(1) {
            plan.add(None, lasts_ms, random);
        }
        plan.strikes.sort_by_key(|strike| strike.at);
        plan
    }

    /// One more strike, where there is room for it.
    fn add(&mut self, kind: Option<Kind>, lasts_ms: u64, random: &mut Random) {
        for _ in 0..TRIES {
            let kind = kind.unwrap_or_else(|| random.pick(&KINDS));
            let fault = kind.draw(random);
            let lasts = random.within(fault.durations());
            let latest = lasts_ms.saturating_sub(lasts).max(QUIET_MS + 1);
            let at = random.within(QUIET_MS..latest);
            let strike = Strike { at, lasts, fault };
            if !self.strikes.iter().any(|other| other.excludes(&strike)) {
                return self.strikes.push(strike);
            }
        }
    }
}

/// Whether nothing strikes at this time of a soak, so that a lag can come back to zero: the last two of every ten minutes.
pub fn is_quiet(at_ms: u64) -> bool {
    at_ms % 600_000 >= 480_000
}

/// The first seed is 1.
fn index(seed: u64) -> Option<usize> {
    usize::try_from(seed.checked_sub(1)?).ok()
}

impl Strike {
    /// Whether both cannot be at the same time.
    fn excludes(&self, other: &Self) -> bool {
        let apart = self.at + self.lasts < other.at || other.at + other.lasts < self.at;
        let needs = other.fault.needs();
        !apart && self.fault.needs().iter().any(|need| needs.contains(need))
    }
}

/// What only one fault at a time can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// The brokers of a cluster: with one of three away it goes on.
    Brokers(Side),
    /// The network of a cluster.
    Network(Side),
    /// An instance.
    Instance(usize),
    /// The third one.
    Third,
    /// The instances' files.
    Files,
    /// The settings of the target's topics.
    Settings,
    /// What the load writes.
    Records,
}

impl Fault {
    /// Whether there are more partitions to copy from then on.
    fn adds(self) -> bool {
        matches!(
            self,
            Self::TopicGrown | Self::TopicCreated | Self::TopicReplaced | Self::Transactions
        )
    }

    fn needs(self) -> Vec<Need> {
        match self {
            Self::BrokerKilled(v)
            | Self::BrokerFrozen(v)
            | Self::BrokerRestarted(v)
            | Self::BrokerDiskFull(v) => vec![Need::Brokers(v.side)],
            Self::Network(reach, _) => vec![Need::Network(reach.side())],
            Self::MirrorKilled(i) | Self::MirrorLeaves(i) => vec![Need::Instance(i)],
            // Somebody has to be there whom its partitions go to.
            Self::MirrorFrozen(_) => (0..INSTANCES).map(Need::Instance).collect(),
            Self::MirrorJoins => vec![Need::Third],
            Self::RetentionPassed => {
                let all = (0..INSTANCES).map(Need::Instance);
                all.chain([Need::Third, Need::Brokers(Side::Source)])
                    .collect()
            }
            // Their owner talks to the brokers once, and does not try again.
            Self::TopicGrown
            | Self::TopicCreated
            | Self::TopicDeleted
            | Self::TopicReplaced
            | Self::Transactions => vec![Need::Brokers(Side::Source)],
            Self::Reloaded | Self::ReloadBroken => vec![Need::Files],
            Self::RefusedBySize
            | Self::RefusedByInSync(_)
            | Self::RefusedByAcl
            | Self::RefusedByQuota => {
                vec![Need::Settings, Need::Brokers(Side::Target)]
            }
            Self::RecordsTooLarge | Self::ClockOff => vec![Need::Records],
        }
    }

    /// Milliseconds for which it lasts.
    fn durations(self) -> Range<u64> {
        match self {
            // Longer than a session of six seconds.
            Self::MirrorFrozen(_) => 8_000..12_000,
            Self::BrokerFrozen(_) => 4_000..10_000,
            Self::BrokerRestarted(_) | Self::Reloaded => 500..1_000,
            Self::TopicDeleted | Self::TopicReplaced => 1_000..4_000,
            Self::Network(_, Trouble::Reset) => 1_000..3_000,
            _ => 3_000..9_000,
        }
    }
}

impl Kind {
    /// A fault of this kind.
    fn draw(self, random: &mut Random) -> Fault {
        let side = random.pick(&[Side::Source, Side::Target]);
        let broker = random.within(1..BROKERS + 1) as i32;
        let victim = Victim { side, broker };
        let at = |side| Victim { side, broker };
        let instance = random.within(0..INSTANCES as u64) as usize;
        let reach = random.pick(&[Reach::One(victim), Reach::All(side), Reach::All(side)]);
        match self {
            Self::MirrorKilled => Fault::MirrorKilled(instance),
            Self::BrokerKilledAtTarget => Fault::BrokerKilled(at(Side::Target)),
            Self::BrokerKilledAtSource => Fault::BrokerKilled(at(Side::Source)),
            Self::MirrorFrozen => Fault::MirrorFrozen(instance),
            Self::NetworkReset => Fault::Network(reach, Trouble::Reset),
            Self::NetworkPartition => Fault::Network(reach, Trouble::Partition),
            Self::NetworkHalfOpen => Fault::Network(
                reach,
                random.pick(&[Trouble::DeafClients, Trouble::DeafBrokers]),
            ),
            Self::MirrorLeaves => Fault::MirrorLeaves(instance),
            Self::MirrorJoins => Fault::MirrorJoins,
            Self::RetentionPassed => Fault::RetentionPassed,
            Self::BrokerFrozen => Fault::BrokerFrozen(victim),
            Self::NetworkDelay => Fault::Network(reach, Trouble::Delay(random.within(50..1_000))),
            Self::NetworkJitter => {
                Fault::Network(reach, Trouble::Jitter(random.within(100..2_000)))
            }
            Self::NetworkBandwidth => {
                Fault::Network(reach, Trouble::Bandwidth(random.within(10_000..100_000)))
            }
            Self::TopicGrown => Fault::TopicGrown,
            Self::TopicCreated => Fault::TopicCreated,
            Self::TopicDeleted => Fault::TopicDeleted,
            Self::TopicReplaced => Fault::TopicReplaced,
            Self::Reloaded => Fault::Reloaded,
            Self::ReloadBroken => Fault::ReloadBroken,
            Self::Transactions => Fault::Transactions,
            Self::RefusedBySize => Fault::RefusedBySize,
            Self::RecordsTooLarge => Fault::RecordsTooLarge,
            Self::RefusedByAcl => Fault::RefusedByAcl,
            Self::RefusedByQuota => Fault::RefusedByQuota,
            Self::RefusedByInSync => Fault::RefusedByInSync(broker),
            Self::BrokerRestarted => Fault::BrokerRestarted(victim),
            Self::BrokerDiskFull => Fault::BrokerDiskFull(victim),
            Self::ClockOff => Fault::ClockOff,
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}, {}", self.seed, self.shape, self.protocol)?;
        for strike in &self.strikes {
            write!(f, "\n  {strike}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Strike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ms: u64| ms as f64 / 1000.0;
        let (at, lasts) = (seconds(self.at), seconds(self.lasts));
        write!(f, "at {at:4.1} s for {lasts:4.1} s: {}", self.fault)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workers(count) => write!(f, "workers {count}"),
            Self::Handlers(count) => write!(f, "handler threads {count}"),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Classic => "classic group",
            Self::Consumer => "consumer group",
        })
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => "source",
            Self::Target => "target",
        })
    }
}

impl fmt::Display for Victim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} broker {}", self.side, self.broker)
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(victim) => victim.fmt(f),
            Self::All(side) => write!(f, "all {side} brokers"),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delay(ms) => write!(f, "is {ms} ms late"),
            Self::Jitter(ms) => write!(f, "is up to {ms} ms late"),
            Self::Reset => f.write_str("resets connections"),
            Self::DeafClients => f.write_str("swallows responses"),
            Self::DeafBrokers => f.write_str("swallows requests"),
            Self::Bandwidth(bytes) => write!(f, "carries {bytes} bytes a second"),
            Self::Partition => f.write_str("is cut"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BrokerKilled(victim) => write!(f, "kill -9 of {victim}"),
            Self::BrokerFrozen(victim) => write!(f, "{victim} stands still"),
            Self::BrokerRestarted(victim) => write!(f, "{victim} is restarted"),
            Self::BrokerDiskFull(victim) => write!(f, "the disk of {victim} is full"),
            Self::MirrorKilled(i) => write!(f, "kill -9 of mirror {i}"),
            Self::MirrorFrozen(i) => write!(f, "mirror {i} stands still, its group moves on"),
            Self::MirrorLeaves(i) => write!(f, "mirror {i} leaves"),
            Self::MirrorJoins => f.write_str("a third mirror joins"),
            Self::Network(reach, trouble) => write!(f, "the network of {reach} {trouble}"),
            Self::TopicGrown => f.write_str("a source topic grows"),
            Self::TopicCreated => f.write_str("a source topic is created"),
            Self::TopicDeleted => f.write_str("a source topic is deleted"),
            Self::TopicReplaced => f.write_str("a source topic is deleted and created again"),
            Self::Reloaded => f.write_str("a reload with another handler"),
            Self::ReloadBroken => f.write_str("a reload of a broken file"),
            Self::RetentionPassed => f.write_str("retention passes the position"),
            Self::Transactions => f.write_str("transactions: committed, aborted, open"),
            Self::RefusedBySize => f.write_str("the target topic takes only tiny records"),
            Self::RecordsTooLarge => f.write_str("records that are too large, on_error: skip"),
            Self::RefusedByAcl => f.write_str("the target forbids to write"),
            Self::RefusedByQuota => f.write_str("the target slows down by quota"),
            Self::RefusedByInSync(broker) => write!(
                f,
                "the target wants all copies in sync, and its broker {broker} is killed"
            ),
            Self::ClockOff => f.write_str("timestamps of records are years away"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LASTS: u64 = 40_000;

    #[test]
    fn the_first_seeds_meet_every_kind_alone() {
        for (seed, kind) in (1..).zip(KINDS) {
            let plan = Plan::of(seed, LASTS);
            assert!(!plan.strikes.is_empty(), "{plan}");
            // The same kind again and again: drawn with any numbers, its faults are of one family.
            let family = std::mem::discriminant(&kind.draw(&mut Random::new(0)));
            let all = plan
                .strikes
                .iter()
                .map(|s| std::mem::discriminant(&s.fault));
            assert!(all.into_iter().all(|d| d == family), "{plan}");
        }
    }

    #[test]
    fn in_a_soak_all_kinds_strike_and_the_first_instance_lives() {
        const HOUR: u64 = 3_600_000;
        let plan = Plan::soak(1, HOUR);
        let struck = |kind: &Kind| {
            let of = std::mem::discriminant(&kind.draw(&mut Random::new(0)));
            plan.strikes
                .iter()
                .any(|s| std::mem::discriminant(&s.fault) == of)
        };
        let missed: Vec<_> = KINDS.iter().filter(|kind| !struck(kind)).collect();
        assert!(missed.is_empty(), "{missed:?}");
        for strike in &plan.strikes {
            assert!(
                !is_quiet(strike.at) && !is_quiet(strike.at + strike.lasts),
                "{strike}"
            );
            let ends = [
                Fault::MirrorKilled(0),
                Fault::MirrorLeaves(0),
                Fault::RetentionPassed,
            ];
            assert!(
                strike.at < HOUR / 4 || !(ends.contains(&strike.fault) || strike.fault.adds()),
                "{strike}"
            );
        }
    }

    #[test]
    fn later_seeds_mix_and_overlap() {
        let plans: Vec<Plan> = (100..200).map(|seed| Plan::of(seed, LASTS)).collect();
        let overlap = |p: &Plan| p.strikes.windows(2).any(|w| w[0].at + w[0].lasts > w[1].at);
        assert!(plans.iter().filter(|p| overlap(p)).count() > 80);
        assert!(plans.iter().all(|p| p.strikes.len() >= 3));
    }

    #[test]
    fn a_plan_says_what_it_does() {
        let text = Plan::of(4, LASTS).to_string();
        assert!(
            text.starts_with("seed 4: ") && text.contains("stands still, its group moves on"),
            "{text}"
        );
    }

    proptest! {
        #[test]
        fn a_seed_gives_one_plan_in_which_nothing_is_needed_twice(seed: u64, lasts in 15_000..120_000u64) {
            let plan = Plan::of(seed, lasts);
            prop_assert_eq!(&plan, &Plan::of(seed, lasts));
            for (i, one) in plan.strikes.iter().enumerate() {
                prop_assert!(one.at >= QUIET_MS);
                prop_assert!(one.at + one.lasts <= lasts.max(QUIET_MS + 1 + one.lasts));
                for other in &plan.strikes[i + 1..] {
                    prop_assert!(one.at <= other.at);
                    prop_assert!(!one.excludes(other), "{}", plan);
                }
            }
        }
    }
}
