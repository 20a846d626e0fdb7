//! `decode` and `encode`: base64, hexadecimal digits, gzip, and JSON inside a text.

use super::every::{self, Change};
use crate::handler::fault::{Place, suggest};
use crate::handler::json::{scan, text};
use crate::handler::limit::RecordLimit;
use crate::handler::path::{Field, Path};
use crate::handler::spec::Entries;
use crate::handler::{Failure, FailureCode, Reads};
use crate::record::Record;
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose};
use flate2::Compression;
use flate2::bufread::{GzEncoder, MultiGzDecoder};
use serde_json::Value;
use std::io::Read;

/// The names of the codecs.
pub(in crate::handler) const CODECS: [&str; 4] = ["base64", "hex", "gzip", "json"];

/// The standard alphabet; padding may be left out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// One path, and what is done to everything that it matches.
#[derive(Clone, Debug)]
pub(crate) struct Recode {
    path: Path,
    direction: Direction,
    codec: Codec,
}

/// Which way a codec is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    /// From the encoded form.
    Decode,
    /// To the encoded form.
    Encode,
}

#[derive(Clone, Copy, Debug)]
enum Codec {
    Base64,
    Hex,
    Gzip,
    Json,
}

/// Compiles the entries of `decode` or `encode`, reporting mistakes at `place`.
pub(super) fn compile(
    entries: &Entries,
    direction: Direction,
    place: &Place<'_>,
) -> Option<Vec<Recode>> {
    if entries.0.is_empty() {
        return place.fault("an empty map changes nothing");
    }
    let compiled = entries.0.iter().map(|(path, codec)| {
        let place = place.child(path);
        let path = every::compile(path, &place.key());
        let codec = Codec::compile(codec, &place);
        Some(Recode {
            path: path?,
            direction,
            codec: codec?,
        })
    });
    let compiled: Vec<Option<Recode>> = compiled.collect();
    compiled.into_iter().collect()
}

impl Recode {
    /// What it reads of a record.
    pub(super) fn reads(&self) -> Reads {
        every::reads(&self.path)
    }

    /// Changes everything in `record` that the path matches.
    pub(super) fn apply(&self, record: &mut Record<'_>, limit: RecordLimit) -> Result<(), Failure> {
        let change = Run {
            recode: self,
            limit,
        };
        every::change(record, &self.path, limit, &change)
    }
}

impl Codec {
    fn compile(written: &Value, place: &Place<'_>) -> Option<Self> {
        match written.as_str() {
            Some("base64") => Some(Self::Base64),
            Some("hex") => Some(Self::Hex),
            Some("gzip") => Some(Self::Gzip),
            Some("json") => Some(Self::Json),
            other => {
                let other = other.unwrap_or_default();
                place.fault_with_help("the name of a codec is expected", suggest(other, CODECS))
            }
        }
    }
}

/// One run over a record, with the room that it has.
struct Run<'s> {
    recode: &'s Recode,
    limit: RecordLimit,
}

impl Change for Run<'_> {
    fn bytes(&self, bytes: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let changed = match (self.recode.direction, self.recode.codec) {
            (Direction::Decode, Codec::Base64) => from_base64(bytes)?,
            (Direction::Decode, Codec::Hex) => from_hex(bytes)?,
            (Direction::Decode, Codec::Gzip) => self.unzip(bytes)?,
            (Direction::Decode, Codec::Json) => inner_json(&bytes[scan::root(bytes)?], 0)?,
            (Direction::Encode, Codec::Base64) => general_purpose::STANDARD.encode(bytes).into(),
            (Direction::Encode, Codec::Hex) => hex::encode(bytes).into(),
            (Direction::Encode, Codec::Gzip) => zip(bytes)?,
            (Direction::Encode, Codec::Json) => json_text(&bytes[scan::root(bytes)?])?,
        };
        Ok(Some(changed))
    }

    /// A field holds text. What `gzip` makes is none, so it stands there in base64.
    fn json(&self, token: &[u8], depth: usize) -> Result<Option<Vec<u8>>, Failure> {
        match (self.recode.direction, self.recode.codec) {
            (Direction::Decode, Codec::Json) => return inner_json(token, depth).map(Some),
            (Direction::Encode, Codec::Json) => return json_text(token).map(Some),
            _ => {}
        }
        let Field::Text(text) = Field::of_token(token)? else {
            let detail = "only a text can be decoded or encoded so".to_owned();
            return Err(Failure::new(FailureCode::WrongType, detail));
        };
        let bytes = text.as_bytes();
        let changed = match (self.recode.direction, self.recode.codec) {
            (Direction::Decode, Codec::Gzip) => self.unzip(&from_base64(bytes)?)?,
            (Direction::Encode, Codec::Gzip) => {
                general_purpose::STANDARD.encode(zip(bytes)?).into()
            }
            _ => self.bytes(bytes)?.unwrap_or_default(),
        };
        match std::str::from_utf8(&changed) {
            Ok(text) => Ok(Some(text::encoded(text))),
            Err(_) => {
                let detail =
                    "what was decoded is not UTF-8 and cannot become a JSON text".to_owned();
                Err(Failure::new(FailureCode::WrongType, detail))
            }
        }
    }
}

impl Run<'_> {
    /// Reads no further than the record may grow: a bomb fails before it takes the memory.
    fn unzip(&self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let most = u64::try_from(self.limit.bytes()).unwrap_or(u64::MAX);
        let mut out = Vec::new();
        let mut reader = MultiGzDecoder::new(bytes).take(most.saturating_add(1));
        match reader.read_to_end(&mut out) {
            Ok(_) => self.limit.check_bytes(out.len()).map(|()| out),
            Err(_) => Err(refused("no gzip, or it is cut off")),
        }
    }
}

fn from_base64(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    BASE64.decode(bytes).map_err(|_| refused("no base64"))
}

fn from_hex(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    hex::decode(bytes).map_err(|_| refused("no pairs of hexadecimal digits"))
}

/// The header of the result says no time, so that the same bytes always give the same.
fn zip(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::new();
    match GzEncoder::new(bytes, Compression::default()).read_to_end(&mut out) {
        Ok(_) => Ok(out),
        Err(_) => Err(refused("gzip failed")),
    }
}

/// The JSON inside a JSON text, which will stand at `depth`.
fn inner_json(token: &[u8], depth: usize) -> Result<Vec<u8>, Failure> {
    match Field::of_token(token)? {
        Field::Text(text) => {
            let span = scan::root_at(text.as_bytes(), depth)?;
            Ok(text.as_bytes()[span].to_vec())
        }
        _ => {
            let detail = "JSON is decoded from a text".to_owned();
            Err(Failure::new(FailureCode::WrongType, detail))
        }
    }
}

/// A checked JSON value as a JSON text.
fn json_text(token: &[u8]) -> Result<Vec<u8>, Failure> {
    match std::str::from_utf8(token) {
        Ok(spelled) => Ok(text::encoded(spelled)),
        Err(_) => Err(refused("not UTF-8")),
    }
}

fn refused(what: &str) -> Failure {
    Failure::new(FailureCode::Codec, what)
}
