//! What stands in front of an embedded cluster and reads every request: it passes it on, or does with it what a test wants.
//! To its clients it is a cluster of two brokers, so that leaders and coordinators can move.
//!
//! Each connection has a thread, which serves one request after the other, as a broker does.

use super::sessions::Sessions;
use super::wire::{Asked, Member, Membership, Nodes, leave, read_frame, write_frame};
use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// How long a member waits for the others before it asks the broker again.
const JOIN_AGAIN: Duration = Duration::from_secs(1);

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is not done, and this is the answer.
    Refused(ResponseError),
    /// It is done, and this is the answer all the same.
    DoneAndDenied(ResponseError),
    /// It is done, and the connection ends before the answer.
    AnswerLost,
    /// The connection ends, and it was not done.
    RequestLost,
    /// It is done twice, and answered once.
    DoneTwice,
    /// It is done, and answered twice.
    AnsweredTwice,
    /// It waits until there is another rule, and meets that.
    Held,
    /// It is done; the answer waits until the rule is gone.
    AnswerHeld,
    /// The records of the answer are not what they were.
    Spoilt,
    /// Of a commit: the group forgets the member first, and the broker says so itself.
    MemberForgotten,
}

/// How often a fate is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    Only(usize),
    UntilLifted,
}

#[derive(Debug)]
struct Rule {
    api: ApiKey,
    /// Only requests that bring a record with this text to this topic.
    about: Option<(&'static str, String)>,
    fate: Fate,
    times: Times,
}

#[derive(Debug)]
struct State {
    rules: Vec<Rule>,
    /// How many requests met a rule.
    met: usize,
    nodes: Nodes,
    ended: bool,
    connections: Vec<TcpStream>,
}

#[derive(Debug)]
struct Shared {
    broker: SocketAddr,
    sessions: Sessions,
    state: Mutex<State>,
    changed: Condvar,
}

/// The front of one cluster. Its connections end with it.
#[derive(Debug)]
pub struct Front {
    bootstrap: String,
    shared: Arc<Shared>,
}

impl Front {
    pub fn of(broker: &str) -> Self {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let doors = listeners
            .iter()
            .map(|l| l.local_addr().expect("an address"));
        let doors: Vec<SocketAddr> = doors.collect();
        let bootstrap = doors[0].to_string();
        let nodes = Nodes::new(doors);
        let ids: Vec<i32> = nodes.with_doors().map(|(id, _)| id).collect();
        let broker: SocketAddr = broker.parse().expect("an address");
        let shared = Arc::new(Shared {
            broker,
            sessions: Sessions::of(broker),
            state: Mutex::new(State {
                rules: Vec::new(),
                met: 0,
                nodes,
                ended: false,
                connections: Vec::new(),
            }),
            changed: Condvar::new(),
        });
        for (listener, node) in listeners.into_iter().zip(ids) {
            let shared = shared.clone();
            thread::spawn(move || accept(&listener, node, &shared));
        }
        Self { bootstrap, shared }
    }

    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// From now on requests of this kind meet this fate, whatever was said of them before.
    pub fn rule(&self, api: ApiKey, fate: Fate, times: Times) {
        self.replace(Rule {
            api,
            about: None,
            fate,
            times,
        });
    }

    /// The same for writing requests that bring a record with this text to a topic, until it is lifted.
    pub fn rule_about(&self, topic: &'static str, text: String, fate: Fate) {
        self.replace(Rule {
            api: ApiKey::Produce,
            about: Some((topic, text)),
            fate,
            times: Times::UntilLifted,
        });
    }

    fn replace(&self, rule: Rule) {
        self.change(|state| {
            state.rules.retain(|before| before.api != rule.api);
            state.rules.push(rule);
            state.met = 0;
        });
    }

    /// Everything passes again.
    pub fn lift(&self) {
        self.change(|state| state.rules.clear());
    }

    /// How many requests met the last rule.
    pub fn met(&self) -> usize {
        self.shared.lock().met
    }

    pub fn leader_moves(&self, node: i32) {
        self.change(|state| state.nodes.leads = node);
    }

    pub fn coordinator_moves(&self, node: i32) {
        self.change(|state| state.nodes.coordinates = node);
    }

    /// Ends every connection.
    pub fn cut(&self) {
        self.change(State::cut);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.lock());
        self.shared.changed.notify_all();
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.change(|state| {
            state.ended = true;
            state.cut();
        });
        let nodes = self.shared.lock().nodes.clone();
        for (_, door) in nodes.with_doors() {
            // Wakes the thread that accepts; it sees that this is the end.
            drop(TcpStream::connect(door));
        }
    }
}

impl State {
    fn cut(&mut self) {
        for connection in self.connections.drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// The fate of one request, and one time less of it.
    fn meet(&mut self, asked: &Asked) -> Option<Fate> {
        let rule = self.rules.iter_mut().find(|rule| rule.api == asked.api)?;
        if let Some((topic, text)) = &rule.about
            && !asked.carries(topic, text)
        {
            return None;
        }
        match &mut rule.times {
            Times::Only(0) => return None,
            Times::Only(left) => *left -= 1,
            Times::UntilLifted => {}
        }
        self.met += 1;
        Some(rule.fate)
    }
}

impl State {
    /// Which record the rule for these requests means.
    fn about(&self, api: ApiKey) -> Option<(&'static str, String)> {
        let rule = self.rules.iter().find(|rule| rule.api == api)?;
        rule.about.clone()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test holds it")
    }

    /// What becomes of a request; waits while it is held.
    fn fate(&self, asked: &Asked, node: i32) -> Option<Fate> {
        let mut state = self.lock();
        let mut fate = state.meet(asked);
        while fate == Some(Fate::Held) && !state.ended {
            state = self.waits_while(state, asked.api, Fate::Held);
            fate = state.meet(asked);
        }
        let refusal = state.nodes.not_mine(node, asked.api).map(Fate::Refused);
        fate.or(refusal)
    }

    fn waits_while<'a>(
        &self,
        state: MutexGuard<'a, State>,
        api: ApiKey,
        fate: Fate,
    ) -> MutexGuard<'a, State> {
        let is = |rule: &Rule| rule.api == api && rule.fate == fate;
        let waits = |state: &mut State| !state.ended && state.rules.iter().any(is);
        let woken = self.changed.wait_while(state, waits);
        woken.expect("no test holds it")
    }

    /// The broker does it, and the sessions of members are kept.
    fn done(&self, asked: &Asked, frame: &Bytes, broker: &TcpStream) -> io::Result<Bytes> {
        match asked.membership()? {
            Membership::Nothing => exchange(broker, frame),
            Membership::Joins(member, session) => {
                self.sessions.joins(&member, session);
                let frame = asked.without_end()?;
                self.done_for(&member, asked, || self.join(&frame, broker))
            }
            Membership::Asks(member) => self.done_for(&member, asked, || exchange(broker, frame)),
            Membership::Leaves(members) => {
                for member in &members {
                    self.sessions.leaves(member);
                }
                exchange(broker, frame)
            }
        }
    }

    fn done_for(
        &self,
        member: &Member,
        asked: &Asked,
        done: impl FnOnce() -> io::Result<Bytes>,
    ) -> io::Result<Bytes> {
        self.sessions.asks(member);
        let answer = done();
        self.sessions.is_answered(member);
        let answer = answer?;
        if asked.is_no_member(&answer)? {
            self.sessions.leaves(member);
        }
        Ok(answer)
    }

    /// A member joins. The embedded broker looks at a round every 20 ms. One that begins and ends between two looks it does
    /// not see, and who waited for it is not counted in the next one, which then never ends; asked again, it counts.
    fn join(&self, frame: &Bytes, broker: &TcpStream) -> io::Result<Bytes> {
        let (answered, is_answered) = channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut asked = Vec::new();
                while is_answered.recv_timeout(JOIN_AGAIN) == Err(RecvTimeoutError::Timeout) {
                    // A broker that has ended ends the wait as well.
                    let again = TcpStream::connect(self.broker);
                    asked.extend(again.and_then(|to| write_frame(&to, frame).map(|()| to)));
                }
            });
            let answer = exchange(broker, frame);
            drop(answered);
            answer
        })
    }

    /// The broker is told that the member that asks leaves its group.
    fn forget(&self, asked: &Asked, broker: &TcpStream) -> io::Result<()> {
        if let Membership::Asks(member) = asked.membership()? {
            self.sessions.leaves(&member);
            exchange(broker, &leave(&member)?)?;
        }
        Ok(())
    }

    /// Both ends of a connection are shut when the front ends or cuts.
    fn note(&self, connection: &[&TcpStream; 2]) -> io::Result<()> {
        let mut state = self.lock();
        if state.ended {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        for end in connection {
            state.connections.push(end.try_clone()?);
        }
        Ok(())
    }
}

fn accept(listener: &TcpListener, node: i32, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.lock().ended {
            return;
        }
        let Ok(client) = client else { continue };
        let shared = shared.clone();
        // A connection that breaks is a connection that ends.
        thread::spawn(move || {
            let _ = serve(&client, node, &shared);
            let _ = client.shutdown(Shutdown::Both);
        });
    }
}

fn serve(client: &TcpStream, node: i32, shared: &Shared) -> io::Result<()> {
    let broker = TcpStream::connect(shared.broker)?;
    client.set_nodelay(true)?;
    broker.set_nodelay(true)?;
    shared.note(&[client, &broker])?;
    while let Some(frame) = read_frame(client)? {
        let asked = Asked::read(&frame)?;
        for answer in answers(&asked, &frame, &broker, node, shared)? {
            write_frame(client, &answer)?;
        }
    }
    Ok(())
}

/// One request and its answer.
pub fn exchange(broker: &TcpStream, frame: &[u8]) -> io::Result<Bytes> {
    write_frame(broker, frame)?;
    let answer = read_frame(broker)?;
    answer.ok_or_else(|| io::ErrorKind::ConnectionAborted.into())
}

/// A request is refused; if one record of it is meant, the other partitions in it are not.
fn refused(
    asked: &Asked,
    error: ResponseError,
    broker: &TcpStream,
    shared: &Shared,
) -> io::Result<Bytes> {
    let about = shared.lock().about(asked.api);
    let others = match about {
        Some((topic, text)) => asked.without(topic, &text)?,
        None => None,
    };
    match others {
        Some(others) => asked.refused_beside(exchange(broker, &others)?, error),
        None => asked.refusal(error),
    }
}

/// What the client hears of one request; an error ends the connection.
fn answers(
    asked: &Asked,
    frame: &Bytes,
    broker: &TcpStream,
    node: i32,
    shared: &Shared,
) -> io::Result<Vec<Bytes>> {
    let done = || shared.done(asked, frame, broker);
    let lost = || Err(io::ErrorKind::ConnectionAborted.into());
    match shared.fate(asked, node) {
        Some(Fate::Refused(error)) => Ok(vec![refused(asked, error, broker, shared)?]),
        Some(Fate::DoneAndDenied(error)) => {
            done()?;
            Ok(vec![asked.refusal(error)?])
        }
        Some(Fate::RequestLost) => lost(),
        Some(Fate::AnswerLost) => {
            done()?;
            lost()
        }
        Some(Fate::DoneTwice) => {
            done()?;
            Ok(vec![done()?])
        }
        Some(Fate::AnsweredTwice) => {
            let answer = done()?;
            Ok(vec![answer.clone(), answer])
        }
        Some(Fate::AnswerHeld) => {
            let answer = done()?;
            drop(shared.waits_while(shared.lock(), asked.api, Fate::AnswerHeld));
            Ok(vec![answer])
        }
        Some(Fate::Spoilt) => {
            let answer = done()?;
            Ok(vec![asked.spoilt(&answer)?.unwrap_or(answer)])
        }
        Some(Fate::MemberForgotten) => {
            shared.forget(asked, broker)?;
            Ok(vec![done()?])
        }
        Some(Fate::Held) | None => {
            let answer = done()?;
            let nodes = shared.lock().nodes.clone();
            Ok(vec![asked.placed(answer, &nodes)?])
        }
    }
}
