//! The live table: one row for each flow of each route.

use super::screen::{Ink, Screen};
use crate::observe::{Counters, State};
use crate::supervisor::FlowId;
use crate::supervisor::board::{FlowEntry, Snapshot};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Rates and delays are taken over this time.
const WINDOW: Duration = Duration::from_secs(2);

/// From this width on there is room for the rate's course.
const WIDE: usize = 110;

/// Columns of the course.
const COURSE: usize = 28;

/// One look at a flow's counters.
#[derive(Clone, Copy)]
struct Sample {
    at: Instant,
    records: u64,
    delay_us: u64,
    delays: u64,
}

/// What is remembered of one flow.
#[derive(Default)]
struct History {
    samples: VecDeque<Sample>,
    course: VecDeque<f64>,
}

/// One flow as it is now.
pub struct Row {
    id: FlowId,
    state: State,
    reason: Option<String>,
    /// Records copied per second.
    rate: f64,
    /// Records that wait at the source, if that is known.
    lag: Option<i64>,
    in_flight: u64,
    /// From fetch to acknowledgement.
    delay: Option<Duration>,
    copied: u64,
    course: String,
}

/// Turns snapshots into rows.
#[derive(Default)]
pub struct Table {
    flows: BTreeMap<FlowId, History>,
}

impl Table {
    /// Takes a look.
    pub fn rows(&mut self, snapshot: &Snapshot, now: Instant) -> Vec<Row> {
        let flows = snapshot.routes.values().flat_map(|route| &route.flows);
        flows.map(|flow| self.row(flow, now)).collect()
    }

    fn row(&mut self, flow: &FlowEntry, now: Instant) -> Row {
        let totals = flow.totals();
        let sample = Sample {
            at: now,
            records: totals.get("delivered_records"),
            delay_us: totals.get("delay_seconds"),
            delays: totals.get("delay_batches"),
        };
        let history = self.flows.entry(flow.id.clone()).or_default();
        let first = history.take(sample);
        let rate = first.rate_until(&sample);
        history.remember(rate);
        let condition = flow.view.condition();
        let (lag, known) = flow.view.lag();
        Row {
            id: flow.id.clone(),
            state: condition.state,
            reason: condition.reason.map(|reason| reason.to_string()),
            rate,
            lag: known.then_some(lag),
            in_flight: Counters::get(&flow.view.counters.in_flight_records),
            delay: first.delay_until(&sample),
            copied: sample.records,
            course: history.course(),
        }
    }
}

impl History {
    /// Adds a sample and gives the oldest of the window.
    fn take(&mut self, sample: Sample) -> Sample {
        self.samples.push_back(sample);
        while self.samples.len() > 2 && sample.at - self.samples[1].at >= WINDOW {
            self.samples.pop_front();
        }
        self.samples[0]
    }

    fn remember(&mut self, rate: f64) {
        self.course.push_back(rate);
        if self.course.len() > COURSE {
            self.course.pop_front();
        }
    }

    /// The last rates as a row of bars.
    fn course(&self) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let highest = self.course.iter().copied().fold(1.0, f64::max);
        let bar = |rate: &f64| BARS[((rate / highest * 7.0).round() as usize).min(7)];
        self.course.iter().map(bar).collect()
    }
}

impl Sample {
    fn rate_until(&self, later: &Sample) -> f64 {
        let seconds = (later.at - self.at).as_secs_f64();
        if seconds <= 0.0 {
            return 0.0;
        }
        later.records.saturating_sub(self.records) as f64 / seconds
    }

    fn delay_until(&self, later: &Sample) -> Option<Duration> {
        let sum = later.delay_us.saturating_sub(self.delay_us);
        let mean = sum.checked_div(later.delays.saturating_sub(self.delays))?;
        Some(Duration::from_micros(mean))
    }
}

impl Row {
    /// Records copied so far.
    pub fn copied(&self) -> u64 {
        self.copied
    }

    /// Whether nothing is left to copy, as far as is known.
    pub fn is_idle(&self) -> bool {
        self.lag == Some(0) && self.in_flight == 0
    }

    /// The row in one line, for where nothing can be drawn over.
    pub fn line(&self) -> String {
        let reason = self
            .reason
            .as_ref()
            .map_or(String::new(), |r| format!(" ({r})"));
        format!(
            "{} {} → {}: {}{reason}, {} rec/s, lag {}, in flight {}",
            self.id.route,
            self.id.source,
            self.id.target,
            self.state,
            number(self.rate as u64),
            self.lag_text(),
            number(self.in_flight),
        )
    }

    fn lag_text(&self) -> String {
        self.lag
            .map_or("?".to_owned(), |lag| number(lag.unsigned_abs()))
    }

    fn cells(&self) -> [String; 7] {
        let delay = self.delay.map_or("-".to_owned(), |d| {
            format!("{} ms", number(d.as_millis() as u64))
        });
        [
            self.id.route.clone(),
            format!("{} → {}", self.id.source, self.id.target),
            self.state.to_string(),
            number(self.rate as u64),
            self.lag_text(),
            number(self.in_flight),
            delay,
        ]
    }
}

/// The columns and their widths; names to the left, numbers to the right.
const COLUMNS: [(&str, usize); 7] = [
    ("ROUTE", 14),
    ("FROM → TO", 18),
    ("STATE", 8),
    ("REC/S", 7),
    ("LAG", 7),
    ("FLIGHT", 7),
    ("DELAY", 8),
];

/// The first of them that holds numbers.
const NUMBERS: usize = 3;

/// The whole block: heading, one row a flow, and what there is to say of those in trouble.
pub fn block(rows: &[Row], heading: &str, screen: &Screen) -> Vec<String> {
    let wide = screen.width() >= WIDE;
    let mut names = line_of(COLUMNS.map(|(name, _)| name.to_owned()), |_, text| text);
    if wide {
        names += "  RATE, THE LAST SECONDS";
    }
    let mut block = vec![
        String::new(),
        screen.ink(Ink::Bold, &fitted(heading, screen)),
        String::new(),
        screen.ink(Ink::Dim, &fitted(&names, screen)),
    ];
    let mut route = "";
    for row in rows {
        let mut cells = row.cells();
        // A route's name stands at its first flow only.
        if std::mem::replace(&mut route, &row.id.route) == row.id.route {
            cells[0].clear();
        }
        let mut line = line_of(cells, |column, text| match column {
            2 => screen.ink(ink_of(row.state), &text),
            _ => text,
        });
        if wide {
            line += &format!("  {}", screen.ink(Ink::Green, &row.course));
        }
        block.push(line);
    }
    let reasons = rows
        .iter()
        .filter_map(|row| Some((row, row.reason.as_ref()?)));
    for (row, reason) in reasons {
        let note = format!("  {} → {}: {reason}", row.id.source, row.id.target);
        block.push(screen.ink(Ink::Dim, &fitted(&note, screen)));
    }
    block
}

/// One line of the table; a cell is padded before `paint` colours it, since codes have no width.
fn line_of(cells: [String; 7], paint: impl Fn(usize, String) -> String) -> String {
    let mut line = " ".to_owned();
    for (column, (cell, (_, width))) in cells.into_iter().zip(COLUMNS).enumerate() {
        let padded = if column < NUMBERS {
            format!("{cell:<width$}")
        } else {
            format!("{cell:>width$}")
        };
        line.push(' ');
        line.push_str(&paint(column, padded));
    }
    line
}

/// `text` cut to the terminal's width: a line that wraps would spoil the redrawing.
fn fitted(text: &str, screen: &Screen) -> String {
    text.chars().take(screen.width()).collect()
}

fn ink_of(state: State) -> Ink {
    match state {
        State::Running => Ink::Green,
        State::Failed | State::Stalled => Ink::Red,
        State::Starting | State::Lagging | State::Paused | State::Draining | State::Stopped => {
            Ink::Yellow
        }
    }
}

/// `12345` as `12,345`.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators() {
        let shown = [0, 999, 1000, 1_234_567].map(number);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn rate_and_delay_are_of_the_window() {
        let at = Instant::now();
        let sample = |seconds: u64, records, delay_us, delays| Sample {
            at: at + Duration::from_secs(seconds),
            records,
            delay_us,
            delays,
        };
        let (first, last) = (sample(0, 100, 0, 0), sample(2, 300, 8_000, 2));
        assert_eq!(first.rate_until(&last), 100.0);
        assert_eq!(first.delay_until(&last), Some(Duration::from_millis(4)));
        assert_eq!(first.delay_until(&first), None);
    }
}
