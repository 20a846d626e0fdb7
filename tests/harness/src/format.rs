//! The data folders of a new cluster, as `StorageTool format` would leave them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Attempt, HarnessError};
use crate::prepared::Kafka;
use crate::tool::run;

/// The name under which a broker looks for the first metadata of its cluster.
pub(crate) const CHECKPOINT: &str = "bootstrap.checkpoint";
const PATIENCE: Duration = Duration::from_secs(60);

/// Writes what makes `data` the empty data folder of broker `id`.
pub(crate) fn format_broker(
    data: &Path,
    id: i32,
    cluster_id: &str,
    checkpoint: &Path,
) -> Result<(), HarnessError> {
    fs::create_dir_all(data).attempt(|| format!("make the folder {}", data.display()))?;
    fs::copy(checkpoint, data.join(CHECKPOINT))
        .attempt(|| format!("copy {}", checkpoint.display()))?;
    let meta = data.join("meta.properties");
    let directory_id = new_id()?;
    fs::write(
        &meta,
        format!("version=1\ncluster.id={cluster_id}\nnode.id={id}\ndirectory.id={directory_id}\n"),
    )
    .attempt(|| format!("write {}", meta.display()))
}

/// The first metadata of a cluster with these SCRAM users.
///
/// Without any it was prepared; otherwise Kafka's own tool makes it, in `work`, from the `properties` of a broker.
pub(crate) fn first_metadata(
    kafka: &Kafka,
    work: &Path,
    properties: &str,
    scram_users: &[(String, String)],
) -> Result<PathBuf, HarnessError> {
    if let (Some(prepared), []) = (&kafka.checkpoint, scram_users) {
        return Ok(prepared.clone());
    }
    let data = work.join("data");
    let file = work.join("format.properties");
    fs::create_dir_all(work).attempt(|| format!("make the folder {}", work.display()))?;
    // Of two lines with the same key the last one counts.
    fs::write(
        &file,
        format!("{properties}\nlog.dirs={}\n", data.display()),
    )
    .attempt(|| format!("write {}", file.display()))?;
    let main = "kafka.tools.StorageTool";
    let mut command = kafka.jars.command(main, work, &kafka.options());
    command.args(["format", "-t", &new_id()?, "-c"]).arg(&file);
    for (user, password) in scram_users {
        for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-512"] {
            command.args([
                "--add-scram",
                &format!("{mechanism}=[name=\"{user}\",password=\"{password}\"]"),
            ]);
        }
    }
    run(main, command, PATIENCE)?;
    Ok(data.join(CHECKPOINT))
}

/// A random id in Kafka's spelling: sixteen bytes in the base64 of URLs, without padding.
pub(crate) fn new_id() -> Result<String, HarnessError> {
    let random = fs::File::open("/dev/urandom").and_then(|mut file| {
        let mut bytes = [0; 16];
        std::io::Read::read_exact(&mut file, &mut bytes).map(|()| bytes)
    });
    Ok(spell(random.attempt(|| "read /dev/urandom".to_owned())?))
}

fn spell(mut bytes: [u8; 16]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    // The first digit comes from the upper six bits. A tool would take a leading dash for an option.
    bytes[0] &= 0x7f;
    let number = u128::from_be_bytes(bytes);
    // 128 bits are 21 digits of six bits and one of two.
    let digit = |index: u32| {
        let bits = if index < 21 {
            number >> (122 - 6 * index)
        } else {
            number << 4
        };
        char::from(DIGITS[(bits & 63) as usize])
    };
    (0..22).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_spelled_as_kafka_spells_them() {
        assert_eq!(spell([0; 16]), "AAAAAAAAAAAAAAAAAAAAAA");
        // As Python's base64.urlsafe_b64encode says, without the padding.
        assert_eq!(spell(*b"0123456789abcdef"), "MDEyMzQ1Njc4OWFiY2RlZg");
        assert_eq!(spell([0xff; 16]), "f____________________w");
    }
}
