//! Where partitions would begin, and what is lost before they do.

use super::{Finding, Flow, listed};
use crate::config::diagnostic::Code;
use crate::config::spec::OnGap;
use crate::online::position::{Begin, Positions, Started};

pub(super) fn judge(flow: &Flow<'_>, found: &mut Vec<Finding>) {
    let Some(positions) = &flow.positions else {
        return;
    };
    halted(flow, positions, found);
    skipped(flow, positions, found);
    foreign(flow, positions, found);
    expiring(flow, positions, found);
}

fn halted(flow: &Flow<'_>, positions: &Positions, found: &mut Vec<Finding>) {
    let halted: Vec<String> = (positions.begins.iter())
        .filter_map(|(tp, begin)| match begin {
            Begin::Halted(reason) => Some(format!("{tp}: {reason}")),
            _ => None,
        })
        .collect();
    if halted.is_empty() {
        return;
    }
    found.push(flow.say(
        Code::PositionLost,
        &["on_gap"],
        &format!(
            "{} of {} partitions would halt: {}",
            halted.len(),
            positions.begins.len(),
            listed(&halted)
        ),
        "for a gap, `on_gap: earliest` with `accept: [gap]` goes on behind it; for a topic or cluster that was replaced, \
         another `group:` begins anew",
    ));
}

fn skipped(flow: &Flow<'_>, positions: &Positions, found: &mut Vec<Finding>) {
    let gaps: Vec<String> = (positions.begins.iter())
        .filter_map(|(tp, begin)| match begin {
            Begin::Gap(from, to, _) => Some(format!("{tp}: {from} to {to}")),
            _ => None,
        })
        .collect();
    if !gaps.is_empty() {
        found.push(flow.say(
            Code::GapSkipped,
            &["on_gap"],
            &format!(
                "records are gone that were still to be copied, and `on_gap` goes on behind them: {}",
                listed(&gaps)
            ),
            "raise the retention of the source topics, so that this does not happen again",
        ));
    }
}

fn foreign(flow: &Flow<'_>, positions: &Positions, found: &mut Vec<Finding>) {
    let named: Vec<String> = positions.foreign.iter().map(ToString::to_string).collect();
    if !named.is_empty() {
        found.push(flow.say(
            Code::ForeignPositions,
            &["source"],
            &format!(
                "the group {} has positions that mirror did not commit, and would go on from them: {}",
                flow.needs.group,
                listed(&named)
            ),
            "delete the group's positions if that is not meant, or take another `group:`",
        ));
    }
}

/// What retention is about to take from under the lag. A flow that has not begun and may skip loses
/// nothing that it counted on.
fn expiring(flow: &Flow<'_>, positions: &Positions, found: &mut Vec<Finding>) {
    let fresh = positions.started == Started::No;
    if fresh && flow.needs.route.on_gap != OnGap::Stop {
        return;
    }
    let mut records = 0;
    let mut partitions = Vec::new();
    for (tp, begin) in &positions.begins {
        let Some(span) = begin.span() else { continue };
        let Some(safe) = flow.source.expiring.get(tp) else {
            continue;
        };
        let lost = (*safe).min(span.to) - span.from;
        if lost > 0 {
            records += lost;
            partitions.push(tp.to_string());
        }
    }
    if records > 0 {
        found.push(flow.say(
            Code::ExpiresAtSource,
            &["source"],
            &format!(
                "the source's retention is about to delete up to {records} records that are still to be copied, in {}",
                listed(&partitions)
            ),
            "raise `retention.ms` of the source topics until the route has caught up",
        ));
    }
}
