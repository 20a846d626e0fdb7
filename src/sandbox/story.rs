//! What happens in the sandbox, one scene after the other.

use super::Options;
use super::clusters::Clusters;
use super::file::ConfigFile;
use super::generator::Generator;
use super::mirror::Mirror;
use super::proof::{self, Count};
use super::scene::{FAN_IN, FAN_OUT, Lane, SOURCES, lanes};
use super::screen::{Ink, Screen, Surface};
use super::table::{Row, Table, block, number};
use crate::cli::Program;
use crate::exit::Exit;
use crate::supervisor::{Outcome, ReloadVerdict};
use std::time::{Duration, Instant};

/// The table is drawn this often.
const FRAME: Duration = Duration::from_millis(250);

/// Where nothing can be drawn over, the rows are written this often.
const PARAGRAPH: Duration = Duration::from_secs(5);

/// How long the routes may take to catch up after the last record.
const CATCH_UP: Duration = Duration::from_secs(20);

/// How long the verdict on the changed file may take.
const VERDICT: Duration = Duration::from_secs(20);

/// How long stopping may take; the file's own grace is shorter.
const STOP: Duration = Duration::from_secs(30);

/// Plays every scene.
///
/// # Errors
/// What could not be done, in words for the user.
pub fn play(options: &Options, program: &Program, screen: &mut Screen) -> Result<Exit, String> {
    let clusters = Clusters::start()?;
    let mut file = ConfigFile::write(clusters.iter())
        .map_err(|e| format!("the configuration cannot be written: {e}"))?;
    introduce(&clusters, &file, screen);
    let mirror = Mirror::start(file.path(), program)?;
    let generator = Generator::start(&clusters, options.rate)?;
    let mut stage = Stage {
        screen,
        mirror,
        table: Table::default(),
        begun: Instant::now(),
        length: options.length,
        written: None,
    };
    stage.watch(options.length / 2, &generator)?;
    let reloaded = stage.reload(&mut file, &generator)?;
    stage.watch(options.length, &generator)?;
    let sent = stage.finish(generator)?;
    let stopped = stage.stop()?;
    let complete = account(sent, &clusters, stage.screen)?;
    let well = reloaded == Reloaded::Applied && stopped == Stopped::Confirmed;
    Ok(match (well, complete) {
        (true, Complete::Yes) => Exit::Done,
        _ => Exit::No,
    })
}

/// What became of the changed file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reloaded {
    Applied,
    NotApplied,
}

/// How the routes stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    Confirmed,
    Unconfirmed,
}

/// What the count gave.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Complete {
    Yes,
    No,
}

fn introduce(clusters: &Clusters, file: &ConfigFile, screen: &mut Screen) {
    let title = "mirror sandbox: three Kafka clusters in this process, two routes between them";
    screen.say(&format!("{}\n", screen.ink(Ink::Bold, title)));
    for (cluster, address) in clusters.iter() {
        let here = SOURCES.iter().filter(|source| source.cluster == cluster);
        let topics: Vec<String> = here
            .map(|s| format!("{} ({} partitions)", s.topic, s.partitions))
            .collect();
        screen.say(&format!(
            "  {cluster:<9} {address:<16} {}",
            topics.join(", ")
        ));
    }
    screen.say(&format!(
        "\n  {FAN_IN:<14} lisbon, virginia → hub    orders → lisbon.orders, virginia.orders, …\n  \
         {FAN_OUT:<14} hub → lisbon, virginia    catalogue, prices\n\n  \
         the file: {}\n  \
         from another terminal: mirror status -c {}",
        file.path().display(),
        file.path().display(),
    ));
}

/// What is on while the routes run.
struct Stage<'a> {
    screen: &'a mut Screen,
    mirror: Mirror,
    table: Table,
    begun: Instant,
    length: Duration,
    /// When rows were last written as lines.
    written: Option<Instant>,
}

impl Stage<'_> {
    /// Shows the routes until so long after the beginning, or until the user has seen enough.
    fn watch(&mut self, until: Duration, generator: &Generator) -> Result<(), String> {
        while self.begun.elapsed() < until && self.mirror.interrupts() == 0 {
            self.show(generator.sent(), "copying");
            self.still_runs(FRAME)?;
        }
        Ok(())
    }

    /// Changes the file, and waits for what `mirror` says to it.
    fn reload(&mut self, file: &mut ConfigFile, generator: &Generator) -> Result<Reloaded, String> {
        if self.mirror.interrupts() > 0 {
            return Ok(Reloaded::NotApplied);
        }
        let (before, after) = file
            .edit()
            .map_err(|e| format!("the configuration cannot be changed: {e}"))?;
        let changed = Instant::now();
        self.screen.say(&format!(
            "\n  {} the sandbox changes one line of its file:\n    {}\n    {}",
            self.clock(),
            self.screen.ink(Ink::Red, &format!("-{before}")),
            self.screen.ink(Ink::Green, &format!("+{after}")),
        ));
        while self.mirror.interrupts() < 2 {
            if let Some((_, verdict)) = &self.mirror.snapshot().process.last_reload {
                return Ok(self.tell(verdict, changed.elapsed()));
            }
            if changed.elapsed() > VERDICT {
                return Err("no word on the changed file".into());
            }
            self.show(generator.sent(), "reloading");
            self.still_runs(FRAME)?;
        }
        Ok(Reloaded::NotApplied)
    }

    fn tell(&mut self, verdict: &ReloadVerdict, after: Duration) -> Reloaded {
        let (ink, reloaded) = match verdict {
            ReloadVerdict::Applied { .. } => (Ink::Green, Reloaded::Applied),
            ReloadVerdict::Unchanged { .. } | ReloadVerdict::Rejected { .. } => {
                (Ink::Red, Reloaded::NotApplied)
            }
        };
        let words = verdict.to_string();
        let mut lines = words.lines();
        let first = lines.next().unwrap_or_default();
        let mut text = format!(
            "  {} {} after {:.1} s",
            self.clock(),
            self.screen.ink(ink, first),
            after.as_secs_f64()
        );
        for line in lines {
            text += &format!("\n  {line}");
        }
        self.screen.say(&text);
        reloaded
    }

    /// Stops the generator and waits until the last record is copied.
    fn finish(&mut self, generator: Generator) -> Result<u64, String> {
        let sent = generator.stop()?;
        // A flow learns the end of its source every second or so; only then is no lag no lag.
        let deadline = Instant::now() + CATCH_UP;
        let due: u64 = expected_copies(sent);
        loop {
            let rows = self.show(sent, "catching up");
            let copied: u64 = rows.iter().map(Row::copied).sum();
            let caught_up = copied >= due && rows.iter().all(Row::is_idle);
            if caught_up || Instant::now() > deadline || self.mirror.interrupts() > 1 {
                return Ok(sent);
            }
            self.still_runs(FRAME)?;
        }
    }

    /// Stops the routes and says how they ended.
    fn stop(&mut self) -> Result<Stopped, String> {
        self.screen.settle();
        let asked = Instant::now();
        self.mirror.stop();
        let mut pressed = self.mirror.interrupts().min(1);
        while asked.elapsed() < STOP {
            if let Some(outcome) = self.mirror.outcome(FRAME)? {
                return Ok(self.tell_end(&outcome, asked.elapsed()));
            }
            if self.mirror.interrupts() > pressed {
                pressed = self.mirror.interrupts();
                self.mirror.stop();
            }
        }
        Err("the routes do not stop".into())
    }

    fn tell_end(&mut self, outcome: &Outcome, after: Duration) -> Stopped {
        let after = after.as_secs_f64();
        match outcome {
            Outcome::Drained | Outcome::CaughtUp => {
                self.screen.say(&format!(
                    "\n  stopped in {after:.1} s; everything in flight was confirmed and committed"
                ));
                Stopped::Confirmed
            }
            Outcome::NotCaughtUp(left) | Outcome::Unconfirmed(left) => {
                let line = format!("stopped in {after:.1} s before everything was confirmed:");
                self.screen
                    .say(&format!("\n  {}", self.screen.ink(Ink::Red, &line)));
                left.iter()
                    .for_each(|l| self.screen.say(&format!("    {l}")));
                Stopped::Unconfirmed
            }
        }
    }

    /// Draws the table, or writes it now and then where nothing can be drawn over.
    fn show(&mut self, sent: u64, doing: &str) -> Vec<Row> {
        let now = Instant::now();
        let rows = self.table.rows(&self.mirror.snapshot(), now);
        let copied: u64 = rows.iter().map(Row::copied).sum();
        let heading = format!(
            "  {doing}: {} of {} s · {} records sent · {} copies confirmed",
            self.begun.elapsed().min(self.length).as_secs(),
            self.length.as_secs(),
            number(sent),
            number(copied),
        );
        let due = self.written.is_none_or(|at| now - at >= PARAGRAPH);
        match self.screen.surface() {
            Surface::Terminal => self.screen.draw(&block(&rows, &heading, self.screen)),
            Surface::Lines if due => {
                self.written = Some(now);
                self.screen.say(&format!("\n{heading}"));
                rows.iter()
                    .for_each(|row| self.screen.say(&format!("    {}", row.line())));
            }
            Surface::Lines => {}
        }
        rows
    }

    /// Waits a little; an end that nobody asked for is an error.
    fn still_runs(&self, wait: Duration) -> Result<(), String> {
        match self.mirror.outcome(wait)? {
            None => Ok(()),
            Some(outcome) => Err(format!("the routes ended by themselves: {outcome:?}")),
        }
    }

    fn clock(&self) -> String {
        let clock = format!("{:>2} s", self.begun.elapsed().as_secs());
        self.screen.ink(Ink::Dim, &clock)
    }
}

/// How many copies so many records make: topics get the same share, and some go to two clusters.
fn expected_copies(sent: u64) -> u64 {
    let copies = lanes().len() as u64;
    // Shares differ by a record or two; the rows' own lag has the last word.
    (sent * copies / SOURCES.len() as u64).saturating_sub(copies * 2)
}

/// Counts, and says what came of it.
fn account(sent: u64, clusters: &Clusters, screen: &mut Screen) -> Result<Complete, String> {
    let title = "the count: every partition of each target, record by record, against its source";
    screen.say(&format!("\n  {}\n", screen.ink(Ink::Bold, title)));
    let mut sum = Count::default();
    let mut complete = Complete::Yes;
    let mut at_sources = 0;
    let mut seen = Vec::new();
    for lane in lanes() {
        let count = proof::count(&lane, clusters)?;
        if !seen.contains(&lane.source) {
            seen.push(lane.source);
            at_sources += count.sent;
        }
        if !count.is_complete() {
            complete = Complete::No;
        }
        screen.say(&verdict_of(&lane, &count, screen));
        sum = sum.plus(&count);
    }
    if at_sources != sent {
        complete = Complete::No;
        let line = format!("the sources hold {at_sources} records, {sent} were acknowledged");
        screen.say(&format!("  {}", screen.ink(Ink::Red, &line)));
    }
    screen.say(&conclusion(complete, sent, &sum, screen));
    Ok(complete)
}

/// One lane's line.
fn verdict_of(lane: &Lane, count: &Count, screen: &Screen) -> String {
    let (ink, words) = match count.is_complete() {
        true => (Ink::Green, "complete, in order".to_owned()),
        false => (
            Ink::Red,
            format!(
                "{} missing, {} out of order, {} altered",
                number(count.sent.saturating_sub(count.arrived)),
                number(count.disordered),
                number(count.altered)
            ),
        ),
    };
    let from = format!("{} {}", lane.source.cluster, lane.source.topic);
    let to = format!("{} {}", lane.target, lane.target_topic);
    format!(
        "  {from:<22} → {to:<26} {:>7}  {}",
        number(count.arrived),
        screen.ink(ink, &words)
    )
}

fn conclusion(complete: Complete, sent: u64, sum: &Count, screen: &Screen) -> String {
    let copies = number(sum.arrived);
    match complete {
        Complete::Yes => {
            let line = format!(
                "{} records sent, {copies} copies arrived: all there, byte for byte, in order; {} repeated",
                number(sent),
                number(sum.repeated)
            );
            let marked = format!(
                "{} copies carry the header that the reload added",
                number(sum.marked)
            );
            format!("\n  {}\n  {marked}", screen.ink(Ink::Green, &line))
        }
        Complete::No => {
            let line = format!(
                "{copies} copies arrived, {} were due: not complete",
                number(sum.sent)
            );
            format!("\n  {}", screen.ink(Ink::Red, &line))
        }
    }
}
