//! The picture of a soak: lag, rate and memory over time, and a mark for every fault.

use crate::hit::Hit;
use crate::soak::{Read, Sample};
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

const SIZE: (u32, u32) = (1400, 1000);
/// Seconds over which a rate is taken.
const RATE_OVER: usize = 10;

/// A line of the picture.
struct Strip {
    title: &'static str,
    points: Vec<(f64, f64)>,
    colour: RGBColor,
}

/// Draws it.
pub fn draw(file: &Path, samples: &[Sample], hits: &[Hit]) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(file, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let strips = strips(samples);
    let marks: Vec<f64> = hits
        .iter()
        .map(|hit| hit.strike.at as f64 / 60_000.0)
        .collect();
    let end = samples.last().map_or(1.0, |s| s.at / 60.0);
    for (area, strip) in root.split_evenly((strips.len(), 1)).iter().zip(&strips) {
        let top = strip.points.iter().map(|p| p.1).fold(1.0, f64::max) * 1.1;
        let mut chart = ChartBuilder::on(area)
            .caption(strip.title, ("sans-serif", 16))
            .margin(6)
            .x_label_area_size(24)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..end, 0.0..top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .max_light_lines(0)
            .y_labels(5)
            .y_label_formatter(&|n| format!("{n:.0}"))
            .x_label_formatter(&|minutes| format!("{minutes:.0} min"))
            .draw()?;
        let mark = |at: &f64| PathElement::new(vec![(*at, 0.0), (*at, top)], RED.mix(0.12));
        chart.draw_series(marks.iter().map(mark))?;
        chart.draw_series(LineSeries::new(strip.points.iter().copied(), &strip.colour))?;
    }
    root.present()?;
    Ok(())
}

fn strips(samples: &[Sample]) -> [Strip; 5] {
    let minutes = |s: &Sample| s.at / 60.0;
    let first = |title, read: Read, colour| Strip {
        title,
        points: samples
            .iter()
            .filter_map(|s| Some((minutes(s), read(s.first.as_ref()?))))
            .collect(),
        colour,
    };
    // A process that begins again counts from zero: there is no rate over its beginning.
    let rate = samples
        .iter()
        .zip(samples.iter().skip(RATE_OVER))
        .filter_map(|(a, b)| {
            let records = b.delivered.checked_sub(a.delivered)?;
            Some((minutes(b), records as f64 / (b.at - a.at)))
        });
    [
        Strip {
            title: "lag, records (a red line is a fault)",
            points: samples.iter().map(|s| (minutes(s), s.lag as f64)).collect(),
            colour: BLUE,
        },
        Strip {
            title: "delivered, records a second",
            points: rate.collect(),
            colour: GREEN,
        },
        first(
            "resident memory of the first instance, MB",
            |t| t.megabytes,
            BLACK,
        ),
        first("its open descriptors", |t| t.descriptors, BLACK),
        first("its threads", |t| t.threads, BLACK),
    ]
}
