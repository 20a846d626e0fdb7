//! Who we are: one mechanism, step by step. The mechanisms themselves are rsasl's.

use super::security::{Credentials, Login};
use rsasl::config::SASLConfig;
use rsasl::prelude::{Mechname, SASLClient, Session, State};

/// An exchange under way.
pub struct Exchange {
    state: Under,
}

enum Under {
    /// By rsasl.
    Session(Session),
    /// A message with a token, until it is said.
    Token(Option<Vec<u8>>),
}

/// What the mechanism says.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// These bytes, and it waits for the broker's.
    Bytes(Vec<u8>),
    /// These bytes, and nothing more from us; the broker's answer is its last.
    Last(Vec<u8>),
}

impl Exchange {
    /// Begins one.
    ///
    /// # Errors
    /// Names or passwords that the mechanism cannot carry; nobody gives a token.
    pub async fn begin(credentials: &Credentials) -> Result<Self, String> {
        match credentials {
            Credentials::Login(login) => Self::of_login(login),
            Credentials::Tokens(tokens) => Ok(Self {
                state: Under::Token(Some(tokens.message().await?)),
            }),
        }
    }

    fn of_login(credentials: &Login) -> Result<Self, String> {
        let config = SASLConfig::with_credentials(
            None,
            credentials.username.clone(),
            credentials.password.reveal().to_owned(),
        )
        .map_err(|error| error.to_string())?;
        let name = Mechname::parse(credentials.mechanism.as_str().as_bytes())
            .map_err(|error| error.to_string())?;
        let session = SASLClient::new(config)
            .start_suggested([&name])
            .map_err(|error| error.to_string())?;
        Ok(Self {
            state: Under::Session(session),
        })
    }

    /// The next step, after the broker's; `None` for the first.
    ///
    /// # Errors
    /// A broker that does not know the password either, or what it sent is no step.
    pub fn step(&mut self, heard: Option<&[u8]>) -> Result<Said, String> {
        match &mut self.state {
            Under::Session(session) => step(session, heard),
            Under::Token(message) => token_step(message, heard),
        }
    }
}

/// A broker that takes a token says nothing; one that does not says why, and the connection is of no use (RFC 7628).
fn token_step(message: &mut Option<Vec<u8>>, heard: Option<&[u8]>) -> Result<Said, String> {
    match (message.take(), heard) {
        (Some(message), _) => Ok(Said::Bytes(message)),
        (None, None | Some([])) => Ok(Said::Last(Vec::new())),
        (None, Some(why)) => Err(String::from_utf8_lossy(why).into_owned()),
    }
}

fn step(session: &mut Session, heard: Option<&[u8]>) -> Result<Said, String> {
    let mut said = Vec::new();
    let state = session
        .step(heard, &mut said)
        .map_err(|error| error.to_string())?;
    Ok(match state {
        State::Running => Said::Bytes(said),
        State::Finished(_) => Said::Last(said),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::security::Mechanism;
    use crate::config::secret::Secret;

    fn login(mechanism: Mechanism) -> Login {
        Login {
            mechanism,
            username: "alice".into(),
            password: Secret::new("a password"),
        }
    }

    #[test]
    fn plain_is_said_at_once() {
        let mut exchange = Exchange::of_login(&login(Mechanism::Plain)).expect("it begins");
        assert_eq!(
            exchange.step(None),
            Ok(Said::Last(b"\0alice\0a password".to_vec()))
        );
    }

    #[test]
    fn a_token_is_taken_without_a_word_or_refused_with_some() {
        let exchange = || Exchange {
            state: Under::Token(Some(b"n,,token".to_vec())),
        };
        let mut taken = exchange();
        assert_eq!(taken.step(None), Ok(Said::Bytes(b"n,,token".to_vec())));
        assert_eq!(taken.step(Some(b"")), Ok(Said::Last(Vec::new())));
        let mut refused = exchange();
        assert!(refused.step(None).is_ok());
        let words = r#"{"status":"invalid_token"}"#;
        assert_eq!(refused.step(Some(words.as_bytes())), Err(words.to_owned()));
    }

    #[test]
    fn scram_begins_with_the_name_and_wants_a_proof_from_the_broker() {
        for mechanism in [Mechanism::ScramSha256, Mechanism::ScramSha512] {
            let mut exchange = Exchange::of_login(&login(mechanism)).expect("it begins");
            let Ok(Said::Bytes(first)) = exchange.step(None) else {
                panic!("{mechanism:?} goes on");
            };
            assert!(first.starts_with(b"n,,n=alice,r="), "{first:?}");
            assert!(exchange.step(Some(b"v=invented")).is_err());
        }
    }
}
