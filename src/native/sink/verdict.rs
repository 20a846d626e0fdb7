//! What the answer to a batch means (`engine.md` rule 4). The table of librdkafka's plane in the
//! protocol's codes, with what that client does by itself.

use super::queue::{Case, Maker, Proof, Standing};
use crate::broker::message::code::Code;
use crate::broker::message::produce::{Place, Refusal};
use crate::handler::FailureCode;
use crate::plane::{FaultKind, ProduceFault};

/// What follows from an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The partition has the batch.
    Arrived,
    /// It is sent again, for as long as it takes.
    Again(Again),
    /// It will not be taken; of these records in it (by number; none: all of them) it is the fault's, the others are its
    /// company.
    Refused {
        /// Why.
        fault: ProduceFault,
        /// The records that are to blame.
        records: Vec<i32>,
    },
}

/// What has to be known before it is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// Nothing.
    Later,
    /// Who leads the partition now.
    Elsewhere,
    /// Whether there is such a partition. If it is made again, nobody knows us there.
    IfItExists,
}

/// Reads an answer.
pub(super) fn verdict(answer: Result<Place, Refusal>, of: Case) -> Verdict {
    match answer {
        // It was there before: whose it is nobody knows.
        Ok(place) if of.proof == Proof::Owed && place.time.is_some() => Verdict::Refused {
            fault: doubtful("the target has a batch of these numbers from before".to_owned()),
            records: Vec::new(),
        },
        Ok(_) => Verdict::Arrived,
        Err(refusal) => refused(refusal, of),
    }
}

fn refused(refusal: Refusal, of: Case) -> Verdict {
    let records = refusal.records.iter().map(|(number, _)| *number).collect();
    let kind = match refusal.code.0 {
        // It was taken before; the answer was lost.
        46 if of.proof == Proof::Had => return Verdict::Arrived,
        // It may be new, or gone: the view says so before long.
        3 => return Verdict::Again(Again::IfItExists),
        // The leader moved, or is about to; a disk of it failed.
        5 | 6 | 8 | 9 | 56 | 74 | 75 => return Verdict::Again(Again::Elsewhere),
        // What is inside may be damaged from the beginning: it is looked at.
        2 if of.maker == Maker::Another => FaultKind::Record(FailureCode::InvalidRecord),
        // A bit fell over on the way; the replicas are late, or too few.
        2 | 7 | 19 | 20 => return Verdict::Again(Again::Later),
        // What is before it has not arrived: it is sent first.
        45 if of.standing == Standing::Behind => return Verdict::Again(Again::Later),
        // Somebody else has written under these numbers.
        45 | 46 | 59 if of.proof == Proof::Owed => FaultKind::Doubtful,
        // The broker has forgotten the producer: nothing is known against the records.
        45 | 59 => FaultKind::Collateral,
        // Somebody else has gone on from here.
        47 | 90 => FaultKind::Fenced,
        10 | 18 => FaultKind::Record(FailureCode::RecordTooLarge),
        87 => FaultKind::Record(FailureCode::InvalidRecord),
        32 => FaultKind::Record(FailureCode::InvalidTimestamp),
        _ => FaultKind::World,
    };
    Verdict::Refused {
        fault: ProduceFault {
            kind,
            detail: words(&refusal),
        },
        records,
    }
}

fn words(refusal: &Refusal) -> String {
    let first = refusal.records.iter().find_map(|(_, words)| words.clone());
    match refusal.words.clone().or(first) {
        Some(words) => format!("{}: {words}", refusal.code),
        None => refusal.code.to_string(),
    }
}

/// What a cluster that names no leader means for the records of a partition: nothing, while one may come.
pub(super) fn refused_by_name(code: Code) -> Option<FaultKind> {
    match code.0 {
        3 => Some(FaultKind::Missing),
        // The leader is being chosen, or its broker is away.
        5 | 6 | 8 | 9 | 13 | 56 => None,
        _ => Some(FaultKind::World),
    }
}

/// What a topic that the cluster does not know means for its records.
pub(super) fn missing(code: Code) -> ProduceFault {
    ProduceFault {
        kind: FaultKind::Missing,
        detail: code.to_string(),
    }
}

/// What becomes of records of which nobody knows whether they are there.
pub(super) fn doubtful(detail: String) -> ProduceFault {
    ProduceFault {
        kind: FaultKind::Doubtful,
        detail,
    }
}

/// What becomes of records that went down with others, or are thrown away.
pub(super) fn collateral() -> ProduceFault {
    ProduceFault {
        kind: FaultKind::Collateral,
        detail: "its writer writes nothing more".to_owned(),
    }
}

/// What a cluster that does not let us write at all means for all records.
pub(super) fn worlds(detail: String) -> ProduceFault {
    ProduceFault {
        kind: FaultKind::World,
        detail,
    }
}
