//! Where the process of a configuration is to be asked, also if that configuration may not run: a mistake
//! elsewhere in it, or a variable that only the process has, keeps nobody from asking.

use crate::config::document::Document;
use crate::config::interpolate::Outside;
use crate::config::read;
use crate::config::spec::Name;
use crate::redact;
use std::path::PathBuf;

/// What leads to a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Door {
    /// The socket that the file names.
    Socket(PathBuf),
    /// The group, whose sockets have default places.
    Group(Name),
}

/// What files say of their process; `None` where they cannot be read, or do not say it.
pub fn door(paths: &[PathBuf], outside: &Outside<'_>) -> Option<Door> {
    let mut reading = read::read(paths, outside);
    redact::remember(reading.secrets.iter().map(String::as_str));
    let trees = std::mem::take(&mut reading.trees);
    if trees.is_empty() {
        return None;
    }
    let document = Document::join(trees, reading.sources, &mut reading.found);
    let said = |at: &str| document.value.pointer(at).and_then(|value| value.as_str());
    if document.unset.contains("/admin/socket") || document.unset.contains("/group") {
        return None;
    }
    match said("/admin/socket") {
        Some(socket) => Some(Door::Socket(document.folder("/admin/socket").join(socket))),
        None => Name::new(said("/group").unwrap_or("default")).map(Door::Group),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::interpolate::Variables;

    fn of(text: &str) -> Option<Door> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mirror.yaml");
        std::fs::write(&file, text).unwrap();
        let outside = Outside {
            environment: &|_| None,
            variables: &Variables::default(),
        };
        door(&[file], &outside)
    }

    #[test]
    fn what_is_wrong_elsewhere_hides_no_process() {
        let socket = Some(Door::Socket("/run/a.sock".into()));
        assert_eq!(of("admin: { socket: /run/a.sock }\nroutes: 7\n"), socket);
        let unset = "clusters: { a: { bootstrap_servers: ['${NOT_SET}'] } }\nadmin: { socket: /run/a.sock }\n";
        assert_eq!(of(unset), socket);
        let group = |name| Name::new(name).map(Door::Group);
        assert_eq!(of("group: blue\nrouts: {}\n"), group("blue"));
        assert_eq!(of("version: 1\n"), group("default"));
    }

    #[test]
    fn what_cannot_be_read_says_nothing() {
        assert_eq!(of("admin: { socket: '${NOT_SET}' }\n"), None);
        assert_eq!(of("group: [blue]\nadmin: { socket: \"\n"), None);
        assert_eq!(of(""), None);
    }
}
