//! One look at the content of all files, and where to listen for changes of it.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

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

/// The directories in which something happens when one of `files` changes: that of the file itself,
/// and those of every link on the way to it, be it the file or a folder above it that is one. Where a
/// folder is gone, the nearest one above it that is there tells of its return.
pub(super) fn directories(files: &[PathBuf]) -> BTreeSet<Directory> {
    let mut found = BTreeSet::new();
    for file in files {
        let mut links = LONGEST_CHAIN;
        let whole = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        walk(&whole, &mut links, &mut found);
    }
    found
}

fn walk(path: &Path, links: &mut usize, found: &mut BTreeSet<Directory>) {
    let mut here = PathBuf::new();
    let mut rest = path.components();
    while let Some(step) = rest.next() {
        let next = match step {
            // What is above a folder that was reached through a link is above the folder itself.
            Component::ParentDir => {
                here.pop();
                continue;
            }
            step => here.join(step),
        };
        let Ok(target) = fs::read_link(&next) else {
            if !next.exists() {
                note(&here, found);
                return;
            }
            here = next;
            continue;
        };
        note(&here, found);
        *links = links.saturating_sub(1);
        if *links > 0 {
            walk(&here.join(target).join(rest.as_path()), links, found);
        }
        return;
    }
    if let Some(parent) = here.parent() {
        note(parent, found);
    }
}

fn note(directory: &Path, found: &mut BTreeSet<Directory>) {
    if let Ok(metadata) = fs::metadata(directory) {
        found.insert(Directory {
            path: directory.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        });
    }
}
