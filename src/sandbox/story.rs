//! What happens in the sandbox, one scene after the other.

use super::Options;
use super::account::{Complete, account};
use super::clusters::Clusters;
use super::file::ConfigFile;
use super::generator::{Generator, Sent};
use super::interrupts::Interrupts;
use super::mirror::Mirror;
use super::scene::{FAN_IN, FAN_OUT, SOURCES};
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
    let interrupts = Interrupts::listen()?;
    let clusters = Clusters::start()?;
    let mut file = ConfigFile::write(clusters.iter())
        .map_err(|e| format!("the configuration cannot be written: {e}"))?;
    introduce(&clusters, &file, screen);
    let mirror = Mirror::start(file.path(), program)?;
    let generator = Generator::start(&clusters, options.rate)?;
    let mut stage = Stage {
        screen,
        mirror,
        interrupts: interrupts.clone(),
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
    let complete = account(sent, &clusters, &interrupts, stage.screen)?;
    let well = reloaded != Reloaded::Refused && stopped == Stopped::Confirmed;
    Ok(match (well, complete) {
        (true, Complete::Yes) => Exit::Done,
        _ => Exit::No,
    })
}

/// What became of the changed file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reloaded {
    Applied,
    Refused,
    /// The user had seen enough before.
    NotTried,
}

/// How the routes stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    Confirmed,
    Unconfirmed,
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
        "\n  {FAN_IN:<14} lisbon, virginia → hub   orders → lisbon.orders, …\n  \
         {FAN_OUT:<14} hub → lisbon, virginia   catalogue, prices\n\n  \
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
    interrupts: Interrupts,
    table: Table,
    begun: Instant,
    length: Duration,
    /// When rows were last written as lines.
    written: Option<Instant>,
}

impl Stage<'_> {
    /// Shows the routes until so long after the beginning, or until the user has seen enough.
    fn watch(&mut self, until: Duration, generator: &Generator) -> Result<(), String> {
        while self.begun.elapsed() < until && self.interrupts.count() == 0 {
            self.show(generator.sent(), "copying");
            self.still_runs(FRAME)?;
        }
        Ok(())
    }

    /// Changes the file, and waits for what `mirror` says to it.
    fn reload(&mut self, file: &mut ConfigFile, generator: &Generator) -> Result<Reloaded, String> {
        if self.interrupts.count() > 0 {
            return Ok(Reloaded::NotTried);
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
        while self.interrupts.count() < 2 {
            if let Some((_, verdict)) = &self.mirror.snapshot().process.last_reload {
                return Ok(self.tell(verdict, changed.elapsed()));
            }
            if changed.elapsed() > VERDICT {
                return Err("no word on the changed file".into());
            }
            self.show(generator.sent(), "reloading");
            self.still_runs(FRAME)?;
        }
        Ok(Reloaded::NotTried)
    }

    fn tell(&mut self, verdict: &ReloadVerdict, after: Duration) -> Reloaded {
        let (ink, reloaded) = match verdict {
            ReloadVerdict::Applied { .. } => (Ink::Green, Reloaded::Applied),
            ReloadVerdict::Unchanged { .. } | ReloadVerdict::Rejected { .. } => {
                (Ink::Red, Reloaded::Refused)
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
    fn finish(&mut self, generator: Generator) -> Result<Sent, String> {
        let sent = generator.stop()?;
        // A flow learns the end of its source every second or so; only then is no lag no lag.
        let deadline = Instant::now() + CATCH_UP;
        loop {
            let rows = self.show(sent, "catching up");
            let copied: u64 = rows.iter().map(Row::copied).sum();
            let caught_up = copied >= sent.copies && rows.iter().all(Row::is_idle);
            if caught_up || Instant::now() > deadline || self.interrupts.count() > 1 {
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
        let mut pressed = self.interrupts.count().min(1);
        while asked.elapsed() < STOP {
            if let Some(outcome) = self.mirror.outcome(FRAME)? {
                return Ok(self.tell_end(&outcome, asked.elapsed()));
            }
            if self.interrupts.count() > pressed {
                pressed = self.interrupts.count();
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
    fn show(&mut self, sent: Sent, doing: &str) -> Vec<Row> {
        let now = Instant::now();
        let rows = self.table.rows(&self.mirror.snapshot(), now);
        let copied: u64 = rows.iter().map(Row::copied).sum();
        let heading = format!(
            "  {doing}: {} of {} s · {} records sent · {} copies confirmed",
            self.begun.elapsed().min(self.length).as_secs(),
            self.length.as_secs(),
            number(sent.records),
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
