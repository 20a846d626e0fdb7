//! The sessions of a group's members, kept as Kafka keeps them: a member of which nothing was heard for its session is
//! taken out of its group.
//!
//! The embedded broker notices only members that come back too late. One that has gone without a word stays for ever, and
//! where it led its group nobody is given anything again: a round that the broker ends for it still waits for its word.
//! So the broker is told of sessions that never end, and the front ends them.

use super::front::exchange;
use super::wire::{Member, leave};
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
struct Session {
    lasts: Duration,
    heard: Instant,
    /// Requests of the member that the broker has not answered. One that waits to join is not silent.
    asking: usize,
}

impl Session {
    /// When it ends if nothing more is heard.
    fn end(&self) -> Option<Instant> {
        (self.asking == 0).then(|| self.heard + self.lasts)
    }
}

#[derive(Debug, Default)]
struct State {
    members: HashMap<Member, Session>,
    ended: bool,
}

/// The members of the groups of one cluster. Its thread ends with it.
#[derive(Debug)]
pub struct Sessions {
    kept: Arc<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    state: Mutex<State>,
    changed: Condvar,
}

impl Sessions {
    pub fn of(broker: SocketAddr) -> Self {
        let kept = Arc::new(Kept::default());
        let keeper = kept.clone();
        thread::spawn(move || keeper.keep(broker));
        Self { kept }
    }

    /// A member joins, with a session that lasts so long.
    pub fn joins(&self, member: &Member, lasts: Duration) {
        self.kept.change(|state| {
            let heard = Instant::now();
            let session = state.members.entry(member.clone()).or_insert(Session {
                lasts,
                heard,
                asking: 0,
            });
            session.lasts = lasts;
        });
    }

    /// A member asks something; it is not silent before the answer.
    pub fn asks(&self, member: &Member) {
        self.kept.change(|state| {
            if let Some(session) = state.members.get_mut(member) {
                session.asking += 1;
            }
        });
    }

    /// It has its answer, or its connection has ended.
    pub fn is_answered(&self, member: &Member) {
        self.kept.change(|state| {
            if let Some(session) = state.members.get_mut(member) {
                session.asking = session.asking.saturating_sub(1);
                session.heard = Instant::now();
            }
        });
    }

    /// A member has left.
    pub fn leaves(&self, member: &Member) {
        self.kept.change(|state| {
            state.members.remove(member);
        });
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.kept.change(|state| state.ended = true);
    }
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Takes out who is silent, as long as the cluster lives.
    fn keep(&self, broker: SocketAddr) {
        while let Some(gone) = self.next_silent() {
            // A broker that has ended has no members.
            let _ = take_out(broker, &gone);
        }
    }

    fn next_silent(&self) -> Option<Member> {
        let mut state = self.lock();
        while !state.ended {
            let ends = state.members.iter();
            let ends = ends.filter_map(|(member, session)| Some((session.end()?, member.clone())));
            let next = ends.min_by_key(|(end, _)| *end);
            let now = Instant::now();
            state = match next {
                Some((end, member)) if end <= now => {
                    state.members.remove(&member);
                    return Some(member);
                }
                Some((end, _)) => {
                    let woken = self.changed.wait_timeout(state, end - now);
                    woken.expect("nobody panics with it").0
                }
                None => self.changed.wait(state).expect("nobody panics with it"),
            };
        }
        None
    }
}

fn take_out(broker: SocketAddr, member: &Member) -> io::Result<()> {
    let broker = TcpStream::connect(broker)?;
    exchange(&broker, &leave(member)?).map(drop)
}
