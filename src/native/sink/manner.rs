//! How a sink writes: the producer's properties of a cluster, as far as they mean anything without librdkafka.

use crate::config::spec::ClusterSpec;
use crate::wire::codec::{Codec, Compression};
use crate::wire::pass::Codecs;
use std::time::Duration;

/// Waiting for more records costs latency; a full batch never waits.
const LINGER: Duration = Duration::from_millis(5);
/// As librdkafka's plane.
const CODEC: Codec = Codec::Lz4;

/// How a sink writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Bytes of a batch before it is compressed; one record may be larger.
    pub batch_bytes: usize,
    /// How long a batch that is not full waits for more.
    pub linger: Duration,
    /// How batches are compressed.
    pub compression: Compression,
}

impl Manner {
    /// By the properties `batch.size`, `linger.ms`, `compression.type` and `compression.level`, and their other names;
    /// `batch_bytes` is what the
    /// target takes at most.
    ///
    /// # Errors
    /// A value that is none, in words.
    pub fn of(cluster: &ClusterSpec, batch_bytes: u64) -> Result<Self, String> {
        let said = Said(cluster);
        let linger = said.number::<f64>(&["linger.ms", "queue.buffering.max.ms"])?;
        let level = said.number::<i32>(&["compression.level"])?;
        // What the target takes at most wins over what the user wants.
        let bytes = said.number::<u64>(&["batch.size"])?.unwrap_or(batch_bytes);
        let bytes = bytes.min(batch_bytes);
        Ok(Self {
            batch_bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            linger: linger.map_or(LINGER, |ms| {
                Duration::from_secs_f64(ms.clamp(0.0, 900_000.0) / 1000.0)
            }),
            compression: Compression {
                codec: said.codec()?.unwrap_or(CODEC),
                // -1 is librdkafka's word for the codec's own.
                level: level.filter(|level| *level != -1),
            },
        })
    }
}

impl Manner {
    /// Codecs of batches that may pass to a cluster: if the file names one for it, that one.
    pub fn codecs(cluster: &ClusterSpec) -> Codecs {
        match Said(cluster).codec() {
            Ok(Some(codec)) => Codecs::Only(codec),
            // A name that is none is told when the sink starts.
            Ok(None) | Err(_) => Codecs::Any,
        }
    }

    /// The same with each record in a batch of its own, at once.
    pub fn alone(self) -> Self {
        Self {
            batch_bytes: 0,
            linger: Duration::ZERO,
            ..self
        }
    }
}

/// What a cluster's properties say.
struct Said<'a>(&'a ClusterSpec);

impl Said<'_> {
    fn text(&self, names: &[&str]) -> Option<&str> {
        let find = |name: &&str| self.0.properties.get(*name);
        names
            .iter()
            .find_map(find)
            .map(|value| value.reveal().trim())
    }

    fn number<N: std::str::FromStr>(&self, names: &[&str]) -> Result<Option<N>, String> {
        let Some(text) = self.text(names) else {
            return Ok(None);
        };
        let wrong = |_| {
            format!(
                "cluster {}: {} is no number",
                self.0.name,
                names.join(" or ")
            )
        };
        text.parse().map(Some).map_err(wrong)
    }

    fn codec(&self) -> Result<Option<Codec>, String> {
        let Some(name) = self.text(&["compression.type", "compression.codec"]) else {
            return Ok(None);
        };
        let known = Codec::ALL.into_iter().find(|codec| codec.as_str() == name);
        known.map(Some).ok_or_else(|| {
            let cluster = &self.0.name;
            format!("cluster {cluster}: compression.type names no codec")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config_tests::load_text;

    fn manner(properties: &str) -> Result<Manner, String> {
        let text = format!(
            "version: 1\nclusters:\n  a: {{ bootstrap_servers: ['a:1'] }}\n  b: {{ bootstrap_servers: ['b:1'], properties: {{ {properties} }} }}\n\
             routes:\n  r:\n    source: a\n    target: b\n    topics: {{ include: [t] }}\n"
        );
        let spec = load_text(&text).expect("a file that loads").spec;
        let route = spec.routes.values().next().expect("a route");
        Manner::of(&route.targets[0], 1000)
    }

    #[test]
    fn properties_say_how_it_writes() {
        let plain = Manner {
            batch_bytes: 1000,
            linger: LINGER,
            compression: Compression {
                codec: Codec::Lz4,
                level: None,
            },
        };
        assert_eq!(manner(""), Ok(plain));
        let said = manner(
            "linger.ms: '0.5', batch.size: 500, compression.type: zstd, compression.level: 5",
        );
        let wanted = Manner {
            batch_bytes: 500,
            linger: Duration::from_micros(500),
            compression: Compression {
                codec: Codec::Zstd,
                level: Some(5),
            },
        };
        assert_eq!(said, Ok(wanted));
    }
}
