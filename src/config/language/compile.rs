//! Regexes → automata over Kafka's alphabet.

use super::{ALPHABET, Language, Row, SYMBOLS, TooLarge, explore};
use regex_automata::Anchored;
use regex_automata::MatchKind;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::{self, NFA};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_syntax::hir::{self, Hir, HirKind, Look};

/// Bytes that one automaton may take while it is made.
const MAX_BYTES: usize = 4 << 20;

/// The names that one of `patterns` matches as a whole.
///
/// # Errors
/// The automaton would be too large.
pub fn patterns<P: AsRef<str>>(patterns: &[P]) -> Result<Language, TooLarge> {
    let parsed = patterns.iter().filter_map(|p| parse(p.as_ref()));
    // A pattern that does not parse is reported elsewhere, and matches nothing.
    of_hir(&Hir::alternation(parsed.collect()))
}

/// What the capture `name` may hold in one of `patterns`, looked at by itself; `None` if no pattern has
/// it.
///
/// # Errors
/// The automaton would be too large.
pub fn capture<P: AsRef<str>>(patterns: &[P], name: &str) -> Option<Result<Language, TooLarge>> {
    let parsed = patterns.iter().filter_map(|p| parse(p.as_ref()));
    let mut inside = Vec::new();
    for hir in parsed {
        find_capture(&hir, name, &mut inside);
    }
    (!inside.is_empty()).then(|| of_hir(&Hir::alternation(inside)))
}

fn parse(pattern: &str) -> Option<Hir> {
    regex_syntax::parse(pattern).ok()
}

fn find_capture(hir: &Hir, name: &str, found: &mut Vec<Hir>) {
    match hir.kind() {
        HirKind::Capture(capture) if capture.name.as_deref() == Some(name) => {
            found.push((*capture.sub).clone());
        }
        HirKind::Capture(capture) => find_capture(&capture.sub, name, found),
        HirKind::Repetition(repetition) => find_capture(&repetition.sub, name, found),
        HirKind::Concat(list) | HirKind::Alternation(list) => {
            list.iter().for_each(|hir| find_capture(hir, name, found));
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => {}
    }
}

/// The names of the captures of `hir`, in their order.
pub fn captures(hir: &Hir) -> Vec<String> {
    let mut names = Vec::new();
    name_captures(hir, &mut names);
    names
}

fn name_captures(hir: &Hir, names: &mut Vec<String>) {
    match hir.kind() {
        HirKind::Capture(capture) => {
            names.extend(capture.name.as_deref().map(str::to_owned));
            name_captures(&capture.sub, names);
        }
        HirKind::Repetition(repetition) => name_captures(&repetition.sub, names),
        HirKind::Concat(list) | HirKind::Alternation(list) => {
            list.iter().for_each(|hir| name_captures(hir, names));
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => {}
    }
}

/// The automaton of the names of legal characters that `hir` matches as a whole, not made deterministic.
///
/// # Errors
/// The automaton would be too large.
pub fn whole_names(hir: &Hir) -> Result<NFA, TooLarge> {
    let whole = Hir::concat(vec![
        Hir::look(Look::Start),
        in_alphabet(hir),
        Hir::look(Look::End),
    ]);
    let config = thompson::Config::new()
        .utf8(false)
        .nfa_size_limit(Some(MAX_BYTES))
        .which_captures(thompson::WhichCaptures::None);
    let mut compiler = thompson::Compiler::new();
    let built = compiler.configure(config).build_from_hir(&whole);
    built.map_err(|_| TooLarge)
}

fn of_hir(hir: &Hir) -> Result<Language, TooLarge> {
    let nfa = whole_names(hir)?;
    let config = dense::Config::new()
        .start_kind(StartKind::Anchored)
        .match_kind(MatchKind::All)
        .accelerate(false)
        .dfa_size_limit(Some(MAX_BYTES))
        .determinize_size_limit(Some(MAX_BYTES));
    let dfa = dense::Builder::new()
        .configure(config)
        .build_from_nfa(&nfa)
        .map_err(|_| TooLarge)?;
    of_dfa(&dfa)
}

fn of_dfa(dfa: &dense::DFA<Vec<u32>>) -> Result<Language, TooLarge> {
    let begin = start::Config::new().anchored(Anchored::Yes);
    let begin = dfa.start_state(&begin).map_err(|_| TooLarge)?;
    explore(
        begin,
        |&at: &StateID| dfa.is_match_state(dfa.next_eoi_state(at)),
        |&at, symbol| {
            let next = dfa.next_state(at, ALPHABET[symbol]);
            (!dfa.is_dead_state(next) && !dfa.is_quit_state(next)).then_some(next)
        },
    )
}

/// The same regex without characters that no topic name has. Beside being what is asked, it keeps
/// Unicode classes small, and lets a Unicode word boundary be an ASCII one.
fn in_alphabet(hir: &Hir) -> Hir {
    let all = |list: &[Hir]| list.iter().map(in_alphabet).collect();
    match hir.kind() {
        HirKind::Empty | HirKind::Literal(_) => hir.clone(),
        HirKind::Class(class) => Hir::class(hir::Class::Bytes(legal_bytes(class))),
        HirKind::Look(look) => Hir::look(ascii(*look)),
        HirKind::Repetition(repetition) => Hir::repetition(hir::Repetition {
            sub: Box::new(in_alphabet(&repetition.sub)),
            ..repetition.clone()
        }),
        HirKind::Capture(capture) => in_alphabet(&capture.sub),
        HirKind::Concat(list) => Hir::concat(all(list)),
        HirKind::Alternation(list) => Hir::alternation(all(list)),
    }
}

fn ascii(look: Look) -> Look {
    match look {
        Look::WordUnicode => Look::WordAscii,
        Look::WordUnicodeNegate => Look::WordAsciiNegate,
        Look::WordStartUnicode => Look::WordStartAscii,
        Look::WordEndUnicode => Look::WordEndAscii,
        Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
        Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
        other => other,
    }
}

/// The characters of a class that topic names may have.
pub(super) fn legal_bytes(class: &hir::Class) -> hir::ClassBytes {
    let legal = ALPHABET.iter().map(|&b| hir::ClassBytesRange::new(b, b));
    let legal = hir::ClassBytes::new(legal);
    let mut bytes = match class {
        hir::Class::Bytes(bytes) => bytes.clone(),
        hir::Class::Unicode(class) => {
            let ranges = class.ranges().iter().filter_map(|range| {
                let last = u8::try_from(range.end()).unwrap_or(0x7f).min(0x7f);
                let first = u8::try_from(range.start()).ok()?;
                (first <= last).then(|| hir::ClassBytesRange::new(first, last))
            });
            hir::ClassBytes::new(ranges)
        }
    };
    bytes.intersect(&legal);
    bytes
}

/// Every name, the empty one too.
pub fn anything() -> Language {
    Language {
        start: 0,
        rows: vec![Row {
            next: [0; SYMBOLS],
            accepts: true,
        }],
    }
}
