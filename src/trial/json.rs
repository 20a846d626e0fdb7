//! JSON compared by value: numbers by what they are worth, exactly, whatever their size; members in
//! any order; of a repeated member the last.

use super::sample::Bytes;
use crate::handler::compare_numbers;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::cmp::Ordering;
use std::fmt::{self, Write};

/// Nested deeper than this is not looked into.
const MAX_DEPTH: usize = 128;

/// A JSON value whose numbers are spelled as they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Json {
    /// `null`, `true`, `false`, and numbers as spelled.
    Word(String),
    /// A text.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object.
    Map(Vec<(String, Json)>),
}

impl Json {
    /// `text` as JSON, `None` if it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let raw: &RawValue = serde_json::from_str(text).ok()?;
        Self::of(raw, MAX_DEPTH)
    }

    /// Bytes as JSON, `None` if they are none.
    pub(crate) fn of_bytes(bytes: &Bytes) -> Option<Self> {
        Self::parse(std::str::from_utf8(bytes.as_deref()?).ok()?)
    }

    fn of(raw: &RawValue, depth: usize) -> Option<Self> {
        let text = raw.get();
        let depth = depth.checked_sub(1)?;
        match text.as_bytes().first()? {
            b'"' => serde_json::from_str(text).ok().map(Self::Text),
            b'[' => {
                let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                let items = items.into_iter().map(|raw| Self::of(raw, depth));
                items.collect::<Option<_>>().map(Self::List)
            }
            b'{' => {
                let Members(raws) = serde_json::from_str(text).ok()?;
                let mut members: Vec<(String, Json)> = Vec::new();
                for (name, raw) in raws {
                    let value = Self::of(raw, depth)?;
                    match members.iter_mut().find(|(known, _)| *known == name) {
                        Some(member) => member.1 = value,
                        None => members.push((name, value)),
                    }
                }
                Some(Self::Map(members))
            }
            _ => Some(Self::Word(text.to_owned())),
        }
    }

    /// Whether both are worth the same.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Word(a), Self::Word(b)) => {
                a == b || compare_numbers(a, b) == Some(Ordering::Equal)
            }
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::List(a), Self::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b))
            }
            (Self::Map(a), Self::Map(b)) => {
                let in_b =
                    |(name, a): &(String, Json)| other.get(name).is_some_and(|b| a.equals(b));
                a.len() == b.len() && a.iter().all(in_b)
            }
            _ => false,
        }
    }

    /// The member of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let Self::Map(members) = self else {
            return None;
        };
        let found = members.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// The same value written as `model` writes it: what is equal there is spelled as there, and
    /// members come in its order. What is left to see between the two is what differs.
    pub(crate) fn written_as(self, model: &Self) -> Self {
        if self.equals(model) {
            return model.clone();
        }
        match (self, model) {
            (Self::List(items), Self::List(models)) => {
                let rest = items.len().saturating_sub(models.len());
                let models = models
                    .iter()
                    .map(Some)
                    .chain(std::iter::repeat_n(None, rest));
                let items = items.into_iter().zip(models);
                Self::List(items.map(|(item, m)| item.written_as_if(m)).collect())
            }
            (Self::Map(members), Self::Map(models)) => {
                let place = |name: &str| models.iter().position(|(known, _)| known == name);
                let mut members: Vec<(String, Json)> = members
                    .into_iter()
                    .map(|(name, value)| {
                        let model = place(&name).map(|at| &models[at].1);
                        let value = value.written_as_if(model);
                        (name, value)
                    })
                    .collect();
                members.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
                Self::Map(members)
            }
            (other, _) => other,
        }
    }

    fn written_as_if(self, model: Option<&Self>) -> Self {
        match model {
            Some(model) => self.written_as(model),
            None => self,
        }
    }

    /// Over several lines.
    pub(crate) fn pretty(&self) -> String {
        let mut out = String::new();
        self.write(Layout::Lines(0, LastComma::Absent), &mut out);
        out
    }

    /// Over several lines, for a comparison line by line: the last member has its comma too, so that a
    /// member that comes or goes changes no line but its own.
    pub(crate) fn line_by_line(&self) -> String {
        let mut out = String::new();
        self.write(Layout::Lines(0, LastComma::Written), &mut out);
        out
    }

    /// On one line.
    #[cfg(test)]
    fn compact(&self) -> String {
        let mut out = String::new();
        self.write(Layout::OneLine, &mut out);
        out
    }

    fn write(&self, layout: Layout, out: &mut String) {
        match self {
            Self::Word(word) => out.push_str(word),
            Self::Text(text) => out.push_str(&quoted(text)),
            Self::List(items) => {
                let items = items.iter().map(|item| (None, item));
                write_all(('[', ']'), items, layout, out);
            }
            Self::Map(members) => {
                let members = members.iter().map(|(name, value)| (Some(name), value));
                write_all(('{', '}'), members, layout, out);
            }
        }
    }
}

/// How JSON is laid out.
#[derive(Clone, Copy)]
enum Layout {
    /// Without white space.
    #[cfg(test)]
    OneLine,
    /// Each member on a line of its own, indented so far.
    Lines(usize, LastComma),
}

/// Whether a comma stands behind the last member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastComma {
    Written,
    Absent,
}

impl Layout {
    fn inner(self) -> Self {
        match self {
            #[cfg(test)]
            Self::OneLine => self,
            Self::Lines(indent, last) => Self::Lines(indent + 2, last),
        }
    }

    fn break_line(self, out: &mut String) {
        match self {
            #[cfg(test)]
            Self::OneLine => {}
            Self::Lines(indent, _) => {
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent));
            }
        }
    }

    fn gap(self) -> &'static str {
        match self {
            #[cfg(test)]
            Self::OneLine => "",
            Self::Lines(..) => " ",
        }
    }
}

fn write_all<'j>(
    (open, close): (char, char),
    members: impl ExactSizeIterator<Item = (Option<&'j String>, &'j Json)>,
    layout: Layout,
    out: &mut String,
) {
    out.push(open);
    let count = members.len();
    let inner = layout.inner();
    let closes = matches!(layout, Layout::Lines(_, LastComma::Written));
    for (index, (name, value)) in members.enumerate() {
        inner.break_line(out);
        if let Some(name) = name {
            let _ = write!(out, "{}:{}", quoted(name), layout.gap());
        }
        value.write(inner, out);
        if index + 1 < count || closes {
            out.push(',');
        }
    }
    if count > 0 {
        layout.break_line(out);
    }
    out.push(close);
}

fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

/// The members of an object in their order.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de: 't, 't> Deserialize<'de> for Members<'t> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(InOrder).map(Self)
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).expect("JSON")
    }

    #[test]
    fn numbers_compare_by_value_and_members_in_any_order() {
        let equal = [
            ("1.0", "1"),
            ("1e2", "100"),
            (r#"{"a":1,"b":[2]}"#, r#"{ "b": [2.0], "a": 1 }"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (r#""é""#, r#""\u00e9""#),
        ];
        for (a, b) in equal {
            assert!(json(a).equals(&json(b)), "{a} {b}");
        }
        let different = [
            (
                "123456789012345678901234567890",
                "123456789012345678901234567891",
            ),
            ("1", r#""1""#),
            ("[1]", "[1,2]"),
            (r#"{"a":null}"#, "{}"),
        ];
        for (a, b) in different {
            assert!(!json(a).equals(&json(b)), "{a} {b}");
        }
    }

    #[test]
    fn only_what_differs_is_left_to_see() {
        let model = json(r#"{"a":1,"b":{"c":1.0,"d":2}}"#);
        let got = json(r#"{"b":{"d":3,"c":1},"z":0,"a":1.00}"#).written_as(&model);
        assert_eq!(got.compact(), r#"{"a":1,"b":{"c":1.0,"d":3},"z":0}"#);
        assert_eq!(json("[]").pretty(), "[]");
        assert_eq!(
            json(r#"{"a":[1]}"#).pretty(),
            "{\n  \"a\": [\n    1\n  ]\n}"
        );
        assert_eq!(
            json(r#"{"a":[1]}"#).line_by_line(),
            "{\n  \"a\": [\n    1,\n  ],\n}"
        );
    }

    #[test]
    fn what_is_not_json_is_none_however_deep() {
        assert_eq!(Json::parse("{"), None);
        assert_eq!(Json::parse(&"[".repeat(100_000)), None);
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        assert_eq!(Json::parse(&deep), None);
    }
}
