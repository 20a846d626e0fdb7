//! Secrets by value: every text that leaves the process goes through here.
//!
//! A secret's type ([`crate::config::secret::Secret`]) keeps it from being printed by us. A client's
//! error, a panic's message or a line of the user's own file may repeat it all the same. What was
//! loaded as a secret is therefore remembered, and starred out by the outermost writers: log lines,
//! the admin interface, diagnostics, results, crash reports.

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::{PoisonError, RwLock};

/// What stands in the place of a secret.
const STARS: &str = "***";
/// Shorter texts are not looked for: they would be found in words that have nothing to do with them.
const SHORTEST: usize = 6;

static SECRETS: RwLock<Secrets> = RwLock::new(Secrets {
    values: BTreeSet::new(),
    search: None,
});

struct Secrets {
    values: BTreeSet<String>,
    search: Option<AhoCorasick>,
}

/// Remembers secrets for the life of the process: one that was replaced by a reload may still be
/// in a client's messages.
pub fn remember<'a>(secrets: impl IntoIterator<Item = &'a str>) {
    let spelt: BTreeSet<String> = secrets.into_iter().flat_map(spellings).collect();
    let known = |all: &Secrets| spelt.iter().all(|spelling| all.values.contains(spelling));
    if known(&SECRETS.read().unwrap_or_else(PoisonError::into_inner)) {
        return;
    }
    let mut all = SECRETS.write().unwrap_or_else(PoisonError::into_inner);
    all.values.extend(spelt);
    let search = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(&all.values);
    // It fails for more text than an index can count only.
    all.search = search.ok();
}

/// A secret as it may be printed: as it is, line by line, and escaped as in JSON and in `{:?}`.
fn spellings(secret: &str) -> Vec<String> {
    let debug = format!("{secret:?}");
    let json = Value::from(secret).to_string();
    let inside = |quoted: &str| quoted[1..quoted.len() - 1].to_owned();
    let lines = secret.lines().map(str::trim);
    // The frame of a key in PEM is no secret.
    let lines = lines
        .filter(|line| !line.starts_with("-----"))
        .map(str::to_owned);
    let all = [secret.trim().to_owned(), inside(&debug), inside(&json)];
    let all = all.into_iter().chain(lines);
    all.filter(|spelling| spelling.chars().count() >= SHORTEST)
        .collect()
}

/// `text` without the secrets that were loaded.
pub fn text(text: &str) -> Cow<'_, str> {
    let Some(clean) = cleaned(text.as_bytes()) else {
        return Cow::Borrowed(text);
    };
    Cow::Owned(String::from_utf8_lossy(&clean).into_owned())
}

/// `bytes` without the secrets that were loaded.
pub fn bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    cleaned(bytes).map_or(Cow::Borrowed(bytes), Cow::Owned)
}

/// Metrics without the secrets that were loaded: the values of samples are numbers, which a secret
/// made of digits must not take away.
pub fn exposition(metrics: &str) -> Cow<'_, str> {
    if found_in(metrics.as_bytes()).is_empty() {
        return Cow::Borrowed(metrics);
    }
    let line = |line: &str| {
        let labels = line.rfind('}').unwrap_or(0);
        format!("{}{}", text(&line[..labels]), &line[labels..])
    };
    Cow::Owned(metrics.split_inclusive('\n').map(line).collect())
}

/// `text` with as many stars as a secret has bytes, so that what is behind keeps its place.
pub fn starred(text: &str) -> Cow<'_, str> {
    let found = found_in(text.as_bytes());
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut starred = text.to_owned();
    for range in found {
        starred.replace_range(range.clone(), &"*".repeat(range.len()));
    }
    Cow::Owned(starred)
}

fn found_in(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let secrets = SECRETS.read().unwrap_or_else(PoisonError::into_inner);
    let matches = secrets
        .search
        .iter()
        .flat_map(|search| search.find_iter(bytes));
    matches.map(|found| found.range()).collect()
}

/// The bytes with stars, `None` if there is nothing to star out. In JSON only texts are touched:
/// a number is no secret, and stars in its place would be no JSON.
fn cleaned(bytes: &[u8]) -> Option<Vec<u8>> {
    if found_in(bytes).is_empty() {
        return None;
    }
    if let Ok(mut json) = serde_json::from_slice::<Value>(bytes)
        && (json.is_object() || json.is_array())
    {
        clean_json(&mut json);
        let pretty = bytes.contains(&b'\n') && bytes.trim_ascii().contains(&b'\n');
        let mut out = match pretty {
            true => format!("{json:#}"),
            false => json.to_string(),
        };
        if bytes.ends_with(b"\n") {
            out.push('\n');
        }
        return Some(out.into_bytes());
    }
    Some(replaced(bytes))
}

fn replaced(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for range in found_in(bytes) {
        out.extend(&bytes[from..range.start]);
        out.extend(STARS.as_bytes());
        from = range.end;
    }
    out.extend(&bytes[from..]);
    out
}

fn clean_json(value: &mut Value) {
    match value {
        Value::String(text) => *text = clean_text(text),
        Value::Array(items) => items.iter_mut().for_each(clean_json),
        Value::Object(members) => {
            let clean = std::mem::take(members)
                .into_iter()
                .map(|(name, mut value)| {
                    clean_json(&mut value);
                    (clean_text(&name), value)
                });
            *members = clean.collect();
        }
        _ => {}
    }
}

fn clean_text(text: &str) -> String {
    String::from_utf8_lossy(&replaced(text.as_bytes())).into_owned()
}

/// A writer that stars out secrets. What is written at once must hold whole lines.
pub struct Clean<W>(pub W);

impl<W: Write> Write for Clean<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.write_all(&bytes(buffer))?;
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_remembered_is_starred_out_in_every_spelling() {
        remember([
            "canary-\"quoted\"",
            "short",
            "canary-line-1\n-----END KEY-----\ncanary-line-2\n",
        ]);
        assert_eq!(text("a canary-\"quoted\" b"), "a *** b");
        assert_eq!(text(r#"a canary-\"quoted\" b"#), "a *** b");
        assert_eq!(
            text("short stays, canary-line-2 does not"),
            "short stays, *** does not"
        );
        assert_eq!(text("-----END KEY-----"), "-----END KEY-----");
        assert_eq!(bytes(b"\xffcanary-line-1\xff").as_ref(), b"\xff***\xff");
        assert_eq!(starred("canary-line-1|"), "*************|");
        assert!(matches!(text("nothing here"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_stays_json_and_numbers_stay_numbers() {
        remember(["7734190265"]);
        let line =
            "{\"lag\":7734190265,\"reason\":\"7734190265 refused\",\"x\":[\"7734190265\"]}\n";
        let clean = "{\"lag\":7734190265,\"reason\":\"*** refused\",\"x\":[\"***\"]}\n";
        assert_eq!(text(line), clean);
        assert_eq!(text("pin 7734190265"), "pin ***");
        assert_eq!(
            exposition("lag{topic=\"7734190265\"} 7734190265\nup 7734190265\n"),
            "lag{topic=\"***\"} 7734190265\nup 7734190265\n"
        );
    }

    #[test]
    fn the_longest_of_several_is_taken() {
        remember(["canary-abc", "canary-abcdef"]);
        assert_eq!(text("canary-abcdef canary-abc"), "*** ***");
    }

    #[test]
    fn a_writer_stars_out_what_passes() {
        remember(["canary-written"]);
        let mut out = Clean(Vec::new());
        out.write_all(b"x canary-written y\n").unwrap();
        assert_eq!(out.0, b"x *** y\n");
    }
}
