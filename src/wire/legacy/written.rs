//! Messages of the formats 0 and 1 as tests write them.

use crate::wire::codec::{Codec, Compression, Compressor};
use crate::wire::cut::{Cut, Cuts};
use bytes::Bytes;
use proptest::prelude::*;
use twox_hash::XxHash32;

/// The codecs that these formats have.
pub const CODECS: [Codec; 4] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4];

/// A message as the old formats can have it; -1 for no timestamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plain {
    pub offset: i64,
    pub timestamp: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
}

/// A row of messages, not compressed.
pub fn row(magic: u8, messages: &[Plain]) -> Vec<u8> {
    let each = messages.iter().map(|m| message(magic, 0, m));
    each.collect::<Vec<_>>().concat()
}

/// The same in a wrapper, with the broker's time where there is one.
pub fn wrapper(magic: u8, codec: Codec, append_time: Option<i64>, messages: &[Plain]) -> Vec<u8> {
    let first = messages.first().expect("a message").offset;
    let inside = messages.iter().cloned().map(|message| Plain {
        offset: message.offset - if magic == 0 { 0 } else { first },
        ..message
    });
    let inside: Vec<Plain> = inside.collect();
    let newest = messages.iter().map(|m| m.timestamp).max();
    let wrapped = Plain {
        offset: messages.last().expect("a message").offset,
        timestamp: append_time.or(newest).expect("a timestamp"),
        key: None,
        value: Some(compressed(magic, codec, &row(magic, &inside))),
    };
    let time = if append_time.is_some() { 0x08 } else { 0 };
    message(magic, time | codec.number() as u8, &wrapped)
}

/// One message with these attributes.
pub fn message(magic: u8, attributes: u8, of: &Plain) -> Vec<u8> {
    let mut covered = vec![magic, attributes];
    if magic > 0 {
        covered.extend(of.timestamp.to_be_bytes());
    }
    for field in [&of.key, &of.value] {
        match field {
            Some(bytes) => {
                covered.extend((bytes.len() as i32).to_be_bytes());
                covered.extend(bytes);
            }
            None => covered.extend((-1i32).to_be_bytes()),
        }
    }
    let mut bytes = of.offset.to_be_bytes().to_vec();
    bytes.extend((covered.len() as i32 + 4).to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(covered);
    seal(&mut bytes);
    bytes
}

/// Writes the checksum of a message into it.
pub fn seal(message: &mut [u8]) {
    let mut crc = flate2::Crc::new();
    crc.update(&message[16..]);
    message[12..16].copy_from_slice(&crc.sum().to_be_bytes());
}

pub fn compressed(magic: u8, codec: Codec, row: &[u8]) -> Vec<u8> {
    let mut compressor = Compressor::new(Compression { codec, level: None }).expect("a codec");
    let mut bytes = Vec::new();
    compressor.compress(row, &mut bytes).expect("compressed");
    if magic == 0 && codec == Codec::Lz4 {
        // The checksum of the header over the frame's magic number as well; it has nothing but flags and block size.
        bytes[6] = (XxHash32::oneshot(0, &bytes[..6]) >> 8) as u8;
    }
    bytes
}

/// Messages that were written together, their offsets counted from the first.
#[derive(Clone, Debug)]
pub struct Set {
    magic: u8,
    codec: Codec,
    append_time: Option<i64>,
    messages: Vec<Plain>,
}

impl Set {
    /// The set in a log from this offset on, and what is to be read of it.
    pub fn at(&self, first: i64) -> (Vec<u8>, Vec<Plain>) {
        let messages = self.messages.iter().cloned().map(|message| Plain {
            offset: first + message.offset,
            ..message
        });
        let messages: Vec<Plain> = messages.collect();
        let bytes = match self.codec {
            Codec::None => row(self.magic, &messages),
            codec => wrapper(self.magic, codec, self.append_time, &messages),
        };
        let expected = messages.into_iter().map(|message| Plain {
            timestamp: match self.magic {
                0 => -1,
                _ => self.append_time.unwrap_or(message.timestamp),
            },
            ..message
        });
        (bytes, expected.collect())
    }
}

/// Any set: holes between its messages, each format and codec, the broker's time or the producer's.
pub fn set() -> impl Strategy<Value = Set> {
    // librdkafka takes 0 for none.
    let timestamp = || prop_oneof![Just(-1), 1..i64::MAX];
    let field = || proptest::option::of(proptest::collection::vec(any::<u8>(), 0..300));
    let one = (1i64..5, timestamp(), field(), field());
    let messages = proptest::collection::vec(one, 1..20);
    let append_time = proptest::option::of(1..i64::MAX);
    let codec = proptest::sample::select(&CODECS[..]);
    (0u8..2, codec, append_time, messages).prop_map(|(magic, codec, append_time, messages)| {
        let mut offset = -1;
        let messages = messages
            .into_iter()
            .map(|(distance, timestamp, key, value)| {
                offset += distance;
                Plain {
                    offset,
                    timestamp,
                    key,
                    value,
                }
            });
        Set {
            magic,
            codec,
            append_time: append_time.filter(|_| magic > 0 && codec != Codec::None),
            messages: messages.collect(),
        }
    })
}

/// What a broker has in its log: each message or wrapper by itself.
pub fn apart(row: &[u8]) -> Vec<Bytes> {
    let cuts = Cuts::of(row).map(|cut| match cut {
        Ok(Cut::Message(message)) => Bytes::copy_from_slice(message.bytes()),
        other => panic!("no message: {other:?}"),
    });
    cuts.collect()
}
