//! What is copied: prepared topics, and in how many routes and with which handlers `mirror` copies them.

use serde_json::{Value, json};

/// Topics that are written once and read by every contender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Data {
    pub name: &'static str,
    pub topics: u32,
    /// Of each topic.
    pub partitions: i32,
    /// Of the long copy; the short one has a tenth.
    pub records: u64,
    pub bytes: usize,
    pub codec: &'static str,
    pub batch_bytes: &'static str,
    pub headers: usize,
    pub frame: (&'static str, &'static str),
    pub in_a_row: u64,
}

/// How much of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// A tenth.
    Short,
    /// All.
    Long,
}

/// Data, and what `mirror` does with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    pub name: &'static str,
    pub about: &'static str,
    pub data: Data,
    /// Over how many routes the topics are dealt.
    pub routes: u32,
    pub chain: Chain,
}

/// Handlers, one chain for each class of cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// None.
    Empty,
    /// A header is looked at.
    Headers,
    /// Two fields of the value are looked at.
    Fields,
    /// The value is written anew.
    Value,
}

const ONE: Data = Data {
    name: "1k",
    topics: 1,
    partitions: 12,
    records: 1_500_000,
    bytes: 944,
    codec: "none",
    batch_bytes: "1000000",
    headers: 0,
    frame: ("", ""),
    in_a_row: 1,
};
const SMALL: Data = Data {
    name: "70b-lz4",
    records: 5_000_000,
    bytes: 70,
    codec: "lz4",
    batch_bytes: "16384",
    ..ONE
};
const JSON: Data = Data {
    name: "json",
    bytes: 380,
    codec: "lz4",
    headers: 3,
    frame: (
        r#"{"order":{"id":1001,"region":"pt","amount":1250},"customer":"c-77","note":""#,
        r#""}"#,
    ),
    ..ONE
};
const WIDE: Data = Data {
    name: "wide",
    topics: 200,
    partitions: 5,
    batch_bytes: "16384",
    in_a_row: 16,
    ..ONE
};
const FEW: Data = Data {
    name: "parts-10",
    partitions: 10,
    records: 1_280_000,
    batch_bytes: "16384",
    in_a_row: 16,
    ..ONE
};
const MANY: Data = Data {
    name: "parts-5000",
    topics: 50,
    partitions: 100,
    ..FEW
};

/// The full set, those that share data beside each other.
pub const ALL: [Workload; 15] = [
    plain(ONE, "944 B, uncompressed, 1 topic × 12 partitions"),
    plain(named("1k-lz4", "lz4"), "the same, LZ4"),
    plain(named("1k-zstd", "zstd"), "the same, zstd"),
    plain(SMALL, "70 B, LZ4, batches of 16 KB"),
    plain(
        Data {
            name: "100b-headers",
            bytes: 100,
            headers: 3,
            records: 3_000_000,
            ..SMALL
        },
        "100 B with three headers, LZ4",
    ),
    plain(
        Data {
            name: "64k",
            bytes: 64 << 10,
            records: 25_000,
            ..ONE
        },
        "64 KB, uncompressed",
    ),
    plain(
        WIDE,
        "944 B, uncompressed, 200 topics × 5 partitions, 1 route",
    ),
    routes("wide-100-routes", 100, "the same in 100 routes"),
    routes("wide-200-routes", 200, "the same in 200 routes"),
    plain(FEW, "944 B, batches of 16 KB, 10 partitions"),
    plain(MANY, "the same, 50 topics × 100 partitions"),
    chain(
        "chain-empty",
        Chain::Empty,
        "380 B of JSON with three headers, LZ4, no handlers",
    ),
    chain(
        "chain-headers",
        Chain::Headers,
        "the same, a filter by a header",
    ),
    chain(
        "chain-fields",
        Chain::Fields,
        "the same, a filter by two fields",
    ),
    chain("chain-value", Chain::Value, "the same, a field is set"),
];

const fn named(name: &'static str, codec: &'static str) -> Data {
    Data { name, codec, ..ONE }
}

const fn plain(data: Data, about: &'static str) -> Workload {
    Workload {
        name: data.name,
        about,
        data,
        routes: 1,
        chain: Chain::Empty,
    }
}

const fn routes(name: &'static str, routes: u32, about: &'static str) -> Workload {
    Workload {
        name,
        routes,
        ..plain(WIDE, about)
    }
}

const fn chain(name: &'static str, chain: Chain, about: &'static str) -> Workload {
    Workload {
        name,
        chain,
        ..plain(JSON, about)
    }
}

impl Data {
    /// How many records that is.
    pub fn records(&self, length: Length) -> u64 {
        match length {
            Length::Short => self.records / 10,
            Length::Long => self.records,
        }
    }

    /// Its topics; those of a long copy are others than those of a short one.
    pub fn topic_names(&self, length: Length) -> Vec<String> {
        let word = match length {
            Length::Short => "short",
            Length::Long => "long",
        };
        let name = |i| format!("{}-{word}-{i}", self.name);
        (0..self.topics).map(name).collect()
    }

    /// So much of it, whole runs of records.
    pub fn scaled(self, scale: f64) -> Self {
        let records = (self.records as f64 * scale) as u64;
        Self {
            records: records.max(1000),
            ..self
        }
    }
}

impl Chain {
    /// As the file has it. None of them drops a record.
    pub fn handlers(self) -> Vec<Value> {
        match self {
            Self::Empty => vec![],
            Self::Headers => {
                vec![json!({ "filter": { "keep": { "header.region": { "exists": true } } } })]
            }
            Self::Fields => vec![json!({ "filter": { "keep": {
                "value.order.region": ["pt", "es"],
                "value.customer": { "exists": true },
            } } })],
            Self::Value => vec![json!({ "reformat": { "set": { "value.seen": true } } })],
        }
    }
}
