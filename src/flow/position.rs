//! What is written beside a committed offset, and what it lets us recognise later.
//!
//! Versioned and compact, since a commit request holds 256 KiB of metadata at most: a text of
//! `key=value` pairs after the version, such as `m1;t=<topic id>;c=<target cluster id>;f=<settings>;w=<producer id>.<epoch>;s`.
//! Unknown keys are ignored, an unknown version is taken for a foreign commit.

use crate::plan::Fingerprint;
use std::fmt;
use std::str::FromStr;

/// The version that we write.
const VERSION: &str = "m1";

/// What a commit of ours says beside the offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitMetadata {
    /// The id of the source topic; `None` where the cluster knows no ids.
    pub topic_id: Option<String>,
    /// The id of the target cluster.
    pub target_cluster: Option<String>,
    /// The settings that the records below the offset were copied under; `None` where nothing was copied yet.
    pub settings: Option<Fingerprint>,
    /// Who writes the partition's records at the target; `None` where no producer id was ever taken for it.
    pub writer: Option<WriterMark>,
    /// Whether the flow's start was resolved for every partition (`engine.md` rule 7).
    pub start: StartMark,
}

/// Whether a commit says that the flow's start is behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartMark {
    /// The start of all partitions is resolved: what is uncommitted was found later.
    Started,
    /// Nothing is said.
    #[default]
    Unsaid,
}

/// The producer id of whoever copies a partition, and the highest epoch that may be written with by then: a successor
/// begins above it (`worker::fence`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterMark {
    /// The producer id (KIP-98), of the target cluster's making.
    pub id: i64,
    /// The highest epoch that is claimed.
    pub epoch: i16,
}

impl fmt::Display for WriterMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.id, self.epoch)
    }
}

impl FromStr for WriterMark {
    type Err = NoMark;

    /// What is negative is no mark: -1 means "none" in the protocol.
    fn from_str(text: &str) -> Result<Self, NoMark> {
        let (id, epoch) = text.split_once('.').ok_or(NoMark)?;
        let mark = Self {
            id: id.parse().map_err(|_| NoMark)?,
            epoch: epoch.parse().map_err(|_| NoMark)?,
        };
        let is_one = mark.id >= 0 && mark.epoch >= 0;
        is_one.then_some(mark).ok_or(NoMark)
    }
}

/// A text that names no writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it names no producer id and epoch")]
pub struct NoMark;

impl CommitMetadata {
    /// The text to commit.
    pub fn encode(&self) -> String {
        let mut text = VERSION.to_owned();
        if let Some(id) = &self.topic_id {
            text.push_str(";t=");
            text.push_str(id);
        }
        if let Some(id) = &self.target_cluster {
            text.push_str(";c=");
            text.push_str(id);
        }
        if let Some(settings) = &self.settings {
            text.push_str(";f=");
            text.push_str(&settings.to_string());
        }
        if let Some(writer) = &self.writer {
            text.push_str(";w=");
            text.push_str(&writer.to_string());
        }
        if self.start == StartMark::Started {
            text.push_str(";s");
        }
        text
    }

    /// Reads what stands beside an offset. Anything that is not ours says nothing.
    pub fn decode(bytes: &[u8]) -> Self {
        let mut metadata = Self::default();
        let Ok(text) = std::str::from_utf8(bytes) else {
            return metadata;
        };
        let mut parts = text.split(';');
        if parts.next() != Some(VERSION) {
            return metadata;
        }
        for part in parts {
            match part.split_once('=') {
                Some(("t", id)) => metadata.topic_id = Some(id.to_owned()),
                Some(("c", id)) => metadata.target_cluster = Some(id.to_owned()),
                Some(("f", settings)) => metadata.settings = settings.parse().ok(),
                Some(("w", writer)) => metadata.writer = writer.parse().ok(),
                None if part == "s" => metadata.start = StartMark::Started,
                _ => {}
            }
        }
        metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_a_round_trip() {
        let metadata = CommitMetadata {
            topic_id: Some("Qk3vT0aXQzW0r0e1Yb9mSg".into()),
            target_cluster: Some("4L6g3nShT-eMCtK--X86sw".into()),
            settings: "0badc0de".parse().ok(),
            writer: Some(WriterMark {
                id: 4711,
                epoch: 15,
            }),
            start: StartMark::Started,
        };
        assert_eq!(
            CommitMetadata::decode(metadata.encode().as_bytes()),
            metadata
        );
        assert_eq!(
            CommitMetadata::decode(CommitMetadata::default().encode().as_bytes()),
            CommitMetadata::default()
        );
    }

    #[test]
    fn foreign_bytes_say_nothing() {
        for foreign in [&b""[..], b"hello", b"m9;s", b"\xff\xfe", b";;;"] {
            assert_eq!(CommitMetadata::decode(foreign), CommitMetadata::default());
        }
    }
    #[test]
    fn what_names_no_writer_is_none() {
        for text in ["", "7", "7.", ".7", "-1.0", "7.-1", "7.32768", "7.1.2"] {
            assert_eq!(text.parse::<WriterMark>(), Err(NoMark), "{text}");
        }
        let mark = WriterMark {
            id: i64::MAX,
            epoch: i16::MAX,
        };
        assert_eq!(mark.to_string().parse(), Ok(mark));
    }
}
