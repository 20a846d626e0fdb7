//! Why a cluster could not be asked, from what the client complained of. Pure.

use crate::client::asker::Complaint;
use rdkafka::types::RDKafkaErrorCode;

/// Why a cluster could not be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The cause.
    pub cause: Cause,
    /// The client's words about it, each once.
    pub words: Vec<String>,
}

/// What kind of trouble it is. Ordered: what tells more comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// No client can be made of the settings.
    Settings,
    /// The cluster does not know the user, the password or the mechanism.
    Authentication,
    /// The broker's certificate is not trusted, or ours is not.
    Tls,
    /// One side speaks TLS or SASL and the other does not.
    Protocol,
    /// A name that nobody knows.
    Unresolvable,
    /// Nothing listens there.
    Refused,
    /// No answer in time.
    Silent,
}

impl Cause {
    /// A few words, for tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Settings => "no client can be made",
            Cause::Authentication => "authentication failed",
            Cause::Tls => "TLS verification failed",
            Cause::Protocol => "another security protocol is spoken there",
            Cause::Unresolvable => "unknown host",
            Cause::Refused => "connection refused",
            Cause::Silent => "no answer in time",
        }
    }

    /// Whether waiting longer cannot help.
    pub fn is_final(self) -> bool {
        matches!(self, Cause::Settings | Cause::Authentication | Cause::Tls)
    }
}

impl Trouble {
    /// No client can be made.
    pub fn settings(words: String) -> Self {
        Self {
            cause: Cause::Settings,
            words: vec![words],
        }
    }

    /// What the complaints come to. Several brokers may complain of several things: what tells the
    /// most wins, and its words are kept.
    pub fn of(complaints: &[Complaint]) -> Self {
        let causes = || complaints.iter().map(|c| (cause(c), c));
        let cause = causes().map(|(cause, _)| cause).min();
        let cause = cause.unwrap_or(Cause::Silent);
        let mut words: Vec<String> = Vec::new();
        for (_, complaint) in causes().filter(|(c, _)| *c == cause) {
            let told = shortened(&complaint.words);
            let said = complaint.code != RDKafkaErrorCode::AllBrokersDown;
            if said && !words.contains(&told) {
                words.push(told);
            }
        }
        Self { cause, words }
    }
}

fn cause(complaint: &Complaint) -> Cause {
    let says = |text: &str| complaint.words.contains(text);
    // A listener without SASL answers an attempt to authenticate like this.
    if says("PLAINTEXT broker listener") || says("current SASL state") {
        return Cause::Protocol;
    }
    match complaint.code {
        RDKafkaErrorCode::Authentication
        | RDKafkaErrorCode::SaslAuthenticationFailed
        | RDKafkaErrorCode::UnsupportedSASLMechanism => Cause::Authentication,
        RDKafkaErrorCode::Resolve => Cause::Unresolvable,
        RDKafkaErrorCode::SSL if says("wrong version number") => Cause::Protocol,
        RDKafkaErrorCode::SSL => Cause::Tls,
        _ if says("Connection refused") => Cause::Refused,
        // Listeners that want TLS or SASL close the connection when they get neither.
        _ if says("security.protocol") || says("Disconnected") => Cause::Protocol,
        _ => Cause::Silent,
    }
}

/// `sasl_ssl://host:9093/bootstrap: Connect to ipv4#…: Connection refused (after 0ms in state
/// CONNECT, 3 identical error(s) suppressed)` without what changes from one time to the next.
fn shortened(words: &str) -> String {
    let told = match words.split_once("]: ") {
        Some((thread, rest)) if thread.starts_with("[thrd:") => rest,
        _ => words,
    };
    let told = told.split(" (after ").next().unwrap_or(told);
    let told = told.split_once("://").map_or(told, |(_, rest)| rest);
    told.replacen("/bootstrap", "", 1).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use RDKafkaErrorCode as Code;

    fn of(complaints: &[(Code, &str)]) -> Trouble {
        let complaints: Vec<Complaint> = complaints
            .iter()
            .map(|(code, words)| Complaint {
                code: *code,
                words: (*words).to_owned(),
            })
            .collect();
        Trouble::of(&complaints)
    }

    #[test]
    fn each_cause_is_told_by_its_words() {
        let t = Code::BrokerTransportFailure;
        let cases = [
            (
                Code::Resolve,
                "h:1/bootstrap: Failed to resolve 'h:1'",
                Cause::Unresolvable,
            ),
            (
                t,
                "h:1/bootstrap: Connect to ipv4#1.2.3.4:1 failed: Connection refused",
                Cause::Refused,
            ),
            (
                t,
                "h:1/bootstrap: Disconnected: connection closed by peer: receive 0 after POLLIN",
                Cause::Protocol,
            ),
            (
                t,
                "ssl://h:1/bootstrap: SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?",
                Cause::Protocol,
            ),
            (
                t,
                "h:1: Connection setup timed out in state SSL_HANDSHAKE",
                Cause::Silent,
            ),
            (
                Code::SSL,
                "ssl://h:1: SSL handshake failed: certificate verify failed",
                Cause::Tls,
            ),
            (
                Code::SSL,
                "ssl://h:1: SSL handshake failed: wrong version number",
                Cause::Protocol,
            ),
            (
                Code::Authentication,
                "sasl_plaintext://h:1: SASL authentication error",
                Cause::Authentication,
            ),
            (
                Code::Authentication,
                "h:1: Request not valid in current SASL state",
                Cause::Protocol,
            ),
        ];
        for (code, words, cause) in cases {
            assert_eq!(of(&[(code, words)]).cause, cause, "{words}");
        }
        assert_eq!(of(&[]).cause, Cause::Silent);
    }

    #[test]
    fn what_tells_the_most_wins_and_is_said_once() {
        let refused = "a:1/bootstrap: Connect to ipv4#1.2.3.4:1 failed: Connection refused (after 0ms in state CONNECT)";
        let again = "[thrd:a:1/bootstrap]: a:1/bootstrap: Connect to ipv4#1.2.3.4:1 failed: Connection refused (after 1ms in state CONNECT, 3 identical error(s) suppressed)";
        let trouble = of(&[
            (Code::BrokerTransportFailure, refused),
            (Code::BrokerTransportFailure, again),
            (Code::AllBrokersDown, "1/1 brokers are down"),
        ]);
        assert_eq!(
            trouble.words,
            ["a:1: Connect to ipv4#1.2.3.4:1 failed: Connection refused"]
        );
        let trouble = of(&[
            (Code::BrokerTransportFailure, refused),
            (Code::SSL, "ssl://b:1/bootstrap: SSL handshake failed"),
        ]);
        assert_eq!(
            (trouble.cause, trouble.words),
            (Cause::Tls, vec!["b:1: SSL handshake failed".to_owned()])
        );
    }
}
