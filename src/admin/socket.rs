//! The Unix socket: where it is, and whether the file at its place is a process or a leftover.

use super::AdminError;
use crate::config::spec::Name;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Where the socket of `group` may be, in the order of preference; the same list for the process
/// that listens and for the command that asks it.
pub fn candidates(group: &Name) -> Vec<PathBuf> {
    let file = format!("{group}.sock");
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty());
    let runtime = runtime.map(|dir| PathBuf::from(dir).join("mirror"));
    let system = PathBuf::from("/run/mirror");
    let own = own_user().map(|user| std::env::temp_dir().join(format!("mirror-{user}")));
    let folders = runtime.into_iter().chain([system]).chain(own);
    folders.map(|folder| folder.join(&file)).collect()
}

/// Every socket in the default places, whatever its group.
pub fn all() -> Vec<PathBuf> {
    let Some(any) = Name::new("any") else {
        return Vec::new();
    };
    let folders = candidates(&any).into_iter().filter_map(|path| {
        let folder = path.parent()?;
        fs::read_dir(folder).ok()
    });
    let files = folders
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()));
    let sockets = files.filter(|path| path.extension().is_some_and(|e| e == "sock"));
    sockets
        .filter(|path| UnixStream::connect(path).is_ok())
        .collect()
}

/// The number of the user that this process runs as.
fn own_user() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|own| own.uid())
}

/// Listens on `path`, or on the first usable default of `group`.
///
/// # Errors
/// Another process listens there, or the place cannot be written.
pub fn listen(path: Option<&Path>, group: &Name) -> Result<(PathBuf, UnixListener), AdminError> {
    let places = path.map_or_else(|| candidates(group), |path| vec![path.to_owned()]);
    let mut last = None;
    for place in places {
        match listen_on(&place) {
            Ok(listener) => return Ok((place, listener)),
            // Another process of this group: a second place would hide it from `mirror status`.
            Err(cause) if cause.kind() == ErrorKind::AddrInUse => {
                return Err(AdminError::Socket { path: place, cause });
            }
            Err(cause) => last = Some(AdminError::Socket { path: place, cause }),
        }
    }
    Err(last.unwrap_or_else(|| AdminError::Socket {
        path: PathBuf::new(),
        cause: ErrorKind::NotFound.into(),
    }))
}

fn listen_on(path: &Path) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        make_private(folder)?;
    }
    remove_leftover(path)?;
    let listener = UnixListener::bind(path)?;
    // Whoever may write to it may reload: the user and the group of the process, nobody else.
    fs::set_permissions(path, Permissions::from_mode(0o660))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Makes the folder if it is missing. One that somebody else has put into a shared place before us
/// would let them replace the socket by theirs.
fn make_private(folder: &Path) -> io::Result<()> {
    if !folder.exists() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o750)
            .create(folder)?;
    }
    let is_shared = folder.parent() == Some(&std::env::temp_dir());
    let owner = fs::metadata(folder)?.uid();
    if is_shared && Some(owner) != own_user() {
        return Err(io::Error::new(
            ErrorKind::PermissionDenied,
            "the folder belongs to somebody else",
        ));
    }
    Ok(())
}

/// Removes the file that a process has left which is no more.
///
/// A process that was killed leaves its socket's file, and `bind` refuses an existing one. Only a
/// refused connection proves that nobody listens: unlinking without asking would cut off a process
/// that runs, which would go on unseen.
///
/// A file that is no socket refuses connections as well: it is somebody's, and is left alone.
fn remove_leftover(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.file_type().is_socket() => {
            let what = "there is a file that is no socket";
            return Err(io::Error::new(ErrorKind::AlreadyExists, what));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(io::Error::new(
            ErrorKind::AddrInUse,
            "another mirror process listens there",
        )),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Name {
        Name::new("default").unwrap()
    }

    #[test]
    fn a_leftover_is_replaced_and_a_listener_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/mirror.sock");
        let (_, first) = listen(Some(&path), &name()).unwrap();
        let refused = listen(Some(&path), &name()).unwrap_err().to_string();
        assert!(refused.contains("another mirror process"), "{refused}");
        drop(first);
        assert!(path.exists(), "a dropped listener leaves its file");
        listen(Some(&path), &name()).unwrap();
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        fs::write(&path, "mine").unwrap();
        let refused = listen(Some(&path), &name()).unwrap_err().to_string();
        assert!(refused.contains("no socket"), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn every_place_carries_the_group() {
        let all = candidates(&Name::new("blue").unwrap());
        assert!(!all.is_empty());
        assert!(
            all.iter().all(|p| p.ends_with("mirror/blue.sock")
                || p.file_name().is_some_and(|f| f == "blue.sock"))
        );
    }
}
