//! A producer id (KIP-98).

use super::code::Code;
use super::read::{Malformed, Reader};
use super::write::Writer;
use super::{Api, Request};

/// Asks for a new id. Without a transactional id a broker gives nothing else: it raises nobody's epoch.
pub struct InitProducerId;

/// Who writes, in the eyes of a target partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerId {
    /// The id.
    pub id: i64,
    /// Whoever writes with a higher epoch shuts out those with lower ones.
    pub epoch: i16,
}

impl Request for InitProducerId {
    const API: Api = Api::InitProducerId;
    type Answer = Result<ProducerId, Code>;

    fn write(&self, _: i16, into: &mut Writer) {
        into.null_string();
        // The timeout of a transaction, which there is none of.
        into.int32(i32::MAX);
    }

    fn read(_: i16, from: &mut Reader<'_>) -> Result<Self::Answer, Malformed> {
        let _throttle = from.int32()?;
        let code = from.int16()?;
        let producer = ProducerId {
            id: from.int64()?,
            epoch: from.int16()?,
        };
        Ok(Code::check(code).map(|()| producer))
    }
}
