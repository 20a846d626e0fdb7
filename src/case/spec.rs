//! A test as validated. Files that it names are not read yet.

use crate::config::spec::{Name, RouteSpec};
use crate::handler::FailureCode;
use std::path::PathBuf;
use std::sync::Arc;

/// The clock of every test: 2024-01-01T00:00:00Z, in milliseconds.
pub const CLOCK_MS: i64 = 1_704_067_200_000;

/// Partitions of a target topic where a test does not say.
pub const TARGET_PARTITIONS: i32 = 12;

/// What a handler can fail with. The rest of the codes are the target's, which no test has.
pub const FAILURES: [FailureCode; 13] = [
    FailureCode::NotJson,
    FailureCode::Absent,
    FailureCode::WrongType,
    FailureCode::TooDeep,
    FailureCode::TooMany,
    FailureCode::TooLarge,
    FailureCode::Template,
    FailureCode::Expression,
    FailureCode::DeniedTopic,
    FailureCode::Codec,
    FailureCode::Collision,
    FailureCode::Panic,
    FailureCode::InvalidTimestamp,
];

/// A test of a route.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// The JSON pointer to it.
    pub at: String,
    /// The route.
    pub route: Arc<RouteSpec>,
    /// The target cluster.
    pub target: Name,
    /// How many partitions the target topics have, if the test says so.
    pub target_partitions: Option<i32>,
    /// The records that go in.
    pub inputs: Vec<Input>,
    /// What must come out.
    pub expected: Expected,
}

/// One item of `in`.
#[derive(Clone, Debug)]
pub struct Input {
    /// The JSON pointer to it.
    pub at: String,
    /// The source cluster.
    pub source: Name,
    /// The record, or records.
    pub records: Records,
}

/// What an item of `in` stands for.
#[derive(Clone, Debug)]
pub enum Records {
    /// One record.
    One(Given),
    /// Lines of `kcat -J`.
    Kcat(Content),
}

/// A record as given.
#[derive(Clone, Debug)]
pub struct Given {
    /// The source topic.
    pub topic: String,
    /// The source partition.
    pub partition: i32,
    /// Its offset; after the last one's if it is not said.
    pub offset: Option<i64>,
    /// Its timestamp in milliseconds.
    pub timestamp: i64,
    /// Its key.
    pub key: Content,
    /// Its value.
    pub value: Content,
    /// Its headers.
    pub headers: crate::trial::Headers,
}

/// Bytes that a test gives.
#[derive(Clone, Debug)]
pub enum Content {
    /// Null.
    Null,
    /// These.
    Bytes(Vec<u8>),
    /// Those of a file.
    File {
        /// Its path.
        path: PathBuf,
        /// The JSON pointer to what names it.
        at: String,
    },
}

/// What must come out.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The records.
    pub out: Option<Outputs>,
    /// What dropped the last input.
    pub dropped: Option<String>,
    /// What the last input failed with.
    pub failed: Option<FailureCode>,
}

/// The records that must come out.
#[derive(Clone, Debug)]
pub enum Outputs {
    /// So many.
    Count(usize),
    /// These, in this order.
    Records(Vec<ExpectedRecord>),
}

/// A record that must come out. What is `None` is not compared.
#[derive(Clone, Debug)]
pub struct ExpectedRecord {
    /// The target topic.
    pub topic: Option<String>,
    /// The target partition.
    pub partition: Option<i32>,
    /// The key.
    pub key: Option<Wanted>,
    /// The value.
    pub value: Option<Wanted>,
    /// Headers: those named, and all.
    pub headers: Vec<WantedHeaders>,
    /// The timestamp in milliseconds.
    pub timestamp: Option<i64>,
}

/// Bytes that are wanted.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// Exactly these.
    Exactly(Content),
    /// JSON that is worth the same.
    Json(String),
}

/// Headers that are wanted.
#[derive(Clone, Debug)]
pub struct WantedHeaders {
    /// The key that says so: `headers` or `headers_exactly`.
    pub extent: Extent,
    /// Whether their order and repeats matter.
    pub order: Order,
    /// The headers.
    pub list: Vec<(String, Wanted)>,
}

/// Which headers of the record are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Those named.
    Named,
    /// All.
    All,
}

/// Whether the order of headers matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A list: order and repeats matter.
    AsWritten,
    /// A map: they do not; of repeats the last counts.
    Any,
}
