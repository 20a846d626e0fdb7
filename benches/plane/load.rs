//! The loads: records of one size and codec, written once, read by every contender.

use crate::topic;

/// Partitions of every topic.
const PARTITIONS: i32 = 12;

pub struct Load {
    pub name: &'static str,
    pub topic: String,
    pub records: u64,
    pub bytes: usize,
    pub codec: &'static str,
    batch_bytes: &'static str,
}

impl Load {
    /// The three loads: large records, the same compressed, small compressed ones.
    pub fn all(scale: f64) -> Vec<Load> {
        let load = |name, topic: &str, records: f64, bytes, codec, batch_bytes| Load {
            name,
            topic: topic.to_owned(),
            records: (records * scale) as u64,
            bytes,
            codec,
            batch_bytes,
        };
        vec![
            load(
                "1.5 M × 944 B, uncompressed",
                "large",
                1.5e6,
                944,
                "none",
                "1000000",
            ),
            load(
                "1.5 M × 944 B, LZ4",
                "large-lz4",
                1.5e6,
                944,
                "lz4",
                "1000000",
            ),
            load(
                "5 M × 70 B, LZ4, 16 KB batches",
                "small-lz4",
                5e6,
                70,
                "lz4",
                "16384",
            ),
        ]
    }

    pub fn write(&self, source: &str) {
        topic::create(source, &self.topic, PARTITIONS, &[]);
        topic::fill(
            source,
            &self.topic,
            PARTITIONS,
            self.records,
            self.bytes,
            &[
                ("compression.type", self.codec),
                ("batch.size", self.batch_bytes),
            ],
        );
    }

    pub fn empty_target(&self, target: &str, topic: &str) {
        topic::create(target, topic, PARTITIONS, &[]);
    }

    pub fn delete_target(&self, target: &str, topic: &str) {
        topic::delete(target, topic);
    }

    /// A file with one route for this load on a data plane; each run has a group and a target topic of its own.
    pub fn route(&self, source: &str, target: &str, plane: &str, run: usize) -> String {
        format!(
            "version: 1\nclusters:\n  source: {{ bootstrap_servers: ['{source}'] }}\n  target:\n    bootstrap_servers: ['{target}']\n    properties: {{ compression.type: {codec}, linger.ms: 50 }}\n\
             admin: {{ listen: 127.0.0.1:0 }}\nreload: {{ watch: false }}\nroutes:\n  {plane}-{run}:\n    source: source\n    target: target\n    data_plane: {plane}\n    topics: {{ include: ['{topic}'] }}\n    handlers:\n      - rename: {{ topic: '{topic}-{plane}-{run}' }}\n",
            codec = self.codec,
            topic = self.topic,
        )
    }
}
