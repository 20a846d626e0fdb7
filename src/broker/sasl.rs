//! Who we are: one mechanism, step by step. The mechanisms themselves are rsasl's.

use super::security::Credentials;
use rsasl::config::SASLConfig;
use rsasl::prelude::{Mechname, SASLClient, Session, State};

/// An exchange under way.
pub struct Exchange {
    session: Session,
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
    /// Names or passwords that the mechanism cannot carry.
    pub fn begin(credentials: &Credentials) -> Result<Self, String> {
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
        Ok(Self { session })
    }

    /// The next step, after the broker's; `None` for the first.
    ///
    /// # Errors
    /// A broker that does not know the password either, or what it sent is no step.
    pub fn step(&mut self, heard: Option<&[u8]>) -> Result<Said, String> {
        let mut said = Vec::new();
        let state = self
            .session
            .step(heard, &mut said)
            .map_err(|error| error.to_string())?;
        Ok(match state {
            State::Running => Said::Bytes(said),
            State::Finished(_) => Said::Last(said),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::security::Mechanism;
    use crate::config::secret::Secret;

    fn credentials(mechanism: Mechanism) -> Credentials {
        Credentials {
            mechanism,
            username: "alice".into(),
            password: Secret::new("a password"),
        }
    }

    #[test]
    fn plain_is_said_at_once() {
        let mut exchange = Exchange::begin(&credentials(Mechanism::Plain)).expect("it begins");
        assert_eq!(
            exchange.step(None),
            Ok(Said::Last(b"\0alice\0a password".to_vec()))
        );
    }

    #[test]
    fn scram_begins_with_the_name_and_wants_a_proof_from_the_broker() {
        for mechanism in [Mechanism::ScramSha256, Mechanism::ScramSha512] {
            let mut exchange = Exchange::begin(&credentials(mechanism)).expect("it begins");
            let Ok(Said::Bytes(first)) = exchange.step(None) else {
                panic!("{mechanism:?} goes on");
            };
            assert!(first.starts_with(b"n,,n=alice,r="), "{first:?}");
            assert!(exchange.step(Some(b"v=invented")).is_err());
        }
    }
}
