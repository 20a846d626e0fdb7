//! What is copied, and what the routes make of it.

use crate::support::record::Record;
use crate::support::workload::{Field, field, noise};
use proof::expected::{Fate, Lane};
use serde_json::{Value, json};

/// Partitions of the topic that most faults are about.
pub const MAIN: i32 = 6;
/// Partitions of the topic that grows, at first.
pub const GROWING: i32 = 2;
/// Partitions of the topic that goes through handlers.
pub const WORKED: i32 = 4;
/// What the target topic behind the handlers takes.
pub const WORKED_LIMIT: usize = 20_000;
/// A value that it does not take.
const TOO_LARGE: usize = 50_000;
/// Milliseconds since 1970 in the year 2100, and one after its beginning.
const FAR: [i64; 2] = [4_102_444_800_000, 1];

/// The topics of one run.
pub struct Topics {
    /// What all their names begin with.
    pub prefix: String,
}

impl Topics {
    /// Those of a seed.
    pub fn of(seed: u64) -> Self {
        Self {
            prefix: format!("t{seed}."),
        }
    }

    /// One of them.
    pub fn name(&self, of: &str) -> String {
        format!("{}{of}", self.prefix)
    }

    /// Those with a load from the beginning.
    pub fn fields(&self) -> Vec<Field> {
        let worked = Field {
            fate: worked,
            ..field(&self.name("work"), WORKED)
        };
        vec![
            field(&self.name("main"), MAIN),
            field(&self.name("grow"), GROWING),
            worked,
        ]
    }

    /// The topic of the target that gets what went through the handlers.
    pub fn worked(&self) -> String {
        format!("worked.{}", self.name("work"))
    }

    /// Where a source partition's records belong.
    pub fn belongs(&self, (label, partition): &Lane) -> Lane {
        let topic = label.strip_prefix("again-").unwrap_or(label);
        let topic = if *topic == self.name("work") {
            self.worked()
        } else {
            topic.to_owned()
        };
        (topic, *partition)
    }

    /// The two routes. `generation` is the only thing that a reload changes.
    pub fn routes(&self, generation: Generation, threads: &Value, protocol: &str) -> Value {
        let prefix = self.prefix.replace('.', "\\.");
        let route = |topics: String| {
            let mut route = threads.clone();
            route["source"] = json!("source");
            route["target"] = json!("target");
            route["topics"] = json!({ "include": [topics] });
            route["commit_interval"] = json!("1s");
            route["discovery_interval"] = json!("1s");
            route["group_protocol"] = json!(protocol);
            route["on_gap"] = json!("earliest");
            route
        };
        let mut plain = route(format!("{prefix}(main|grow|new-.*|gone-.*|tx-.*)"));
        plain["on_error"] = json!("stop");
        let mut worked = route(format!("{prefix}work"));
        worked["on_error"] = json!("skip");
        worked["handlers"] = json!([
            { "filter": { "drop": "tombstone" } },
            { "rename": { "topic": "worked.{topic}" } },
            { "reformat": { "set": { "header.generation": generation.text() } } },
        ]);
        json!({ "plain": plain, "worked": worked })
    }
}

/// What the handlers write into a header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    Odd,
    Even,
}

impl Generation {
    /// What the next reload makes of it.
    pub fn next(self) -> Self {
        match self {
            Self::Odd => Self::Even,
            Self::Even => Self::Odd,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Odd => "odd",
            Self::Even => "even",
        }
    }
}

/// What becomes of a record on the route with handlers, thought out here a second time.
fn worked(record: &Record) -> Fate {
    let Some(value) = &record.value else {
        return Fate::LeftOut;
    };
    if value.len() > WORKED_LIMIT {
        return Fate::Refused;
    }
    let with = |generation: Generation| {
        let mut record = record.clone();
        let header = (b"generation".to_vec(), Some(generation.text().into()));
        record.headers.push(header);
        record.fingerprint()
    };
    Fate::Either(with(Generation::Odd), with(Generation::Even))
}

/// Now and then a record that is too large behind the handlers.
pub fn too_large(sequence: u64, record: &mut Record) {
    if sequence % 50 == 7 {
        record.value = Some(noise(TOO_LARGE));
    }
}

/// Two of three records are from another time.
pub fn far_off(sequence: u64, record: &mut Record) {
    if let Some(far) = FAR.get((sequence % 3) as usize) {
        record.timestamp = *far;
    }
}
