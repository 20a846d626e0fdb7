//! `mirror status`: a table of routes and flows.

use super::{ColorChoice, OutputFormat, Program, StatusArgs, ask, text};
use crate::admin::client::Method;
use crate::admin::status::{ConditionStatus, FlowStatus, RouteStatus, Status, seconds};
use crate::exit::Exit;
use crate::logging::Colour;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// How often `--watch` asks.
const EVERY: Duration = Duration::from_secs(2);

pub(super) fn status(
    args: &StatusArgs,
    config: Vec<PathBuf>,
    color: ColorChoice,
    program: &Program,
) -> Exit {
    loop {
        let page = page(args, &config, color, program);
        let exit = match page {
            Ok((text, exit)) => {
                if args.watch && std::io::stdout().is_terminal() {
                    text::out(&format!("\x1b[H\x1b[2J{text}"));
                } else {
                    text::out(&text);
                }
                exit
            }
            Err(exit) => exit,
        };
        if !args.watch || exit == Exit::Unreachable {
            return exit;
        }
        std::thread::sleep(EVERY);
    }
}

fn page(
    args: &StatusArgs,
    config: &[PathBuf],
    color: ColorChoice,
    program: &Program,
) -> Result<(String, Exit), Exit> {
    let path = match &args.route {
        None => "/api/v1/status".to_owned(),
        Some(route) if crate::config::spec::Name::new(route).is_some() => {
            format!("/api/v1/routes/{route}")
        }
        Some(_) => {
            return Err(text::fail(
                "a route's name has only a-z, 0-9, _ and -",
                Exit::Usage,
            ));
        }
    };
    let answer = ask::ask(&args.ask, config, program, Method::Get, &path)?;
    if answer.code == 404 {
        return Err(text::fail(answer.body.trim(), Exit::No));
    }
    let garbled = |error: serde_json::Error| {
        text::fail(
            &format!("an answer that is not understood: {error}"),
            Exit::Unreachable,
        )
    };
    let now = seconds(SystemTime::now());
    let page = Page {
        now,
        colour: text::colour_of_stdout(color),
    };
    let (shown, exit) = match &args.route {
        Some(name) => {
            let route: RouteStatus = serde_json::from_str(&answer.body).map_err(garbled)?;
            (page.route(name, &route), exit_of([&route]))
        }
        None => {
            let status: Status = serde_json::from_str(&answer.body).map_err(garbled)?;
            (page.process(&status), exit_of(status.routes.values()))
        }
    };
    match args.ask.format {
        OutputFormat::Text => Ok((shown, exit)),
        OutputFormat::Json => Ok((answer.body, exit)),
        OutputFormat::Yaml => Ok((text::as_yaml(&answer.body), exit)),
    }
}

/// 1 if a route is in trouble.
fn exit_of<'a>(routes: impl IntoIterator<Item = &'a RouteStatus>) -> Exit {
    let troubled =
        |route: &RouteStatus| matches!(route.condition.state.as_str(), "failed" | "stalled");
    if routes.into_iter().any(troubled) {
        Exit::No
    } else {
        Exit::Done
    }
}

/// One page, at one moment.
struct Page {
    now: f64,
    colour: Colour,
}

impl Page {
    fn process(&self, status: &Status) -> String {
        let mut page = format!(
            "group {}, {:?}, generation {} ({}) for {}\n",
            status.group.as_deref().unwrap_or("-"),
            status.phase,
            status.generation,
            status.hash.get(..12).unwrap_or(&status.hash),
            self.since(status.applied_at)
        )
        .to_lowercase();
        if let Some(rejected) = &status.rejected {
            let hash = rejected.hash.as_deref().map_or(String::new(), |hash| {
                format!(" ({})", hash.get(..12).unwrap_or(hash))
            });
            page += &format!(
                "the file{hash} was rejected {} ago and does not run: {}\n",
                self.since(rejected.at),
                rejected.error
            );
        }
        for trouble in &status.watch_troubles {
            page += &format!("watching the files: {trouble}\n");
        }
        if !status.drift.is_empty() {
            page += &format!(
                "differs from the file: paused by hand: {}\n",
                status.drift.join(", ")
            );
        }
        let mut rows = vec![header()];
        let mut notes = String::new();
        for (name, route) in &status.routes {
            rows.push(self.row(name, &route.condition, route.lag, &route.rate));
            for flow in &route.flows {
                if route.flows.len() > 1 {
                    let place = format!("  {} -> {}", flow.source, flow.target);
                    rows.push(self.row(&place, &flow.condition, flow.lag, &flow.rate));
                }
                notes += &self.notes(name, flow);
            }
        }
        if status.routes.is_empty() {
            return page + "no routes\n";
        }
        page + &text::columns(&rows) + &notes + &more(status.routes.values())
    }

    fn route(&self, name: &str, route: &RouteStatus) -> String {
        let mut page = route
            .about
            .as_ref()
            .map_or(String::new(), |a| format!("{a}\n"));
        let mut rows = vec![header()];
        let mut notes = String::new();
        for flow in &route.flows {
            let place = format!("{} -> {}", flow.source, flow.target);
            rows.push(self.row(&place, &flow.condition, flow.lag, &flow.rate));
            notes += &self.notes(name, flow);
        }
        page += &text::columns(&rows);
        page += &notes;
        page += &more([route]);
        for flow in &route.flows {
            page += &format!(
                "\n{} -> {}  group {}\n",
                flow.source, flow.target, flow.consumer_group
            );
            if let Some(of) = &flow.data_plane {
                page += &format!(
                    "fetch by {} ({}), produce by {} ({})\n",
                    of.fetch.plane, of.fetch.because, of.produce.plane, of.produce.because
                );
            }
            page += &partitions(flow);
        }
        page
    }

    fn row(
        &self,
        place: &str,
        condition: &ConditionStatus,
        lag: Option<i64>,
        rate: &crate::supervisor::meter::Rate,
    ) -> Vec<String> {
        vec![
            place.to_owned(),
            // Padded before it is coloured: the codes have no width.
            self.paint(&condition.state),
            self.since(condition.since),
            lag.map_or("?".to_owned(), |lag| text::count(lag as f64)),
            rate.delay_seconds.map_or("-".to_owned(), delay),
            text::count(rate.records_per_second),
            format!("{:.2}", rate.bytes_per_second / 1e6),
        ]
    }

    /// What there is to say of a flow, below the table, where it has room.
    fn notes(&self, route: &str, flow: &FlowStatus) -> String {
        let mut notes = String::new();
        if let Some(reason) = &flow.condition.reason {
            let next = flow.condition.next_try.map_or(String::new(), |at| {
                let wait = Duration::from_secs_f64((at - self.now).max(0.0));
                format!("; next try in {}", text::duration(wait))
            });
            notes += &format!(
                "{route} ({} -> {}): {}: {}{next}\n",
                flow.source, flow.target, reason.code, reason.text
            );
        }
        if let Some(differing) = &flow.differing {
            notes += &format!(
                "{route} ({} -> {}): members differ: {}\n",
                flow.source, flow.target, differing.text
            );
        }
        for partition in &flow.partitions_listed {
            if let Some(reason) = &partition.condition.reason {
                notes += &format!(
                    "{route} {}[{}]: {}: {}\n",
                    partition.topic, partition.partition, reason.code, reason.text
                );
            }
        }
        notes
    }

    fn since(&self, at: f64) -> String {
        text::duration(Duration::from_secs_f64((self.now - at).max(0.0)))
    }

    fn paint(&self, state: &str) -> String {
        let padded = format!("{state:<8}");
        let code = match (self.colour, state) {
            (Colour::Off, _) => return padded,
            (Colour::On, "running") => 32,
            (Colour::On, "failed" | "stalled") => 31,
            (Colour::On, _) => 33,
        };
        format!("\x1b[{code}m{padded}\x1b[0m")
    }
}

fn header() -> Vec<String> {
    [
        "route", "state   ", "since", "lag", "delay", "rec/s", "MB/s",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Where the reasons that were shown are told at length.
fn more<'a>(routes: impl IntoIterator<Item = &'a RouteStatus>) -> String {
    let flows = routes.into_iter().flat_map(|route| &route.flows);
    let mut reasons = flows.flat_map(|flow| {
        let of_partitions = flow.partitions_listed.iter().map(|p| &p.condition);
        let all = std::iter::once(&flow.condition).chain(of_partitions);
        all.filter_map(|condition| condition.reason.as_ref())
    });
    reasons.next().map_or(String::new(), |reason| {
        format!("`mirror explain {}` tells more\n", reason.code)
    })
}

/// From fetch to acknowledgement.
fn delay(seconds: f64) -> String {
    match seconds {
        ..10.0 => format!("{:.0}ms", seconds * 1e3),
        _ => text::duration(Duration::from_secs_f64(seconds)),
    }
}

fn partitions(flow: &FlowStatus) -> String {
    if flow.partitions_listed.is_empty() {
        return "no partition is here\n".to_owned();
    }
    let number = |n: Option<i64>| n.map_or("?".to_owned(), |n| n.to_string());
    let mut rows = vec![
        ["partition", "state", "watermark", "committed", "lag"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(flow.partitions_listed.iter().map(|p| {
        vec![
            format!("{}[{}]", p.topic, p.partition),
            p.condition.state.clone(),
            number(p.watermark),
            number(p.committed),
            number(p.lag),
        ]
    }));
    text::columns(&rows)
}
