//! One look at the content of all files, and where to listen for changes of it.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Links followed from a file at most, as many as Linux does.
const LONGEST_CHAIN: usize = 40;

/// What one look has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    /// Hash of the content of every file and of the names of files beside them.
    Settled([u8; 32]),
    /// A file that cannot be what its author wants.
    Unsettled {
        /// The file.
        file: PathBuf,
        /// What is the matter with it.
        why: &'static str,
    },
}

/// A directory that is watched: its path, and which one of that path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Directory {
    pub path: PathBuf,
    device: u64,
    inode: u64,
}

impl Sample {
    /// Looks at `files`, and at which YAML files stand in `directories`: one that is added to a
    /// folder of includes is a change although no known file has changed.
    pub fn take(files: &[PathBuf], directories: &BTreeSet<Directory>) -> Self {
        let mut hasher = Sha256::new();
        for file in files {
            match read_whole(file) {
                Ok(content) => {
                    hasher.update((content.len() as u64).to_le_bytes());
                    hasher.update(&content);
                }
                Err(why) => {
                    let file = file.clone();
                    return Sample::Unsettled { file, why };
                }
            }
        }
        for directory in directories {
            for name in yaml_names(&directory.path) {
                hasher.update(name.as_encoded_bytes());
                hasher.update([0]);
            }
        }
        Sample::Settled(hasher.finalize().into())
    }
}

/// The content, if nobody writes to it meanwhile.
fn read_whole(path: &Path) -> Result<Vec<u8>, &'static str> {
    let mut file = fs::File::open(path).map_err(|_| "it is missing or cannot be read")?;
    let before = file.metadata().map_err(|_| "it cannot be read")?;
    if before.is_dir() {
        return Ok(Vec::new());
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content)
        .map_err(|_| "it cannot be read")?;
    let after = file.metadata().map_err(|_| "it cannot be read")?;
    if stamp(&before) != stamp(&after) {
        return Err("it is being written");
    }
    if content.is_empty() {
        return Err("it is empty");
    }
    Ok(content)
}

fn stamp(of: &Metadata) -> (u64, i64, i64) {
    (of.len(), of.mtime(), of.mtime_nsec())
}

fn yaml_names(directory: &Path) -> Vec<std::ffi::OsString> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let is_yaml = |name: &std::ffi::OsString| {
        let extension = Path::new(name).extension();
        extension.is_some_and(|e| e == "yaml" || e == "yml")
    };
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let mut names: Vec<_> = names.filter(is_yaml).collect();
    names.sort();
    names
}

/// The directories in which something happens when one of `files` changes: that of the file, and
/// those of everything that it links to.
pub(super) fn directories(files: &[PathBuf]) -> BTreeSet<Directory> {
    let mut found = BTreeSet::new();
    for file in files {
        let mut path = file.clone();
        for _ in 0..LONGEST_CHAIN {
            let parent = match path.parent() {
                Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
                Some(parent) => parent,
                None => break,
            };
            if let Ok(metadata) = fs::metadata(parent) {
                found.insert(Directory {
                    path: parent.to_owned(),
                    device: metadata.dev(),
                    inode: metadata.ino(),
                });
            }
            match fs::read_link(&path) {
                Ok(target) => path = parent.join(target),
                Err(_) => break,
            }
        }
    }
    found
}
