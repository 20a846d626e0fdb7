//! As much of Kafka's protocol as it takes to see whether a broker is ready: ApiVersions and Metadata.
//!
//! A Java tool would need a second to say the same.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const METADATA: i16 = 3;
const API_VERSIONS: i16 = 18;
/// The first version in which an empty list of topics means none.
const METADATA_VERSION: i16 = 1;
/// More than either answer can hold in a cluster of a few brokers.
const MAX_ANSWER: usize = 1 << 20;

/// The node ids of the cluster's live brokers, ascending, as the broker on `port` knows them.
pub(crate) fn members(port: u16, patience: Duration) -> io::Result<Vec<i32>> {
    let mut stream =
        TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;

    let versions = call(&mut stream, API_VERSIONS, 0, &[])?;
    check_metadata_version(&mut Fields(&versions))?;
    let no_topics = 0_i32.to_be_bytes();
    let metadata = call(&mut stream, METADATA, METADATA_VERSION, &no_topics)?;
    broker_ids(&mut Fields(&metadata))
}

/// Sends one request and reads its answer, without the header.
fn call(stream: &mut TcpStream, api: i16, version: i16, body: &[u8]) -> io::Result<Vec<u8>> {
    let correlation = i32::from(api);
    let mut request = Vec::with_capacity(14 + body.len());
    let no_client_id = -1_i16;
    request.extend((10 + body.len() as i32).to_be_bytes());
    request.extend(api.to_be_bytes());
    request.extend(version.to_be_bytes());
    request.extend(correlation.to_be_bytes());
    request.extend(no_client_id.to_be_bytes());
    request.extend(body);
    stream.write_all(&request)?;

    let mut head = [0; 8];
    stream.read_exact(&mut head)?;
    let mut head = Fields(&head);
    let (length, answered) = (head.i32()? as usize, head.i32()?);
    if answered != correlation || !(4..=MAX_ANSWER).contains(&length) {
        return Err(invalid("not an answer of a Kafka broker"));
    }
    let mut answer = vec![0; length - 4];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

fn check_metadata_version(answer: &mut Fields<'_>) -> io::Result<()> {
    if answer.i16()? != 0 {
        return Err(invalid("the broker refuses ApiVersions"));
    }
    for _ in 0..answer.i32()? {
        let (api, lowest, highest) = (answer.i16()?, answer.i16()?, answer.i16()?);
        if api == METADATA && (lowest..=highest).contains(&METADATA_VERSION) {
            return Ok(());
        }
    }
    Err(invalid("the broker does not speak version 1 of Metadata"))
}

fn broker_ids(answer: &mut Fields<'_>) -> io::Result<Vec<i32>> {
    let mut ids = Vec::new();
    for _ in 0..answer.i32()? {
        ids.push(answer.i32()?);
        answer.skip_string()?; // host
        answer.i32()?; // port
        answer.skip_string()?; // rack
    }
    ids.sort_unstable();
    Ok(ids)
}

/// What is left of an answer.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| invalid("the answer is cut off"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn i16(&mut self) -> io::Result<i16> {
        self.array().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> io::Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// Null strings have length -1.
    fn skip_string(&mut self) -> io::Result<()> {
        let length = self.i16()?;
        self.take(usize::try_from(length).unwrap_or(0)).map(drop)
    }
}

fn invalid(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broker_ids_come_in_ascending_order() {
        let mut answer = 2_i32.to_be_bytes().to_vec();
        for id in [7_i32, 3] {
            answer.extend(id.to_be_bytes());
            answer.extend(9_i16.to_be_bytes());
            answer.extend(b"localhost");
            answer.extend(9092_i32.to_be_bytes());
            answer.extend((-1_i16).to_be_bytes());
        }
        assert_eq!(broker_ids(&mut Fields(&answer)).unwrap(), [3, 7]);
        assert!(broker_ids(&mut Fields(&answer[..20])).is_err());
    }

    #[test]
    fn a_broker_without_our_metadata_version_is_refused() {
        let mut answer = vec![0, 0, 0, 0, 0, 1];
        for field in [METADATA, 4, 13] {
            answer.extend(field.to_be_bytes());
        }
        assert!(check_metadata_version(&mut Fields(&answer)).is_err());
    }
}
