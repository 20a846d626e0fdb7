//! The picture: a strip for each workload, a bar for each contender, as long as a record costs.

use crate::contender::Contender;
use crate::cost::{Entry, Round};
use crate::lab;
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

const WIDTH: u32 = 1000;
/// Of a title, and of a bar with its room.
const TITLE: u32 = 46;
const BAR: u32 = 22;
/// Left of the bars stand names, and behind them numbers.
const NAMES: f64 = -0.26;
const NUMBERS: f64 = 1.24;
const FONT: &str = "sans-serif";

/// Draws it.
pub fn draw(file: &Path, rounds: &[Round]) -> Result<(), Box<dyn Error>> {
    let all: u32 = rounds.iter().map(height).sum();
    let root = SVGBackend::new(file, (WIDTH, all.max(TITLE))).into_drawing_area();
    root.fill(&WHITE)?;
    let mut rest = root;
    for round in rounds {
        let (strip, below) = rest.split_vertically(height(round));
        bars(&strip, round)?;
        rest = below;
    }
    rest.present()?;
    Ok(())
}

fn height(round: &Round) -> u32 {
    TITLE + BAR * u32::try_from(round.entries.len()).unwrap_or(0)
}

fn bars(
    strip: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    round: &Round,
) -> Result<(), Box<dyn Error>> {
    let cost = |entry: &Entry| round.micros(entry).unwrap_or(0.0).max(0.0);
    let lab = |entry: &Entry| lab::micros(round.workload.name, entry.contender);
    let longest = |entry: &Entry| cost(entry).max(lab(entry).unwrap_or(0.0));
    let most = round
        .entries
        .iter()
        .map(longest)
        .fold(f64::MIN_POSITIVE, f64::max);
    let count = round.entries.len() as f64;
    let title = format!(
        "{}: CPU µs a record ({}; a line is the lab's figure)",
        round.workload.name, round.workload.about
    );
    let mut chart = ChartBuilder::on(strip)
        .caption(title, (FONT, 15))
        .margin(6)
        .build_cartesian_2d(NAMES..NUMBERS, count..0.0)?;
    for (i, entry) in round.entries.iter().enumerate() {
        let (top, cost) = (i as f64, cost(entry));
        let bar = [(0.0, top + 0.15), (cost / most, top + 0.85)];
        let name = Text::new(
            entry.contender.name().to_owned(),
            (NAMES, top + 0.2),
            (FONT, 13).into_font(),
        );
        let number = Text::new(
            format!("{cost:.2}"),
            (cost / most + 0.01, top + 0.2),
            (FONT, 13).into_font(),
        );
        chart.draw_series([Rectangle::new(bar, colour(entry.contender).filled())])?;
        chart.draw_series([name, number])?;
        if let Some(at) = lab(entry).map(|lab| lab / most) {
            let mark = PathElement::new(vec![(at, top + 0.05), (at, top + 0.95)], BLACK);
            chart.draw_series([mark])?;
        }
    }
    Ok(())
}

/// Ours are blue, what limits them is grey, the others are brown.
fn colour(contender: Contender) -> RGBColor {
    match contender {
        Contender::Mirror(..) => RGBColor(60, 110, 190),
        Contender::Probe | Contender::Relay => RGBColor(160, 160, 160),
        Contender::Bare | Contender::Franz | Contender::Maker(_) => RGBColor(190, 140, 70),
    }
}
