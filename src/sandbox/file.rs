//! The configuration that the sandbox runs: `examples/sandbox.yaml` with the real addresses.

use std::io::Write;
use std::path::{Path, PathBuf};

/// The example as it is shipped.
const EXAMPLE: &str = include_str!("../../examples/sandbox.yaml");

/// The line that the reload brings to life, as it is before.
const ASLEEP: &str = "# - reformat:";

/// The same line afterwards.
const AWAKE: &str = "- reformat:";

/// The file, in a folder of its own that goes away with this value.
pub struct ConfigFile {
    folder: tempfile::TempDir,
    path: PathBuf,
    text: String,
}

impl ConfigFile {
    /// Writes the example with each cluster's address in it.
    ///
    /// # Errors
    /// The operating system's words.
    pub fn write<'a>(
        addresses: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> std::io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("mirror-").tempdir()?;
        let socket = folder.path().join("mirror.sock");
        let mut text = EXAMPLE.replace("./mirror.sock", &socket.to_string_lossy());
        for (cluster, address) in addresses {
            text = text.replace(&placeholder(cluster), address);
        }
        let path = folder.path().join("mirror.yaml");
        std::fs::write(&path, &text)?;
        Ok(Self { folder, path, text })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Changes one line, as an editor does: a new file is put in the old one's place. Gives the
    /// line before and after.
    ///
    /// # Errors
    /// The operating system's words.
    pub fn edit(&mut self) -> std::io::Result<(String, String)> {
        let changed = self.text.replacen(ASLEEP, AWAKE, 1);
        let mut new = tempfile::NamedTempFile::new_in(self.folder.path())?;
        new.write_all(changed.as_bytes())?;
        new.persist(&self.path).map_err(|e| e.error)?;
        let differs = |pair: &(&str, &str)| pair.0 != pair.1;
        let lines = self.text.lines().zip(changed.lines()).find(differs);
        let lines = lines.map(|(before, after)| (before.to_owned(), after.to_owned()));
        self.text = changed;
        Ok(lines.unwrap_or_default())
    }
}

/// How the example names a cluster's address.
fn placeholder(cluster: &str) -> String {
    format!(
        "${{{}_BOOTSTRAP:-{cluster}.example:9092}}",
        cluster.to_uppercase()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::scene::CLUSTERS;

    #[test]
    fn every_address_is_filled_in() {
        let addresses = CLUSTERS.map(|c| (c, "127.0.0.1:1"));
        let file = ConfigFile::write(addresses).unwrap();
        assert_eq!(file.text.matches("127.0.0.1:1").count(), CLUSTERS.len());
        assert!(!file.text.contains("_BOOTSTRAP"), "{}", file.text);
    }

    #[test]
    fn the_edit_changes_one_line_and_the_folder_goes_away() {
        let mut file = ConfigFile::write([]).unwrap();
        let (before, after) = file.edit().unwrap();
        assert!(before.contains(ASLEEP) && !after.contains('#'), "{after}");
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), file.text);
        let folder = file.folder.path().to_owned();
        drop(file);
        assert!(!folder.exists());
    }
}
