//! The network between clients and one broker, which a test can make bad while it is in use.
//!
//! A [`Proxy`] listens on loopback and passes connections on to its broker, which advertises the proxy's address
//! ([`ClusterBuilder::proxied`](crate::ClusterBuilder::proxied)). Each direction is a [`Way`]: late, slow, held or deaf. Four threads carry a
//! connection: in each direction one reads and stamps what it read with the time at which it is due, one writes it
//! then, so that a delay costs time and not throughput.
//!
//! What a real network does and this one cannot: refuse to open a connection. While a way is held or deaf, connections
//! are opened and nothing comes of them.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Attempt, HarnessError};

/// What is read at once.
const CHUNK: usize = 16 << 10;
/// Chunks on their way; beyond, the sender has to wait as for a full window.
const WINDOW: usize = 256;
/// How long a write may hang before its thread looks whether the connection was reset.
const WRITE_PATIENCE: Duration = Duration::from_millis(200);
/// Threads only copy bytes.
const STACK: usize = 128 << 10;

/// Both directions between clients and a broker. The default passes everything on at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Requests.
    pub to_broker: Way,
    /// Responses.
    pub to_client: Way,
}

impl Link {
    /// The same in both directions.
    #[must_use]
    pub fn both(way: Way) -> Self {
        Self {
            to_broker: way,
            to_client: way,
        }
    }
}

/// One direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Everything comes so much later.
    pub delay: Duration,
    /// And up to so much later still, each time another; the order is kept.
    pub jitter: Duration,
    /// What all connections together may use.
    pub bytes_per_second: Option<NonZeroU64>,
    /// Whether anything comes at all.
    pub traffic: Traffic,
}

/// Whether bytes come through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Traffic {
    /// They do.
    #[default]
    Flows,
    /// They wait, and come when it is over: a partition that TCP outlives.
    Held,
    /// They are thrown away as if they had come: half-open. A connection that lost bytes is reset when it is over.
    Swallowed,
}

/// What the proxy has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Toll {
    /// Connections that were opened.
    pub connections: u64,
    /// Bytes that came through.
    pub passed: u64,
    /// Bytes that were made late, by delay, jitter or bandwidth.
    pub delayed: u64,
    /// Bytes that had to wait for the end of [`Traffic::Held`], or still do.
    pub held: u64,
    /// Bytes that were thrown away.
    pub swallowed: u64,
    /// Connections that were reset.
    pub reset: u64,
}

/// A proxy in front of one broker. It ends when it is dropped, and its connections with it.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    broker: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
    toll: Counters,
    ended: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    link: Link,
    connections: Vec<Weak<Connection>>,
    /// When each direction's bandwidth is free again.
    free: [Option<Instant>; 2],
}

#[derive(Debug, Default)]
struct Counters {
    connections: AtomicU64,
    passed: AtomicU64,
    delayed: AtomicU64,
    held: AtomicU64,
    swallowed: AtomicU64,
    reset: AtomicU64,
}

/// Both ends of what is one connection to client and broker. They close when its threads have ended.
#[derive(Debug)]
struct Connection {
    client: TcpStream,
    broker: TcpStream,
    /// Ends with a reset, whatever is still on its way.
    is_reset: AtomicBool,
    /// Bytes of it were thrown away: what follows would make no sense.
    is_broken: AtomicBool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    ToBroker,
    ToClient,
}

/// Bytes, and when they are due.
struct Chunk {
    bytes: Vec<u8>,
    due: Instant,
}

impl Proxy {
    /// A proxy on a free port, to a broker that need not be there yet.
    pub(crate) fn start(broker: SocketAddr) -> Result<Self, HarnessError> {
        let listening = || {
            let listener = TcpListener::bind(("127.0.0.1", 0))?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) = listening().attempt(|| "listen for a proxy".to_owned())?;
        let shared = Arc::new(Shared {
            broker,
            state: Mutex::default(),
            changed: Condvar::new(),
            toll: Counters::default(),
            ended: AtomicBool::new(false),
        });
        let of = shared.clone();
        thread::spawn(move || accept(&listener, &of));
        Ok(Self { address, shared })
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes the network so, for what is open and for what will be.
    pub fn set(&self, link: Link) {
        let mut state = self.shared.lock();
        state.link = link;
        state.free = [None; 2];
        let broken = |c: &Arc<Connection>| c.is_broken.load(Ordering::Relaxed);
        let over = link.to_broker.traffic != Traffic::Swallowed
            && link.to_client.traffic != Traffic::Swallowed;
        if over {
            self.shared.reset(&state, broken);
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Makes the network good again.
    pub fn heal(&self) {
        self.set(Link::default());
    }

    /// Resets every connection that is open.
    pub fn reset(&self) {
        self.shared.reset(&self.shared.lock(), |_| true);
        self.shared.changed.notify_all();
    }

    /// What it has done so far.
    #[must_use]
    pub fn toll(&self) -> Toll {
        let toll = &self.shared.toll;
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Toll {
            connections: of(&toll.connections),
            passed: of(&toll.passed),
            delayed: of(&toll.delayed),
            held: of(&toll.held),
            swallowed: of(&toll.swallowed),
            reset: of(&toll.reset),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        self.reset();
        // Wakes the thread that accepts; it sees that this is the end.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reset(&self, state: &State, which: impl Fn(&Arc<Connection>) -> bool) {
        let open = state.connections.iter().filter_map(Weak::upgrade);
        for connection in open.filter(which) {
            if !connection.is_reset.swap(true, Ordering::Relaxed) {
                self.toll.reset.fetch_add(1, Ordering::Relaxed);
                connection.reset();
            }
        }
    }

    /// Waits while the way is held. What becomes of the bytes then: `None` if they are thrown away.
    fn pass(&self, connection: &Connection, direction: Direction, bytes: u64) -> Option<Instant> {
        let mut state = self.lock();
        let held = |state: &State| {
            direction.of(&state.link).traffic == Traffic::Held
                && !connection.is_reset.load(Ordering::Relaxed)
        };
        if held(&state) {
            self.toll.held.fetch_add(bytes, Ordering::Relaxed);
        }
        while held(&state) {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let way = direction.of(&state.link);
        if way.traffic == Traffic::Swallowed {
            connection.is_broken.store(true, Ordering::Relaxed);
            self.toll.swallowed.fetch_add(bytes, Ordering::Relaxed);
            return None;
        }
        let now = Instant::now();
        let Some(rate) = way.bytes_per_second else {
            return Some(now);
        };
        let free = &mut state.free[direction as usize];
        let taken = Duration::from_secs_f64(bytes as f64 / rate.get() as f64);
        let until = free.map_or(now, |at| at.max(now)) + taken;
        *free = Some(until);
        self.toll.delayed.fetch_add(bytes, Ordering::Relaxed);
        Some(until)
    }
}

impl Direction {
    fn of(self, link: &Link) -> Way {
        match self {
            Self::ToBroker => link.to_broker,
            Self::ToClient => link.to_client,
        }
    }
}

impl Connection {
    fn ends(&self, direction: Direction) -> (&TcpStream, &TcpStream) {
        match direction {
            Direction::ToBroker => (&self.client, &self.broker),
            Direction::ToClient => (&self.broker, &self.client),
        }
    }

    /// Wakes its readers; when all threads have ended, the sockets close with a reset instead of a farewell.
    fn reset(&self) {
        for end in [&self.client, &self.broker] {
            reset_on_close(end);
            let _ = end.shutdown(Shutdown::Read);
        }
    }
}

fn reset_on_close(socket: &TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let size = size_of::<libc::linger>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the option's value is a linger of this size.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size,
        );
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.ended.load(Ordering::Relaxed) {
            return;
        }
        let Ok(client) = client else { continue };
        match TcpStream::connect(shared.broker) {
            // As if the broker itself had refused.
            Err(_) => reset_on_close(&client),
            Ok(broker) => {
                // What cannot be carried is closed.
                let _ = carry(client, broker, shared);
            }
        }
    }
}

fn carry(client: TcpStream, broker: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    for end in [&client, &broker] {
        end.set_nodelay(true)?;
        end.set_write_timeout(Some(WRITE_PATIENCE))?;
    }
    let connection = Arc::new(Connection {
        client,
        broker,
        is_reset: AtomicBool::new(false),
        is_broken: AtomicBool::new(false),
    });
    shared.toll.connections.fetch_add(1, Ordering::Relaxed);
    let mut state = shared.lock();
    state.connections.retain(|c| c.strong_count() > 0);
    state.connections.push(Arc::downgrade(&connection));
    drop(state);
    for direction in [Direction::ToBroker, Direction::ToClient] {
        let (chunks, due) = sync_channel(WINDOW);
        let (of, to) = ((connection.clone(), shared.clone()), shared.clone());
        let small = || thread::Builder::new().stack_size(STACK);
        small().spawn(move || receive(&of.0, direction, &of.1, &chunks))?;
        let connection = connection.clone();
        small().spawn(move || deliver(&connection, direction, &to, &due))?;
    }
    Ok(())
}

/// Reads to the end, and stamps what it read.
fn receive(
    connection: &Connection,
    direction: Direction,
    shared: &Shared,
    chunks: &SyncSender<Chunk>,
) {
    let mut from = connection.ends(direction).0;
    let mut buffer = vec![0; CHUNK];
    let mut last = Instant::now();
    let mut random = last.elapsed().as_nanos() as u64 | 1;
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let way = direction.of(&shared.lock().link);
        let late = way.delay + share(way.jitter, &mut random);
        if !late.is_zero() {
            shared
                .toll
                .delayed
                .fetch_add(read as u64, Ordering::Relaxed);
        }
        last = last.max(Instant::now() + late);
        let bytes = buffer[..read].to_vec();
        if chunks.send(Chunk { bytes, due: last }).is_err() {
            return;
        }
    }
}

/// Some part of it, each time another.
fn share(of: Duration, random: &mut u64) -> Duration {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    of.mul_f64((*random % 1000) as f64 / 1000.0)
}

/// Writes what is due, to the end; then says so to the other side.
fn deliver(connection: &Connection, direction: Direction, shared: &Shared, due: &Receiver<Chunk>) {
    let to = connection.ends(direction).1;
    for chunk in due {
        thread::sleep(chunk.due.saturating_duration_since(Instant::now()));
        let bytes = chunk.bytes.len() as u64;
        let Some(until) = shared.pass(connection, direction, bytes) else {
            continue;
        };
        thread::sleep(until.saturating_duration_since(Instant::now()));
        if write(connection, to, &chunk.bytes).is_err() {
            break;
        }
        shared.toll.passed.fetch_add(bytes, Ordering::Relaxed);
    }
    if !connection.is_reset.load(Ordering::Relaxed) {
        let _ = to.shutdown(Shutdown::Write);
        // Who cannot be written to any more needs no reader either.
        let _ = connection.ends(direction).0.shutdown(Shutdown::Read);
    }
}

/// Writes all of it, unless the connection is reset meanwhile.
fn write(connection: &Connection, mut to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        if connection.is_reset.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        match to.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends back what it gets, for as many connections as come, and a proxy in front of it.
    fn echo() -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                thread::spawn(move || {
                    let stream = stream.unwrap();
                    let _ = io::copy(&mut &stream, &mut &stream);
                });
            }
        });
        Proxy::start(address).unwrap()
    }

    fn connect(proxy: &Proxy) -> TcpStream {
        let stream = TcpStream::connect(proxy.address()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }

    fn ask(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<Vec<u8>> {
        stream.write_all(bytes)?;
        let mut answer = vec![0; bytes.len()];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    }

    fn until(so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !so() {
            assert!(Instant::now() < deadline);
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_goes_in_comes_out() {
        let proxy = echo();
        let stream = connect(&proxy);
        let bytes: Vec<u8> = (0..300_000u32).map(|n| n as u8).collect();
        let mut half = stream.try_clone().unwrap();
        let sent = bytes.clone();
        let sending = thread::spawn(move || {
            half.write_all(&sent).unwrap();
            half.shutdown(Shutdown::Write).unwrap();
        });
        let mut answer = Vec::new();
        (&stream).read_to_end(&mut answer).unwrap();
        sending.join().unwrap();
        assert!(answer == bytes);
        let toll = proxy.toll();
        assert_eq!((toll.connections, toll.passed), (1, 600_000));
        assert_eq!((toll.delayed, toll.held, toll.swallowed), (0, 0, 0));
    }

    #[test]
    fn a_delay_makes_late_and_keeps_the_order() {
        let proxy = echo();
        let stream = connect(&proxy);
        proxy.set(Link::both(Way {
            delay: Duration::from_millis(40),
            jitter: Duration::from_millis(40),
            ..Way::default()
        }));
        let began = Instant::now();
        for round in 0..3u8 {
            assert_eq!(ask(&stream, &[round; 100]).unwrap(), [round; 100]);
        }
        assert!(began.elapsed() >= Duration::from_millis(3 * 2 * 40));
        assert_eq!(proxy.toll().delayed, 600);
    }

    #[test]
    fn bandwidth_is_shared_by_all_connections() {
        let proxy = echo();
        proxy.set(Link {
            to_broker: Way {
                bytes_per_second: NonZeroU64::new(100_000),
                ..Way::default()
            },
            ..Link::default()
        });
        let (one, other) = (connect(&proxy), connect(&proxy));
        let began = Instant::now();
        let asking = thread::spawn(move || ask(&one, &[1; 10_000]).unwrap());
        ask(&other, &[2; 10_000]).unwrap();
        asking.join().unwrap();
        assert!(began.elapsed() >= Duration::from_millis(200));
    }

    #[test]
    fn what_is_held_comes_when_it_is_over() {
        let proxy = echo();
        let stream = connect(&proxy);
        proxy.set(Link::both(Way {
            traffic: Traffic::Held,
            ..Way::default()
        }));
        (&stream).write_all(b"later").unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        let mut answer = [0; 5];
        assert!((&stream).read(&mut answer).is_err());
        proxy.heal();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        (&stream).read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"later");
        assert!(proxy.toll().held >= 5);
    }

    #[test]
    fn a_connection_that_lost_bytes_is_reset_when_it_is_over() {
        let proxy = echo();
        let (lucky, deaf) = (connect(&proxy), connect(&proxy));
        ask(&lucky, b"hello").unwrap();
        proxy.set(Link {
            to_client: Way {
                traffic: Traffic::Swallowed,
                ..Way::default()
            },
            ..Link::default()
        });
        (&deaf).write_all(b"anybody?").unwrap();
        until(|| proxy.toll().swallowed == 8);
        proxy.heal();
        let error = (&deaf).read(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(ask(&lucky, b"still").unwrap(), b"still");
        assert_eq!(proxy.toll().reset, 1);
    }

    #[test]
    fn a_reset_is_one_and_the_next_connection_is_good() {
        let proxy = echo();
        let stream = connect(&proxy);
        ask(&stream, b"hello").unwrap();
        proxy.reset();
        let error = (&stream).read(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        ask(&connect(&proxy), b"again").unwrap();
    }

    #[test]
    fn nobody_behind_it_is_a_reset() {
        let nobody = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = nobody.local_addr().unwrap();
        drop(nobody);
        let proxy = Proxy::start(address).unwrap();
        assert!(ask(&connect(&proxy), b"hello").is_err());
    }
}
