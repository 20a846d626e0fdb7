//! Topic patterns and topic names.

use super::Check;
use crate::config::diagnostic::Code;
use crate::config::pattern::Pattern;
use crate::config::pointer;
use crate::config::raw::RawTopics;
use crate::config::spec::TopicSelection;
use crate::handler::broken_regex::BrokenRegex;
use regex_syntax::hir::Hir;

/// The topics of a route, and the syntax of its patterns for those who look further at them.
pub struct Topics {
    /// The selection.
    pub selection: TopicSelection,
    /// The syntax of each `include`.
    pub include: Vec<Hir>,
    /// The syntax of each `exclude`.
    pub exclude: Vec<Hir>,
}

/// The topics, if every pattern compiles.
pub fn read(raw: &RawTopics, at: &str, check: &mut Check<'_>) -> Option<Topics> {
    let at = pointer::child(at, "topics");
    let include = raw.include.as_deref();
    let exclude = raw.exclude.as_deref().unwrap_or_default();
    let included = list(include.unwrap_or_default(), (&at, "include"), check);
    let excluded = list(exclude, (&at, "exclude"), check);
    include?;
    let ((included, include), (excluded, exclude)) = (included?, excluded?);
    Some(Topics {
        selection: TopicSelection::of(included, excluded),
        include,
        exclude,
    })
}

/// The patterns of one list.
fn list(
    texts: &[String],
    (at, name): (&str, &str),
    check: &mut Check<'_>,
) -> Option<(Vec<Pattern>, Vec<Hir>)> {
    let at = pointer::child(at, name);
    let read: Vec<Option<(Pattern, Hir)>> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| pattern(text, &pointer::item(&at, index), check))
        .collect();
    read.into_iter().collect()
}

/// A pattern, if it compiles; what is odd about one that does is a warning.
fn pattern(text: &str, at: &str, check: &mut Check<'_>) -> Option<(Pattern, Hir)> {
    let read = match Pattern::read(text) {
        Ok(read) => read,
        Err(error) => {
            refuse(text, &error, at, check);
            return None;
        }
    };
    if text.contains(|c: char| c.is_control()) {
        check
            .say(
                Code::ControlCharacter,
                at,
                "a control character in a pattern: no topic has one",
            )
            .help =
            Some("use single quotes for regexes: they leave the backslash alone".to_owned());
    }
    if let Some(dot) = unescaped_dot(text) {
        let help = match check.document.may_be_shown(at) {
            true => format!("write '{}\\{}'", &text[..dot], &text[dot..]),
            false => "write `\\.`".to_owned(),
        };
        let message = "this dot matches every character".to_owned();
        let part = (text, dot..dot + 1);
        check.say_inside(Code::UnescapedDot, at, part, message).help = Some(help);
    }
    Some(read)
}

fn refuse(text: &str, error: &regex::Error, at: &str, check: &mut Check<'_>) {
    let BrokenRegex { reason, bytes } = BrokenRegex::of(text, error);
    let shown = check.document.may_be_shown(at);
    let part = (text, bytes);
    if reason.contains("look-around") || reason.contains("backreferences") {
        let message = "regexes here have no look-around and no back-references".to_owned();
        let help = without_look_ahead(text).filter(|_| shown);
        check.say_inside(Code::LookAround, at, part, message).help =
            Some(help.unwrap_or_else(|| {
                "put what must not match under `exclude:`, which wins over `include:`".to_owned()
            }));
        return;
    }
    if let Some((at_byte, of)) = of_another_engine(text, part.1.start) {
        let message = format!("regexes here have no {of}");
        let help =
            "a plain group does here, and a backslash before each sign that is meant as itself";
        let part = (text, at_byte..part.1.end);
        check.say_inside(Code::LookAround, at, part, message).help = Some(help.to_owned());
        return;
    }
    let message = format!("not a regex: {reason}");
    check.say_inside(Code::BadRegex, at, part, message).help = Some(HELP.to_owned());
}

/// What every pattern may be reminded of.
const HELP: &str =
    "a bracket, brace or other sign that is meant as itself has a backslash before it";

/// A construct that only other engines have, at or before the byte that this one does not take.
fn of_another_engine(text: &str, at: usize) -> Option<(usize, &'static str)> {
    let before = text.get(..at)?;
    let rest = text.get(at..)?;
    if before.ends_with("(?") && rest.starts_with('>') {
        return Some((at - 2, "atomic groups"));
    }
    let quotes = rest.starts_with(r"\Q") || rest.starts_with(r"\E");
    quotes.then_some((at, "quoting by `\\Q…\\E`"))
}

/// The usual look-ahead, `^(?!X)Y`, as an include and an exclude.
fn without_look_ahead(text: &str) -> Option<String> {
    let rest = text.strip_prefix('^').unwrap_or(text).strip_prefix("(?!")?;
    let (not, rest) = rest.split_once(')')?;
    let rest = rest.strip_suffix('$').unwrap_or(rest);
    if not.contains('(') || rest.is_empty() {
        return None;
    }
    let not = match not.strip_suffix('$') {
        Some(exact) => exact.to_owned(),
        None => format!("{}.*", not.trim_end_matches(".*")),
    };
    Some(format!(
        "write `include: ['{rest}']` and `exclude: ['{not}']`"
    ))
}

/// An unescaped dot that stands between two word characters, outside a class.
fn unescaped_dot(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_word =
        |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || b"_-".contains(b));
    let mut in_class = false;
    let mut index = 0;
    while index < bytes.len() {
        match bytes[index] {
            b'\\' => index += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'.' if !in_class && index > 0 => {
                let escape_before = index > 1 && bytes[index - 2] == b'\\';
                if is_word(bytes.get(index - 1)) && !escape_before && is_word(bytes.get(index + 1))
                {
                    return Some(index);
                }
            }
            _ => {}
        }
        index += 1;
    }
    None
}

/// Whether Kafka takes `name` as a topic's name.
pub fn is_topic(name: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    (1..=249).contains(&name.len()) && name != "." && name != ".." && name.bytes().all(legal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_between_words() {
        assert_eq!(unescaped_dot("orders.eu"), Some(6));
        for fine in [
            "orders\\.eu",
            "orders.*",
            ".+\\.test",
            "a[.]b",
            "orders.",
            "\\d.a",
            "(a).(b)",
        ] {
            assert_eq!(unescaped_dot(fine), None, "{fine}");
        }
    }

    #[test]
    fn look_ahead_becomes_an_exclude() {
        let help = without_look_ahead("^(?!test).*").unwrap();
        assert_eq!(help, "write `include: ['.*']` and `exclude: ['test.*']`");
        assert_eq!(without_look_ahead("a(?=b)"), None);
    }

    #[test]
    fn topic_names() {
        assert!(is_topic("a.b_C-1"));
        for bad in ["", ".", "..", "a b", "ü", &"x".repeat(250)] {
            assert!(!is_topic(bad));
        }
    }
}
