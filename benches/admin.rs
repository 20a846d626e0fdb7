//! What a `mirror` that runs says of itself.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// A port that nobody listens at.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

/// Its status; nothing before it answers.
pub fn status(port: u16) -> Value {
    let ask = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        write!(stream, "GET /api/v1/status HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    };
    ask().unwrap_or_default()
}

/// Looks on until a route says this of itself: a broken route that is not broken would prove nothing.
pub fn wait(port: u16, route: &str, what: &str, said: &str) {
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        let status = status(port);
        let route = &status["routes"][route];
        if route.pointer(what).is_some_and(|found| found == said) {
            return;
        }
        assert!(Instant::now() < patience, "{what} is not {said}: {route}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
