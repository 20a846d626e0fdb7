//! The automata against the regex engine, on all short names of a small alphabet.

use super::*;
use crate::config::pattern::Pattern;
use proptest::prelude::*;
use regex::Regex;

/// Every name of `a`, `b` and `.` up to that length, the empty one first.
fn names(longest: usize) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut from = 0;
    for _ in 0..longest {
        let to = names.len();
        for index in from..to {
            for letter in ["a", "b", "."] {
                let name = names[index].clone() + letter;
                names.push(name);
            }
        }
        from = to;
    }
    names
}

fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a", "b", r"\.", ".", "[ab]", "(?<x>a)", r"\w", "^a", "b$", r"\b", "é?",
    ]);
    leaf.prop_map(str::to_owned)
        .prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 1..4).prop_map(|list| list.concat()),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(?:{a}|{b})")),
                (inner, prop::sample::select(vec!["*", "+", "?", "{2}"]))
                    .prop_map(|(a, times)| format!("(?:{a}){times}")),
            ]
        })
}

fn whole(pattern: &str) -> Option<Regex> {
    Regex::new(&format!("^(?:{pattern})$")).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agree_with_the_engine(first in pattern(), second in pattern()) {
        let (Some(a), Some(b)) = (whole(&first), whole(&second)) else {
            return Ok(());
        };
        let one = patterns(&[&first]).unwrap();
        let two = patterns(&[&second]).unwrap();
        let both = one.combine(&two, Combine::Both).unwrap();
        let without = one.combine(&two, Combine::Without).unwrap();
        let either = one.combine(&two, Combine::Either).unwrap();
        let then = one.then(&two).unwrap();
        let between = one.between("a", ".");
        for name in names(5) {
            let (in_a, in_b) = (a.is_match(&name), b.is_match(&name));
            prop_assert_eq!(one.contains(&name), in_a, "{} of {}", name, first);
            prop_assert_eq!(both.contains(&name), in_a && in_b, "{}", name);
            prop_assert_eq!(without.contains(&name), in_a && !in_b, "{}", name);
            prop_assert_eq!(either.contains(&name), in_a || in_b, "{}", name);
            prop_assert_eq!(between.contains(&name), a.is_match(&format!("a{name}.")), "{}", name);
            let split = (0..=name.len()).any(|at| a.is_match(&name[..at]) && b.is_match(&name[at..]));
            prop_assert_eq!(then.contains(&name), split, "{} of {} then {}", name, first, second);
        }
        if let Some(word) = shortest(&both, MAX_NAME) {
            prop_assert!(a.is_match(&word) && b.is_match(&word));
        } else {
            prop_assert!(names(4).iter().skip(1).all(|n| !both.contains(n)));
        }
        let pattern = Pattern::new(&first).unwrap();
        for name in names(5).iter().chain(&["é".to_owned(), "a é".to_owned(), "ba\n".to_owned()]) {
            prop_assert_eq!(pattern.is_match(name), a.is_match(name), "{} of {}", name, first);
        }
        let head = head(&first);
        for name in names(4).iter().filter(|n| a.is_match(n)) {
            prop_assert!(name.starts_with(&head.text), "{} of {}", name, first);
            prop_assert!(head.extent == look::Extent::Beginning || *name == head.text);
        }
        match can_match(&regex_syntax::parse(&first).unwrap()) {
            Some(true) => prop_assert!(!one.is_empty(), "{}", first),
            Some(false) => prop_assert!(one.is_empty(), "{}", first),
            None => {}
        }
    }
}

#[test]
fn what_is_too_large_says_so() {
    assert_eq!(patterns(&["(a|b)*a(a|b){14}"]).err(), Some(TooLarge));
    let long = patterns(&["a{300}"]).unwrap();
    assert!(!long.is_empty());
    assert_eq!(shortest(&long, MAX_NAME), None);
}

#[test]
fn the_first_names_are_the_shortest() {
    let language = patterns(&[r"[a-z]+\.v\d"]).unwrap();
    assert_eq!(words(&language, 3, MAX_NAME), ["a.v0", "a.v1", "a.v2"]);
    assert!(shortest(&Language::nothing(), MAX_NAME).is_none());
    assert!(Language::word("a b").is_empty());
}

#[test]
fn dots_and_lines_clash() {
    let clash_of = |a: &str, b: &str| {
        let (a, b) = (patterns(&[a]).unwrap(), patterns(&[b]).unwrap());
        clash(&a, &b, MAX_NAME)
    };
    assert_eq!(
        clash_of(r"eu\..+", "eu_.+"),
        Some(("eu.a".to_owned(), "eu_a".to_owned()))
    );
    assert_eq!(clash_of("orders", "orders"), None);
    assert_eq!(clash_of("a-b", "a_b"), None);
}

#[test]
fn samples_differ_in_one_place_each() {
    let texts = samples(r"(?<team>[a-z]+)\.clicks\.v(?<major>\d+)");
    for expected in ["a.clicks.v0", "b.clicks.v0", "a.clicks.v1"] {
        assert!(texts.iter().any(|t| t == expected), "{texts:?}");
    }
    assert_eq!(samples("orders"), ["orders"]);
}

#[test]
fn captures_are_looked_at_by_themselves() {
    let list = [r"(?<team>[a-z]{2})\.x", "y"];
    let team = capture(&list, "team").unwrap().unwrap();
    assert!(team.contains("ab") && !team.contains("abc"));
    assert!(capture(&list, "other").is_none());
}
