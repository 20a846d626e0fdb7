//! What the machine lets this process have.

use rustix::process::{Resource, getrlimit};
use std::path::{Path, PathBuf};

/// Limits of the machine; `None` where there is none, or none that can be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Bytes of memory: the control group's limit, and what is free or can be freed.
    pub memory: Option<u64>,
    /// Threads of this user or control group.
    pub threads: Option<u64>,
    /// File descriptors of a process.
    pub descriptors: Option<u64>,
}

impl Machine {
    /// This one.
    pub fn here() -> Self {
        let least = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self {
            memory: least(
                available(),
                group_limit("memory.max", "memory/memory.limit_in_bytes"),
            ),
            threads: least(
                getrlimit(Resource::Nproc).current,
                group_limit("pids.max", "pids/pids.max"),
            ),
            descriptors: getrlimit(Resource::Nofile).current,
        }
    }
}

/// Memory that is free or can be freed.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// The tightest limit of the control groups around this process: version 2, or version 1 where that is
/// mounted.
fn group_limit(unified: &str, of_controller: &str) -> Option<u64> {
    let root = Path::new("/sys/fs/cgroup");
    let own = std::fs::read_to_string("/proc/self/cgroup").ok();
    let own = own.as_deref().and_then(unified_path).unwrap_or_default();
    let mut limits: Vec<u64> = Vec::new();
    let mut folder = Some(root.join(own));
    while let Some(at) = folder.filter(|f| f.starts_with(root)) {
        limits.extend(limit(&at.join(unified)));
        folder = at.parent().map(PathBuf::from);
    }
    limits.extend(limit(&root.join(of_controller)));
    limits.into_iter().min()
}

/// `0::/system.slice/mirror.service` → `system.slice/mirror.service`.
fn unified_path(text: &str) -> Option<PathBuf> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // A process may see its group outside of its own root.
    (!path.contains("..")).then(|| PathBuf::from(path))
}

/// The number in a limit's file; none for `max`, and for what version 1 writes for it.
fn limit(file: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let limit: u64 = text.trim().parse().ok()?;
    (limit < 1 << 60).then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            limit(&path)
        };
        assert_eq!(write("a", "1073741824\n"), Some(1 << 30));
        assert_eq!(write("b", "max\n"), None);
        assert_eq!(write("c", "9223372036854771712\n"), None);
        let path = unified_path("12:pids:/x\n0::/user.slice/a\n");
        assert_eq!(path, Some(PathBuf::from("user.slice/a")));
        assert_eq!(unified_path("0::/../x\n"), None);
    }

    #[test]
    fn this_machine_has_descriptors() {
        assert!(Machine::here().descriptors.is_none_or(|n| n > 10));
    }
}
