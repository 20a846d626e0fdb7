//! The messages that carry SASL (KIP-43, KIP-152, KIP-368).

use super::code::Code;
use super::read::{Malformed, Reader};
use super::write::Writer;
use super::{Api, Request};
use bytes::Bytes;
use std::time::Duration;

/// Chooses a mechanism.
pub struct SaslHandshake {
    /// Its name.
    pub mechanism: &'static str,
}

/// The mechanisms of a listener that has not the one that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Others {
    /// What it says.
    pub code: Code,
    /// Their names.
    pub mechanisms: Vec<String>,
}

impl Request for SaslHandshake {
    const API: Api = Api::SaslHandshake;
    type Answer = Result<(), Others>;

    fn write(&self, _: i16, into: &mut Writer) {
        into.string(self.mechanism);
    }

    fn read(_: i16, from: &mut Reader<'_>) -> Result<Self::Answer, Malformed> {
        let code = from.int16()?;
        let mechanisms = from.list(Reader::string)?;
        Ok(Code::check(code).map_err(|code| Others { code, mechanisms }))
    }
}

/// One step of a mechanism.
pub struct SaslAuthenticate<'a> {
    /// What the mechanism says.
    pub bytes: &'a [u8],
}

/// The broker's step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What its mechanism says.
    pub bytes: Bytes,
    /// After how long it wants to be asked again; `None`: never.
    pub session: Option<Duration>,
}

impl Request for SaslAuthenticate<'_> {
    const API: Api = Api::SaslAuthenticate;
    type Answer = Result<Step, String>;

    fn size(&self) -> usize {
        self.bytes.len() + 4
    }

    fn write(&self, _: i16, into: &mut Writer) {
        into.bytes(self.bytes);
    }

    fn read(version: i16, from: &mut Reader<'_>) -> Result<Self::Answer, Malformed> {
        let code = from.int16()?;
        let words = from.nullable_string()?;
        let bytes = from.bytes()?;
        let millis = match version {
            0 => 0,
            _ => from.int64()?,
        };
        let session = u64::try_from(millis).ok().filter(|millis| *millis > 0);
        let step = Step {
            bytes,
            session: session.map(Duration::from_millis),
        };
        let refused = |code: Code| words.unwrap_or_else(|| code.to_string());
        Ok(Code::check(code).map(|()| step).map_err(refused))
    }
}
