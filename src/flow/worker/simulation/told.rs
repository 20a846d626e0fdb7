//! What the worker tells its user: gaps, each with its exact range.

use super::world::Shared;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Reads the log of one simulation.
pub(super) struct Told(pub(super) Shared);

#[derive(Default)]
struct Gap {
    event: String,
    partition: i64,
    from: i64,
    to: i64,
}

impl Visit for Gap {
    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "event" {
            value.clone_into(&mut self.event);
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        match field.name() {
            "partition" => self.partition = value,
            "from" => self.from = value,
            "to" => self.to = value,
            _ => {}
        }
    }
}

impl Subscriber for Told {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::ERROR)
    }

    fn event(&self, event: &Event<'_>) {
        let mut gap = Gap::default();
        event.record(&mut gap);
        if gap.event == "gap" {
            let partition = i32::try_from(gap.partition).unwrap();
            self.0.with(|w| w.told_gap(partition, gap.from, gap.to));
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
