//! What came out, for people and for programs.

use super::compare::{Difference, Tally};
use super::print::Part;
use super::survey::Survey;
use super::unit::{Outcome, Told};
use super::{From, Options, Until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What came out of one route and one target.
pub struct Report {
    /// The route.
    pub route: String,
    /// Its sources.
    pub sources: Vec<String>,
    /// The target.
    pub target: String,
    /// By target topic.
    pub topics: BTreeMap<String, Row>,
    /// Target topics that are not there.
    pub absent: BTreeSet<String>,
    /// Target partitions that the sample left out.
    pub left_out: usize,
    /// The differences that are told one by one.
    pub differences: Vec<Told>,
    told: usize,
    from: From,
    until: Until,
}

/// What came out of one target topic.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row {
    /// Its partitions that were compared.
    pub partitions: u64,
    /// Records read at the source.
    pub source_read: u64,
    /// Records read at the target.
    pub target_read: u64,
    /// Source records that the handlers dropped.
    pub dropped: u64,
    /// Source records on which a handler failed.
    pub failed: u64,
    /// What was counted.
    pub tally: Tally,
}

impl Row {
    fn add(&mut self, other: &Row) {
        self.partitions += other.partitions;
        self.source_read += other.source_read;
        self.target_read += other.target_read;
        self.dropped += other.dropped;
        self.failed += other.failed;
        self.tally.add(&other.tally);
    }
}

impl Report {
    pub(super) fn new(survey: &Survey, options: &Options) -> Self {
        Self {
            route: survey.route.name.to_string(),
            sources: survey
                .route
                .sources
                .iter()
                .map(|c| c.name.to_string())
                .collect(),
            target: survey.target.name.to_string(),
            topics: BTreeMap::new(),
            absent: survey.absent.clone(),
            left_out: survey.left_out,
            differences: Vec::new(),
            told: options.told,
            from: options.from,
            until: options.until,
        }
    }

    /// Adds what came out of one unit. A unit of several topics stands under all their names.
    pub(super) fn add(&mut self, survey: &Survey, outcome: Outcome) {
        let topics: BTreeSet<&str> = match outcome.shelves.is_empty() {
            true => survey.absent.iter().map(String::as_str).collect(),
            false => outcome.shelves.iter().map(|tp| tp.topic.as_ref()).collect(),
        };
        let name = topics.into_iter().collect::<Vec<_>>().join(", ");
        self.topics.entry(name).or_default().add(&Row {
            partitions: outcome.shelves.len() as u64,
            source_read: outcome.source_read,
            target_read: outcome.target_read,
            dropped: outcome.dropped,
            failed: outcome.failed,
            tally: outcome.tally,
        });
        let room = self.told.saturating_sub(self.differences.len());
        self.differences
            .extend(outcome.differences.into_iter().take(room));
    }

    /// All rows together.
    pub fn total(&self) -> Row {
        let mut total = Row::default();
        self.topics.values().for_each(|row| total.add(row));
        total
    }

    /// Whether nothing differs.
    pub fn is_equal(&self) -> bool {
        self.total().tally.differences() == 0
    }

    /// The rows of a table for people: a head, a row for each topic, and a sum where there are several.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let head = [
            "topic",
            "partitions",
            "source",
            "target",
            "matched",
            "repeated",
            "dropped",
            "differences",
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        let row = |name: &str, row: &Row| {
            let numbers = [
                row.partitions,
                row.source_read,
                row.target_read,
                row.tally.matched,
                row.tally.repeated,
                row.dropped,
                row.tally.differences(),
            ];
            let mut cells = vec![name.to_owned()];
            cells.extend(numbers.map(|n| n.to_string()));
            cells
        };
        rows.extend(self.topics.iter().map(|(name, of)| row(name, of)));
        if self.topics.len() > 1 {
            rows.push(row("all", &self.total()));
        }
        rows
    }

    /// What is to be said beside the table.
    pub fn notes(&self) -> Vec<String> {
        let Row { failed, tally, .. } = self.total();
        let counted = [
            (
                tally.compacted,
                "not at the target, where compaction keeps the last record of a key",
            ),
            (
                tally.expired,
                "not at the target any more: older than what it keeps, or than where the comparison begins",
            ),
            (
                tally.older,
                "at the target from before: the source does not keep them, or the comparison begins later",
            ),
            (
                tally.before_start,
                "not at the target: written before the route's start (start: latest)",
            ),
            (
                failed,
                "not compared: a handler failed on them, and on_error decided",
            ),
        ];
        let mut notes: Vec<String> = counted
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} records {what}"))
            .collect();
        if tally.overruns > 0 {
            notes.push(
                "more differs than fits the window: the counts are not exact (--window)".to_owned(),
            );
        }
        if self.left_out > 0 {
            notes.push(format!(
                "{} target partitions were left out of the sample",
                self.left_out
            ));
        }
        for topic in &self.absent {
            notes.push(format!("topic {topic} is not at the target"));
        }
        notes
    }

    /// One line: how many of which kind.
    pub fn verdict(&self) -> String {
        let tally = self.total().tally;
        if tally.differences() == 0 {
            let scope = match self.until {
                Until::Committed => "up to what the route has committed",
                Until::End => "up to the end of the source",
                Until::Time(_) => "up to the time given",
            };
            return format!("equal, {scope}: {} records", tally.matched);
        }
        format!("different: {}", differing(&tally))
    }

    /// The whole report as JSON.
    pub fn json(&self) -> Value {
        let topics: BTreeMap<&String, Value> = self
            .topics
            .iter()
            .map(|(name, row)| (name, row_json(row)))
            .collect();
        json!({
            "route": self.route,
            "sources": self.sources,
            "target": self.target,
            "from": match self.from {
                From::Beginning => json!("beginning"),
                From::Time(at) => json!(at),
            },
            "until": match self.until {
                Until::Committed => json!("committed"),
                Until::End => json!("end"),
                Until::Time(at) => json!(at),
            },
            "equal": self.is_equal(),
            "topics": topics,
            "total": row_json(&self.total()),
            "absent_topics": self.absent,
            "partitions_left_out": self.left_out,
            "differences": self.differences.iter().map(told_json).collect::<Vec<_>>(),
        })
    }
}

/// How many differ in which way.
pub fn differing(tally: &Tally) -> String {
    let kinds = [
        (tally.missing, "missing"),
        (tally.altered, "altered"),
        (tally.reordered, "reordered"),
        (tally.moved, "in another partition"),
        (tally.extra, "extra"),
    ];
    let words: Vec<String> = kinds
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{count} {kind}"))
        .collect();
    words.join(", ")
}

fn row_json(row: &Row) -> Value {
    let mut object = tally_json(&row.tally);
    for (name, count) in [
        ("partitions", row.partitions),
        ("source_read", row.source_read),
        ("target_read", row.target_read),
        ("dropped", row.dropped),
        ("failed", row.failed),
    ] {
        object[name] = json!(count);
    }
    object
}

/// What was counted, as JSON.
pub fn tally_json(tally: &Tally) -> Value {
    json!({
        "matched": tally.matched,
        "repeated": tally.repeated,
        "missing": tally.missing,
        "altered": tally.altered,
        "reordered": tally.reordered,
        "moved": tally.moved,
        "extra": tally.extra,
        "compacted": tally.compacted,
        "expired": tally.expired,
        "older": tally.older,
        "before_start": tally.before_start,
        "exact": tally.overruns == 0,
    })
}

/// The word for a kind of difference.
fn kind(what: &Difference) -> &'static str {
    match what {
        Difference::Missing { .. } => "missing",
        Difference::Extra { .. } => "extra",
        Difference::Altered { .. } => "altered",
        Difference::Reordered { .. } => "reordered",
        Difference::Moved { .. } => "moved",
    }
}

/// A difference, as JSON.
pub fn told_json(told: &Told) -> Value {
    let mut object = json!({ "kind": kind(&told.what) });
    if let Some((cluster, tp, offset)) = &told.source {
        object["source"] = json!({
            "cluster": cluster.as_str(), "topic": &*tp.topic, "partition": tp.partition, "offset": offset,
        });
    }
    if let Some((tp, offset)) = &told.target {
        object["target"] =
            json!({ "topic": &*tp.topic, "partition": tp.partition, "offset": offset });
    }
    match &told.what {
        Difference::Altered { parts, .. } => {
            object["parts"] = json!(parts.iter().copied().map(Part::as_str).collect::<Vec<_>>());
        }
        Difference::Reordered { after, .. } => object["after_source_offset"] = json!(after),
        _ => {}
    }
    object
}

/// A difference in one line, in offsets that can be looked up.
pub fn line(told: &Told, target: &str) -> String {
    let at_source = told
        .source
        .as_ref()
        .map(|(cluster, tp, offset)| format!("{cluster} {tp} offset {offset}"));
    let at_target = told.target.as_ref().map(|(tp, offset)| match offset {
        Some(offset) => format!("{target} {tp} offset {offset}"),
        None => format!("{target} {tp}"),
    });
    let places: Vec<String> = at_source.into_iter().chain(at_target).collect();
    let detail = match &told.what {
        Difference::Altered { parts, .. } => {
            let parts: Vec<&str> = parts.iter().copied().map(Part::as_str).collect();
            format!(": {}", parts.join(", "))
        }
        Difference::Reordered { after, .. } => format!(": stands after source offset {after}"),
        Difference::Moved { .. } => ": not the partition that the policy gives".to_owned(),
        Difference::Missing { .. } | Difference::Extra { .. } => String::new(),
    };
    format!("{:<9}  {}{detail}", kind(&told.what), places.join(" -> "))
}
