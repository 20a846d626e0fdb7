//! What is seen of a regex at a glance, without an automaton: cheap enough for every route.

use super::compile::legal_bytes;
use super::{ALPHABET, MAX_NAME};
use regex_syntax::hir::{Hir, HirKind, Look};

/// How all names of a set begin.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Head {
    /// The text.
    pub text: String,
    /// Whether it is a whole name, the only one.
    pub extent: Extent,
}

/// How much of the names a head is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// All of it.
    Whole,
    /// More may follow.
    Beginning,
}

impl Head {
    /// The head of a set that holds `text` alone.
    pub fn whole(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            extent: Extent::Whole,
        }
    }

    /// The head of a set whose names begin with `text`.
    pub fn beginning(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            extent: Extent::Beginning,
        }
    }

    /// This head followed by `next`.
    pub fn then(mut self, next: &Head) -> Self {
        if self.extent == Extent::Whole {
            self.text.push_str(&next.text);
            self.extent = next.extent;
        }
        self
    }

    /// Whether `name` has this head.
    pub fn is_of(&self, name: &str) -> bool {
        match self.extent {
            Extent::Whole => name == self.text,
            Extent::Beginning => name.starts_with(&self.text),
        }
    }

    /// Whether a name may have both heads.
    pub fn meets(&self, other: &Head) -> bool {
        match (self.extent, other.extent) {
            (Extent::Whole, Extent::Whole) => self.text == other.text,
            (Extent::Whole, Extent::Beginning) => self.text.starts_with(&other.text),
            (Extent::Beginning, Extent::Whole) => other.text.starts_with(&self.text),
            (Extent::Beginning, Extent::Beginning) => {
                self.text.starts_with(&other.text) || other.text.starts_with(&self.text)
            }
        }
    }
}

/// How all names that `pattern` matches begin.
pub fn head(pattern: &str) -> Head {
    match regex_syntax::parse(pattern) {
        Ok(hir) => head_of(&hir),
        Err(_) => Head::beginning(""),
    }
}

/// The same of a parsed one.
pub fn head_of(hir: &Hir) -> Head {
    match hir.kind() {
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => Head::whole(text),
            Err(_) => Head::beginning(""),
        },
        HirKind::Empty | HirKind::Look(Look::Start | Look::End) => Head::whole(""),
        HirKind::Capture(capture) => head_of(&capture.sub),
        HirKind::Concat(list) => list
            .iter()
            .fold(Head::whole(""), |head, hir| head.then(&head_of(hir))),
        _ => Head::beginning(""),
    }
}

/// How all texts that `hir` matches end.
pub fn tail_of(hir: &Hir) -> String {
    let mut tail = String::new();
    put_before(&mut tail, hir);
    tail
}

/// Puts the tail of `hir` before `tail`, and says whether what stands before `hir` may go on with it.
fn put_before(tail: &mut String, hir: &Hir) -> Extent {
    match hir.kind() {
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => {
                tail.insert_str(0, text);
                Extent::Whole
            }
            Err(_) => Extent::Beginning,
        },
        HirKind::Empty | HirKind::Look(_) => Extent::Whole,
        HirKind::Capture(capture) => put_before(tail, &capture.sub),
        HirKind::Concat(list) => {
            let mut parts = list.iter().rev();
            match parts.all(|part| put_before(tail, part) == Extent::Whole) {
                true => Extent::Whole,
                false => Extent::Beginning,
            }
        }
        _ => Extent::Beginning,
    }
}

/// Whether `hir` can match a name that Kafka takes; `None` if that takes an automaton to say.
pub fn can_match(hir: &Hir) -> Option<bool> {
    let shortest = hir.properties().minimum_len().unwrap_or(0);
    if !is_possible(hir) || shortest > MAX_NAME {
        return Some(false);
    }
    // Look-around inside, or what may match the empty name alone.
    let sure = hir.properties().look_set().is_empty() && hir.properties().minimum_len() > Some(0);
    sure.then_some(true)
}

/// Whether a text of legal characters matches, looks taken as always true.
fn is_possible(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => literal.0.iter().all(|b| ALPHABET.contains(b)),
        HirKind::Class(class) => !legal_bytes(class).ranges().is_empty(),
        HirKind::Repetition(repetition) => repetition.min == 0 || is_possible(&repetition.sub),
        HirKind::Capture(capture) => is_possible(&capture.sub),
        HirKind::Concat(list) => list.iter().all(is_possible),
        HirKind::Alternation(list) => list.iter().any(is_possible),
    }
}

/// Texts that `pattern` is likely to match: a plain one, and ones that differ from it in one place each. To be tried,
/// not to be trusted.
pub fn samples(pattern: &str) -> Vec<String> {
    match regex_syntax::parse(pattern) {
        Ok(hir) => samples_of(&hir),
        Err(_) => Vec::new(),
    }
}

/// The same of a parsed pattern.
pub fn samples_of(hir: &Hir) -> Vec<String> {
    let mut texts = variants(hir);
    texts.truncate(MOST_SAMPLES);
    texts
}

/// Samples of one pattern at most.
const MOST_SAMPLES: usize = 40;

/// The plain text first, then those that differ in one place.
fn variants(hir: &Hir) -> Vec<String> {
    let plain = |text: &str| vec![text.to_owned()];
    let mut texts = match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => plain(""),
        HirKind::Literal(literal) => plain(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => of_class(&legal_bytes(class)),
        HirKind::Capture(capture) => variants(&capture.sub),
        HirKind::Repetition(repetition) => {
            let texts = variants(&repetition.sub);
            // `.*` as it is mostly meant: something.
            let least = repetition
                .min
                .max(1)
                .min(repetition.max.unwrap_or(u32::MAX));
            let more = repetition.max.is_none_or(|max| max > least);
            of_repetition(&texts, usize::try_from(least).unwrap_or(1), more)
        }
        HirKind::Concat(list) => of_concat(&list.iter().map(variants).collect::<Vec<_>>()),
        HirKind::Alternation(list) => list.iter().flat_map(variants).collect(),
    };
    texts.truncate(MOST_SAMPLES);
    texts
}

fn of_class(class: &regex_syntax::hir::ClassBytes) -> Vec<String> {
    let has = |b: u8| {
        class
            .ranges()
            .iter()
            .any(|r| r.start() <= b && b <= r.end())
    };
    let order = b"abx01AB".iter().chain(ALPHABET).copied();
    let mut texts: Vec<String> = Vec::new();
    for byte in order.filter(|&b| has(b)) {
        let text = char::from(byte).to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
        if texts.len() == 3 {
            break;
        }
    }
    texts
}

fn of_repetition(texts: &[String], least: usize, more: bool) -> Vec<String> {
    let Some(first) = texts.first() else {
        return Vec::new();
    };
    let least = least.min(MAX_NAME);
    let mut repeated = vec![first.repeat(least)];
    for other in &texts[1..] {
        repeated.push(first.repeat(least.saturating_sub(1)) + other);
    }
    if more {
        repeated.push(first.repeat(least + 1));
    }
    repeated
}

fn of_concat(parts: &[Vec<String>]) -> Vec<String> {
    if parts.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    let with = |changed: usize, variant: usize| {
        let texts = parts.iter().enumerate();
        let texts = texts.map(|(at, texts)| {
            if at == changed {
                &texts[variant]
            } else {
                &texts[0]
            }
        });
        texts.map(String::as_str).collect::<String>()
    };
    let mut texts = vec![with(0, 0)];
    for (at, part) in parts.iter().enumerate() {
        texts.extend((1..part.len()).map(|variant| with(at, variant)));
    }
    texts
}
