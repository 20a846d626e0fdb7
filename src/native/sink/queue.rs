//! What one writer has on its way to one target partition, in its order.
//!
//! ```text
//! push → gathered records → numbered batches, at most five sent → acknowledged
//! pass → a batch as it came ↗        ↑ waiting, to be sent again  │
//!                                    └────────────────────────────┘
//! ```
//!
//! A batch has its sequence numbers from the moment it is sent first, and is sent again as the same bytes: that is how the
//! broker knows it (KIP-98). Its numbers follow those of the batch before, so that whatever arrives in another order is
//! refused, and what arrives twice is recognised.
//!
//! **The first batch owes a proof** where somebody else may have the same producer id and epoch ([`Claim::Shared`]). What he
//! wrote under the same numbers the broker would take ours for, and answer with success, without having ours. It marks such
//! an answer: it names a time ([`Place::time`](crate::broker::message::produce::Place)). So the first batch has arrived only
//! if no time is named; otherwise, or where it could not be told since its records have no timestamps, nothing is taken
//! for granted: the writer needs another id ([`FaultKind::Doubtful`](crate::plane::FaultKind)). Of two that have the same
//! numbers one at most passes, and the other writes nothing behind it.

use crate::native::lent::Lent;
use crate::plane::outcomes::Tokens;
use crate::plane::{Claim, Token};
use crate::record::{Headers, Record};
use crate::wire::codec::Compressor;
use crate::wire::header::Stamp;
use crate::wire::pass::Whole;
use crate::wire::writer::{self, Piece, Written};
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::time::Instant;

/// How many batches a broker remembers of a producer (KIP-98): what is sent again is recognised as long as it is one of them.
const REMEMBERED: u64 = 5;

/// What one writer has on its way to one partition.
#[derive(Debug)]
pub(super) struct Queue {
    claim: Claim,
    /// Without numbers yet; only the last one takes more.
    gathered: VecDeque<Gathered>,
    /// With numbers, in their order: first those that were sent, then those that wait.
    numbered: VecDeque<Numbered>,
    /// Some were refused for now: all answers are awaited before the first of them is sent again.
    is_recovering: bool,
    /// The broker has a batch of this producer.
    is_known: bool,
    next_sequence: i32,
    next_batch: u64,
    /// How large the last batch of gathered records became: the next one begins with that much room.
    usual_bytes: usize,
}

/// What becomes one batch.
#[derive(Debug)]
struct Gathered {
    content: Content,
    since: Instant,
}

/// What a batch is made of.
#[derive(Debug)]
enum Content {
    /// Records that came one by one.
    Records(writer::Writer, Vec<Token>),
    /// A batch as it came, with the token of its first record.
    Whole(Whole, Token),
}

/// A batch with its numbers.
#[derive(Debug)]
struct Numbered {
    /// Which batch of the producer it is.
    batch: u64,
    first_sequence: i32,
    bytes: Bytes,
    tokens: Tokens,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// On its way; an answer, or the end of its connection, follows.
    Sent,
    /// To be sent, again.
    Waiting,
}

/// Whether the sender has to hear of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// The first one of a batch, or one that fills it.
    Telling,
    /// One among others.
    Silent,
}

/// A batch to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    /// The number of its first record.
    pub(super) first_sequence: i32,
    /// As it stands on the wire.
    pub(super) bytes: Bytes,
}

/// Who made a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maker {
    /// We wrote it.
    Ourselves,
    /// It passes: nobody here has looked into it.
    Another,
}

/// What an answer means for the order of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// One before it is not acknowledged yet.
    Behind,
    /// It is the first.
    First,
}

/// Whether a batch of these numbers is known to be ours where the broker says that it has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// Nobody else has them, or a batch before it was proven to be.
    Had,
    /// The answer has to say so.
    Owed,
}

/// A batch that was sent, as it stands when it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) standing: Standing,
    pub(super) maker: Maker,
    pub(super) proof: Proof,
}

/// Why a batch is not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoBatch {
    /// The codec's words; nothing has changed.
    #[error("no batch: {0}")]
    Codec(#[from] io::Error),
    /// It owes a proof that it could not give.
    #[error("its records have no timestamps, by which a repeat would be told")]
    Unprovable,
}

impl Queue {
    /// An empty one, of a writer with this claim.
    pub(super) fn new(claim: Claim) -> Self {
        Self {
            claim,
            gathered: VecDeque::new(),
            numbered: VecDeque::new(),
            is_recovering: false,
            is_known: false,
            next_sequence: 0,
            next_batch: 0,
            usual_bytes: 0,
        }
    }

    /// Gathers a record.
    pub(super) fn push(&mut self, record: &Record<'_>, token: Token, batch_bytes: usize) -> Pushed {
        let piece = piece(record);
        let begins = match self.gathered.back() {
            Some(last) => !last.has_room(&piece, batch_bytes),
            None => true,
        };
        if begins {
            self.gathered.push_back(Gathered {
                content: Content::Records(
                    writer::Writer::with_room(self.usual_bytes.min(batch_bytes)),
                    Vec::new(),
                ),
                since: Instant::now(),
            });
        }
        let Some(last) = self.gathered.back_mut() else {
            return Pushed::Silent;
        };
        if let Content::Records(records, tokens) = &mut last.content {
            records.push(&piece);
            tokens.push(token);
        }
        match begins || last.is_full(batch_bytes) {
            true => Pushed::Telling,
            false => Pushed::Silent,
        }
    }

    /// Takes a batch as it came, behind what was gathered before.
    pub(super) fn pass(&mut self, batch: Whole, first: Token) -> Pushed {
        self.gathered.push_back(Gathered {
            content: Content::Whole(batch, first),
            since: Instant::now(),
        });
        Pushed::Telling
    }

    /// The next batch to be sent, if one may be; it counts as sent. Records that are not a full batch go if they were begun
    /// at `begun` or before.
    ///
    /// # Errors
    /// Why there is none that may be.
    pub(super) fn next(
        &mut self,
        begun: Instant,
        batch_bytes: usize,
        producer: Stamp,
        compressor: &mut Compressor,
    ) -> Result<Option<Outgoing>, NoBatch> {
        let sent = self.sent();
        if self.is_recovering && sent > 0 {
            return Ok(None);
        }
        self.is_recovering = false;
        if !self.is_known && sent > 0 {
            return Ok(None);
        }
        let none_waits = self.numbered.len() == sent;
        if none_waits
            && !(self.may_begin() && self.number(begun, batch_bytes, producer, compressor)?)
        {
            return Ok(None);
        }
        Ok(self.numbered.get_mut(sent).map(|batch| {
            batch.state = State::Sent;
            Outgoing {
                first_sequence: batch.first_sequence,
                bytes: batch.bytes.clone(),
            }
        }))
    }

    /// Whether another batch may go out behind the first one that has not arrived for certain. The broker has to know that
    /// one when it comes again, so no more go out than it remembers. And a broker that knows nothing of a producer takes
    /// whatever number comes first: if it refused the first batch for now and took the second, the first would come behind it.
    fn may_begin(&self) -> bool {
        let most = match self.is_known {
            true => REMEMBERED,
            false => 1,
        };
        let first = self.numbered.front().map(|first| first.batch);
        first.is_none_or(|first| self.next_batch < first + most)
    }

    /// Makes a batch of the records gathered first, if they are ripe.
    fn number(
        &mut self,
        begun: Instant,
        batch_bytes: usize,
        producer: Stamp,
        compressor: &mut Compressor,
    ) -> Result<bool, NoBatch> {
        let (others, proof) = (self.gathered.len() > 1, self.proof());
        let Some(first) = self.gathered.front_mut() else {
            return Ok(false);
        };
        // Another one behind it means that it takes no more.
        let is_ripe = others || first.is_full(batch_bytes) || first.since <= begun;
        if !is_ripe {
            return Ok(false);
        }
        if proof == Proof::Owed && !first.content.has_time() {
            return Err(NoBatch::Unprovable);
        }
        let stamp = Stamp {
            base_sequence: self.next_sequence,
            ..producer
        };
        let (bytes, count, tokens) = match &mut first.content {
            Content::Records(records, tokens) => {
                let (count, size) = (records.count(), records.size());
                let bytes = records.finish(compressor, stamp)?.into();
                self.usual_bytes = size;
                (bytes, count, Tokens::Each(std::mem::take(tokens)))
            }
            Content::Whole(batch, first) => {
                let tokens = of_whole(batch, *first);
                (batch.stamped(stamp), batch.header().count, tokens)
            }
        };
        self.gathered.pop_front();
        self.numbered.push_back(Numbered {
            batch: self.next_batch,
            first_sequence: self.next_sequence,
            bytes,
            tokens,
            state: State::Waiting,
        });
        self.next_sequence = after(self.next_sequence, count);
        self.next_batch += 1;
        Ok(true)
    }

    /// When the records gathered first were begun, if there are any.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.gathered.front().map(|first| first.since)
    }

    /// Nothing is on its way, or about to be.
    pub(super) fn is_idle(&self) -> bool {
        self.gathered.is_empty() && self.numbered.is_empty()
    }

    /// How many batches are on their way.
    fn sent(&self) -> usize {
        let sent = |batch: &&Numbered| batch.state == State::Sent;
        self.numbered.iter().filter(sent).count()
    }

    fn position(&self, first_sequence: i32) -> Option<usize> {
        let named =
            |batch: &Numbered| batch.first_sequence == first_sequence && batch.state == State::Sent;
        self.numbered.iter().position(named)
    }

    /// What is known of a batch that was sent; `None` if its outcome was told before.
    pub(super) fn case(&self, first_sequence: i32) -> Option<Case> {
        let position = self.position(first_sequence)?;
        Some(Case {
            standing: match position {
                0 => Standing::First,
                _ => Standing::Behind,
            },
            maker: match self.numbered[position].tokens {
                Tokens::Whole { .. } => Maker::Another,
                Tokens::Each(_) => Maker::Ourselves,
            },
            proof: self.proof(),
        })
    }

    /// Whether the broker's word that it has a batch has to be proven. Of a first one nothing is on its way behind it.
    fn proof(&self) -> Proof {
        match (self.claim, self.is_known) {
            (Claim::Shared, false) => Proof::Owed,
            _ => Proof::Had,
        }
    }

    /// The broker may know nothing of the producer any more.
    pub(super) fn be_unknown(&mut self) {
        self.is_known = false;
    }

    /// A batch that was sent has arrived: whose its records are.
    pub(super) fn acknowledge(&mut self, first_sequence: i32) -> Option<Tokens> {
        self.is_known = true;
        self.settle(first_sequence)
    }

    /// A batch that was sent is done with: whose its records are.
    pub(super) fn settle(&mut self, first_sequence: i32) -> Option<Tokens> {
        let position = self.position(first_sequence);
        let batch = position.and_then(|position| self.numbered.remove(position));
        batch.map(|batch| batch.tokens)
    }

    /// A batch that was sent has to be sent again, and with it all those behind it.
    pub(super) fn again(&mut self, first_sequence: i32) {
        if let Some(position) = self.position(first_sequence)
            && let Some(batch) = self.numbered.get_mut(position)
        {
            batch.state = State::Waiting;
            self.is_recovering = true;
        }
    }

    /// What is not on its way is thrown away: whose the records are, batch by batch.
    pub(super) fn drop_unsent(&mut self) -> Vec<Tokens> {
        let is_sent = |batch: &Numbered| batch.state == State::Sent;
        let (sent, unsent) = std::mem::take(&mut self.numbered)
            .into_iter()
            .partition(is_sent);
        self.numbered = sent;
        self.drop(unsent)
    }

    /// Everything is thrown away, whatever becomes of what is on its way.
    pub(super) fn drop_all(&mut self) -> Vec<Tokens> {
        let numbered = std::mem::take(&mut self.numbered);
        self.drop(numbered)
    }

    fn drop(&mut self, numbered: VecDeque<Numbered>) -> Vec<Tokens> {
        let numbered = numbered.into_iter().map(|batch| batch.tokens);
        let gathered = self.gathered.drain(..).map(|g| g.content.into_tokens());
        numbered.chain(gathered).collect()
    }
}

impl Gathered {
    /// Whether a record fits in. The first one does, however large it is.
    fn has_room(&self, piece: &Piece<'_>, batch_bytes: usize) -> bool {
        match &self.content {
            Content::Records(records, _) => {
                records.count() == 0 || records.size() + piece.most() <= batch_bytes
            }
            Content::Whole(..) => false,
        }
    }

    fn is_full(&self, batch_bytes: usize) -> bool {
        match &self.content {
            Content::Records(records, _) => records.size() >= batch_bytes,
            Content::Whole(..) => true,
        }
    }
}

impl Content {
    /// Whether some record has a timestamp.
    fn has_time(&self) -> bool {
        match self {
            Content::Records(records, _) => records.latest().is_some(),
            Content::Whole(batch, _) => batch.header().latest().is_some(),
        }
    }

    fn into_tokens(self) -> Tokens {
        match self {
            Content::Records(_, tokens) => Tokens::Each(tokens),
            Content::Whole(batch, first) => of_whole(&batch, first),
        }
    }
}

fn of_whole(batch: &Whole, first: Token) -> Tokens {
    let count = batch.count();
    Tokens::Whole { first, count }
}

/// A record as it is to be written: headers that nobody touched are copied as a whole, not one by one.
fn piece<'a>(record: &'a Record<'a>) -> Piece<'a> {
    let untouched = match &record.headers {
        Headers::Untouched(source) => source.as_any().and_then(|any| any.downcast_ref::<Lent>()),
        Headers::Changed(_) => None,
    };
    let piece = Piece::of(record);
    match untouched {
        Some(lent) => Piece {
            headers: Written::AsRead(lent.header_bytes()),
            ..piece
        },
        None => piece,
    }
}

/// The number after `count` records from `sequence` on: they begin again at 0 after the largest.
fn after(sequence: i32, count: i32) -> i32 {
    let next = i64::from(sequence) + i64::from(count);
    i32::try_from(next % (i64::from(i32::MAX) + 1)).unwrap_or(0)
}
