//! What came out against what was wanted.

use super::spec::{
    Content, Expected, ExpectedRecord, Extent, Order, Outputs, Wanted, WantedHeaders,
};
use crate::config::pointer;
use crate::config::spec::OnError;
use crate::trial::json::Json;
use crate::trial::{Bytes, Fate, Outcome, Output, Snapshot, Steps, show};

/// One thing that is not as it was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The JSON pointer to what the test says about it.
    pub at: String,
    /// What it is about, such as `record 1, value`.
    pub what: String,
    /// What was wanted, one line or more.
    pub expected: String,
    /// What there is.
    pub got: String,
}

/// Compares what became of a case's records with what it wants. `at` is the case's pointer.
pub(super) fn compare(
    at: &str,
    expected: &Expected,
    outcomes: &[Outcome],
    steps: &Steps,
) -> Vec<Difference> {
    let mut comparison = Comparison {
        at,
        steps,
        found: Vec::new(),
    };
    for (index, outcome) in outcomes.iter().enumerate() {
        let is_last = index + 1 == outcomes.len();
        let awaited = is_last && (expected.dropped.is_some() || expected.failed.is_some());
        if !awaited {
            comparison.holds(index, outcome);
        }
    }
    if let Some(last) = outcomes.last() {
        comparison.last(expected, last);
    }
    let outputs: Vec<&Output> = outcomes.iter().flat_map(|o| &o.outputs).collect();
    comparison.outputs(expected.out.as_ref(), &outputs);
    comparison.found
}

struct Comparison<'a> {
    at: &'a str,
    steps: &'a Steps,
    found: Vec<Difference>,
}

impl Comparison<'_> {
    fn say(
        &mut self,
        at: String,
        what: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) {
        self.found.push(Difference {
            at,
            what: what.into(),
            expected: expected.into(),
            got: got.into(),
        });
    }

    /// An input that would hold its partition, or that the route never sees, is a mistake unless it
    /// is awaited.
    fn holds(&mut self, index: usize, outcome: &Outcome) {
        let goes_on = match &outcome.fate {
            Fate::Forwarded | Fate::Dropped { .. } => true,
            Fate::Failed { on_error, .. } => {
                matches!(on_error, OnError::Skip | OnError::DeadLetter)
            }
            Fate::NotCopied | Fate::Unbound(_) | Fate::TooFew { .. } => false,
        };
        if !goes_on {
            let what = format!("input {}", index + 1);
            let got = outcome.fate.words(self.steps);
            self.say(pointer::child(self.at, "in"), what, "goes through", got);
        }
    }

    /// What became of the last input.
    fn last(&mut self, expected: &Expected, last: &Outcome) {
        let got = last.fate.words(self.steps);
        if let Some(word) = &expected.dropped
            && !dropped_by(word, &last.fate, self.steps)
        {
            let at = pointer::child(self.at, "dropped");
            let expected = match word.as_str() {
                "topics" => "the route does not copy its topic".to_owned(),
                word => format!("dropped by `{word}`"),
            };
            self.say(at, "the last input", expected, got.clone());
        }
        if let Some(code) = expected.failed
            && !matches!(&last.fate, Fate::Failed { failure, .. } if failure.code == code)
        {
            let at = pointer::child(self.at, "failed");
            self.say(at, "the last input", format!("failed: {code}"), got);
        }
    }

    fn outputs(&mut self, wanted: Option<&Outputs>, got: &[&Output]) {
        let at = pointer::child(self.at, "out");
        match wanted {
            None => {}
            Some(Outputs::Count(count)) if *count == got.len() => {}
            Some(Outputs::Count(count)) => {
                let (count, records) = (count.to_string(), got.len().to_string());
                self.say(at, "records out", count, records);
            }
            Some(Outputs::Records(wanted)) => {
                for index in 0..wanted.len().max(got.len()) {
                    let at = pointer::item(&at, index);
                    self.record(at, index + 1, (wanted.get(index), got.get(index)));
                }
            }
        }
    }

    fn record(
        &mut self,
        at: String,
        number: usize,
        pair: (Option<&ExpectedRecord>, Option<&&Output>),
    ) {
        match pair {
            (Some(wanted), Some(got)) => self.fields(&at, number, wanted, got),
            (Some(wanted), None) => {
                let what = format!("record {number} is missing");
                self.say(at, what, wanted_lines(wanted), "");
            }
            (None, Some(got)) => {
                let what = format!("record {number} is not expected");
                self.say(at, what, "", output_lines(got));
            }
            (None, None) => {}
        }
    }

    fn fields(&mut self, at: &str, number: usize, wanted: &ExpectedRecord, got: &Output) {
        let of = |field: &str| {
            (
                pointer::child(at, field),
                format!("record {number}, {field}"),
            )
        };
        let record = &got.record;
        if let Some(topic) = wanted.topic.as_ref().filter(|t| **t != record.topic) {
            let (at, what) = of("topic");
            self.say(at, what, topic, &record.topic);
        }
        if let Some(partition) = wanted.partition.filter(|p| *p != got.partition) {
            let (at, what) = of("target_partition");
            self.say(at, what, partition.to_string(), got.partition.to_string());
        }
        for (field, wanted, got) in [
            ("key", &wanted.key, &record.key),
            ("value", &wanted.value, &record.value),
        ] {
            if let Some(wanted) = wanted.as_ref().filter(|w| !w.is(got)) {
                let (at, what) = of(field);
                let (expected, shown) = wanted.beside(got);
                let note = wanted.note(got);
                self.say(at, format!("{what}{note}"), expected, shown);
            }
        }
        for headers in &wanted.headers {
            let (at, what) = of(headers.key());
            self.headers((at, what), headers, record);
        }
        let shown = |ms: Option<i64>| ms.map_or(show::NULL.to_owned(), |ms| ms.to_string());
        if wanted.timestamp.is_some() && wanted.timestamp != record.timestamp {
            let (at, what) = of("timestamp");
            self.say(at, what, shown(wanted.timestamp), shown(record.timestamp));
        }
    }

    fn headers(&mut self, (at, what): (String, String), wanted: &WantedHeaders, got: &Snapshot) {
        let (expected, shown) = wanted.beside(got);
        if expected != shown {
            self.say(at, what, expected.join("\n"), shown.join("\n"));
        }
    }
}

/// Whether what `dropped:` says is what dropped the record.
fn dropped_by(word: &str, fate: &Fate, steps: &Steps) -> bool {
    match fate {
        Fate::NotCopied => word == "topics",
        Fate::Dropped { step } => steps
            .get(*step)
            .is_some_and(|step| step.action == word || step.name.as_deref() == Some(word)),
        _ => false,
    }
}

impl Wanted {
    /// Whether `bytes` are what is wanted.
    pub(super) fn is(&self, bytes: &Bytes) -> bool {
        match self {
            Self::Exactly(content) => content.as_bytes() == bytes.as_deref(),
            Self::Json(wanted) => match (Json::parse(wanted), Json::of_bytes(bytes)) {
                (Some(wanted), Some(got)) => wanted.equals(&got),
                _ => bytes.as_deref() == Some(wanted.as_bytes()),
            },
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Exactly(content) => show::bytes(content.as_bytes()),
            Self::Json(json) => json.clone(),
        }
    }

    /// Both sides so that a comparison line by line shows what differs, and nothing else.
    fn beside(&self, bytes: &Bytes) -> (String, String) {
        if let Self::Json(wanted) = self
            && let Some(wanted) = Json::parse(wanted)
        {
            let got = match Json::of_bytes(bytes) {
                Some(got) => got.written_as(&wanted).pretty(),
                None => show::bytes(bytes.as_deref()),
            };
            return (wanted.pretty(), got);
        }
        (self.shown(), show::bytes(bytes.as_deref()))
    }

    fn note(&self, bytes: &Bytes) -> &'static str {
        let Self::Exactly(content) = self else {
            return "";
        };
        let wanted = content.as_bytes().and_then(|b| std::str::from_utf8(b).ok());
        let wanted = wanted.filter(|text| text.starts_with(['{', '[']));
        match (wanted.and_then(Json::parse), Json::of_bytes(bytes)) {
            (Some(wanted), Some(got)) if wanted.equals(&got) => {
                " (the same JSON, spelled otherwise: a text compares by its bytes, a map by value)"
            }
            _ => "",
        }
    }
}

impl Content {
    /// The bytes. A file is read before anything is compared.
    fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Null | Self::File { .. } => None,
        }
    }
}

impl WantedHeaders {
    /// Whether `record` has them.
    pub(super) fn holds(&self, record: &Snapshot) -> bool {
        let (expected, shown) = self.beside(record);
        expected == shown
    }

    /// Both sides, a line each header; what is equal is written as it is wanted.
    fn beside(&self, record: &Snapshot) -> (Vec<String>, Vec<String>) {
        let wanted = self
            .list
            .iter()
            .map(|(name, value)| line(name, &value.shown()));
        let compared = self.compared(record);
        let shown = compared.iter().map(|(name, value)| {
            let same = self.list.iter().find(|(n, w)| n == name && w.is(value));
            match same {
                Some((name, wanted)) => line(name, &wanted.shown()),
                None => line(name, &show::bytes(value.as_deref())),
            }
        });
        (wanted.collect(), shown.collect())
    }

    /// The key that it was written under.
    pub(super) fn key(&self) -> &'static str {
        match self.extent {
            Extent::Named => "headers",
            Extent::All => "headers_exactly",
        }
    }

    /// The headers of `record` that are compared, in the order in which they are.
    pub(super) fn compared(&self, record: &Snapshot) -> Vec<(String, Bytes)> {
        let name = |name: &[u8]| show::bytes(Some(name));
        let all = record.headers.iter();
        let mut all: Vec<(String, Bytes)> = all.map(|(n, v)| (name(n), v.clone())).collect();
        let place = |name: &str| self.list.iter().position(|(n, _)| n == name);
        if self.extent == Extent::Named {
            all.retain(|(name, _)| place(name).is_some());
        }
        if self.order == Order::Any {
            if self.extent == Extent::Named {
                // Of repeats the last counts, as for handlers.
                let last = |at: usize, name: &str| all[at + 1..].iter().all(|(n, _)| n != name);
                let keep: Vec<bool> = (0..all.len()).map(|at| last(at, &all[at].0)).collect();
                let mut keep = keep.into_iter();
                all.retain(|_| keep.next().unwrap_or(true));
            }
            all.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        }
        all
    }
}

fn line(name: &str, value: &str) -> String {
    format!("{name}: {value}")
}

/// A record that was wanted, field by field.
fn wanted_lines(wanted: &ExpectedRecord) -> String {
    let mut lines = Vec::new();
    lines.extend(wanted.topic.as_ref().map(|t| line("topic", t)));
    lines.extend(
        wanted
            .partition
            .map(|p| line("target_partition", &p.to_string())),
    );
    lines.extend(wanted.key.as_ref().map(|k| line("key", &k.shown())));
    lines.extend(wanted.value.as_ref().map(|v| line("value", &v.shown())));
    for headers in &wanted.headers {
        let list = headers.list.iter();
        lines.extend(list.map(|(name, value)| line(&format!("header {name}"), &value.shown())));
    }
    lines.extend(wanted.timestamp.map(|t| line("timestamp", &t.to_string())));
    if lines.is_empty() {
        lines.push("any record".to_owned());
    }
    lines.join("\n")
}

/// A record that came out, field by field.
pub(super) fn output_lines(output: &Output) -> String {
    let record = &output.record;
    let mut lines = vec![
        line("topic", &record.topic),
        line("target_partition", &output.partition.to_string()),
        line("key", &show::bytes(record.key.as_deref())),
        line("value", &show::bytes(record.value.as_deref())),
    ];
    for (name, value) in &record.headers {
        let name = format!("header {}", show::bytes(Some(name)));
        lines.push(line(&name, &show::bytes(value.as_deref())));
    }
    lines.join("\n")
}
