//! Ports that stay ours: across parallel test processes, and while a broker is down.
//!
//! Asking the kernel for port 0 hands out ports of the range that outgoing connections use too. A client that tries to
//! reconnect to a broker that was killed may then be given the broker's own port as its source port, connect to
//! itself, and keep the broker from coming back. So ports are taken from below that range, and each is *claimed* by
//! binding a name in the abstract socket namespace: the claim lasts until the [`Port`] is dropped, other processes
//! that use this harness respect it, and the kernel gives it up if this process is killed.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use crate::error::HarnessError;

const LOWEST: u16 = 10_000;
/// Linux's default for the first port of outgoing connections.
const USUAL_FIRST_OUTGOING: u16 = 32_768;

/// A loopback port that no other user of this harness takes while this value lives.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _claim: UnixListener,
}

impl Port {
    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

/// Claims `wanted` ports on which nothing listens.
///
/// A stranger may still take one before the broker does; the start is then tried again with others.
pub(crate) fn claim(wanted: usize) -> Result<Vec<Port>, HarnessError> {
    let (from, to) = candidates(first_outgoing_port());
    let span = to - from;
    // Processes that start at the same time should not walk over the same ports.
    let start = (std::process::id() % u32::from(span)) as u16;
    let ports: Vec<Port> = (0..span)
        .map(|step| from + (start + step) % span)
        .filter_map(claim_one)
        .take(wanted)
        .collect();
    if ports.len() < wanted {
        return Err(HarnessError::NoPorts { wanted, from, to });
    }
    Ok(ports)
}

fn claim_one(number: u16) -> Option<Port> {
    let claim = claim_name(number).ok()?;
    TcpListener::bind(("127.0.0.1", number)).ok()?;
    Some(Port {
        number,
        _claim: claim,
    })
}

fn claim_name(number: u16) -> io::Result<UnixListener> {
    let name = format!("kafka-harness-port-{number}");
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// The range to choose from: below the outgoing ports if there is room, otherwise as if they began where they usually do.
fn candidates(first_outgoing: u16) -> (u16, u16) {
    let room = first_outgoing.saturating_sub(LOWEST);
    (
        LOWEST,
        if room >= 1_000 {
            first_outgoing
        } else {
            USUAL_FIRST_OUTGOING
        },
    )
}

fn first_outgoing_port() -> u16 {
    fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .unwrap_or(USUAL_FIRST_OUTGOING)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    // One test, because two would take the ports that the other has just given back.
    #[test]
    fn a_port_is_claimed_once_and_only_if_nobody_listens_on_it() {
        let first = claim(20).unwrap();
        let second = claim(20).unwrap();
        let all: HashSet<u16> = first.iter().chain(&second).map(Port::number).collect();
        assert_eq!(all.len(), 40);

        let number = first[0].number();
        assert!(claim_one(number).is_none());
        drop(first);
        let listener = TcpListener::bind(("127.0.0.1", number)).unwrap();
        assert!(claim_one(number).is_none());
        drop(listener);
        assert!(claim_one(number).is_some());
    }

    #[test]
    fn candidates_stay_below_the_outgoing_ports_when_there_is_room() {
        assert_eq!(candidates(32_768), (10_000, 32_768));
        assert_eq!(candidates(15_000), (10_000, 15_000));
        assert_eq!(candidates(1_024), (10_000, 32_768));
    }
}
