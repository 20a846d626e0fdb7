//! Expressions, from text to what they give.

use super::*;
use crate::handler::ChainFault;
use crate::handler::predicate::Predicate;
use crate::handler::sample::{record, with_headers};
use serde_json::Value;
use std::cell::RefCell;

type Headers = Vec<(Vec<u8>, Option<Vec<u8>>)>;

const VALUE: &str = r#"{"status":"paid","amount":150.5,"n":3,"big":18446744073709551615,"huge":123456789012345678901234567890,"flag":true,"off":false,"nil":null,"tags":["a","b"],"items":[{"qty":2,"sku":"x1"},{"qty":5,"sku":"y2"}],"customer":{"tier":"gold","odd name":1,"in":2},"text":"Überweg"}"#;

fn headers() -> Headers {
    vec![
        (b"x-dc".to_vec(), Some(b"lisbon".to_vec())),
        (b"trace.id".to_vec(), Some(b"7".to_vec())),
        (b"nil".to_vec(), None),
        (b"debug".to_vec(), Some(b"true".to_vec())),
    ]
}

fn sample(headers: &Headers) -> Record<'_> {
    with_headers(record(Some("k-1"), Some(VALUE)), headers)
}

fn holds_for(expression: &str, record: &Record<'_>) -> Result<bool, FailureCode> {
    let faults = RefCell::new(Vec::new());
    let compiled = Predicate::compile(&Value::from(expression), &Place::root(&faults));
    let compiled = compiled.unwrap_or_else(|| panic!("{expression}: {:?}", faults.borrow()));
    compiled.holds(record).map_err(|f| f.code)
}

fn holds(expression: &str) -> Result<bool, FailureCode> {
    holds_for(expression, &sample(&headers()))
}

fn value(expression: &str) -> Result<String, FailureCode> {
    let faults = RefCell::new(Vec::new());
    let compiled = Expression::compile(expression, &Place::root(&faults));
    let compiled = compiled.unwrap_or_else(|| panic!("{expression}: {:?}", faults.borrow()));
    let headers = headers();
    let record = sample(&headers);
    let value = compiled.value(&record).map_err(|f| f.code)?;
    let json = value.json().map_err(|f| f.code)?.expect("a value");
    Ok(String::from_utf8(json).expect("UTF-8"))
}

fn fault(expression: &str) -> ChainFault {
    let faults = RefCell::new(Vec::new());
    let compiled = Predicate::compile(&Value::from(expression), &Place::root(&faults));
    assert!(compiled.is_none(), "{expression} compiles");
    let mut faults = faults.into_inner();
    assert_eq!(faults.len(), 1, "{expression}: {faults:?}");
    faults.remove(0)
}

#[test]
fn what_holds() {
    for expression in [
        "true",
        "topic == 't' && partition == 3 && offset == 42 && timestamp > 1000",
        "key == 'k-1' && key.startsWith('k')",
        "value.status == \"paid\" && value.amount > 100",
        "value.status in ['paid', 'sent']",
        "'a' in value.tags && !('z' in value.tags)",
        "'tier' in value.customer",
        "'x-dc' in header && !('none' in header)",
        "header[\"x-dc\"] == 'lisbon' && header.`x-dc` == 'lisbon'",
        "header.trace.id == '7' && header['trace.id'] > 6",
        "header.debug == true && header.nil == null",
        "value.items[0].qty == 2 && value.items[1].sku.endsWith('2')",
        "value.customer['odd name'] == 1 && value.customer['in'] == 2",
        "value.items[value.n - 2].qty == 5",
        "value.customer[value.tags[0] == 'a' ? 'tier' : 'x'] == 'gold'",
        "100 < value.amount && 150.50 == value.amount && 15050e-2 == value.amount",
        "value.big == 18446744073709551615u && value.big > 9223372036854775807",
        "value.huge == 123456789012345678901234567890.0 && value.huge < 1.3e29",
        "value.huge > value.big && value.big > value.n",
        "value.flag && !value.off && !value.missing",
        "value.nil == null && has(value.nil) && !has(value.missing)",
        "has(value) && has(key) && has(header['x-dc']) && has(topic)",
        "size(value.tags) == 2 && value.status.size() == 4 && size(value.customer) == 3",
        "size(value.text) == 7 && size(header.debug) == 4",
        "value.text.matches('Ü.+g') && !value.text.matches('Über')",
        "value.tags.contains('b') && value.status.contains('ai')",
        "value.n * 2 + 1 == 7 && value.n % 2 == 1 && 7 / value.n == 2",
        "value.amount * 2 == 301.0 && value.amount - 0.5 == 150",
        "0.1 + 0.2 == 0.3",
        "-value.n == -3 && value.n > -4",
        "value.status + '!' == 'paid!' && topic + key == 'tk-1'",
        "(value.n > 2 ? 'many' : 'few') == 'many'",
        "value.items.exists(i, i.qty > 4) && value.items.all(i, i.qty > 1)",
        "value.items.exists_one(i, i.qty == 2) && !value.items.exists_one(i, i.qty > 0)",
        "value.items.map(i, i.qty) == [2, 5] && value.items.filter(i, i.qty > 2).size() == 1",
        "value.items.map(i, i.qty > 2, i.sku) == ['y2']",
        "value.items.exists(i, value.tags.exists(t, t == 'a' && i.qty == 5))",
        "[1, 2.0, 3].exists(n, n == value.n) && value.n in [1, value.n]",
        "int(header.trace.id) + 1 == 8 && double('1.5') == 1.5 && string(value.n) == '3'",
        "int(value.amount) == 150 && int(-1.9) == -1",
        "(value.n > 1) == (value.n < 9)",
        "value.items[0] == value.items[0] && value.items[0] != value.items[1]",
        "value.status != 'open' && value.status != 5",
        "value.exists(k, true) || has(value.status)",
    ] {
        assert_eq!(holds(expression), Ok(true), "{expression}");
        let negated = format!("!({expression})");
        assert_eq!(holds(&negated), Ok(false), "{negated}");
    }
}

#[test]
fn what_is_absent_never_fails() {
    for expression in [
        "value.x == 1",
        "value.x == null",
        "value.x == value.y",
        "value.x < 1 || value.x >= 1",
        "value.x.y.z == 1",
        "value.status.x == 1",
        "value.items[9].qty == 2",
        "value.items[value.x].qty == 2",
        "header.none == 'a'",
        "value.x in [1, 2]",
        "1 in value.x",
        "value.x.startsWith('a') || value.x.contains('') || value.x.matches('.*')",
        "value.x + 1 > 0 || 1 - value.x < 5",
        "size(value.x) == 0",
        "value.x",
        "value.x ? true : false",
        "value.x.exists(i, true) || value.x.all(i, true)",
        "value.x.map(i, i) == []",
        "key.a == 1 && false",
    ] {
        assert_eq!(holds(expression), Ok(false), "{expression}");
    }
    for expression in [
        "value.x != 1",
        "value.x != null",
        "!value.x",
        "!has(value.x)",
    ] {
        assert_eq!(holds(expression), Ok(true), "{expression}");
    }
    let tombstone = record(None, None);
    assert_eq!(holds_for("value.a == 1", &tombstone), Ok(false));
    assert_eq!(
        holds_for("value == null && !has(value) && key == null", &tombstone),
        Ok(true)
    );
}

#[test]
fn other_types_compare_as_different() {
    for expression in [
        "value.status == 1",
        "value.status > 1",
        "value.n == '3'",
        "value.flag == 'true'",
        "value.flag > 0",
        "value.tags == 'a'",
        "value.n.startsWith('3')",
        "value.status in value.n",
    ] {
        assert_eq!(holds(expression), Ok(false), "{expression}");
    }
}

#[test]
fn a_failure_counts_unless_the_other_side_decides() {
    for failing in [
        "value.n + value.status == 'x'",
        "value.n / 0 == 1",
        "value.status",
        "!value.n",
        "value.n ? true : false",
        "value.n.exists(i, true)",
        "value.big * value.big * value.big > 1",
        "size(value.n) == 1",
        "value.items[value.flag] == 1",
        "value.items.exists_one(i, i.sku + 1 == 2)",
    ] {
        assert_eq!(holds(failing), Err(FailureCode::Expression), "{failing}");
        for decided in [
            format!("({failing}) || true"),
            format!("true || ({failing})"),
        ] {
            assert_eq!(holds(&decided), Ok(true), "{decided}");
        }
        for decided in [
            format!("({failing}) && false"),
            format!("false && ({failing})"),
        ] {
            assert_eq!(holds(&decided), Ok(false), "{decided}");
        }
        let open = format!("({failing}) && true");
        assert_eq!(holds(&open), Err(FailureCode::Expression), "{open}");
    }
    assert_eq!(
        holds("value.items.exists(i, i.qty / (i.qty - 2) == 1)"),
        Ok(true)
    );
    let broken = record(Some("k"), Some("{"));
    assert_eq!(
        holds_for("value.a == 1", &broken),
        Err(FailureCode::NotJson)
    );
    assert_eq!(holds_for("value.a == 1 || key == 'k'", &broken), Ok(true));
}

#[test]
fn what_expressions_give() {
    for (expression, json) in [
        ("value.amount * value.n", "451.5"),
        ("value.n + 1", "4"),
        ("value.big + 1", "18446744073709551616"),
        ("value.huge", "123456789012345678901234567890"),
        ("value.status + '-' + string(value.n)", "\"paid-3\""),
        ("value.n > 2", "true"),
        ("value.nil", "null"),
        ("value.items[0]", r#"{"qty":2,"sku":"x1"}"#),
        ("[value.n, value.status, key]", r#"[3,"paid","k-1"]"#),
        ("[]", "[]"),
        ("value.items.map(i, i.sku)", r#"["x1","y2"]"#),
        ("has(value.x) ? value.x : 'none'", "\"none\""),
        ("header['x-dc']", "\"lisbon\""),
        ("timestamp / 1000", "1"),
        ("3.0", "3.0"),
        ("-.5", "-0.5"),
        ("0x10", "16"),
        ("2 * 3", "6"),
    ] {
        assert_eq!(value(expression).as_deref(), Ok(json), "{expression}");
    }
    for expression in [
        "value.x",
        "value.x + 1",
        "value.x.y",
        "[value.x]",
        "header.none",
    ] {
        assert_eq!(value(expression), Err(FailureCode::Absent), "{expression}");
    }
}

/// The expression with the place of its mistake under it.
fn shown(expression: &str) -> String {
    let fault = fault(expression);
    let bytes = fault.inside.expect("a place").bytes;
    let before = &expression[..bytes.start];
    let column = before.chars().count();
    let width = expression[bytes].chars().count().max(1);
    let help = fault.help.map(|h| format!(" ({h})")).unwrap_or_default();
    format!(
        "{expression}\n{}{} {}{help}",
        " ".repeat(column),
        "^".repeat(width),
        fault.message
    )
}

#[test]
fn mistakes_are_told_at_their_place() {
    let all: Vec<String> = [
        "valeu.status == 'paid'",
        "value.status == paid",
        "value.items.exists(i, j.qty > 1)",
        "headers['x'] == 'a'",
        "header == 'a'",
        "header[0] == 'a'",
        "header[key] == 'a'",
        "value.a > 1 && value.b > 0.5.x",
        "topic.x == 'a'",
        "tombston",
        "value.a = 1",
        "value.a ==",
        "value.a == 'b",
        "value.a && (value.b",
        "value.a == 123456789012345678901234567890",
        "'é' == value.ä",
        "value.in == 1",
        "value.a + + 2 > 1",
        "value.a == {'b': 1}",
        "value.a.startWith('x')",
        "startsWith(value.a, 'x')",
        "value.a.has()",
        "has(value.a, value.b)",
        "hass(value.a)",
        "value.a.size(1) > 1",
        "value.a.all(x)",
        "value.a.all(1, true)",
        "value.a.matches('(')",
        "value.a.matches(value.b)",
        "size(partition) > 1",
        "partition + 'a' == 'b'",
        "header.n + 1 == 2",
        "topic - 1 == 2",
        "value.a + true == 1",
        "!partition",
        "header.debug",
        "partition",
        "'text'",
        "partition == '3'",
        "value.a > null",
        "value.a > true",
        "1 > 'a'",
        "1 / 0 == 1",
        "value.items[-1] == 1",
        "value.items[true] == 1",
        "partition.exists(x, true)",
        "value.a == b'x'",
        "value.a ? 1 : 2",
        "",
    ]
    .into_iter()
    .map(shown)
    .collect();
    insta::assert_snapshot!(all.join("\n\n"));
}
