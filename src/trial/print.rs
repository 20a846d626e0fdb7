//! Records and their ways, for people and for programs.

use super::json::Json;
use super::outcome::{Fate, Output};
use super::sample::{Bytes, Sample};
use super::steps::Steps;
use super::trace::{Passage, Snapshot};
use super::{Outcome, show};
use crate::config::render::Colour;
use crate::config::spec::Name;
use serde_json::{Map, Value, json};
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// Characters of one line at most, and lines of one record.
const MAX_WIDTH: usize = 400;
const MAX_LINES: usize = 40;

/// A record that was tried.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The record as it was.
    pub sample: Sample,
    /// Its way.
    pub passages: Vec<Passage>,
    /// What became of it.
    pub outcome: Outcome,
}

/// All records, for people.
pub fn text(target: &Name, tried: &[Tried], steps: &Steps, colour: Colour) -> String {
    let mut page = Page {
        colour,
        out: String::new(),
    };
    for (index, tried) in tried.iter().enumerate() {
        if index > 0 {
            page.line(0, "");
        }
        page.record(target, tried, steps);
    }
    page.out
}

struct Page {
    colour: Colour,
    out: String,
}

impl Page {
    fn line(&mut self, indent: usize, text: &str) {
        let text = shortened(text);
        let line = format!("{:indent$}{text}", "");
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn toned(&self, code: &str, text: &str) -> String {
        match self.colour {
            Colour::Always => format!("\x1b[{code}m{text}\x1b[0m"),
            Colour::Never => text.to_owned(),
        }
    }

    fn record(&mut self, target: &Name, tried: &Tried, steps: &Steps) {
        let sample = &tried.sample;
        let from = format!(
            "{} {}[{}]@{}",
            sample.source, sample.topic, sample.partition, sample.offset
        );
        let title = self.toned("1", &from);
        self.line(0, &title);
        for line in lines(&Snapshot::of(&sample.record()), &sample.topic) {
            self.line(2, &line);
        }
        for passage in &tried.passages {
            self.passage(passage, steps);
        }
        match &tried.outcome.fate {
            Fate::Forwarded => {}
            Fate::Dropped { .. } => self.line(2, "=> dropped"),
            fate => {
                let words = self.toned("31", &format!("=> {}", fate.words(steps)));
                self.line(2, &words);
            }
        }
        for output in &tried.outcome.outputs {
            let words = format!("=> {target} {}[{}]", output.record.topic, output.partition);
            let words = self.toned("32", &words);
            self.line(2, &words);
        }
    }

    fn passage(&mut self, passage: &Passage, steps: &Steps) {
        let label = steps.label(passage.step);
        let time = micros(passage.took);
        let unchanged = matches!(passage.after.as_slice(), [only] if *only == passage.before);
        let what = match (&passage.failure, passage.after.len()) {
            (Some(failure), 0) => format!("failed: {failure}"),
            (Some(failure), _) => format!("failed: {failure}; passed on as it was"),
            (None, 0) => "dropped".to_owned(),
            (None, 1) if passage.way.when == Some(false) => "`when` does not hold".to_owned(),
            (None, 1) if unchanged => "unchanged".to_owned(),
            (None, 1) => "changed".to_owned(),
            (None, count) => format!("{count} records"),
        };
        self.line(2, &format!("{label}  {time}  {what}"));
        if passage.failure.is_none() && !unchanged {
            for after in &passage.after {
                self.change(&passage.before, after);
            }
        }
    }

    /// What differs between a record and what a step made of it.
    fn change(&mut self, before: &Snapshot, after: &Snapshot) {
        let (before, after) = (pretty(before, after), pretty(after, before));
        let diff = TextDiff::from_lines(&before, &after);
        let mut shown = 0;
        for change in diff.iter_all_changes() {
            let text = change.value().trim_end_matches('\n');
            let line = match change.tag() {
                ChangeTag::Equal => continue,
                ChangeTag::Delete => self.toned("31", &format!("- {}", shortened(text))),
                ChangeTag::Insert => self.toned("32", &format!("+ {}", shortened(text))),
            };
            shown += 1;
            if shown <= MAX_LINES {
                self.out.push_str(&format!("    {}\n", line.trim_end()));
            }
        }
        if shown > MAX_LINES {
            self.line(4, &format!("… and {} lines more", shown - MAX_LINES));
        }
    }
}

/// A line that is too long is cut, and says so.
fn shortened(text: &str) -> String {
    let count = text.chars().count();
    if count <= MAX_WIDTH {
        return text.to_owned();
    }
    let head: String = text.chars().take(MAX_WIDTH).collect();
    format!("{head}… ({count} characters)")
}

fn micros(took: Duration) -> String {
    let nanos = took.as_nanos();
    match nanos {
        0..10_000 => format!("{}.{} µs", nanos / 1000, nanos % 1000 / 100),
        _ => format!("{} µs", nanos / 1000),
    }
}

/// A record field by field; its topic only where it is not `topic`.
fn lines(record: &Snapshot, topic: &str) -> Vec<String> {
    let mut lines = Vec::new();
    if record.topic != topic {
        lines.push(format!("topic      {}", record.topic));
    }
    lines.push(format!("timestamp  {}", moment(record.timestamp)));
    lines.push(format!("key        {}", show::bytes(record.key.as_deref())));
    lines.push(format!(
        "value      {}",
        show::bytes(record.value.as_deref())
    ));
    for (name, value) in &record.headers {
        let (name, value) = (show::bytes(Some(name)), show::bytes(value.as_deref()));
        lines.push(format!("header     {name}: {value}"));
    }
    lines
}

fn moment(ms: Option<i64>) -> String {
    let Some(ms) = ms else {
        return show::NULL.to_owned();
    };
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(moment) => format!("{ms} ({moment})"),
        Err(_) => ms.to_string(),
    }
}

/// A record for a comparison line by line with `other`: JSON values on both sides over several lines.
fn pretty(record: &Snapshot, other: &Snapshot) -> String {
    let mut lines = lines(record, "");
    if let (Some(value), Some(_)) = (as_json(&record.value), as_json(&other.value)) {
        let value = format!("value      {}", value.line_by_line());
        if let Some(line) = lines.iter_mut().find(|line| line.starts_with("value ")) {
            *line = value;
        }
    }
    lines.join("\n") + "\n"
}

fn as_json(bytes: &Bytes) -> Option<Json> {
    let text = std::str::from_utf8(bytes.as_deref()?).ok()?;
    text.starts_with(['{', '[']).then(|| Json::parse(text))?
}

/// All records, for programs.
pub fn json(route: &str, target: &Name, tried: &[Tried], steps: &Steps) -> Value {
    let records: Vec<Value> = tried.iter().map(|tried| record(tried, steps)).collect();
    json!({ "route": route, "target": target.as_str(), "records": records })
}

fn record(tried: &Tried, steps: &Steps) -> Value {
    let sample = &tried.sample;
    let passages = tried.passages.iter().map(|passage| {
        let label = steps.get(passage.step);
        let after: Vec<Value> = passage.after.iter().map(fields).collect();
        json!({
            "step": passage.step + 1,
            "name": label.and_then(|l| l.name.clone()),
            "action": label.map(|l| l.action),
            "place": label.and_then(|l| l.place_text()),
            "took_ns": u64::try_from(passage.took.as_nanos()).unwrap_or(u64::MAX),
            "when": passage.way.when,
            "failure": passage.failure.as_ref().map(|f| json!({ "code": f.code.as_str(), "detail": f.detail })),
            "before": fields(&passage.before),
            "after": after,
        })
    });
    let passages: Vec<Value> = passages.collect();
    let outputs: Vec<Value> = tried.outcome.outputs.iter().map(output).collect();
    json!({
        "source": sample.source.as_str(),
        "partition": sample.partition,
        "offset": sample.offset,
        "record": fields(&Snapshot::of(&sample.record())),
        "steps": passages,
        "outcome": tried.outcome.fate.words(steps),
        "outputs": outputs,
    })
}

fn output(output: &Output) -> Value {
    let mut fields = fields(&output.record);
    if let Value::Object(fields) = &mut fields {
        fields.insert("target_partition".to_owned(), json!(output.partition));
    }
    fields
}

/// A record as a test of the file would write it: texts as texts, other bytes in hexadecimal.
fn fields(record: &Snapshot) -> Value {
    let mut fields = Map::new();
    fields.insert("topic".to_owned(), json!(record.topic));
    for (name, bytes) in [("key", &record.key), ("value", &record.value)] {
        match bytes.as_deref().map(std::str::from_utf8) {
            None => fields.insert(name.to_owned(), Value::Null),
            Some(Ok(text)) => fields.insert(name.to_owned(), json!(text)),
            Some(Err(_)) => {
                let hex = bytes.as_deref().map(hex::encode);
                fields.insert(format!("{name}_hex"), json!(hex))
            }
        };
    }
    let headers = record.headers.iter().map(|(name, value)| {
        json!([
            show::bytes(Some(name)),
            value.as_deref().map(|v| show::bytes(Some(v)))
        ])
    });
    fields.insert("headers".to_owned(), headers.collect());
    fields.insert("timestamp".to_owned(), json!(record.timestamp));
    Value::Object(fields)
}
