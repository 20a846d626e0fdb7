//! What became of records, told to the workers that they belong to.

use super::{Outcome, ProduceFault, Token};
use std::sync::Arc;

/// Where outcomes go: the worker they belong to, and what became of its records. Must not block.
pub type Deliver = Arc<dyn Fn(u8, Vec<Outcome>) + Send + Sync>;

/// Whose the records of a batch are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tokens {
    /// Each record has a token of its own.
    Each(Vec<Token>),
    /// The batch passes: one token for all of its records, whose offsets follow each other.
    Whole {
        /// The first one's.
        first: Token,
        /// How many there are.
        count: u32,
    },
}

/// Outcomes that are known at one time, by worker; runs of one ticket are one entry.
#[derive(Default)]
pub(crate) struct Outcomes {
    by_worker: Vec<(u8, Vec<Outcome>)>,
}

impl Outcomes {
    /// Adds what became of one record.
    pub(crate) fn add(&mut self, token: Token, fault: Option<ProduceFault>) {
        match fault {
            None => self.acked(token, 1),
            Some(fault) => self.of(token.worker).push(Outcome::Failed {
                ticket: token.ticket,
                distance: token.distance,
                fault,
            }),
        }
    }

    /// Adds that a batch has arrived.
    pub(crate) fn arrive(&mut self, tokens: &Tokens) {
        match tokens {
            Tokens::Each(tokens) => tokens.iter().for_each(|token| self.acked(*token, 1)),
            Tokens::Whole { first, count } => self.acked(*first, *count),
        }
    }

    /// Adds that a batch has failed of this.
    pub(crate) fn fail(&mut self, tokens: &Tokens, fault: &ProduceFault) {
        match tokens {
            Tokens::Each(tokens) => {
                for token in tokens {
                    self.add(*token, Some(fault.clone()));
                }
            }
            Tokens::Whole { first, count } => self.of(first.worker).push(Outcome::Refused {
                ticket: first.ticket,
                distance: first.distance,
                count: *count,
                fault: fault.clone(),
            }),
        }
    }

    /// Adds that so many records have arrived, one behind the other.
    fn acked(&mut self, first: Token, records: u32) {
        let reached = first.distance.saturating_add(records.saturating_sub(1));
        let outcomes = self.of(first.worker);
        match outcomes.last_mut() {
            Some(Outcome::Acked {
                ticket,
                count,
                furthest,
            }) if *ticket == first.ticket => {
                *count += records;
                *furthest = reached.max(*furthest);
            }
            _ => outcomes.push(Outcome::Acked {
                ticket: first.ticket,
                count: records,
                furthest: reached,
            }),
        }
    }

    fn of(&mut self, worker: u8) -> &mut Vec<Outcome> {
        let position = match self.by_worker.iter().position(|(w, _)| *w == worker) {
            Some(position) => position,
            None => {
                self.by_worker.push((worker, Vec::new()));
                self.by_worker.len() - 1
            }
        };
        &mut self.by_worker[position].1
    }

    /// Tells each worker of its own.
    pub(crate) fn send(self, deliver: &Deliver) {
        for (worker, outcomes) in self.by_worker {
            deliver(worker, outcomes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_of_one_ticket_are_one_entry() {
        let mut outcomes = Outcomes::default();
        let token = |ticket, distance| Token {
            worker: 1,
            ticket,
            distance,
        };
        // Two target partitions answer in an order of their own.
        outcomes.add(token(7, 3), None);
        outcomes.add(token(7, 1), None);
        outcomes.add(token(8, 0), None);
        outcomes.arrive(&Tokens::Whole {
            first: token(8, 10),
            count: 5,
        });
        assert_eq!(
            outcomes.by_worker,
            vec![(
                1,
                vec![
                    Outcome::Acked {
                        ticket: 7,
                        count: 2,
                        furthest: 3
                    },
                    Outcome::Acked {
                        ticket: 8,
                        count: 6,
                        furthest: 14
                    },
                ]
            )]
        );
    }
}
