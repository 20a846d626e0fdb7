//! Templates: text with `{…}`, compiled once, its constants resolved when a topic is bound.

use super::fault::{Place, Unbound, Words, suggest};
use super::limit::RecordLimit;
use super::moment::Pattern;
use super::outline::{FlowNames, Part, append};
use super::path::{Path, PathFault, ROOTS};
use super::{Binding, Failure, FailureCode, Inside, Reads};
use crate::record::Record;
use std::borrow::Cow;
use std::ops::Range;

/// Placeholders that are neither paths nor captures.
const PLACEHOLDERS: [&str; 4] = ["source", "target", "route", "source_topic"];

/// A compiled template.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template {
    /// As it is written.
    text: String,
    pieces: Vec<Piece>,
    limit: RecordLimit,
}

/// What a template depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Varies {
    /// On nothing but the source topic: one text for all its records.
    Never,
    /// On the topic's name so far, which is known when the topic is bound.
    ByTopic,
    /// On the record.
    ByRecord,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Source,
    Target,
    Route,
    SourceTopic,
    /// A named capture of the include regex, and where it stands in the text.
    Capture(String, Range<usize>),
    Path(Path),
    /// The timestamp in a pattern.
    Moment(Pattern),
}

impl Template {
    /// Compiles `text`, reporting mistakes at `place`.
    pub(crate) fn compile(text: &str, place: &Place<'_>) -> Option<Self> {
        match parse(text) {
            Ok(pieces) => Some(Self {
                text: text.to_owned(),
                pieces,
                limit: RecordLimit::default(),
            }),
            Err(mistake) => {
                let inside = Inside {
                    text: text.to_owned(),
                    bytes: mistake.bytes,
                };
                let help = "a template is text with `{placeholder}`; `{{` and `}}` are braces";
                let words = Words {
                    message: mistake.message,
                    help: Some(help.to_owned()),
                };
                place.fault_inside(inside, words)
            }
        }
    }

    /// Resolves everything that is constant for the bound topic.
    ///
    /// # Errors
    /// A capture that the include regex does not have, or that took no part in the match.
    pub(crate) fn bind(&self, binding: &Binding<'_>) -> Result<Self, Unbound> {
        let mut bound: Vec<Piece> = Vec::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            let text = match piece {
                Piece::Text(text) => text,
                Piece::Source => binding.source,
                Piece::Target => binding.target,
                Piece::Route => binding.route,
                Piece::SourceTopic => binding.topic,
                Piece::Capture(name, at) => self.capture(name, at, binding)?,
                Piece::Path(_) | Piece::Moment(_) => {
                    bound.push(piece.clone());
                    continue;
                }
            };
            match bound.last_mut() {
                Some(Piece::Text(before)) => before.push_str(text),
                _ => bound.push(Piece::Text(text.to_owned())),
            }
        }
        Ok(Self {
            text: self.text.clone(),
            pieces: bound,
            limit: RecordLimit::of(binding.record_bytes),
        })
    }

    /// The captures that cannot be filled for the bound topic.
    pub(crate) fn unfilled<'t>(
        &'t self,
        binding: &'t Binding<'_>,
    ) -> impl Iterator<Item = Unbound> + 't {
        self.pieces.iter().filter_map(move |piece| match piece {
            Piece::Capture(name, at) => self.capture(name, at, binding).err(),
            _ => None,
        })
    }

    fn capture<'b>(
        &self,
        name: &str,
        at: &Range<usize>,
        binding: &Binding<'b>,
    ) -> Result<&'b str, Unbound> {
        capture(name, binding).map_err(|unbound| Unbound {
            inside: Some(self.inside(at.clone())),
            ..unbound
        })
    }

    fn inside(&self, bytes: Range<usize>) -> Inside {
        Inside {
            text: self.text.clone(),
            bytes,
        }
    }

    /// Where one of its own texts stands; `None` if it is all of it, or has braces in it.
    pub(crate) fn part(&self, text: &str) -> Option<Inside> {
        let at = self.text.find(text).filter(|_| text != self.text)?;
        Some(self.inside(at..at + text.len()))
    }

    /// Its text, if it is nothing else.
    pub(crate) fn constant(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The texts in it.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// What it depends on.
    pub(crate) fn varies(&self) -> Varies {
        let varies = self.pieces.iter().map(|piece| match piece {
            Piece::Path(Path::Topic) => Varies::ByTopic,
            Piece::Path(_) | Piece::Moment(_) => Varies::ByRecord,
            _ => Varies::Never,
        });
        varies.max().unwrap_or(Varies::Never)
    }

    /// What it reads of a record.
    pub(crate) fn reads(&self) -> Reads {
        let reads = self.paths().map(Path::reads);
        reads.max().unwrap_or(Reads::Nothing)
    }

    /// The paths in it.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Path(path) => Some(path),
            _ => None,
        })
    }

    /// Its text with `topic` as the topic so far; only of a bound template that varies at most by
    /// topic.
    pub(crate) fn with_topic(&self, topic: &str) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            _ => topic,
        });
        pieces.collect()
    }

    /// Its parts in symbols, with `so_far` as the topic so far; `None` if it takes from the record.
    pub(crate) fn outline(&self, so_far: &[Part], names: &FlowNames<'_>) -> Option<Vec<Part>> {
        let mut name = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => append(&mut name, [Part::Text(text.clone())]),
                Piece::Source => append(&mut name, [Part::Text(names.source.to_owned())]),
                Piece::Target => append(&mut name, [Part::Text(names.target.to_owned())]),
                Piece::Route => append(&mut name, [Part::Text(names.route.to_owned())]),
                Piece::SourceTopic => append(&mut name, [Part::SourceTopic]),
                Piece::Capture(capture, _) => append(&mut name, [Part::Capture(capture.clone())]),
                Piece::Path(Path::Topic) => append(&mut name, so_far.to_vec()),
                Piece::Path(_) | Piece::Moment(_) => return None,
            }
        }
        Some(name)
    }

    /// Its bytes for `record`; of a bound template.
    ///
    /// # Errors
    /// A path that is absent or null, or that cannot be read; more bytes than a record may take.
    pub(crate) fn render<'t>(&'t self, record: &Record<'_>) -> Result<Cow<'t, [u8]>, Failure> {
        match self.pieces.as_slice() {
            [] => return Ok(Cow::Borrowed(b"")),
            [Piece::Text(text)] => return Ok(Cow::Borrowed(text.as_bytes())),
            _ => {}
        }
        let mut out = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Path(path) => match path.read(record)?.bytes() {
                    Some(bytes) => out.extend_from_slice(&bytes),
                    None => return Err(absent(path)),
                },
                Piece::Moment(pattern) => {
                    out.extend_from_slice(moment(pattern, record)?.as_bytes())
                }
                _ => {
                    let detail = "the template was not bound to a topic".to_owned();
                    return Err(Failure::new(FailureCode::Template, detail));
                }
            }
            self.limit.check_bytes(out.len())?;
        }
        Ok(Cow::Owned(out))
    }
}

/// The record's timestamp in a pattern.
fn moment(pattern: &Pattern, record: &Record<'_>) -> Result<String, Failure> {
    let Some(timestamp) = record.timestamp else {
        return Err(absent(&Path::Timestamp));
    };
    pattern.format(timestamp).ok_or_else(|| {
        let detail = "the timestamp is out of the calendar's range".to_owned();
        Failure::new(FailureCode::Template, detail)
    })
}

/// The failure of a path that must be there.
pub(crate) fn absent(path: &Path) -> Failure {
    Failure::new(FailureCode::Absent, format!("`{path}` is absent"))
}

/// Names of captures that mean something else in a template.
pub(crate) fn is_reserved(capture: &str) -> bool {
    ROOTS.contains(&capture) || PLACEHOLDERS.contains(&capture)
}

fn capture<'b>(name: &str, binding: &Binding<'b>) -> Result<&'b str, Unbound> {
    let known = binding.selected_by.captures();
    if !known.clone().any(|candidate| candidate == name) {
        let message =
            format!("`{{{name}}}` is no placeholder, and no capture of the topic's pattern");
        return Err(Unbound {
            message,
            help: Some(suggest(name, known.chain(PLACEHOLDERS).chain(ROOTS))),
            inside: None,
        });
    }
    binding
        .selected_by
        .capture(name, binding.topic)
        .ok_or_else(|| {
            let (topic, pattern) = (binding.topic, binding.selected_by);
            Unbound::from(format!(
                "the capture `{name}` of `{pattern}` is empty for topic `{topic}`"
            ))
        })
}

/// What is wrong with a template, and where in it.
#[derive(Debug)]
struct Mistake {
    message: String,
    bytes: Range<usize>,
}

fn parse(text: &str) -> Result<Vec<Piece>, Mistake> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(['{', '}']).map(|at| from + at) {
        literal.push_str(&text[from..at]);
        let brace = &text[at..=at];
        let mistake = |message: &str, bytes| Mistake {
            message: message.to_owned(),
            bytes,
        };
        from = at + 1;
        if text[from..].starts_with(brace) {
            literal.push_str(brace);
            from += 1;
        } else if brace == "{" {
            let end = placeholder_end(&text[from..]);
            let end = end.ok_or_else(|| mistake("a `{` is not closed", at..at + 1))? + from;
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            let piece = parse_placeholder(&text[from..end], at..end + 1);
            pieces.push(piece.map_err(|words| mistake(&words, at..end + 1))?);
            from = end + 1;
        } else {
            let words = "a `}` without its `{`; a brace itself is written `}}`";
            return Err(mistake(words, at..at + 1));
        }
    }
    literal.push_str(&text[from..]);
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    Ok(pieces)
}

/// Where the closing brace of a placeholder stands; braces inside quotes do not count.
fn placeholder_end(text: &str) -> Option<usize> {
    let mut in_quotes = false;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_quotes => escaped = true,
            '"' => in_quotes = !in_quotes,
            '}' if !in_quotes => return Some(at),
            _ => {}
        }
    }
    None
}

fn parse_placeholder(name: &str, at: Range<usize>) -> Result<Piece, String> {
    match name {
        "" => return Err("`{}` names nothing".to_owned()),
        "source" => return Ok(Piece::Source),
        "target" => return Ok(Piece::Target),
        "route" => return Ok(Piece::Route),
        "source_topic" => return Ok(Piece::SourceTopic),
        _ => {}
    }
    if let Some(pattern) = name.strip_prefix("timestamp:") {
        return Pattern::compile(pattern).map(Piece::Moment);
    }
    let first = name.find(['.', '[']).unwrap_or(name.len());
    if first < name.len() || ROOTS.contains(&name) {
        let path = Path::parse_one(name);
        return path.map(Piece::Path).map_err(PathFault::in_one_line);
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if name.chars().all(is_word) {
        return Ok(Piece::Capture(name.to_owned(), at));
    }
    Err(format!("`{{{name}}}` is neither a placeholder nor a path"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::handler::sample::record;

    fn bound(text: &str, regex: &str, topic: &str) -> Result<Template, String> {
        let pattern = config::pattern::Pattern::new(regex).expect("a pattern");
        let binding = Binding {
            route: "r",
            source: "eu",
            target: "us",
            topic,
            selected_by: &pattern,
            clock: crate::handler::Clock::default(),
            record_bytes: None,
        };
        let template = Template {
            text: text.to_owned(),
            pieces: parse(text).map_err(|mistake| mistake.message)?,
            limit: RecordLimit::default(),
        };
        template.bind(&binding).map_err(|unbound| unbound.message)
    }

    #[test]
    fn constants_are_resolved_and_joined() {
        let text = "{source}.{target}-{route}/{source_topic}{{x}}{team}";
        let template = bound(text, "(?<team>[a-z]+)-.", "pay-x").expect("bound");
        assert_eq!(
            template.pieces,
            [Piece::Text("eu.us-r/pay-x{x}pay".to_owned())]
        );
        assert_eq!(template.varies(), Varies::Never);
    }

    #[test]
    fn captures_must_be_there() {
        let unknown = bound("{taem}", "(?<team>x)", "x").expect_err("no such capture");
        assert!(unknown.contains("`{taem}` is no placeholder"), "{unknown}");
        let empty = bound("{b}", "(?<a>x)|(?<b>y)", "x").expect_err("took no part");
        assert!(empty.contains("is empty for topic `x`"), "{empty}");
    }

    #[test]
    fn paths_are_filled_per_record() {
        let mut record = record(
            Some("k"),
            Some(r#"{"a":1.50,"s":"x\"y","n":null,"o":[1, 2]}"#),
        );
        record.topic = "t2".into();
        let filled = |text: &str| {
            let template = bound(text, ".*", "t").expect("bound");
            let bytes = template.render(&record).map_err(|f| f.code);
            bytes.map(|b| String::from_utf8(b.into_owned()).expect("UTF-8"))
        };
        let text =
            "{topic}/{source_topic} {key} {value.a} {value.s} {value.o} {partition}:{offset}";
        assert_eq!(filled(text).as_deref(), Ok("t2/t k 1.50 x\"y [1, 2] 3:42"));
        assert_eq!(filled("{value.n}"), Err(FailureCode::Absent));
        assert_eq!(filled("{header.none}"), Err(FailureCode::Absent));
        assert_eq!(filled("{key.x}"), Err(FailureCode::NotJson));
        assert_eq!(filled(r#"{value["a"]}"#).as_deref(), Ok("1.50"));
        assert_eq!(
            filled("{timestamp:%Y.%m.%d %H:%M:%S} {timestamp}").as_deref(),
            Ok("1970.01.01 00:00:01 1234")
        );
    }

    #[test]
    fn mistakes_are_told() {
        for text in [
            "{",
            "}",
            "{}",
            "a{b",
            "{a b}",
            "{value.}",
            "{value.x[*]}",
            "{valeu.x}",
            "{timestamp:}",
            "{timestamp:yyyy}",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn knows_what_it_varies_by() {
        let varies = |text| bound(text, ".*", "t").expect("bound").varies();
        assert_eq!(varies("x-{source}"), Varies::Never);
        assert_eq!(varies("x-{topic}"), Varies::ByTopic);
        assert_eq!(varies("x-{topic}-{value.a}"), Varies::ByRecord);
    }
}
