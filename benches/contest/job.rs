//! What a loop is given to do. It goes through a command line: each loop is a process of its own.

/// Copy so many records of these topics from one cluster to topics of the same names on the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Where the clusters are.
    pub source: String,
    pub target: String,
    pub topics: Vec<String>,
    pub records: u64,
    /// What the producer compresses with; a loop that passes batches does not ask.
    pub codec: String,
    pub linger_ms: u32,
}

impl Job {
    /// For a copy that only a signal ends.
    pub const ENDLESS: u64 = i64::MAX as u64;

    /// As the words of a command line.
    pub fn words(&self) -> [String; 6] {
        [
            self.source.clone(),
            self.target.clone(),
            self.topics.join(","),
            self.records.to_string(),
            self.codec.clone(),
            self.linger_ms.to_string(),
        ]
    }

    /// # Panics
    /// If they are not the words of a job: nobody but the bench gives them.
    pub fn read(words: &[String]) -> Self {
        let [source, target, topics, records, codec, linger_ms] = words else {
            panic!("six words, not {words:?}");
        };
        Self {
            source: source.clone(),
            target: target.clone(),
            topics: topics.split(',').map(str::to_owned).collect(),
            records: records.parse().expect("a number of records"),
            codec: codec.clone(),
            linger_ms: linger_ms.parse().expect("milliseconds"),
        }
    }
}
