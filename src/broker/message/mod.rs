//! Requests and answers as bytes: the protocol's messages that moving data takes, in versions that every broker from 2.1 to
//! 4.x speaks. All of them have the plain encoding; KIP-482's compact one is never needed.

pub mod api_versions;
pub mod code;
pub mod fetch;
pub mod frame;
pub mod leader_epoch;
pub mod metadata;
pub mod produce;
pub mod producer_id;
pub mod read;
pub mod sasl;
pub mod write;

use bytes::Bytes;
use frame::Frame;
use read::{Malformed, Reader};
use write::Writer;

/// The messages that we speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// Writes batches.
    Produce,
    /// Reads batches.
    Fetch,
    /// Who leads which partition.
    Metadata,
    /// Chooses a SASL mechanism.
    SaslHandshake,
    /// Which versions the broker speaks.
    ApiVersions,
    /// A producer id.
    InitProducerId,
    /// Where an epoch of a leader ended (KIP-320).
    OffsetForLeaderEpoch,
    /// One step of SASL.
    SaslAuthenticate,
}

impl Api {
    /// All of them.
    pub const ALL: [Api; 8] = [
        Api::Produce,
        Api::Fetch,
        Api::Metadata,
        Api::SaslHandshake,
        Api::ApiVersions,
        Api::InitProducerId,
        Api::OffsetForLeaderEpoch,
        Api::SaslAuthenticate,
    ];

    /// Its number in the protocol.
    pub fn key(self) -> i16 {
        match self {
            Api::Produce => 0,
            Api::Fetch => 1,
            Api::Metadata => 3,
            Api::SaslHandshake => 17,
            Api::ApiVersions => 18,
            Api::InitProducerId => 22,
            Api::OffsetForLeaderEpoch => 23,
            Api::SaslAuthenticate => 36,
        }
    }

    /// The first and the last version that we speak.
    pub fn speaks(self) -> (i16, i16) {
        match self {
            // 7 takes zstd (KIP-110), 8 says which record of a batch was refused (KIP-467).
            Api::Produce => (7, 8),
            // 10 gives zstd, 11 may be read from a follower (KIP-392).
            Api::Fetch => (10, 11),
            // With the leaders' epochs (KIP-320).
            Api::Metadata => (7, 7),
            Api::SaslHandshake => (1, 1),
            Api::ApiVersions => (0, 0),
            Api::InitProducerId => (1, 1),
            // From 3 on we say that we are no replica.
            Api::OffsetForLeaderEpoch => (2, 3),
            // 1 says when the session ends (KIP-368).
            Api::SaslAuthenticate => (0, 1),
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Api::Produce => "Produce",
            Api::Fetch => "Fetch",
            Api::Metadata => "Metadata",
            Api::SaslHandshake => "SaslHandshake",
            Api::ApiVersions => "ApiVersions",
            Api::InitProducerId => "InitProducerId",
            Api::OffsetForLeaderEpoch => "OffsetForLeaderEpoch",
            Api::SaslAuthenticate => "SaslAuthenticate",
        }
    }
}

/// A request, and how its answer is read.
pub trait Request {
    /// Which message it is.
    const API: Api;
    /// What answers it.
    type Answer;

    /// About how many bytes it takes beside what is lent to it, so that it is written without growing.
    fn size(&self) -> usize {
        256
    }

    /// Writes its body.
    fn write(&self, version: i16, into: &mut Writer);

    /// Reads the body of its answer.
    ///
    /// # Errors
    /// Bytes that are none.
    fn read(version: i16, from: &mut Reader<'_>) -> Result<Self::Answer, Malformed>;
}

/// The frame of `request`, its header in front.
pub fn frame<Q: Request>(request: &Q, version: i16, correlation: i32, client: &str) -> Frame {
    let mut writer = Writer::with_capacity(request.size() + client.len() + 10);
    writer.int16(Q::API.key());
    writer.int16(version);
    writer.int32(correlation);
    writer.string(client);
    request.write(version, &mut writer);
    writer.frame()
}

/// The answer to `Q` in `frame`, behind its correlation.
///
/// # Errors
/// A frame that is none.
pub fn answer<Q: Request>(version: i16, frame: &Bytes) -> Result<Q::Answer, Malformed> {
    Q::read(version, &mut Reader::new(frame))
}

#[cfg(test)]
mod tests;
