//! What became of records, told to the workers that they belong to.

use super::{Outcome, ProduceFault, Token};
use std::sync::Arc;

/// Where outcomes go: the worker they belong to, and what became of its records. Must not block.
pub type Deliver = Arc<dyn Fn(u8, Vec<Outcome>) + Send + Sync>;

/// Outcomes that are known at one time, by worker; runs of one ticket are one entry.
#[derive(Default)]
pub(crate) struct Outcomes {
    by_worker: Vec<(u8, Vec<Outcome>)>,
}

impl Outcomes {
    /// Adds what became of one record.
    pub(crate) fn add(&mut self, token: Token, fault: Option<ProduceFault>) {
        let position = match self.by_worker.iter().position(|(w, _)| *w == token.worker) {
            Some(position) => position,
            None => {
                self.by_worker.push((token.worker, Vec::new()));
                self.by_worker.len() - 1
            }
        };
        let outcomes = &mut self.by_worker[position].1;
        match (fault, outcomes.last_mut()) {
            (
                None,
                Some(Outcome::Acked {
                    ticket,
                    count,
                    furthest,
                }),
            ) if *ticket == token.ticket => {
                *count += 1;
                *furthest = token.distance.max(*furthest);
            }
            (None, _) => outcomes.push(Outcome::Acked {
                ticket: token.ticket,
                count: 1,
                furthest: token.distance,
            }),
            (Some(fault), _) => outcomes.push(Outcome::Failed {
                ticket: token.ticket,
                distance: token.distance,
                fault,
            }),
        }
    }

    /// Adds that all of these failed of one fault.
    pub(crate) fn fail(&mut self, tokens: Vec<Token>, fault: &ProduceFault) {
        for token in tokens {
            self.add(token, Some(fault.clone()));
        }
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
                        count: 1,
                        furthest: 0
                    },
                ]
            )]
        );
    }
}
