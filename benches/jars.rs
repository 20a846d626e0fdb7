//! Where the jars of Kafka are, for what runs on a JVM beside the brokers.

use std::path::{Path, PathBuf};

/// The class path of all of them.
///
/// # Errors
/// What to do if there are none.
pub fn classpath() -> Result<PathBuf, String> {
    let folder = std::env::var_os("MIRROR_KAFKA_LIB").map(PathBuf::from);
    let jars =
        folder.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/kafka/lib"));
    if !jars.is_dir() {
        return Err("no jars of Kafka: run scripts/kafka-jars".to_owned());
    }
    Ok(jars.join("*"))
}
