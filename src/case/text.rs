//! A report for people.

use super::compare::Difference;
use super::coverage::Coverage;
use super::run::{CaseResult, Report, Verdict};
use crate::config::render::Colour;
use crate::trial::json::Json;
use similar::{ChangeTag, TextDiff};
use std::fmt::Write;

/// Lines around a changed line.
const CONTEXT: usize = 3;

/// Lines of one difference at most.
const MAX_LINES: usize = 60;

/// What a piece of the report means; colour repeats it.
#[derive(Clone, Copy)]
enum Tone {
    Good,
    Bad,
    Faint,
}

/// Writes a report.
pub struct Writer {
    colour: Colour,
    out: String,
}

/// The report as text.
pub fn report(report: &Report<'_>, colour: Colour) -> String {
    let mut writer = Writer::new(colour);
    for result in &report.results {
        writer.case(result);
    }
    let failed = report.failed();
    let all = report.results.len();
    let summary = match failed {
        0 => format!("{}: all passed", count(all, "test")),
        _ => format!(
            "{}: {} passed, {failed} failed",
            count(all, "test"),
            all - failed
        ),
    };
    let tone = if failed == 0 { Tone::Good } else { Tone::Bad };
    writer.line(&writer.toned(tone, &summary));
    writer.out
}

/// The coverage as text.
pub fn coverage(coverage: &Coverage, colour: Colour) -> String {
    let mut writer = Writer::new(colour);
    writer.line("coverage: steps and ways through them that the tests took");
    for (name, route) in coverage.routes() {
        let (all, taken) = route.count();
        let tone = if all == taken { Tone::Good } else { Tone::Bad };
        let share = writer.toned(tone, &format!("{taken} of {all}"));
        writer.line(&format!("  {name}: {share}"));
        for gap in route.gaps() {
            writer.line(&format!("    {}: {}", gap.step, gap.way));
        }
    }
    writer.out
}

impl Writer {
    fn new(colour: Colour) -> Self {
        Self {
            colour,
            out: String::new(),
        }
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn toned(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Faint => "2",
        };
        match self.colour {
            Colour::Always => format!("\x1b[{code}m{text}\x1b[0m"),
            Colour::Never => text.to_owned(),
        }
    }

    fn case(&mut self, result: &CaseResult<'_>) {
        let case = result.case;
        let title = format!("{}: {}", case.route.name, case.name);
        match &result.verdict {
            Verdict::Passed => self.line(&format!("{}    {title}", self.toned(Tone::Good, "ok"))),
            Verdict::Failed(differences) => {
                self.failed(&title, result);
                for difference in differences {
                    self.difference(difference);
                }
                self.fates(result);
            }
            Verdict::Broken(found) => {
                self.failed(&title, result);
                for diagnostic in found {
                    self.line(&format!("      {}", diagnostic.one_line()));
                }
            }
        }
    }

    fn failed(&mut self, title: &str, result: &CaseResult<'_>) {
        let word = self.toned(Tone::Bad, "FAIL");
        let place = self.toned(Tone::Faint, &result.place.to_string());
        self.line(&format!("{word}  {title}  {place}"));
    }

    /// What differs, line by line: `-` is expected, `+` is what came.
    fn difference(&mut self, difference: &Difference) {
        self.line(&format!("      {} (- expected, + got)", difference.what));
        let (expected, got) = (lines(&difference.expected), lines(&difference.got));
        let diff = TextDiff::from_lines(&expected, &got);
        let mut lines = 0;
        for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
            if index > 0 {
                self.line("        …");
            }
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                lines += 1;
                if lines > MAX_LINES {
                    continue;
                }
                let text = change.value().trim_end_matches('\n');
                let line = match change.tag() {
                    ChangeTag::Delete => self.toned(Tone::Bad, &format!("- {text}")),
                    ChangeTag::Insert => self.toned(Tone::Good, &format!("+ {text}")),
                    ChangeTag::Equal => format!("  {text}"),
                };
                self.line(&format!("        {line}"));
            }
        }
        if lines > MAX_LINES {
            self.line(&format!("        … and {} lines more", lines - MAX_LINES));
        }
    }

    /// What became of every record that went in.
    fn fates(&mut self, result: &CaseResult<'_>) {
        for (index, (sample, outcome)) in result.passed.iter().enumerate() {
            let outputs = match outcome.outputs.len() {
                0 => String::new(),
                count => format!(", {}", self::count(count, "record")),
            };
            let from = format!(
                "input {} ({} {}[{}]@{})",
                index + 1,
                sample.source,
                sample.topic,
                sample.partition,
                sample.offset
            );
            let fate = outcome.fate.words(&result.steps);
            self.line(&format!("      {from} {fate}{outputs}"));
        }
    }
}

/// A text for a comparison line by line. One that was laid out as JSON is laid out for that.
fn lines(text: &str) -> String {
    match Json::parse(text) {
        Some(json) if json.pretty() == text => json.line_by_line(),
        _ => text.to_owned(),
    }
}

/// `1 test`, `2 tests`.
fn count(number: usize, word: &str) -> String {
    let mut text = format!("{number} {word}");
    if number != 1 {
        let _ = text.write_char('s');
    }
    text
}
