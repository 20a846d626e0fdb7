//! What the sandbox says of the count, lane by lane and as a whole.

use super::clusters::Clusters;
use super::generator::Sent;
use super::interrupts::Interrupts;
use super::proof::{self, Count};
use super::scene::{Lane, lanes};
use super::screen::{Ink, Screen};
use super::table::number;

/// What the count gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Complete {
    /// Every record is where it must be.
    Yes,
    /// Something is missing, altered or out of order.
    No,
}

/// Counts, and says what came of it.
///
/// # Errors
/// A cluster that does not answer, or an interrupt.
pub fn account(
    sent: Sent,
    clusters: &Clusters,
    interrupts: &Interrupts,
    screen: &mut Screen,
) -> Result<Complete, String> {
    let before = interrupts.count();
    let go_on = || match interrupts.count() == before {
        true => Ok(()),
        false => Err("interrupted: not counted to the end".to_owned()),
    };
    let title = "the count: each partition of the targets against its source, by record";
    screen.say(&format!("\n  {}\n", screen.ink(Ink::Bold, title)));
    let mut sum = Count::default();
    let mut complete = Complete::Yes;
    let mut at_sources = 0;
    let mut seen = Vec::new();
    for lane in lanes() {
        let count = proof::count(&lane, clusters, &go_on)?;
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
    if at_sources != sent.records {
        complete = Complete::No;
        let line = format!(
            "the sources hold {at_sources} records, {} were acknowledged",
            sent.records
        );
        screen.say(&format!("  {}", screen.ink(Ink::Red, &line)));
    }
    screen.say(&conclusion(complete, sent.records, &sum, screen));
    Ok(complete)
}

/// One lane's line.
fn verdict_of(lane: &Lane, count: &Count, screen: &Screen) -> String {
    let (ink, words) = match count.is_complete() {
        true => (Ink::Green, "all, in order".to_owned()),
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
            let line = format!("{} records sent, {copies} copies arrived", number(sent));
            format!(
                "\n  {}\n  all there, byte for byte, in order; {} repeated\n  {} carry the header that the reload added",
                screen.ink(Ink::Green, &line),
                number(sum.repeated),
                number(sum.marked)
            )
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
