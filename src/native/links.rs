//! The connections of one flow to one cluster: made when they are asked for, made again with growing pauses, and the view of the
//! cluster's leaders that is asked for beside them.
//!
//! Nothing here waits: what is not there yet comes later, and [`Links::changed`] says when.

use super::view::View;
use crate::backoff::{Backoff, Span, jitter};
use crate::broker::address::Address;
use crate::broker::connection::{Connection, Manner};
use crate::broker::fault::Fault;
use crate::broker::message::metadata::{ClusterMap, Metadata};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Before a connection is made again (B084: a broker that comes back is found soon).
const AGAIN: Span = Span {
    first: Duration::from_millis(50),
    longest: Duration::from_secs(2),
};
/// Before leaders are asked for earlier than they would be.
const EAGER: Span = Span {
    first: AGAIN.first,
    longest: Duration::from_secs(1),
};
/// How old the view may get.
const REFRESH: Duration = Duration::from_secs(5);
/// How long an answer to a question for leaders may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Before a broker wants to be told once more who we are, a new connection is made.
const BEFORE_SESSION_END: Duration = Duration::from_secs(10);

/// Connections to one cluster.
pub struct Links {
    manner: Manner,
    bootstrap: Vec<Address>,
    subject: Arc<str>,
    view: View,
    topics: BTreeSet<Arc<str>>,
    brokers: BTreeMap<i32, Link>,
    asker: Asker,
    tasks: JoinSet<Done>,
}

/// The connection to one broker.
struct Link {
    address: Address,
    state: LinkState,
    pauses: Backoff,
    /// Somebody wanted it while it was not to be had: it is made as soon as its pause is over.
    is_wanted: bool,
}

enum LinkState {
    Opening,
    Open(Arc<Connection>),
    Waiting(Instant),
}

/// Whom the leaders are asked of.
struct Asker {
    connection: Option<Arc<Connection>>,
    is_asking: bool,
    next: Instant,
    last: Instant,
    /// Counts up where one does not answer.
    candidate: usize,
    /// Somebody wants a connection to whatever broker.
    is_wanted: bool,
    pauses: Backoff,
    /// Questions that somebody wanted before they were due, in a row.
    eager: Backoff,
}

/// What a task ends with.
enum Done {
    Opened(i32, Address, Result<Connection, Fault>),
    Mapped(Result<(Arc<Connection>, ClusterMap), Fault>),
}

impl Links {
    /// Connections to the cluster of these servers; none is made yet. `subject` is what they serve.
    pub fn new(manner: Manner, bootstrap: Vec<Address>, subject: Arc<str>) -> Self {
        let now = Instant::now();
        Self {
            manner,
            bootstrap,
            subject,
            view: View::default(),
            topics: BTreeSet::new(),
            brokers: BTreeMap::new(),
            asker: Asker {
                connection: None,
                is_asking: false,
                next: now,
                last: now,
                candidate: 0,
                is_wanted: false,
                pauses: Backoff::default(),
                eager: Backoff::default(),
            },
            tasks: JoinSet::new(),
        }
    }

    /// What is known of the leaders.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Leaders of this topic are wanted from now on.
    pub fn want(&mut self, topic: &Arc<str>) {
        if self.topics.insert(topic.clone()) {
            self.asker.next = Instant::now();
        }
    }

    /// Nobody wants the leaders of this topic any more.
    pub fn forget(&mut self, topic: &str) {
        self.topics.remove(topic);
    }

    /// What is known may be wrong: leaders are asked for again, soon.
    pub fn refresh(&mut self) {
        let (asker, now) = (&mut self.asker, Instant::now());
        // Many may say so of one answer.
        if asker.is_asking || asker.next <= now {
            return;
        }
        if now.duration_since(asker.last) > AGAIN.longest {
            asker.eager = Backoff::default();
        }
        let soon = asker.last + asker.eager.next(EAGER, jitter());
        asker.next = asker.next.min(soon.max(now));
    }

    /// The connection to a broker, if there is one now. If there is none it is made.
    pub fn connection(&mut self, broker: i32) -> Option<Arc<Connection>> {
        let address = self.view.address(broker)?.clone();
        let now = Instant::now();
        let link = self.brokers.entry(broker).or_insert_with(|| Link {
            address: address.clone(),
            state: LinkState::Waiting(now),
            pauses: Backoff::default(),
            is_wanted: false,
        });
        let is_over = match &link.state {
            LinkState::Opening => return None,
            LinkState::Waiting(until) => *until <= now || link.address != address,
            LinkState::Open(connection) => {
                let session = connection.session_ends();
                // A broker ends those on which nothing is asked for a while (`connections.max.idle.ms`).
                connection.has_ended()
                    || link.address != address
                    || session.is_some_and(|end| end <= now + BEFORE_SESSION_END)
            }
        };
        match &link.state {
            LinkState::Open(connection) if !is_over => Some(connection.clone()),
            _ if !is_over => {
                link.is_wanted = true;
                None
            }
            _ => {
                link.address = address;
                self.open(broker);
                None
            }
        }
    }

    /// A connection to whatever broker, if there is one now. If there is none it is made.
    pub fn any(&mut self) -> Option<(i32, Arc<Connection>)> {
        let Some(broker) = self.likeliest() else {
            // No broker is known yet.
            self.asker.is_wanted = true;
            return None;
        };
        Some((broker, self.connection(broker)?))
    }

    /// The broker that a connection is to be had to soonest: one that is open, one that opens, one that was not tried; then
    /// the one that failed longest ago.
    fn likeliest(&self) -> Option<i32> {
        let rank = |broker: &i32| match self.brokers.get(broker).map(|link| &link.state) {
            Some(LinkState::Open(connection)) if !connection.has_ended() => (0, None),
            Some(LinkState::Opening) => (1, None),
            None | Some(LinkState::Open(_)) => (2, None),
            Some(LinkState::Waiting(until)) => (3, Some(*until)),
        };
        self.view.brokers().min_by_key(rank)
    }

    fn open(&mut self, broker: i32) {
        let Some(link) = self.brokers.get_mut(&broker) else {
            return;
        };
        link.state = LinkState::Opening;
        link.is_wanted = false;
        let (address, manner) = (link.address.clone(), self.manner.clone());
        self.tasks.spawn(async move {
            let opened = Connection::open(&address, &manner).await;
            Done::Opened(broker, address, opened)
        });
    }

    /// This connection to a broker is of no use any more.
    pub fn failed(&mut self, broker: i32, connection: &Arc<Connection>, fault: &Fault) {
        if let Some(link) = self.brokers.get_mut(&broker)
            && matches!(&link.state, LinkState::Open(open) if Arc::ptr_eq(open, connection))
        {
            link.fail(fault, &self.subject);
        }
        self.refresh();
    }

    /// When something is due that [`Links::step`] begins.
    pub fn due(&self) -> Option<Instant> {
        let waiting = self.brokers.values().filter_map(Link::opens_at);
        let is_idle = self.asker.is_asking || !self.is_asked();
        waiting.chain((!is_idle).then_some(self.asker.next)).min()
    }

    /// Begins what is due.
    pub fn step(&mut self) {
        let now = Instant::now();
        // A connection to one that is not of the cluster any more is let go of.
        let view = &self.view;
        self.brokers
            .retain(|broker, link| link.is_opening() || view.address(*broker).is_some());
        // Here, and not only when it is wanted the next time: a pause that ended between the two would be slept over.
        let ripe = |(broker, link): (&i32, &Link)| {
            let is_ripe = link.opens_at().is_some_and(|at| at <= now);
            is_ripe.then_some(*broker)
        };
        let ripe: Vec<i32> = self.brokers.iter().filter_map(ripe).collect();
        for broker in ripe {
            self.open(broker);
        }
        if !self.asker.is_asking && self.is_asked() && self.asker.next <= now {
            self.ask(now);
        }
    }

    /// Whether somebody wants to know leaders or brokers.
    fn is_asked(&self) -> bool {
        self.asker.is_wanted || !self.topics.is_empty()
    }

    fn ask(&mut self, now: Instant) {
        let candidates: Vec<&Address> = self.view.addresses().chain(&self.bootstrap).collect();
        let Some(address) = candidates.get(self.asker.candidate % candidates.len().max(1)) else {
            self.asker.next = now + AGAIN.longest;
            return;
        };
        let (address, manner) = ((*address).clone(), self.manner.clone());
        let connection = self.asker.connection.take().filter(|connection| {
            let end = connection.session_ends();
            end.is_none_or(|end| end > now + BEFORE_SESSION_END)
        });
        self.asker.is_asking = true;
        self.asker.is_wanted = false;
        self.asker.last = now;
        let topics: Vec<Arc<str>> = self.topics.iter().cloned().collect();
        self.tasks.spawn(async move {
            let asked = async {
                let connection = match connection {
                    Some(connection) => connection,
                    None => Arc::new(Connection::open(&address, &manner).await?),
                };
                let names: Vec<&str> = topics.iter().map(|topic| &**topic).collect();
                let map = connection
                    .ask(&Metadata { topics: &names }, PATIENCE)
                    .await?;
                Ok((connection, map))
            };
            Done::Mapped(asked.await)
        });
    }

    /// Waits until one of the tasks has ended, and takes over what came of it.
    pub async fn changed(&mut self) {
        match self.tasks.join_next().await {
            Some(Ok(done)) => self.take(done),
            // None is cancelled and none panics; an empty set is ready at once.
            Some(Err(_)) => {}
            None => std::future::pending().await,
        }
    }

    fn take(&mut self, done: Done) {
        match done {
            Done::Opened(broker, address, opened) => self.opened(broker, &address, opened),
            Done::Mapped(mapped) => self.mapped(mapped),
        }
    }

    fn opened(&mut self, broker: i32, address: &Address, opened: Result<Connection, Fault>) {
        let Some(link) = self.brokers.get_mut(&broker) else {
            return;
        };
        if link.address != *address {
            return;
        }
        match opened {
            Ok(connection) => {
                if link.pauses.failures() > 0 {
                    tracing::info!(event = "broker_answers", subject = %self.subject, broker = %address);
                }
                link.pauses = Backoff::default();
                link.state = LinkState::Open(Arc::new(connection));
            }
            Err(fault) => {
                link.fail(&fault, &self.subject);
                self.refresh();
            }
        }
    }

    fn mapped(&mut self, mapped: Result<(Arc<Connection>, ClusterMap), Fault>) {
        let asker = &mut self.asker;
        asker.is_asking = false;
        let now = Instant::now();
        let absorbed = mapped.map_err(|fault| fault.to_string());
        let absorbed = absorbed.and_then(|(connection, map)| {
            let absorbed = self.view.absorb(map);
            absorbed
                .map(|()| connection.clone())
                .map_err(|none| format!("broker {}: {none}", connection.broker()))
        });
        match absorbed {
            Ok(connection) => {
                if asker.pauses.failures() > 0 {
                    tracing::info!(event = "leaders_known", subject = %self.subject);
                }
                asker.connection = Some(connection);
                asker.pauses = Backoff::default();
                asker.next = now + REFRESH;
            }
            Err(detail) => {
                say(&self.subject, asker.pauses.failures(), &detail);
                asker.candidate = asker.candidate.wrapping_add(1);
                asker.next = now + asker.pauses.next(AGAIN, jitter());
            }
        }
    }
}

impl Link {
    /// When it is made again, if somebody wants it.
    fn opens_at(&self) -> Option<Instant> {
        match self.state {
            LinkState::Waiting(until) if self.is_wanted => Some(until),
            _ => None,
        }
    }

    fn is_opening(&self) -> bool {
        matches!(self.state, LinkState::Opening)
    }

    fn fail(&mut self, fault: &Fault, subject: &str) {
        say(subject, self.pauses.failures(), &fault.to_string());
        let pause = self.pauses.next(AGAIN, jitter());
        self.state = LinkState::Waiting(Instant::now() + pause);
    }
}

/// The first failure in a row is told, the rest are for who looks closely.
fn say(subject: &str, failures: u32, detail: &str) {
    match failures {
        0 => tracing::warn!(event = "broker_fault", subject, "{detail}"),
        _ => tracing::debug!(event = "broker_fault", subject, "{detail}"),
    }
}
