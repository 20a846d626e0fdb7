//! What is seen of a plan: the same value in `mirror plan`, in the verdict of a reload and in JSON.

use super::demand::{Demand, Said};
use super::shown::Shown;
use super::{Change, Changed, FlowAction, FlowChange, Plan};
use crate::config::settings::ReloadClass;
use crate::config::spec::RouteSpec;
use crate::logging::Colour;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// A plan as text and JSON show it. Routes that are not touched are only counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The routes that change, by name.
    pub routes: BTreeMap<String, RouteReport>,
    /// Settings of the process that change while it runs.
    pub process: Vec<Changed>,
    /// Settings of the process that only a new one takes; with one of them nothing is applied.
    pub refused: Vec<Changed>,
    /// Words that the changes need; with one that is not said nothing is applied.
    pub needs: Vec<Need>,
    /// How many routes change in which way.
    pub tally: Tally,
}

/// What becomes of one route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouteReport {
    /// What is done; of several things the one that takes most.
    pub change: Verb,
    /// The settings that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Changed>,
    /// Its flows.
    pub flows: Vec<FlowReport>,
}

/// What becomes of one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// The source cluster.
    pub source: String,
    /// The target cluster.
    pub target: String,
    /// What is done.
    pub change: Verb,
    /// What becomes of its positions.
    pub positions: Positions,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Nothing.
    Keep,
    /// It takes new settings over while it runs.
    Live,
    /// It drains and makes its clients anew.
    Reconnect,
    /// It drains and starts again.
    Restart,
    /// It starts.
    Start,
    /// It drains and ends.
    Stop,
}

/// What becomes of positions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Positions {
    /// It goes on where it is.
    Kept,
    /// It goes on where the route of this name was, unless it has positions of its own.
    TakenOver(String),
    /// It begins at this place, unless its group has positions from an earlier time.
    Begin(String),
    /// They stay with the group, for as long as the source cluster keeps offsets.
    Left,
}

/// A word that a change needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// The route that the word belongs to; none: it belongs at the top of the file.
    pub route: Option<String>,
    /// The word.
    pub accept: String,
    /// Whether the file says it.
    pub said: bool,
    /// What it is needed for.
    pub why: String,
}

/// How many routes change in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Routes to start.
    pub start: usize,
    /// Routes to stop.
    pub stop: usize,
    /// Routes to restart.
    pub restart: usize,
    /// Routes of which clients are made anew.
    pub reconnect: usize,
    /// Routes that change while they run.
    pub live: usize,
    /// Routes that stay as they are.
    pub keep: usize,
}

impl Verb {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Keep => "keep",
            Verb::Live => "live",
            Verb::Reconnect => "reconnect",
            Verb::Restart => "restart",
            Verb::Start => "start",
            Verb::Stop => "stop",
        }
    }

    /// Its sign and colour in a listing.
    fn sign(self) -> (&'static str, u8) {
        match self {
            Verb::Keep => (" ", 0),
            Verb::Live | Verb::Reconnect => ("~", 33),
            Verb::Restart => ("±", 33),
            Verb::Start => ("+", 32),
            Verb::Stop => ("-", 31),
        }
    }
}

impl From<FlowAction> for Verb {
    fn from(action: FlowAction) -> Self {
        match action {
            FlowAction::Start => Verb::Start,
            FlowAction::Stop => Verb::Stop,
            FlowAction::Keep => Verb::Keep,
            FlowAction::Take(ReloadClass::Live) => Verb::Live,
            FlowAction::Take(ReloadClass::Reconnect) => Verb::Reconnect,
            FlowAction::Take(ReloadClass::Restart | ReloadClass::Refused) => Verb::Restart,
        }
    }
}

impl fmt::Display for Positions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Positions::Kept => f.write_str("positions kept"),
            Positions::TakenOver(from) => write!(f, "positions of {from} taken over"),
            Positions::Begin(start) => {
                write!(f, "begins at {start}, or where its group was before")
            }
            Positions::Left => f.write_str("positions stay in its group"),
        }
    }
}

impl From<&Plan> for Report {
    fn from(plan: &Plan) -> Self {
        let mut tally = Tally::default();
        let mut routes = BTreeMap::new();
        for (name, change) in &plan.routes {
            let report = RouteReport::from(change);
            tally.count(report.change);
            if report.change != Verb::Keep {
                routes.insert(name.to_string(), report);
            }
        }
        let (refused, process) = plan
            .process
            .iter()
            .cloned()
            .partition(|c| c.class == ReloadClass::Refused);
        Self {
            routes,
            process,
            refused,
            needs: plan.demands.iter().map(Need::from).collect(),
            tally,
        }
    }
}

impl Tally {
    fn count(&mut self, verb: Verb) {
        *match verb {
            Verb::Keep => &mut self.keep,
            Verb::Live => &mut self.live,
            Verb::Reconnect => &mut self.reconnect,
            Verb::Restart => &mut self.restart,
            Verb::Start => &mut self.start,
            Verb::Stop => &mut self.stop,
        } += 1;
    }
}

impl From<&Demand> for Need {
    fn from(demand: &Demand) -> Self {
        Self {
            route: demand.route.as_ref().map(ToString::to_string),
            accept: demand.word.shown(),
            said: demand.said == Said::Yes,
            why: demand.cause.to_string(),
        }
    }
}

impl From<&Change> for RouteReport {
    fn from(change: &Change) -> Self {
        let whole = |spec: &RouteSpec, change: Verb| RouteReport {
            change,
            changed: Vec::new(),
            flows: all_flows(spec, change),
        };
        match change {
            Change::Start(spec) => whole(spec, Verb::Start),
            Change::Stop(spec) => whole(spec, Verb::Stop),
            Change::Keep(spec) => whole(spec, Verb::Keep),
            Change::Alter(alteration) => {
                let flows = alteration.flows.iter();
                let takes = flows.clone().filter_map(|flow| match flow.action {
                    FlowAction::Take(_) => Some(Verb::from(flow.action)),
                    FlowAction::Start | FlowAction::Stop | FlowAction::Keep => None,
                });
                RouteReport {
                    // Where flows only come and go, the route itself goes on.
                    change: takes.max().unwrap_or(Verb::Live),
                    changed: alteration.changed.clone(),
                    flows: flows
                        .map(|flow| flow_report(flow, &alteration.wanted))
                        .collect(),
                }
            }
        }
    }
}

fn all_flows(spec: &RouteSpec, change: Verb) -> Vec<FlowReport> {
    let pairs = spec
        .sources
        .iter()
        .flat_map(|s| spec.targets.iter().map(move |t| (s, t)));
    pairs
        .map(|(source, target)| FlowReport {
            source: source.name.to_string(),
            target: target.name.to_string(),
            change,
            positions: positions(change, spec),
        })
        .collect()
}

fn flow_report(flow: &FlowChange, wanted: &RouteSpec) -> FlowReport {
    let change = Verb::from(flow.action);
    FlowReport {
        source: flow.source.to_string(),
        target: flow.target.to_string(),
        change,
        positions: positions(change, wanted),
    }
}

fn positions(change: Verb, spec: &RouteSpec) -> Positions {
    match (change, &spec.was) {
        (Verb::Keep | Verb::Live | Verb::Reconnect | Verb::Restart, _) => Positions::Kept,
        (Verb::Stop, _) => Positions::Left,
        (Verb::Start, Some(was)) => Positions::TakenOver(was.to_string()),
        (Verb::Start, None) => Positions::Begin(spec.start.shown()),
    }
}

impl Report {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.process.is_empty() && self.refused.is_empty()
    }

    /// Whether a reload would make it.
    pub fn is_applicable(&self) -> bool {
        self.refused.is_empty() && self.needs.iter().all(|need| need.said)
    }

    /// The listing. Colour repeats what the signs say.
    pub fn text(&self, colour: Colour) -> String {
        let mut listing = Listing {
            text: String::new(),
            colour,
        };
        for (name, route) in &self.routes {
            listing.route(name, route);
        }
        for changed in &self.process {
            listing.line("  ", Verb::Live.sign(), &one_line(changed));
        }
        for changed in &self.refused {
            let words = format!("{}: only a new process takes it", one_line(changed));
            listing.line("  ", ("!", 31), &words);
        }
        for need in &self.needs {
            listing.need(need);
        }
        let t = self.tally;
        let counts = [
            (t.start, "to start"),
            (t.stop, "to stop"),
            (t.restart, "to restart"),
            (t.reconnect, "to reconnect"),
            (t.live, "to change live"),
            (t.keep, "untouched"),
        ];
        let counts = counts.iter().filter(|(n, _)| *n > 0);
        let counts: Vec<String> = counts.map(|(n, what)| format!("{n} {what}")).collect();
        let routes = match counts.is_empty() {
            true => "no routes".to_owned(),
            false => counts.join(", "),
        };
        listing.text + "plan: " + &routes
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Colour::Off))
    }
}

fn one_line(changed: &Changed) -> String {
    format!("{}  {} -> {}", changed.setting, changed.from, changed.to)
}

/// Longer than this, the two values of a setting get a line each.
const SHORT: usize = 72;

struct Listing {
    text: String,
    colour: Colour,
}

impl Listing {
    fn line(&mut self, indent: &str, (sign, code): (&str, u8), words: &str) {
        // Writing to a string does not fail.
        let _ = match (self.colour, code) {
            (Colour::Off, _) | (_, 0) => writeln!(self.text, "{indent}{sign} {words}"),
            (Colour::On, code) => {
                writeln!(self.text, "{indent}\x1b[{code}m{sign}\x1b[0m {words}")
            }
        };
    }

    fn route(&mut self, name: &str, route: &RouteReport) {
        let whole = matches!(route.change, Verb::Start | Verb::Stop);
        let first = route.flows.first();
        let tail = match (route.flows.as_slice(), first) {
            ([_], Some(flow)) => {
                format!("  {} -> {}  ({})", flow.source, flow.target, flow.positions)
            }
            _ => String::new(),
        };
        let words = format!("{name}  {}{tail}", route.change.as_str());
        self.line("  ", route.change.sign(), &words);
        for changed in &route.changed {
            self.setting(changed);
        }
        if route.flows.len() < 2 {
            return;
        }
        for flow in &route.flows {
            if flow.change == Verb::Keep {
                continue;
            }
            let verb = if whole { "" } else { flow.change.as_str() };
            let words = format!("{} -> {}  {verb}", flow.source, flow.target);
            let words = format!("{}  ({})", words.trim_end(), flow.positions);
            self.line("      ", flow.change.sign(), &words);
        }
    }

    fn setting(&mut self, changed: &Changed) {
        let line = one_line(changed);
        if line.chars().count() <= SHORT {
            return self.line("      ", ("·", 0), &line);
        }
        self.line("      ", ("·", 0), &changed.setting);
        self.line("          ", ("-", 31), &changed.from);
        self.line("          ", ("+", 32), &changed.to);
    }

    fn need(&mut self, need: &Need) {
        let of = need
            .route
            .as_ref()
            .map_or(String::new(), |r| format!("route {r}: "));
        let place = match need.route {
            Some(_) => "at the route",
            None => "at the top of the file",
        };
        let (sign, rest) = match need.said {
            true => ((" ", 0), format!("accepted: {}", need.accept)),
            false => (
                ("!", 31),
                format!("needs `accept: [{}]` {place}", need.accept),
            ),
        };
        self.line("  ", sign, &format!("{of}{}; {rest}", need.why));
    }
}
