//! Which versions of each message a broker speaks (KIP-35).

use super::code::Code;
use super::read::{Malformed, Reader};
use super::write::Writer;
use super::{Api, Request};

/// Asks for them.
pub struct ApiVersions;

/// The versions of the messages that we speak, as far as the broker knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions(Vec<(i16, i16, i16)>);

impl Versions {
    /// The newest version of `api` that both sides speak.
    ///
    /// # Errors
    /// The broker's first and last, 0 and -1 where it does not know the message.
    pub fn common(&self, api: Api) -> Result<i16, (i16, i16)> {
        let theirs = self.0.iter().find(|(key, _, _)| *key == api.key());
        let (first, last) = theirs.map_or((0, -1), |(_, first, last)| (*first, *last));
        let (our_first, our_last) = api.speaks();
        let newest = last.min(our_last);
        match newest >= first.max(our_first) {
            true => Ok(newest),
            false => Err((first, last)),
        }
    }
}

impl Request for ApiVersions {
    const API: Api = Api::ApiVersions;
    type Answer = Result<Versions, Code>;

    fn write(&self, _: i16, _: &mut Writer) {}

    fn read(_: i16, from: &mut Reader<'_>) -> Result<Self::Answer, Malformed> {
        let code = from.int16()?;
        let versions = from.list(|from| Ok((from.int16()?, from.int16()?, from.int16()?)))?;
        Ok(Code::check(code).map(|()| Versions(versions)))
    }
}

/// What a broker answers that is played by a test: it speaks all that we do.
#[cfg(test)]
pub(crate) fn all_of_ours() -> Vec<u8> {
    let mut body = vec![0; 2];
    body.extend_from_slice(&(Api::ALL.len() as u32).to_be_bytes());
    for api in Api::ALL {
        let (first, last) = api.speaks();
        for number in [api.key(), first, last] {
            body.extend_from_slice(&number.to_be_bytes());
        }
    }
    body
}
