//! `/metrics`: OpenMetrics text, made at each scrape from what the engine has counted.
//!
//! Every series of a route exists, with 0, from the moment that the route is known.

use super::status::seconds;
use crate::observe::{Counters, State};
use crate::supervisor::Board;
use crate::supervisor::board::{FlowEntry, ProcessView, Snapshot};
use crate::supervisor::totals::COUNTED;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::Arc;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const STATES: [State; 8] = [
    State::Starting,
    State::Running,
    State::Lagging,
    State::Stalled,
    State::Paused,
    State::Draining,
    State::Failed,
    State::Stopped,
];

/// The text of a scrape now.
///
/// # Errors
/// Never in practice: writing to a string does not fail.
pub fn render(board: &Board) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape(board.snapshot())));
    // Its length first: a text that grows by doubling takes more than twice its own memory.
    let mut length = Length(0);
    text::encode(&mut length, &registry)?;
    let mut text = String::with_capacity(length.0 + GROWTH);
    text::encode(&mut text, &registry)?;
    Ok(text)
}

/// Bytes by which numbers may have grown since they were counted.
const GROWTH: usize = 4096;

/// Counts what is written.
struct Length(usize);

impl fmt::Write for Length {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// One scrape: it reads the flows' atomics while it is written.
#[derive(Debug)]
struct Scrape(Arc<Snapshot>);

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        self.counters(&mut encoder)?;
        self.flow_gauges(&mut encoder)?;
        self.states(&mut encoder)?;
        process(&self.0.process, &mut encoder)
    }
}

fn gauge<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    name: &'a str,
    help: &str,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)
}

fn counter<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    name: &'a str,
    help: &str,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, help, None, MetricType::Counter)
}

impl Scrape {
    fn flows(&self) -> impl Iterator<Item = &FlowEntry> {
        self.0.routes.values().flat_map(|route| &route.flows)
    }

    fn counters(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let totals: Vec<_> = self
            .flows()
            .map(|flow| (labels(flow), flow.totals()))
            .collect();
        for counted in COUNTED {
            let name = format!("mirror_{}", counted.name);
            let mut family = counter(encoder, &name, counted.help)?;
            for (labels, totals) in &totals {
                let value = totals.get(counted.name) as f64 / counted.per_unit;
                ConstCounter::new(value).encode(family.encode_family(labels)?)?;
            }
        }
        let mut family = counter(
            encoder,
            "mirror_flow_restarts",
            "Times a flow was started again after a failure",
        )?;
        for flow in self.flows() {
            ConstCounter::new(flow.restarts).encode(family.encode_family(&labels(flow))?)?;
        }
        Ok(())
    }

    fn flow_gauges(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Read = fn(&FlowEntry) -> u64;
        let gauges: [(&str, &str, Read); 6] = [
            (
                "mirror_lag_records",
                "Records between the watermark and the end of the source, as far as known",
                |flow| u64::try_from(flow.view.lag().0).unwrap_or(0),
            ),
            (
                "mirror_in_flight_records",
                "Records fetched and not resolved",
                |flow| Counters::get(&flow.view.counters.in_flight_records),
            ),
            (
                "mirror_in_flight_bytes",
                "Bytes fetched and not resolved",
                |flow| Counters::get(&flow.view.counters.in_flight_bytes),
            ),
            (
                "mirror_partitions",
                "Source partitions owned by this process",
                |flow| flow.view.partitions().len() as u64,
            ),
            (
                "mirror_partitions_failed",
                "Source partitions that are halted",
                |flow| {
                    let all = flow.view.partitions();
                    all.values()
                        .filter(|p| p.condition.state == State::Failed)
                        .count() as u64
                },
            ),
            (
                "mirror_members_differ",
                "1 while another member of the group copies with other settings",
                |flow| u64::from(flow.view.differing().is_some()),
            ),
        ];
        for (name, help, read) in gauges {
            let mut family = gauge(encoder, name, help)?;
            for flow in self.flows() {
                ConstGauge::new(read(flow)).encode(family.encode_family(&labels(flow))?)?;
            }
        }
        Ok(())
    }

    fn states(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut family = gauge(
            encoder,
            "mirror_route_state",
            "1 for the state that a route is in, 0 for the others",
        )?;
        for (name, route) in &self.0.routes {
            let now = route.condition().state;
            for state in STATES {
                let labels = [("route", name.as_str()), ("state", state.as_str())];
                let is = i64::from(now == state);
                ConstGauge::new(is).encode(family.encode_family(&labels)?)?;
            }
        }
        let mut family = gauge(
            encoder,
            "mirror_route_drift",
            "1 for a route that is paused, against the file",
        )?;
        for (name, route) in &self.0.routes {
            let paused = route
                .held
                .as_ref()
                .is_some_and(|h| h.state == State::Paused);
            let labels = [("route", name.as_str())];
            ConstGauge::new(i64::from(paused)).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn labels(flow: &FlowEntry) -> [(&'static str, String); 3] {
    [
        ("route", flow.id.route.clone()),
        ("source", flow.id.source.clone()),
        ("target", flow.id.target.clone()),
    ]
}

fn process(process: &ProcessView, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let gauges: [(&str, &str, f64); 4] = [
        (
            "mirror_generation",
            "Configurations applied by this process",
            process.generation as f64,
        ),
        (
            "mirror_reload_success",
            "1 if the last load of the files was accepted",
            f64::from(u8::from(process.rejected.is_none())),
        ),
        (
            "mirror_reload_success_timestamp_seconds",
            "When a configuration was last applied",
            seconds(process.applied_at),
        ),
        (
            "mirror_start_timestamp_seconds",
            "When the process began",
            seconds(process.started),
        ),
    ];
    for (name, help, value) in gauges {
        ConstGauge::new(value).encode(gauge(encoder, name, help)?)?;
    }
    let mut family = counter(encoder, "mirror_reloads", "Reloads by result")?;
    let results = [
        ("applied", process.reloads_applied),
        ("rejected", process.reloads_rejected),
    ];
    for (result, count) in results {
        ConstCounter::new(count).encode(family.encode_family(&[("result", result)])?)?;
    }
    let info = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("librdkafka", crate::version::librdkafka()),
    ];
    let mut family = gauge(
        encoder,
        "mirror_build_info",
        "Always 1; the labels say what runs",
    )?;
    ConstGauge::new(1_i64).encode(family.encode_family(&info)?)
}
