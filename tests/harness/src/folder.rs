//! Temporary folders that go away, even if the process that made them was killed.
//!
//! A folder holds a file `owner` that its process keeps locked. The kernel drops the lock with the process, so a folder
//! whose `owner` can be locked belongs to nobody: the next start removes it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Once;

use tempfile::TempDir;

use crate::error::{Attempt, HarnessError};

const PREFIX: &str = "kafka-harness-";
const OWNER: &str = "owner";

/// A temporary folder, removed on drop unless `MIRROR_KEEP` is set to something other than `0`.
#[derive(Debug)]
pub(crate) struct Folder {
    dir: TempDir,
    /// Locked as long as the folder is in use; none if the folder is to be kept.
    owner: Option<File>,
}

impl Folder {
    /// Makes an empty folder, and removes those of processes that were killed.
    pub(crate) fn create(name: &str) -> Result<Self, HarnessError> {
        static SWEEP: Once = Once::new();
        SWEEP.call_once(|| sweep(&std::env::temp_dir()));
        let mut dir = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{name}-"))
            .tempdir()
            .attempt(|| format!("make a folder in {}", std::env::temp_dir().display()))?;
        if keep() {
            dir.disable_cleanup(true);
            return Ok(Self { dir, owner: None });
        }
        let owner = lock(dir.path()).attempt(|| format!("lock {}", dir.path().display()))?;
        Ok(Self {
            dir,
            owner: Some(owner),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Whether it will stay.
    pub(crate) fn is_kept(&self) -> bool {
        self.owner.is_none()
    }
}

fn keep() -> bool {
    std::env::var_os("MIRROR_KEEP").is_some_and(|value| !value.is_empty() && value != "0")
}

/// The file gets its final name only once it is locked: a sweep never sees an `owner` that is about to be locked.
fn lock(dir: &Path) -> std::io::Result<File> {
    let fresh = dir.join("owner.new");
    let file = File::create(&fresh)?;
    file.lock()?;
    fs::rename(fresh, dir.join(OWNER))?;
    Ok(file)
}

/// Removes the folders in `parent` that nobody owns any more. What cannot be removed is left for the next time.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn abandoned(dir: &Path) -> bool {
    let owner: PathBuf = dir.join(OWNER);
    File::open(owner).is_ok_and(|file| file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_sweep_removes_what_nobody_owns_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let [owned, orphan, kept, strange] = [
            "kafka-harness-a",
            "kafka-harness-b",
            "kafka-harness-c",
            "other",
        ]
        .map(|name| parent.path().join(name));
        for dir in [&owned, &orphan, &kept, &strange] {
            fs::create_dir(dir).unwrap();
        }
        let _owner = lock(&owned).unwrap();
        drop(lock(&orphan).unwrap());
        drop(lock(&strange).unwrap());

        // A child that another test starts holds every lock of this process until it runs its own program.
        let until = Instant::now() + Duration::from_secs(20);
        while orphan.exists() {
            assert!(Instant::now() < until, "the orphan is removed");
            sweep(parent.path());
        }
        assert!(owned.exists() && kept.exists() && strange.exists());
    }
}
