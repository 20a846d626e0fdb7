//! `filter`: keeps or drops a record.

use super::dedupe::Dedupe;
use super::fault::Place;
use super::path::Path;
use super::predicate::Predicate;
use super::spec::FilterSpec;
use super::{Failure, Handler, Reads};
use crate::config::units;
use crate::record::Record;
use serde_json::Value;

/// A compiled filter.
#[derive(Clone, Debug)]
pub(crate) enum Filter {
    /// Keeps the records for which it holds.
    Keep(Predicate),
    /// Drops the records for which it holds.
    Drop(Predicate),
    /// Keeps a part of the records.
    Sample(Sample),
    /// Keeps the first of those with the same id.
    Dedupe(Dedupe),
}

/// Keeps a part of the records, decided by a hash: no state, the same answer everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Kept if the record's hash is below.
    below: u128,
    /// What is hashed; `None`: the coordinates.
    by: Option<Path>,
    seed: String,
}

impl Filter {
    /// Compiles `spec`, reporting mistakes at `place`.
    pub(crate) fn compile(spec: &FilterSpec, place: &Place<'_>) -> Option<Self> {
        if let Some((stray, owner)) = stray(spec) {
            return place.child(stray).key().fault_with_help(
                format!("`{stray}` belongs to `{owner}`"),
                format!("take it away, or write a step with `{owner}`"),
            );
        }
        match (&spec.keep, &spec.drop, &spec.sample, &spec.dedupe) {
            (Some(keep), None, None, None) => {
                Predicate::compile(&keep.0, &place.child("keep")).map(Self::Keep)
            }
            (None, Some(drop), None, None) => {
                Predicate::compile(&drop.0, &place.child("drop")).map(Self::Drop)
            }
            (None, None, Some(ratio), None) => {
                Sample::compile(ratio, spec, place).map(Self::Sample)
            }
            (None, None, None, Some(id)) => Dedupe::compile(id, spec, place).map(Self::Dedupe),
            _ => place.fault("a filter has exactly one of `keep`, `drop`, `sample` and `dedupe`"),
        }
    }

    /// The paths that it looks at.
    pub(super) fn paths(&self) -> &[Path] {
        match self {
            Self::Keep(predicate) | Self::Drop(predicate) => predicate.paths(),
            Self::Sample(sample) => sample.by.as_slice(),
            Self::Dedupe(dedupe) => std::slice::from_ref(dedupe.path()),
        }
    }

    /// Whether it keeps `record`.
    pub(super) fn keeps(&self, record: &Record<'_>) -> Result<bool, Failure> {
        match self {
            Self::Keep(predicate) => predicate.holds(record),
            Self::Drop(predicate) => Ok(!predicate.holds(record)?),
            Self::Sample(sample) => sample.keeps(record),
            Self::Dedupe(dedupe) => dedupe.keeps(record),
        }
    }
}

/// A key that belongs to an action that the filter does not have, and that action.
fn stray(spec: &FilterSpec) -> Option<(&'static str, &'static str)> {
    let keys = [
        (
            "window",
            "dedupe",
            spec.window.is_some(),
            spec.dedupe.is_some(),
        ),
        ("max", "dedupe", spec.max.is_some(), spec.dedupe.is_some()),
        ("by", "sample", spec.by.is_some(), spec.sample.is_some()),
        ("seed", "sample", spec.seed.is_some(), spec.sample.is_some()),
    ];
    let mut stray = keys
        .into_iter()
        .filter(|(_, _, is_there, has_owner)| *is_there && !has_owner);
    stray.next().map(|(key, owner, ..)| (key, owner))
}

impl Handler for Filter {
    fn reads(&self) -> Reads {
        match self {
            Self::Keep(predicate) | Self::Drop(predicate) => predicate.reads(),
            Self::Sample(sample) => sample.by.as_ref().map_or(Reads::Nothing, Path::reads),
            Self::Dedupe(dedupe) => dedupe.reads(),
        }
    }

    fn handle<'a>(&'a self, record: Record<'a>, out: &mut Vec<Record<'a>>) -> Result<(), Failure> {
        if self.keeps(&record)? {
            out.push(record);
        }
        Ok(())
    }
}

impl Sample {
    fn compile(ratio: &Value, spec: &FilterSpec, place: &Place<'_>) -> Option<Self> {
        let by = match spec.by.as_deref() {
            None | Some("record") => None,
            Some(text) => match Path::parse_one(text) {
                Ok(path) => Some(path),
                Err(fault) => return place.child("by").fault_path(text, fault),
            },
        };
        let Some(ratio) = parse_ratio(ratio) else {
            let place = place.child("sample");
            return place.fault("a part is a percentage such as `1%`");
        };
        Some(Self {
            below: threshold(ratio),
            by,
            seed: spec.seed.clone().unwrap_or_default(),
        })
    }

    fn keeps(&self, record: &Record<'_>) -> Result<bool, Failure> {
        let field = match &self.by {
            Some(path) => Some(path.read(record)?),
            None => None,
        };
        let mut hash = Fnv::new();
        hash.write(self.seed.as_bytes());
        match field.as_ref().and_then(|f| f.bytes()) {
            Some(bytes) => hash.write(&bytes),
            None => {
                hash.write(record.origin.topic.as_bytes());
                hash.write(&record.origin.partition.to_be_bytes());
                hash.write(&record.origin.offset.to_be_bytes());
            }
        }
        Ok(u128::from(hash.finish()) < self.below)
    }
}

fn parse_ratio(value: &Value) -> Option<f64> {
    units::ratio(value.as_str()?).ok()
}

/// How many of the 2^64 hashes are kept.
fn threshold(ratio: f64) -> u128 {
    // A float to integer cast saturates, and 2^64 fits.
    (ratio * 2f64.powi(64)) as u128
}

/// FNV-1a over 64 bits with a final mix: stable over versions and machines, which a hasher of the
/// standard library does not promise.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Hashes `bytes` with their length, so that neighbours do not run together.
    fn write(&mut self, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_be_bytes();
        for byte in bytes.iter().chain(&length) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// FNV leaves the high bits of short inputs alike; sampling needs them.
    fn finish(self) -> u64 {
        let mut hash = self.0;
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ (hash >> 33)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::sample::record;
    use serde_json::json;
    use std::cell::RefCell;

    fn compile(value: Value) -> Result<Filter, Vec<String>> {
        let spec: FilterSpec = serde_json::from_value(value).expect("a filter");
        let faults = RefCell::new(Vec::new());
        let compiled = Filter::compile(&spec, &Place::root(&faults));
        let faults = faults.borrow();
        compiled.ok_or_else(|| {
            faults
                .iter()
                .map(|f| format!("{}: {}", f.pointer, f.message))
                .collect()
        })
    }

    #[test]
    fn keep_and_drop_are_opposites() {
        let keep = compile(json!({"keep": {"value.a": 1}})).expect("keep");
        let drop = compile(json!({"drop": {"value.a": 1}})).expect("drop");
        for (value, expected) in [(r#"{"a":1}"#, true), (r#"{"a":2}"#, false), ("{}", false)] {
            let record = record(None, Some(value));
            assert_eq!(keep.keeps(&record), Ok(expected));
            assert_eq!(drop.keeps(&record), Ok(!expected));
        }
    }

    fn kept(filter: &Filter) -> Vec<i64> {
        let all = (0..10_000).filter(|offset| {
            let key = offset.to_string();
            let mut record = record(Some(&key), None);
            record.origin.offset = *offset;
            filter.keeps(&record) == Ok(true)
        });
        all.collect()
    }

    #[test]
    fn a_sample_is_about_its_part_and_the_same_again() {
        for by in ["key", "record"] {
            let filter = compile(json!({"sample": "10%", "by": by, "seed": "s"})).expect("sample");
            let first = kept(&filter);
            assert!((900..1100).contains(&first.len()), "{by}: {}", first.len());
            assert_eq!(first, kept(&filter));
            let other = compile(json!({"sample": "10%", "by": by, "seed": "t"})).expect("sample");
            assert_ne!(first, kept(&other));
        }
        assert_eq!(
            kept(&compile(json!({"sample": "100%"})).expect("all")).len(),
            10_000
        );
        assert_eq!(
            kept(&compile(json!({"sample": "0%"})).expect("none")).len(),
            0
        );
    }

    #[test]
    fn a_sample_by_key_does_not_take_all_null_keys_or_none() {
        let filter = compile(json!({"sample": "50%", "by": "key"})).expect("sample");
        let kept = (0..1000).filter(|offset| {
            let mut record = record(None, None);
            record.origin.offset = *offset;
            filter.keeps(&record) == Ok(true)
        });
        assert!((400..600).contains(&kept.count()));
    }

    #[test]
    fn mistakes_are_told() {
        for (value, pointer) in [
            (json!({}), ": "),
            (json!({"keep": "empty", "drop": "empty"}), ": "),
            (json!({"keep": "empty", "by": "key"}), "/by: "),
            (json!({"sample": "5"}), "/sample: "),
            (json!({"sample": "150%"}), "/sample: "),
            (json!({"sample": "50%", "by": "kye"}), "/by: "),
            (json!({"dedupe": "valu.id"}), "/dedupe: "),
            (json!({"dedupe": "value.ids[*]"}), "/dedupe: "),
            (json!({"dedupe": "key", "window": "10"}), "/window: "),
            (json!({"dedupe": "key", "max": 0}), "/max: "),
            (json!({"dedupe": "key", "by": "key"}), "/by: "),
            (json!({"keep": "empty", "window": "1m"}), "/window: "),
            (json!({"keep": "value.a >"}), "/keep: the expression ends"),
        ] {
            let faults = compile(value.clone()).expect_err("a mistake");
            assert!(faults[0].starts_with(pointer), "{value}: {faults:?}");
        }
    }
}
