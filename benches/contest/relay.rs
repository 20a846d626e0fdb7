//! The floor: a process that reads bytes from one socket and writes them to another. As many as the topic has on the wire.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

/// What is read at once.
const BLOCK: usize = 1 << 20;

/// Relays, in this process: from the first address to the second.
pub fn run(addresses: &[String]) {
    let [from, to] = addresses else {
        panic!("two addresses, not {addresses:?}");
    };
    let mut from = TcpStream::connect(from).expect("the feeder listens");
    let mut to = TcpStream::connect(to).expect("the drain listens");
    let mut block = vec![0; BLOCK];
    loop {
        match from.read(&mut block).expect("bytes") {
            0 => break,
            read => to.write_all(&block[..read]).expect("bytes are taken"),
        }
    }
}

/// The two ends of a relay, in the bench.
pub struct Ends {
    pub from: SocketAddr,
    pub to: SocketAddr,
    feeder: JoinHandle<()>,
    drain: JoinHandle<u64>,
    bytes: u64,
}

impl Ends {
    /// So many bytes are fed to whoever connects first.
    pub fn open(bytes: u64) -> Self {
        let listen = || TcpListener::bind("127.0.0.1:0").expect("a port");
        let (feeding, draining) = (listen(), listen());
        let at = |listener: &TcpListener| listener.local_addr().expect("its address");
        Self {
            from: at(&feeding),
            to: at(&draining),
            feeder: std::thread::spawn(move || feed(&feeding, bytes)),
            drain: std::thread::spawn(move || drain(&draining)),
            bytes,
        }
    }

    /// All of them came out.
    pub fn close(self) {
        self.feeder.join().expect("the feeder ends");
        let drained = self.drain.join().expect("the drain ends");
        assert_eq!(drained, self.bytes, "what goes in comes out");
    }
}

fn feed(listener: &TcpListener, bytes: u64) {
    let (mut stream, _) = listener.accept().expect("a relay");
    let block = vec![7; BLOCK];
    let mut left = bytes;
    while left > 0 {
        let part = left.min(BLOCK as u64) as usize;
        stream.write_all(&block[..part]).expect("bytes are taken");
        left -= part as u64;
    }
}

fn drain(listener: &TcpListener) -> u64 {
    let (mut stream, _) = listener.accept().expect("a relay");
    let mut block = vec![0; BLOCK];
    let mut drained = 0;
    loop {
        match stream.read(&mut block).expect("bytes") {
            0 => return drained,
            read => drained += read as u64,
        }
    }
}
