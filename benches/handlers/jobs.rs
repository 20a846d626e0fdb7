//! The record, and what is done with it.

use mirror::config::pattern::Pattern;
use mirror::handler::{Binding, BoundChain, Chain, Clock, Registry, StepSpec};
use serde_json::{Value, json};

/// An order as they are.
pub const RECORD: &str = r#"{"id":"9f2c1f6e-6f7a-4c0b-8f55-2f6f0c2f9b11","customer_id":1001,"status":"paid","amount":149.95,"currency":"EUR","created":"2026-11-30T02:33:02Z","email":"ana.silva@example.com","user":{"name":"Ana Silva","email":"ana.silva@example.com","tier":"gold"},"items":[{"sku":"A-100","qty":2,"price":49.95},{"sku":"B-200","qty":1,"price":50.05}],"note":"leave it at the door, thank you!"}"#;

/// A chain, and what it may cost.
pub struct Job {
    pub name: &'static str,
    /// Of the time that parsing the record to a `serde_json::Value` takes.
    pub limit: f64,
    /// The same job of Kafka Connect, by its name in `Transforms.java`.
    pub transform: Option<&'static str>,
    steps: Value,
}

pub type HeaderList = Vec<(Vec<u8>, Option<Vec<u8>>)>;

pub fn headers() -> HeaderList {
    [
        ("trace", "00-4bf92f35"),
        ("region", "pt"),
        ("kind", "order"),
        ("v", "2"),
    ]
    .map(|(name, value)| (name.into(), Some(value.into())))
    .into()
}

impl Job {
    pub fn all() -> Vec<Self> {
        let job = |name, limit, transform, steps| Self {
            name,
            limit,
            transform,
            steps,
        };
        vec![
            job(
                "untouched (static rename)",
                1.0 / 100.0,
                Some("rename"),
                json!([{"rename": {"topic": "{source}.{topic}"}}]),
            ),
            job(
                "header filter",
                1.0 / 30.0,
                Some("header-filter"),
                json!([{"filter": {"keep": {"header.region": ["pt", "es"]}}}]),
            ),
            job(
                "JSON filter, two fields, map",
                0.25,
                None,
                json!([{"filter": {"keep": {"value.status": "paid", "value.amount": {"gt": 100}}}}]),
            ),
            job(
                "CEL filter, two fields, compiled down",
                1.0 / 3.0,
                None,
                json!([{"filter": {"keep": "value.status == 'paid' && value.amount > 100"}}]),
            ),
            job(
                "CEL filter, two fields, evaluated",
                0.5,
                None,
                json!([{"filter": {"keep": "value.status.size() == 4 && value.amount * 2 > 200"}}]),
            ),
            job(
                "mask one field (redact)",
                1.2,
                Some("mask"),
                json!([{"reformat": {"mask": {"fields": ["value.email"], "with": "redact"}}}]),
            ),
            job(
                "mask one field (hash)",
                1.2,
                None,
                json!([{"reformat": {"mask": {"fields": ["value.email"], "with": "hash", "key": "secret"}}}]),
            ),
            job(
                "set one field",
                1.2,
                Some("insert"),
                json!([{"reformat": {"set": {"value.dc": "lisbon"}}}]),
            ),
            job(
                "rekey from one field",
                1.2,
                Some("rekey"),
                json!([{"reformat": {"rekey": {"from": "value.customer_id"}}}]),
            ),
        ]
    }

    pub fn bound(&self) -> BoundChain {
        let steps: Vec<StepSpec> = serde_json::from_value(self.steps.clone()).expect("steps");
        let chain = Chain::compile(steps, &Registry::default()).expect("a chain");
        let binding = Binding {
            route: "r",
            source: "eu",
            target: "hub",
            topic: "orders",
            selected_by: &Pattern::new("orders").expect("a pattern"),
            clock: Clock::default(),
            record_bytes: None,
        };
        chain.bind(&binding).expect("bound")
    }
}
