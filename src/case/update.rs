//! `--update`: what came out, written back into the tests with as little change of text as can be.
//!
//! Every change is one edit of bytes at a place that the parser knows; comments and layout around it
//! stay. What cannot be written without changing more than the test (an alias, a file) is left, and
//! said.

use super::compare::Difference;
use super::edit::Edits;
use super::run::{CaseResult, Report, Verdict};
use super::spec::{Content, ExpectedRecord, Order, Outputs, Wanted, WantedHeaders};
use super::yaml;
use crate::config::document::Document;
use crate::config::place::Place;
use crate::config::pointer;
use crate::trial::json::Json;
use crate::trial::{Bytes, Fate, Output, Snapshot, Steps};
use std::path::PathBuf;

/// What is written back.
#[derive(Debug, Default)]
pub struct Update {
    /// The files with their new texts.
    pub files: Vec<(PathBuf, String)>,
    /// The tests that were changed, with what was changed in them.
    pub changed: Vec<(Place, String)>,
    /// What was left, with why.
    pub left: Vec<(Place, String)>,
}

/// What to write so that every failed case of `report` passes.
pub fn update(report: &Report<'_>, document: &Document) -> Update {
    let mut update = Update::default();
    let mut edits = Edits::of(document);
    for result in &report.results {
        if let Verdict::Failed(differences) = &result.verdict {
            let mut writer = Writer {
                document,
                edits: &mut edits,
                changed: &mut update.changed,
                left: &mut update.left,
            };
            writer.case(result, differences);
        }
    }
    update.files = edits.texts();
    update
}

struct Writer<'w, 'd> {
    document: &'d Document,
    edits: &'w mut Edits<'d>,
    changed: &'w mut Vec<(Place, String)>,
    left: &'w mut Vec<(Place, String)>,
}

impl Writer<'_, '_> {
    fn case(&mut self, result: &CaseResult<'_>, differences: &[Difference]) {
        let case = result.case;
        let inputs = pointer::child(&case.at, "in");
        // An input that holds its partition is nothing that a test can want.
        for difference in differences.iter().filter(|d| d.at == inputs) {
            let place = self.document.place(&difference.at);
            self.left
                .push((place, format!("{}: {}", difference.what, difference.got)));
        }
        if let Some((_, last)) = result.passed.last() {
            self.last(result, &last.fate, differences);
        }
        let outputs = result
            .passed
            .iter()
            .flat_map(|(_, outcome)| &outcome.outputs);
        let got: Vec<&Output> = outputs.collect();
        let at = pointer::child(&case.at, "out");
        match &case.expected.out {
            None => {}
            Some(Outputs::Count(count)) if *count == got.len() => {}
            Some(Outputs::Count(_)) => self.set(&at, &got.len().to_string()),
            Some(Outputs::Records(wanted)) => self.records(&at, wanted, &got),
        }
    }

    /// Says what became of the last input.
    fn last(&mut self, result: &CaseResult<'_>, fate: &Fate, differences: &[Difference]) {
        let expected = &result.case.expected;
        let written = match (&expected.dropped, expected.failed) {
            (Some(_), _) => "dropped",
            (_, Some(_)) => "failed",
            (None, None) => return,
        };
        let at = pointer::child(&result.case.at, written);
        if !differences.iter().any(|d| d.at == at) {
            return;
        }
        match (fate, now(fate, &result.steps)) {
            (_, Some((key, word))) if key == written => self.set(&at, &word),
            (_, Some((key, word))) => {
                let done = self.edits.replace_member(&at, &format!("{key}: {word}"));
                self.note(&at, &format!("{key}: {word}"), done);
            }
            (Fate::Forwarded, None) if expected.out.is_some() => {
                let done = self.edits.remove(&at);
                self.note(&at, "taken out: the record goes through", done);
            }
            (Fate::Forwarded, None) => {
                let outputs = result.passed.iter().flat_map(|(_, o)| &o.outputs);
                let items: Vec<String> = outputs.map(record).collect();
                let text = format!("out: [{}]", items.join(", "));
                let done = self.edits.replace_member(&at, &text);
                self.note(&at, &text, done);
            }
            (fate, None) => {
                let place = self.document.place(&at);
                self.left.push((place, fate.words(&result.steps)));
            }
        }
    }

    fn records(&mut self, at: &str, wanted: &[ExpectedRecord], got: &[&Output]) {
        for (index, (wanted, got)) in wanted.iter().zip(got).enumerate() {
            self.fields(&pointer::item(at, index), wanted, got);
        }
        let items: Vec<String> = got.iter().map(|output| record(output)).collect();
        if got.len() < wanted.len() && (got.is_empty() || !self.edits.is_plain(at)) {
            return self.set(at, &format!("[{}]", items.join(", ")));
        }
        for index in got.len()..wanted.len() {
            let at = pointer::item(at, index);
            let done = self.edits.remove(&at);
            self.note(&at, "taken out: no such record", done);
        }
        if wanted.is_empty() && !got.is_empty() {
            return self.set(at, &format!("[{}]", items.join(", ")));
        }
        for item in items.iter().skip(wanted.len()) {
            let done = self.edits.append(at, item);
            self.note(at, &format!("a record more: {item}"), done);
        }
    }

    fn fields(&mut self, at: &str, wanted: &ExpectedRecord, got: &Output) {
        let record = &got.record;
        let of = |field: &str| pointer::child(at, field);
        if wanted.topic.as_ref().is_some_and(|t| *t != record.topic) {
            self.set(&of("topic"), &yaml::text(&record.topic));
        }
        if wanted.partition.is_some_and(|p| p != got.partition) {
            self.set(&of("target_partition"), &got.partition.to_string());
        }
        for (field, wanted, got) in [
            ("key", &wanted.key, &record.key),
            ("value", &wanted.value, &record.value),
        ] {
            if let Some(wanted) = wanted.as_ref().filter(|w| !w.is(got)) {
                self.content(at, field, wanted, got);
            }
        }
        for headers in &wanted.headers {
            self.headers(&of(headers.key()), headers, record);
        }
        if let Some(timestamp) = record.timestamp
            && wanted.timestamp.is_some_and(|t| t != timestamp)
        {
            self.set(&of("timestamp"), &timestamp.to_string());
        }
    }

    fn content(&mut self, at: &str, field: &str, wanted: &Wanted, got: &Bytes) {
        if let Wanted::Exactly(Content::File { at, .. }) = wanted {
            let why = "the file is not written: change it yourself".to_owned();
            self.left.push((self.document.place(at), why));
            return;
        }
        let plain = pointer::child(at, field);
        let json = match wanted {
            Wanted::Json(wanted) => Json::parse(wanted).zip(Json::of_bytes(got)),
            Wanted::Exactly(_) => None,
        };
        if let Some((wanted, got)) = json {
            return self.json(&plain, &wanted, got);
        }
        // The key that it was written under, and the one that can hold what there is.
        let forms = ["", "_hex", "_base64"].map(|form| format!("{field}{form}"));
        let member = |name: &&String| self.document.spots.contains(&pointer::child(at, name));
        let Some(old) = forms.iter().find(member) else {
            return;
        };
        let at = pointer::child(at, old);
        let (form, text) = yaml::bytes(got);
        let new = format!("{field}{form}");
        if *old == new {
            return self.set(&at, &text);
        }
        let member = format!("{new}: {text}");
        let done = self.edits.replace_member(&at, &member);
        self.note(&at, &member, done);
    }

    /// Writes only what differs inside a JSON value.
    fn json(&mut self, at: &str, wanted: &Json, got: Json) {
        if wanted.equals(&got) {
            return;
        }
        match (wanted, &got) {
            (Json::Map(members), Json::Map(others))
                if !others.is_empty() && self.edits.is_plain(at) =>
            {
                let gone = |(name, _): &&(String, Json)| got.get(name).is_none();
                if self.edits.is_flow(at) && members.first().filter(gone).is_some() {
                    return self.set(at, &yaml::flow(&got));
                }
                for (name, wanted) in members {
                    let at = pointer::child(at, name);
                    match got.get(name) {
                        Some(got) => self.json(&at, wanted, got.clone()),
                        None => {
                            let done = self.edits.remove(&at);
                            self.note(&at, "taken out", done);
                        }
                    }
                }
                for (name, value) in others.iter().filter(|(name, _)| wanted.get(name).is_none()) {
                    let member = format!("{}: {}", yaml::text(name), yaml::flow(value));
                    let done = self.edits.append(at, &member);
                    self.note(at, &format!("more: {member}"), done);
                }
            }
            (Json::List(items), Json::List(others)) if items.len() == others.len() => {
                for (index, (wanted, got)) in items.iter().zip(others).enumerate() {
                    self.json(&pointer::item(at, index), wanted, got.clone());
                }
            }
            _ => self.set(at, &yaml::flow(&got)),
        }
    }

    fn headers(&mut self, at: &str, wanted: &WantedHeaders, got: &Snapshot) {
        if wanted.holds(got) {
            return;
        }
        let compared = wanted.compared(got);
        let repeats = |name: &str| compared.iter().filter(|(n, _)| n == name).count() > 1;
        let as_map = wanted.order == Order::Any && !compared.iter().any(|(n, _)| repeats(n));
        let texts = compared.iter().map(|(name, value)| {
            let (_, value) = yaml::bytes(value);
            match as_map {
                true => format!("{}: {value}", yaml::text(name)),
                false => format!("[{}, {value}]", yaml::text(name)),
            }
        });
        let texts: Vec<String> = texts.collect();
        let text = texts.join(", ");
        let text = match (as_map, text.is_empty()) {
            (true, true) => "{}".to_owned(),
            (true, false) => format!("{{ {text} }}"),
            (false, _) => format!("[{text}]"),
        };
        if compared
            .iter()
            .any(|(_, value)| yaml::bytes(value).0 == "_hex")
        {
            let why = "a header's value is no text: a test cannot say it".to_owned();
            return self.left.push((self.document.place(at), why));
        }
        self.set(at, &text);
    }

    fn set(&mut self, at: &str, text: &str) {
        let done = self.edits.set(at, text);
        self.note(at, text, done);
    }

    fn note(&mut self, at: &str, text: &str, done: Result<(), &'static str>) {
        let place = self.document.place(at);
        match done {
            Ok(()) => self.changed.push((place, text.to_owned())),
            Err(why) => self.left.push((place, why.to_owned())),
        }
    }
}

/// How a test says what became of its last input.
fn now(fate: &Fate, steps: &Steps) -> Option<(&'static str, String)> {
    match fate {
        Fate::Dropped { step } => {
            let step = steps.get(*step)?;
            let word = step.name.as_deref().unwrap_or(step.action);
            Some(("dropped", yaml::text(word)))
        }
        Fate::NotCopied => Some(("dropped", "topics".to_owned())),
        Fate::Failed { failure, .. } => Some(("failed", failure.code.as_str().to_owned())),
        Fate::Forwarded | Fate::Unbound(_) | Fate::TooFew { .. } => None,
    }
}

/// A record as a test writes it.
fn record(output: &Output) -> String {
    let record = &output.record;
    let mut members = vec![format!("topic: {}", yaml::text(&record.topic))];
    for (name, bytes) in [("key", &record.key), ("value", &record.value)] {
        let json =
            Json::of_bytes(bytes).filter(|json| matches!(json, Json::Map(_) | Json::List(_)));
        let (form, text) = match &json {
            Some(json) => ("", yaml::flow(json)),
            None => yaml::bytes(bytes),
        };
        members.push(format!("{name}{form}: {text}"));
    }
    let headers: Vec<(String, (&str, String))> = record
        .headers
        .iter()
        .filter_map(|(name, value)| {
            let name = String::from_utf8(name.clone()).ok()?;
            Some((name, yaml::bytes(value)))
        })
        .collect();
    let sayable =
        headers.len() == record.headers.len() && headers.iter().all(|(_, (f, _))| f.is_empty());
    if sayable && !headers.is_empty() {
        let pairs = headers.iter();
        let pairs = pairs.map(|(name, (_, value))| format!("[{}, {value}]", yaml::text(name)));
        let pairs: Vec<String> = pairs.collect();
        members.push(format!("headers_exactly: [{}]", pairs.join(", ")));
    }
    format!("{{ {} }}", members.join(", "))
}
