//! Files to which changes come late or never, by what is mounted where.

use super::Seen;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// File systems on which a change that is made elsewhere sends no event here.
const REMOTE: [&str; 10] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "9p",
    "virtiofs",
    "ceph",
    "glusterfs",
    "afs",
    "lustre",
];

/// One mount.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mount {
    at: PathBuf,
    kind: String,
}

/// What is mounted now; empty where the system does not say.
pub(super) fn table() -> Vec<Mount> {
    parse(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
}

/// `ID PARENT DEVICE ROOT POINT OPTIONS [FIELDS…] - TYPE SOURCE OPTIONS`, blanks as `\\040`.
fn parse(table: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        Some(Mount {
            at: unescape(before.split(' ').nth(4)?),
            kind: after.split(' ').next()?.to_owned(),
        })
    };
    table.lines().filter_map(mount).collect()
}

fn unescape(text: &str) -> PathBuf {
    let blank = |text: &str, code: &str, plain: &str| text.replace(code, plain);
    let text = blank(&blank(text, "\\040", " "), "\\011", "\t");
    blank(&text, "\\134", "\\").into()
}

/// What is to be said of `files`, each kind once.
pub(super) fn troubles(files: &[PathBuf], mounts: &[Mount]) -> Vec<Seen> {
    let mut said = BTreeSet::new();
    let mut troubles = Vec::new();
    for file in files {
        let real = file.canonicalize().unwrap_or_else(|_| file.clone());
        if real.is_file() && mounts.iter().any(|mount| mount.at == real) {
            troubles.push(Seen::Undelivered {
                file: file.clone(),
                why: "it is mounted by itself (a bind-mounted file, a Kubernetes subPath): a new \
                      file in its place never arrives here; mount its folder instead",
            });
        }
        if let Some(kind) = remote(&real, mounts)
            && said.insert(kind.to_owned())
        {
            let why = format!("{} is on {kind}", file.display());
            troubles.push(Seen::OnlyPolling { why });
        }
    }
    troubles
}

/// The kind of the file system that `file` is on, if it is a remote one.
fn remote<'a>(file: &Path, mounts: &'a [Mount]) -> Option<&'a str> {
    let above = mounts.iter().filter(|mount| file.starts_with(&mount.at));
    // Of two at one point the later one covers the earlier.
    let on = above.max_by_key(|mount| mount.at.components().count())?;
    let remote = REMOTE.contains(&on.kind.as_str()) || on.kind.starts_with("fuse.");
    remote.then_some(on.kind.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_a_mount_and_a_remote_one_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().canonicalize().unwrap().join("my file.yaml");
        std::fs::write(&file, "x").unwrap();
        let point = file.display().to_string().replace(' ', "\\040");
        let alone = format!("36 35 98:0 /a {point} rw,noatime shared:1 - ext4 /dev/root rw\n");
        let root = "1 0 8:1 / / rw - ext4 /dev/root rw\n";
        let found = troubles(
            std::slice::from_ref(&file),
            &parse(&(root.to_owned() + &alone)),
        );
        assert!(
            matches!(&found[..], [Seen::Undelivered { file: f, .. }] if *f == file),
            "{found:?}"
        );
        let nfs = format!(
            "40 1 0:50 / {} rw - nfs4 server:/x rw\n",
            folder.path().display()
        );
        let found = troubles(
            std::slice::from_ref(&file),
            &parse(&(root.to_owned() + &nfs)),
        );
        assert!(
            matches!(&found[..], [Seen::OnlyPolling { why }] if why.ends_with("is on nfs4")),
            "{found:?}"
        );
        assert_eq!(troubles(&[file], &parse(root)), []);
    }
}
