//! Every rewriting step against the model, byte for byte, on documents with every freedom that
//! JSON has: white space, repeated names, escapes, numbers of any spelling.

use super::chains::bind;
use super::model::{Document, Element, Member, Node};
use crate::handler::json::{Segment, scan};
use crate::handler::path::Path;
use crate::handler::sample::{record, value_of};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Documents that were found to be hard, one a line; those that a run finds are kept by proptest
/// in `proptest-regressions`.
const CORPUS: &str = include_str!("corpus.txt");

fn blanks() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\n\t")].prop_map(str::to_owned)
}

/// Names with their quotes: few, so that paths find them and they repeat; `\u0061` is `a`.
fn name_tokens() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => Just(r#""a""#), 4 => Just(r#""b""#), 2 => Just(r#""a.b""#), 1 => Just(r#""\u0061""#),
        1 => Just(r#""""#), 1 => Just(r#""é\"]""#), 1 => Just(r#""\ud800""#),
    ]
    .prop_map(str::to_owned)
}

fn scalars() -> impl Strategy<Value = String> {
    let fixed = prop_oneof![
        Just("null"),
        Just("true"),
        Just("false"),
        Just("-0"),
        Just("0.0"),
        Just("1e2"),
        Just("15E-1"),
        Just("1.50e+1"),
        Just("123456789012345678901234567890"),
        Just("18446744073709551616"),
        Just("1e400"),
        Just(r#""""#),
        Just(r#""a\u00e9\n""#),
        Just(r#""4869""#),
        Just(r#""aGk=""#),
        Just(r#""{\"a\": 1.0}""#),
        Just(r#""12""#),
        Just(r#""1.0""#),
        Just(r#""TRUE""#),
        Just(r#""😀 x1Y2""#),
        Just(r#""\ud800""#),
    ];
    prop_oneof![
        3 => fixed.prop_map(str::to_owned),
        1 => any::<i64>().prop_map(|n| n.to_string()),
        1 => ".{0,6}".prop_map(|text| Value::from(text).to_string()),
    ]
}

fn nodes() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        6 => scalars().prop_map(Node::Scalar),
        1 => blanks().prop_map(|blank| Node::Object { members: Vec::new(), blank }),
        1 => blanks().prop_map(|blank| Node::Array { elements: Vec::new(), blank }),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let members = (
            blanks(),
            name_tokens(),
            (blanks(), blanks()),
            inner.clone(),
            blanks(),
        );
        let member = members.prop_map(|(before, name, colon, value, after)| Member {
            before,
            name,
            colon,
            value,
            after,
        });
        let elements = (blanks(), inner, blanks());
        let element = elements.prop_map(|(before, value, after)| Element {
            before,
            value,
            after,
        });
        let blank = String::new;
        prop_oneof![
            2 => prop::collection::vec(member, 1..5)
                .prop_map(move |members| Node::Object { members, blank: blank() }),
            1 => prop::collection::vec(element, 1..4)
                .prop_map(move |elements| Node::Array { elements, blank: blank() }),
        ]
    })
}

fn documents() -> impl Strategy<Value = Document> {
    let parts = (blanks(), nodes(), blanks());
    parts.prop_map(|(before, root, after)| Document {
        before,
        root,
        after,
    })
}

fn names() -> impl Strategy<Value = String> {
    let names = prop_oneof![4 => Just("a"), 3 => Just("b"), 1 => Just("a.b"), 1 => Just(""), 1 => Just("é\"]")];
    names.prop_map(str::to_owned)
}

/// Paths of at least one segment; `each` is how often `[*]` comes.
fn paths(each: u32) -> impl Strategy<Value = Vec<Segment>> {
    let segment = prop_oneof![
        6 => names().prop_map(Segment::Name),
        2 => (0usize..3).prop_map(Segment::Index),
        each => Just(Segment::Each),
    ];
    prop::collection::vec(segment, 1..4)
}

fn spelled(path: &[Segment]) -> String {
    Path::Value(path.to_vec()).to_string()
}

/// The value after one step, `None` if it fails.
fn after(step: Value, value: &str) -> Option<String> {
    let bound = bind(&json!([step]));
    let mut out = Vec::new();
    bound.apply(record(Some("k"), Some(value)), &mut out).ok()?;
    value_of(&out[0]).map(str::to_owned)
}

fn extraction(document: &Document, path: &[Segment]) {
    let text = document.print();
    let found = scan::find(text.as_bytes(), path).expect("JSON");
    let expected = document.root.get(path).map(Node::print);
    assert_eq!(
        found.map(|span| text[span].to_owned()),
        expected,
        "{text} {path:?}"
    );
    let extract = after(json!({"reformat": {"extract": spelled(path)}}), &text);
    assert_eq!(
        extract,
        document.root.get(path).map(Node::print),
        "{text} {path:?}"
    );
}

fn setting(document: &Document, path: &[Segment]) {
    let mut model = document.clone();
    let set = json!({"reformat": {"set": {spelled(path): [7]}}});
    let new = Document::parse("[7]").root;
    let expected = model.root.set(path, new).map(|()| model.print());
    assert_eq!(after(set, &document.print()), expected, "{path:?}");
}

fn removal(document: &Document, path: &[Segment]) {
    let mut model = document.clone();
    model.root.unset(path);
    let unset = json!({"reformat": {"unset": [spelled(path)]}});
    let changed = after(unset, &document.print());
    assert_eq!(
        changed,
        Some(model.print()),
        "{} {path:?}",
        document.print()
    );
}

fn renaming(document: &Document, parents: &[Segment], old: &str, new: &str) {
    let mut model = document.clone();
    let renamed = model.root.rename(parents, old, new);
    let path = |name: &str| spelled(&[parents, &[Segment::Name(name.to_owned())]].concat());
    let rename = json!({"rename": {"field": {path(old): path(new)}}});
    let changed = after(rename, &document.print());
    assert_eq!(
        changed,
        renamed.ok().map(|()| model.print()),
        "{} {old} {new}",
        document.print()
    );
}

/// Changes every match in the model; `change` gives the new spelling, `Err` where it fails.
fn changed(
    document: &Document,
    path: &[Segment],
    change: impl Fn(&str) -> Result<String, ()>,
) -> Option<String> {
    let mut model = document.clone();
    for node in model.root.every(path) {
        let token = node.print();
        if token != "null" {
            *node = Node::Scalar(change(&token).ok()?);
        }
    }
    Some(model.print())
}

/// A text or number as text.
fn text_of(token: &str) -> Result<String, ()> {
    match token.as_bytes()[0] {
        b'"' => serde_json::from_str(token).map_err(drop),
        b'-' | b'0'..=b'9' => Ok(token.to_owned()),
        _ => Err(()),
    }
}

fn quoted(text: &str) -> String {
    String::from_utf8(crate::handler::json::text::encoded(text)).expect("UTF-8")
}

fn masking(document: &Document, path: &[Segment]) {
    let text = document.print();
    let mask = |with: &str| {
        after(
            json!({"reformat": {"mask": {"fields": [spelled(path)], "with": with}}}),
            &text,
        )
    };
    let redacted = changed(document, path, |_| Ok("\"***\"".to_owned()));
    assert_eq!(mask("redact"), redacted, "{text} {path:?}");
    let erased = changed(document, path, |_| Ok("null".to_owned()));
    assert_eq!(mask("erase"), erased, "{text} {path:?}");
    let last4 = changed(document, path, |token| {
        let mut chars: Vec<char> = text_of(token)?.chars().collect();
        let shown = if chars.len() > 4 { 4 } else { 0 };
        let hidden = chars.len() - shown;
        chars[..hidden].fill('*');
        Ok(quoted(&chars.into_iter().collect::<String>()))
    });
    assert_eq!(mask("last4"), last4, "{text} {path:?}");
}

/// The digits before and behind the point once the exponent is worked off, `None` where they are
/// too many to write down.
fn expanded(spelled: &str) -> Option<(bool, String, String)> {
    let (mantissa, exponent) = spelled.split_once(['e', 'E']).unwrap_or((spelled, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (mut whole, mut fraction) = (
        whole.trim_start_matches('-').to_owned(),
        fraction.to_owned(),
    );
    for _ in 0..exponent
        .trim_start_matches(['+', '-'])
        .parse::<usize>()
        .ok()?
    {
        if exponent.starts_with('-') {
            fraction.insert(0, whole.pop().unwrap_or('0'));
        } else if fraction.is_empty() {
            whole.push('0');
        } else {
            whole.push(fraction.remove(0));
        }
    }
    let whole = whole.trim_start_matches('0').to_owned();
    Some((
        spelled.starts_with('-'),
        whole,
        fraction.trim_end_matches('0').to_owned(),
    ))
}

fn is_number(text: &str) -> bool {
    let value = serde_json::from_str::<&serde_json::value::RawValue>(text);
    value.is_ok_and(|v| {
        v.get() == text && text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
    })
}

fn cast_of(token: &str, to: &str) -> Result<String, ()> {
    let is_text = token.starts_with('"');
    match (to, token) {
        (_, token) if token.starts_with(['{', '[']) => Err(()),
        ("string", token) if is_text => Ok(token.to_owned()),
        ("string", token) => Ok(format!("\"{token}\"")),
        ("bool", "true" | "false") => Ok(token.to_owned()),
        ("int", "true") => Ok("1".to_owned()),
        ("int", "false") => Ok("0".to_owned()),
        ("float", "true") => Ok("1.0".to_owned()),
        ("float", "false") => Ok("0.0".to_owned()),
        ("bool", token) if is_text => match text_of(token)?.to_ascii_lowercase().as_str() {
            "true" => Ok("true".to_owned()),
            "false" => Ok("false".to_owned()),
            _ => Err(()),
        },
        (to, token) => {
            let number = text_of(token)?;
            if !is_number(&number) {
                return Err(());
            }
            let is_plain = !number.contains(['.', 'e', 'E']);
            let (negative, whole, fraction) = expanded(&number).ok_or(())?;
            match to {
                "float" if is_plain => Ok(format!("{number}.0")),
                "float" => Ok(number),
                "int" if is_plain => Ok(number),
                "int" if !fraction.is_empty() => Err(()),
                "int" if whole.is_empty() => Ok("0".to_owned()),
                "int" => Ok(format!("{}{whole}", if negative { "-" } else { "" })),
                _ if !fraction.is_empty() => Err(()),
                _ if whole.is_empty() => Ok("false".to_owned()),
                _ if whole == "1" && !negative => Ok("true".to_owned()),
                _ => Err(()),
            }
        }
    }
}

fn casting(document: &Document, path: &[Segment]) {
    let text = document.print();
    for to in ["string", "int", "float", "bool"] {
        let cast = after(json!({"reformat": {"cast": {spelled(path): to}}}), &text);
        let expected = changed(document, path, |token| cast_of(token, to));
        assert_eq!(cast, expected, "{text} {path:?} {to}");
    }
}

fn recoding(document: &Document, path: &[Segment]) {
    let text = document.print();
    let recode = |direction: &str, codec: &str| {
        after(
            json!({"reformat": {direction: {spelled(path): codec}}}),
            &text,
        )
    };
    let string = |token: &str| match token.starts_with('"') {
        true => text_of(token),
        false => Err(()),
    };
    let hex = changed(document, path, |token| {
        let text = string(token)?;
        Ok(quoted(
            &text.bytes().map(|b| format!("{b:02x}")).collect::<String>(),
        ))
    });
    assert_eq!(recode("encode", "hex"), hex, "{text} {path:?}");
    let unhex = changed(document, path, |token| {
        let text: Vec<char> = string(token)?.chars().collect();
        let pairs = text.chunks(2).map(|pair| match pair {
            [high, low] => Some((high.to_digit(16)? * 16 + low.to_digit(16)?) as u8),
            _ => None,
        });
        let bytes: Vec<u8> = pairs.collect::<Option<_>>().ok_or(())?;
        Ok(quoted(&String::from_utf8(bytes).map_err(drop)?))
    });
    assert_eq!(recode("decode", "hex"), unhex, "{text} {path:?}");
    let inside = changed(document, path, |token| Ok(quoted(token)));
    assert_eq!(recode("encode", "json"), inside, "{text} {path:?}");
    let outside = changed(document, path, |token| {
        let text = string(token)?;
        let inner: &serde_json::value::RawValue = serde_json::from_str(&text).map_err(drop)?;
        Ok(inner.get().to_owned())
    });
    assert_eq!(recode("decode", "json"), outside, "{text} {path:?}");
}

fn whole(document: &Document) {
    let text = document.print();
    let root = document.root.print();
    let hoisted = after(json!({"reformat": {"hoist": "h"}}), &text);
    assert_eq!(hoisted, Some(format!(r#"{{"h":{root}}}"#)));
    let envelope = after(json!({"reformat": {"envelope": true}}), &text);
    let source = r#"{"cluster":"eu","topic":"t","partition":3,"offset":42,"timestamp":1234}"#;
    let expected = format!(r#"{{"source":{source},"key":"k","headers":[],"value":{root}}}"#);
    assert_eq!(envelope, Some(expected));
}

fn flattening(document: &Document) {
    let mut model = document.clone();
    let expected = match &mut model.root {
        Node::Object { members, .. } => {
            let mut all: Vec<(Vec<String>, String)> = Vec::new();
            let mut printed: Vec<String> = Vec::new();
            for member in members.iter() {
                let leaves = member.value.leaves(&[member.inner().to_owned()]);
                let is_nested =
                    matches!(&member.value, Node::Object { members, .. } if !members.is_empty());
                let joined: Vec<String> = leaves
                    .iter()
                    .map(|(way, value)| format!("\"{}\":{value}", way.join(".")))
                    .collect();
                let alone = Node::Object {
                    members: vec![member.clone()],
                    blank: String::new(),
                }
                .print();
                printed.push(match is_nested {
                    true => format!("{}{}{}", member.before, joined.join(","), member.after),
                    false => alone[1..alone.len() - 1].to_owned(),
                });
                all.extend(leaves);
            }
            let reads = |way: &[String]| {
                let token = format!("\"{}\"", way.join("."));
                serde_json::from_str::<String>(&token).unwrap_or(way.join("."))
            };
            let collide = all
                .iter()
                .any(|(a, _)| all.iter().any(|(b, _)| a != b && reads(a) == reads(b)));
            let blank = if members.is_empty() {
                document.root.print()
            } else {
                format!("{{{}}}", printed.join(","))
            };
            (!collide).then(|| format!("{}{blank}{}", document.before, document.after))
        }
        _ => None,
    };
    let flat = after(json!({"reformat": {"flatten": {}}}), &document.print());
    assert_eq!(flat, expected, "{}", document.print());
}

fn splitting(document: &Document, path: &[Segment]) {
    let text = document.print();
    let bound = bind(&json!([{"reformat": {"split": {
        "array": spelled(path), "into": "value.i", "when_empty": "keep",
    }}}]));
    let mut out = Vec::new();
    let outcome = bound.apply(record(None, Some(&text)), &mut out);
    let values: Vec<&str> = out.iter().filter_map(value_of).collect();
    match document.root.get(path) {
        Some(Node::Array { elements, .. }) if elements.is_empty() => {
            assert_eq!(values, [text.as_str()])
        }
        Some(Node::Array { elements, .. }) => {
            let expected: Vec<String> = elements
                .iter()
                .map(|e| format!(r#"{{"i":{}}}"#, e.value.print()))
                .collect();
            assert_eq!(values, expected);
        }
        _ => assert!(outcome.is_err() && out.is_empty()),
    }
}

#[test]
fn the_corpus_is_read_and_written_as_the_model_does() {
    let name = |n: &str| Segment::Name(n.to_owned());
    let paths = [
        vec![name("a")],
        vec![name("a"), name("b")],
        vec![name("a"), Segment::Index(0)],
        vec![name("a.b")],
        vec![Segment::Index(1)],
    ];
    let every = [
        vec![name("a"), Segment::Each],
        vec![Segment::Each, name("a")],
    ];
    for line in CORPUS.lines() {
        let document = Document::parse(line);
        assert_eq!(document.print(), line);
        whole(&document);
        flattening(&document);
        renaming(&document, &[], "a", "b");
        for path in &paths {
            extraction(&document, path);
            setting(&document, path);
            splitting(&document, path);
        }
        for path in paths.iter().chain(&every) {
            removal(&document, path);
            masking(&document, path);
            casting(&document, path);
            recoding(&document, path);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_model_prints_what_it_read(document in documents()) {
        prop_assert_eq!(Document::parse(&document.print()), document);
    }

    #[test]
    fn a_field_is_read_as_the_model_reads_it(document in documents(), path in paths(0)) {
        extraction(&document, &path);
        splitting(&document, &path);
    }

    #[test]
    fn a_field_is_written_as_the_model_writes_it(document in documents(), path in paths(0)) {
        setting(&document, &path);
    }

    #[test]
    fn fields_are_removed_as_the_model_removes_them(document in documents(), path in paths(2)) {
        removal(&document, &path);
    }

    #[test]
    fn fields_are_renamed_as_the_model_renames_them(
        document in documents(), parents in prop::collection::vec(names().prop_map(Segment::Name), 0..2),
        old in names(), new in names(),
    ) {
        renaming(&document, &parents, &old, &new);
    }

    #[test]
    fn fields_are_masked_as_the_model_masks_them(document in documents(), path in paths(2)) {
        masking(&document, &path);
    }

    #[test]
    fn fields_are_cast_as_the_model_casts_them(document in documents(), path in paths(2)) {
        casting(&document, &path);
    }

    #[test]
    fn fields_are_recoded_as_the_model_recodes_them(document in documents(), path in paths(2)) {
        recoding(&document, &path);
    }

    #[test]
    fn whole_documents_are_wrapped_and_flattened_as_the_model_does(document in documents()) {
        whole(&document);
        flattening(&document);
    }
}
