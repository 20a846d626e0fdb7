//! Predicates: words, maps and expressions of `keep`, `drop` and `when`.
//!
//! A [`Predicate`] is a tree of [`Clause`]s over the [`Fields`] that they ask for. Expressions
//! ([`super::cel`]) are compiled to the same tree, so that a comparison costs the same however it
//! is written.

use super::cel::{self, Comparison};
use super::fault::Place;
use super::fields::{Fields, Slot, View};
use super::operator::Operator;
use super::path::Path;
use super::{Failure, Reads};
use crate::record::Record;
use serde_json::{Map, Value};

/// The words that are predicates by themselves.
pub(crate) const WORDS: [&str; 3] = ["tombstone", "null_key", "empty"];

/// A compiled predicate.
#[derive(Clone, Debug)]
pub(crate) struct Predicate {
    clause: Clause,
    fields: Fields,
}

/// A part of a predicate.
#[derive(Clone, Debug)]
pub(crate) enum Clause {
    /// It holds, or it does not, whatever the record.
    Always(bool),
    /// The value is null.
    Tombstone,
    /// The key is null.
    NullKey,
    /// The value has zero bytes.
    Empty,
    /// All hold.
    All(Vec<Clause>),
    /// One holds.
    Any(Vec<Clause>),
    /// It does not hold.
    Not(Box<Clause>),
    /// The field passes the operator.
    Test(Slot, Operator),
    /// What only an expression can say.
    Compare(Box<Comparison>),
}

impl Predicate {
    /// Compiles `value`, reporting mistakes at `place`.
    pub(crate) fn compile(value: &Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::default();
        let clause = Clause::compile(value, &mut fields, place)?;
        Some(Self { clause, fields })
    }

    /// What it reads of a record.
    pub(crate) fn reads(&self) -> Reads {
        self.clause.reads_itself().max(self.fields.reads())
    }

    /// The paths that it looks at.
    pub(crate) fn paths(&self) -> &[Path] {
        self.fields.paths()
    }

    /// Whether it holds for `record`.
    ///
    /// # Errors
    /// A path into a key or value that is not JSON, or a failed expression, unless what else is
    /// asked decides alone.
    pub(crate) fn holds(&self, record: &Record<'_>) -> Result<bool, Failure> {
        self.clause
            .holds(&cel::Scope::of(&self.fields.view(record)))
    }
}

impl Clause {
    fn compile(value: &Value, fields: &mut Fields, place: &Place<'_>) -> Option<Self> {
        match value {
            Value::Bool(always) => Some(Self::Always(*always)),
            Value::String(text) => match text.as_str() {
                "tombstone" => Some(Self::Tombstone),
                "null_key" => Some(Self::NullKey),
                "empty" => Some(Self::Empty),
                expression => cel::condition(expression, fields, place),
            },
            Value::Object(entries) => Self::map(entries, fields, place),
            _ => place.fault("a predicate is a word, an expression or a map"),
        }
    }

    fn map(entries: &Map<String, Value>, fields: &mut Fields, place: &Place<'_>) -> Option<Self> {
        if entries.is_empty() {
            return place.fault("an empty map says nothing");
        }
        let mut all = Vec::with_capacity(entries.len());
        for (name, value) in entries {
            let compiled = Self::entry(name, value, fields, &place.child(name));
            all.extend(compiled);
        }
        let complete = all.len() == entries.len();
        match all.pop() {
            Some(only) if complete && all.is_empty() => Some(only),
            Some(last) if complete => {
                all.push(last);
                Some(Self::All(all))
            }
            _ => None,
        }
    }

    fn entry(name: &str, value: &Value, fields: &mut Fields, place: &Place<'_>) -> Option<Self> {
        match name {
            "all" => Some(Self::All(Self::list(value, fields, place)?)),
            "any" => Some(Self::Any(Self::list(value, fields, place)?)),
            "not" => Some(Self::Not(Box::new(Self::compile(value, fields, place)?))),
            _ => match Path::parse_one(name) {
                Ok(path) => Self::tests(&path, value, fields, place),
                Err(fault) => place.key().fault_path(name, fault),
            },
        }
    }

    fn list(value: &Value, fields: &mut Fields, place: &Place<'_>) -> Option<Vec<Self>> {
        let Value::Array(list) = value else {
            return place.fault("a list of predicates is expected");
        };
        if list.is_empty() {
            return place.fault("an empty list says nothing");
        }
        let compiled = list
            .iter()
            .enumerate()
            .map(|(index, value)| Self::compile(value, fields, &place.child(index)));
        // Not lazily: every mistake of the list is reported.
        let compiled: Vec<Option<Self>> = compiled.collect();
        compiled.into_iter().collect()
    }

    fn tests(path: &Path, value: &Value, fields: &mut Fields, place: &Place<'_>) -> Option<Self> {
        let operators = Operator::compile(value, place)?;
        let slot = fields.slot(path);
        let mut tests: Vec<Self> = operators
            .into_iter()
            .map(|operator| Self::Test(slot, operator))
            .collect();
        match tests.len() {
            1 => tests.pop(),
            _ => Some(Self::All(tests)),
        }
    }

    /// What it reads beside fields.
    fn reads_itself(&self) -> Reads {
        match self {
            Self::Tombstone | Self::NullKey | Self::Empty => Reads::Fields,
            Self::All(list) | Self::Any(list) => {
                let reads = list.iter().map(Self::reads_itself);
                reads.max().unwrap_or(Reads::Nothing)
            }
            Self::Not(inner) => inner.reads_itself(),
            Self::Always(_) | Self::Test(..) | Self::Compare(_) => Reads::Nothing,
        }
    }

    /// Whether it holds. Evaluated from left to right, and no further than needed; where a part
    /// fails, the others are asked whether they decide without it.
    ///
    /// # Errors
    /// The first failure, if nothing decides without it.
    pub(crate) fn holds<'v>(&'v self, scope: &cel::Scope<'_, 'v>) -> Result<bool, Failure> {
        let view: &View<'v> = scope.view();
        match self {
            Self::Always(always) => Ok(*always),
            Self::Tombstone => Ok(view.record().value.is_none()),
            Self::NullKey => Ok(view.record().key.is_none()),
            Self::Empty => Ok(view.record().value.as_ref().is_some_and(|v| v.is_empty())),
            Self::All(list) => Ok(!decide(list, false, scope)?),
            Self::Any(list) => decide(list, true, scope),
            Self::Not(inner) => Ok(!inner.holds(scope)?),
            Self::Test(slot, operator) => operator.holds(view.path(*slot), &view.read(*slot)?),
            Self::Compare(comparison) => comparison.holds(scope),
        }
    }
}

/// Whether one of `list` is `decisive`. A failure counts only if none is.
fn decide<'v>(
    list: &'v [Clause],
    decisive: bool,
    scope: &cel::Scope<'_, 'v>,
) -> Result<bool, Failure> {
    let mut failed = None;
    for clause in list {
        match clause.holds(scope) {
            Ok(holds) if holds == decisive => return Ok(true),
            Ok(_) => {}
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    failed.map_or(Ok(false), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::sample::{record, with_headers};
    use crate::handler::{ChainFault, FailureCode};
    use serde_json::json;
    use std::cell::RefCell;

    fn compile(value: &Value) -> Result<Predicate, Vec<ChainFault>> {
        let faults = RefCell::new(Vec::new());
        let compiled = Predicate::compile(value, &Place::root(&faults));
        compiled.ok_or_else(|| faults.into_inner())
    }

    fn holds(predicate: &Value, record: &Record<'_>) -> Result<bool, FailureCode> {
        let compiled = compile(predicate).expect("a predicate");
        compiled.holds(record).map_err(|f| f.code)
    }

    #[test]
    fn words_see_null_and_empty() {
        let rows = [
            (record(None, None), [true, true, false]),
            (record(Some(""), Some("")), [false, false, true]),
            (record(Some("k"), Some("v")), [false, false, false]),
        ];
        for (record, expected) in rows {
            for (word, expected) in WORDS.iter().zip(expected) {
                assert_eq!(holds(&json!(word), &record), Ok(expected), "{word}");
            }
        }
    }

    #[test]
    fn every_root_can_be_tested() {
        let headers = vec![
            (b"region".to_vec(), Some(b"es".to_vec())),
            (b"region".to_vec(), Some(b"pt".to_vec())),
            (b"nil".to_vec(), None),
            (b"n".to_vec(), Some(b"10".to_vec())),
        ];
        let record = with_headers(
            record(Some(r#"{"a":"b"}"#), Some(r#"{"x":{"y":[1,2]}}"#)),
            &headers,
        );
        let yes = [
            json!({"topic": "t"}),
            json!({"partition": 3}),
            json!({"offset": {"gte": 42, "lt": 43}}),
            json!({"timestamp": {"gt": 1000}}),
            json!({"header.region": "pt"}),
            json!({"header.region": ["pt", "fr"]}),
            json!({"header.nil": null}),
            json!({"header.nil": {"exists": true}}),
            json!({"header.n": {"gt": 9}}),
            json!({"key.a": "b"}),
            json!({"key": {"contains": "b"}}),
            json!({"value.x.y": {"contains": 2}}),
            json!({"value.x.y[0]": 1, "value.x.y[1]": 2}),
            json!({"all": [{"partition": 3}, {"offset": 42}]}),
            json!({"any": [{"partition": 9}, {"offset": 42}]}),
            json!({"not": {"partition": 9}}),
            json!({"not": "tombstone"}),
        ];
        for predicate in yes {
            assert_eq!(holds(&predicate, &record), Ok(true), "{predicate}");
            assert_eq!(
                holds(&json!({"not": predicate}), &record),
                Ok(false),
                "not {predicate}"
            );
        }
    }

    #[test]
    fn comparisons_with_something_absent_are_false_and_their_negation_true() {
        let record = record(None, Some("{}"));
        let no = [
            json!({"value.a": 1}),
            json!({"value.a": null}),
            json!({"value.a": {"gt": 1}}),
            json!({"value.a": {"lte": 1}}),
            json!({"value.a": {"matches": ".*"}}),
            json!({"value.a": {"contains": ""}}),
            json!({"value.a": {"in": [1]}}),
            json!({"value.a": {"exists": true}}),
            json!({"header.x": ""}),
            json!({"key.a": "x"}),
        ];
        for predicate in no {
            assert_eq!(holds(&predicate, &record), Ok(false), "{predicate}");
        }
        assert_eq!(holds(&json!({"value.a": {"not": 1}}), &record), Ok(true));
        assert_eq!(
            holds(&json!({"value.a": {"exists": false}}), &record),
            Ok(true)
        );
    }

    #[test]
    fn a_tombstone_has_no_fields_and_bad_json_fails() {
        assert_eq!(
            holds(&json!({"value.a": 1}), &record(None, None)),
            Ok(false)
        );
        let broken = record(None, Some("{"));
        assert_eq!(
            holds(&json!({"value.a": 1}), &broken),
            Err(FailureCode::NotJson)
        );
        for decided in [
            json!({"any": [{"partition": 3}, {"value.a": 1}]}),
            json!({"any": [{"value.a": 1}, {"partition": 3}]}),
            json!({"not": {"value.a": 1, "partition": 4}}),
            json!("value.a == 1 || partition == 3"),
        ] {
            assert_eq!(holds(&decided, &broken), Ok(true), "{decided}");
        }
        let open = json!({"value.a": 1, "partition": 3});
        assert_eq!(holds(&open, &broken), Err(FailureCode::NotJson));
    }

    #[test]
    fn every_mistake_has_its_place() {
        let wrong = json!({
            "value.amount": {"gt": []},
            "valu.x": 1,
            "any": [{"key": {"matches": "("}}, 7],
            "all": [],
            "not": "tombston",
            "header.x": {"equals": 1},
        });
        let faults = compile(&wrong).expect_err("all wrong");
        let pointers: Vec<&str> = faults.iter().map(|f| f.pointer.as_str()).collect();
        let expected = [
            "/value.amount/gt",
            "/valu.x",
            "/any/0/key/matches",
            "/any/1",
            "/all",
            "/not",
            "/header.x/equals",
        ];
        assert_eq!(pointers, expected);
        assert_eq!(faults[5].help.as_deref(), Some("did you mean `tombstone`?"));
    }
}
