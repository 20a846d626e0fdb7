//! The partition policy: which target partition a record goes to. Pure.

use crate::handler::{Field, Path, PathFault};
use crate::record::Record;
use std::borrow::Cow;

/// A policy as written and validated.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicySpec {
    /// Source partition p → target partition p; the target is created and grown to match (KIP-3).
    Match {
        /// What if the target has fewer and may not grow.
        on_fewer: OnFewer,
    },
    /// murmur2 of the key, equal to Java producers; null keys in sticky batches.
    KeyHash,
    /// Source partition modulo the target's count.
    Modulo,
    /// One after the other.
    RoundRobin,
    /// Always this one.
    Fixed(i32),
    /// Hash of a path's or header's value.
    By(String),
}

/// What `match` does when the target has fewer partitions and may not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFewer {
    /// The surplus partitions halt with a reason.
    Stop,
    /// Source partition modulo the target's count.
    Modulo,
}

/// What a policy says of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This target partition.
    Partition(i32),
    /// None that exists: the partition needs more target partitions than there are.
    TooFew {
        /// The count that is needed.
        needs: i32,
    },
}

/// Records without a key that go to one partition before the next one's turn: batches fill up, and
/// partitions stay even over time.
const STICKY_RECORDS: u32 = 64;

/// A policy at work. It has a little state (whose turn it is), so each worker has its own.
#[derive(Clone, Debug)]
pub struct Policy {
    rule: Rule,
    turn: Turn,
}

#[derive(Clone, Debug)]
enum Rule {
    Match(OnFewer),
    KeyHash,
    Modulo,
    RoundRobin,
    Fixed(i32),
    By(Path),
}

impl Policy {
    /// Makes the policy that `spec` describes.
    ///
    /// # Errors
    /// What is wrong with the path of `by` or the number of `fixed`, in words.
    pub fn new(spec: &PolicySpec) -> Result<Self, String> {
        let rule = match spec {
            PolicySpec::Match { on_fewer } => Rule::Match(*on_fewer),
            PolicySpec::KeyHash => Rule::KeyHash,
            PolicySpec::Modulo => Rule::Modulo,
            PolicySpec::RoundRobin => Rule::RoundRobin,
            PolicySpec::Fixed(partition) if *partition < 0 => {
                return Err(format!("a partition is 0 or more, not {partition}"));
            }
            PolicySpec::Fixed(partition) => Rule::Fixed(*partition),
            PolicySpec::By(path) => {
                Rule::By(Path::parse_one(path).map_err(PathFault::in_one_line)?)
            }
        };
        Ok(Self {
            rule,
            turn: Turn::default(),
        })
    }

    /// Whether the choice is the same for all records of a source partition, so that whole batches
    /// can go without a look at their records.
    pub fn is_pass(&self) -> bool {
        match self.rule {
            Rule::Match(_) | Rule::Modulo | Rule::Fixed(_) => true,
            Rule::KeyHash | Rule::RoundRobin | Rule::By(_) => false,
        }
    }

    /// The choice for all records of a source partition, if no record has to be looked at for it.
    pub fn for_all(&self, source_partition: i32, count: i32) -> Option<Choice> {
        if count <= 0 {
            return Some(Choice::TooFew { needs: 1 });
        }
        match &self.rule {
            Rule::Match(OnFewer::Stop) => Some(existing(source_partition, count)),
            Rule::Match(OnFewer::Modulo) | Rule::Modulo => {
                Some(Choice::Partition(source_partition.rem_euclid(count)))
            }
            Rule::Fixed(partition) => Some(existing(*partition, count)),
            Rule::RoundRobin | Rule::KeyHash | Rule::By(_) => None,
        }
    }

    /// The partition, of `count` that the target topic has, for a `record` of `source_partition`.
    ///
    /// `by` takes a record without a value at its path, or with bytes there that are not JSON, as
    /// one without a key.
    pub fn choose(&mut self, record: &Record<'_>, source_partition: i32, count: i32) -> Choice {
        let sticky = match self.rule {
            Rule::RoundRobin => 1,
            _ => STICKY_RECORDS,
        };
        self.decided(record, source_partition, count)
            .unwrap_or_else(|| Choice::Partition(self.turn.next(count, sticky)))
    }

    /// The same as far as the record alone decides it; `None` where it depends on whose turn it is.
    pub fn decided(
        &self,
        record: &Record<'_>,
        source_partition: i32,
        count: i32,
    ) -> Option<Choice> {
        let hashed = |text: &[u8]| Choice::Partition(by_hash(text, count));
        match (self.for_all(source_partition, count), &self.rule) {
            (Some(choice), _) => Some(choice),
            (None, Rule::KeyHash) => record.key.as_deref().map(hashed),
            (None, Rule::By(path)) => text_at(path, record).as_deref().map(hashed),
            (None, _) => None,
        }
    }
}

fn existing(partition: i32, count: i32) -> Choice {
    if partition < count {
        return Choice::Partition(partition);
    }
    Choice::TooFew {
        needs: partition.saturating_add(1),
    }
}

fn text_at<'r>(path: &Path, record: &'r Record<'_>) -> Option<Cow<'r, [u8]>> {
    match path.read(record).ok()? {
        // The bytes outlive the field that lent them.
        Field::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
        field => field.bytes().map(|bytes| Cow::Owned(bytes.into_owned())),
    }
}

/// Whose turn it is.
#[derive(Clone, Debug, Default)]
struct Turn {
    partition: i32,
    records: u32,
}

impl Turn {
    /// The partition for the next record, each getting `sticky` in a row.
    fn next(&mut self, count: i32, sticky: u32) -> i32 {
        if self.records >= sticky {
            self.records = 0;
            self.partition = self.partition.wrapping_add(1);
        }
        self.records += 1;
        // The count may have changed since the last record.
        self.partition = self.partition.rem_euclid(count);
        self.partition
    }
}

/// As Java's producer: the hash made positive, modulo the count.
fn by_hash(key: &[u8], count: i32) -> i32 {
    (murmur2(key) & 0x7fff_ffff) % count
}

/// murmur2 with the seed and the quirks of Kafka's Java client.
fn murmur2(data: &[u8]) -> i32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    // Java's length is an int; no key is longer.
    let mut hash = SEED ^ (data.len() as u32);
    let (words, tail) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k = (k ^ (k >> 24)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    for (index, byte) in tail.iter().enumerate().rev() {
        hash ^= u32::from(*byte) << (8 * index);
    }
    if !tail.is_empty() {
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    (hash ^ (hash >> 15)).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Headers, Origin};

    fn record<'a>(key: Option<&'a [u8]>, value: Option<&'a [u8]>) -> Record<'a> {
        Record {
            origin: Origin {
                source: "eu",
                topic: "t",
                partition: 0,
                offset: 0,
                timestamp: None,
            },
            topic: "t".into(),
            key: key.map(Cow::Borrowed),
            value: value.map(Cow::Borrowed),
            headers: Headers::Untouched(&()),
            timestamp: None,
        }
    }

    fn policy(spec: PolicySpec) -> Policy {
        Policy::new(&spec).expect("a policy")
    }

    #[test]
    fn murmur2_is_javas() {
        let vectors: [(&[u8], i32); 6] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (
                b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
            (b"abc", 479_470_107),
        ];
        for (data, expected) in vectors {
            assert_eq!(murmur2(data), expected, "{}", data.escape_ascii());
        }
    }

    #[test]
    fn match_keeps_the_partition_or_says_what_it_needs() {
        let record = record(None, None);
        let mut stop = policy(PolicySpec::Match {
            on_fewer: OnFewer::Stop,
        });
        assert_eq!(stop.choose(&record, 3, 4), Choice::Partition(3));
        assert_eq!(stop.choose(&record, 4, 4), Choice::TooFew { needs: 5 });
        let mut modulo = policy(PolicySpec::Match {
            on_fewer: OnFewer::Modulo,
        });
        assert_eq!(modulo.choose(&record, 5, 4), Choice::Partition(1));
        assert!(stop.is_pass() && modulo.is_pass());
    }

    #[test]
    fn modulo_and_fixed_do_not_look_at_the_record() {
        let record = record(None, None);
        let mut modulo = policy(PolicySpec::Modulo);
        assert_eq!(modulo.choose(&record, 7, 4), Choice::Partition(3));
        let mut fixed = policy(PolicySpec::Fixed(2));
        assert_eq!(fixed.choose(&record, 7, 3), Choice::Partition(2));
        assert_eq!(fixed.choose(&record, 7, 2), Choice::TooFew { needs: 3 });
        assert!(modulo.is_pass() && fixed.is_pass());
        assert!(Policy::new(&PolicySpec::Fixed(-1)).is_err());
    }

    #[test]
    fn a_topic_without_partitions_is_too_few() {
        for spec in [
            PolicySpec::Modulo,
            PolicySpec::KeyHash,
            PolicySpec::RoundRobin,
        ] {
            assert_eq!(
                policy(spec).choose(&record(None, None), 0, 0),
                Choice::TooFew { needs: 1 }
            );
        }
    }

    #[test]
    fn keys_are_hashed_as_java_does() {
        let mut policy = policy(PolicySpec::KeyHash);
        assert!(!policy.is_pass());
        let expected = (-790_332_482 & 0x7fff_ffff) % 12;
        let choice = policy.choose(&record(Some(b"foobar"), None), 0, 12);
        assert_eq!(choice, Choice::Partition(expected));
        let empty = policy.choose(&record(Some(b""), None), 0, 12);
        assert_eq!(empty, policy.choose(&record(Some(b""), None), 5, 12));
    }

    #[test]
    fn null_keys_stick_and_spread_evenly() {
        let mut policy = policy(PolicySpec::KeyHash);
        let mut counts = [0u32; 3];
        let mut switches = 0;
        let mut last = None;
        for _ in 0..STICKY_RECORDS * 30 {
            let Choice::Partition(p) = policy.choose(&record(None, None), 0, 3) else {
                panic!("there are partitions");
            };
            counts[usize::try_from(p).expect("a partition")] += 1;
            switches += u32::from(last.is_some_and(|l| l != p));
            last = Some(p);
        }
        assert_eq!(counts, [STICKY_RECORDS * 10; 3]);
        assert_eq!(switches, 29);
    }

    #[test]
    fn round_robin_goes_on_when_the_count_changes() {
        let mut policy = policy(PolicySpec::RoundRobin);
        let mut next = |count| policy.choose(&record(None, None), 0, count);
        let first: Vec<Choice> = [3, 3, 3, 3].map(&mut next).to_vec();
        assert_eq!(first, [0, 1, 2, 0].map(Choice::Partition));
        assert_eq!([4, 4, 4, 2].map(next), [1, 2, 3, 0].map(Choice::Partition));
    }

    #[test]
    fn by_hashes_the_text_at_the_path() {
        let mut policy = policy(PolicySpec::By("value.id".to_owned()));
        assert!(!policy.is_pass());
        let text = policy.choose(&record(None, Some(br#"{"id":"foobar"}"#)), 0, 12);
        assert_eq!(text, Choice::Partition(by_hash(b"foobar", 12)));
        let number = policy.choose(&record(None, Some(br#"{"id":21}"#)), 0, 12);
        assert_eq!(number, Choice::Partition(by_hash(b"21", 12)));
        for value in [None, Some(&b"{}"[..]), Some(b"{"), Some(br#"{"id":null}"#)] {
            assert_eq!(
                policy.choose(&record(None, value), 0, 12),
                Choice::Partition(0)
            );
        }
        for path in ["valu.id", "value.a[*]", ""] {
            assert!(
                Policy::new(&PolicySpec::By(path.to_owned())).is_err(),
                "{path}"
            );
        }
    }
}
