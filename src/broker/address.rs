//! Where a broker listens.

use std::fmt;
use std::sync::Arc;

/// Host and port of a broker, as a bootstrap server or as its cluster names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// A name or a number; IPv6 without brackets.
    pub host: Arc<str>,
    /// The port.
    pub port: u16,
}

/// Text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not host:port")]
pub struct NoAddress(pub String);

impl Address {
    /// An address of its parts.
    pub fn new(host: &str, port: u16) -> Self {
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        Self {
            host: bare.unwrap_or(host).into(),
            port,
        }
    }
}

impl std::str::FromStr for Address {
    type Err = NoAddress;

    /// Reads `host:port`, as librdkafka does also behind `PLAINTEXT://`; without a port it is 9092.
    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let refused = || NoAddress(text.to_owned());
        let bare = text.trim();
        let bare = bare.split_once("://").map_or(bare, |(_, rest)| rest);
        let (host, port) = match bare.rsplit_once(':') {
            // The colons of an IPv6 address stand within brackets.
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| refused())?)
            }
            _ => (bare, 9092),
        };
        let is_host = !host.is_empty() && !host.contains(char::is_whitespace);
        is_host.then(|| Self::new(host, port)).ok_or_else(refused)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        let read = |text: &str| text.parse::<Address>().map(|a| a.to_string()).ok();
        assert_eq!(read("kafka-1:9093").as_deref(), Some("kafka-1:9093"));
        assert_eq!(read(" SSL://kafka-1 ").as_deref(), Some("kafka-1:9092"));
        assert_eq!(read("[::1]:9093").as_deref(), Some("[::1]:9093"));
        assert_eq!(read("[::1]").as_deref(), Some("[::1]:9092"));
        assert_eq!(read("kafka:90931"), None);
        assert_eq!(read(":9092"), None);
        assert_eq!(read("a b:9092"), None);
    }
}
