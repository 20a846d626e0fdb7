//! Files → trees: folders and `include:` followed, every byte that was used remembered.

use crate::case::files::is_test_file;
use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::interpolate::{self, Outside};
use crate::config::mask;
use crate::config::place::{Place, Sources};
use crate::config::pointer;
use crate::config::tree::{self, Tree};
use regex::Regex;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, VecDeque};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of one file at most: no configuration is as large, and a device has no end.
const LARGEST: u64 = 64 << 20;

/// SHA-256 of a file.
type FileHash = [u8; 32];

/// What was read.
#[derive(Debug, Default)]
pub struct Reading {
    /// The files that are YAML.
    pub trees: Vec<Tree>,
    /// The texts of all files.
    pub sources: Sources,
    /// Every file that was used, those that `${file:…}` names included, with the hash of its bytes.
    pub files: Vec<(PathBuf, FileHash)>,
    /// Texts that may be shown nowhere.
    pub secrets: Vec<String>,
    /// What was wrong.
    pub found: Vec<Diagnostic>,
}

impl Reading {
    /// SHA-256 of all files that were used, in hexadecimal.
    pub fn hash(&self) -> String {
        let mut files: Vec<&(PathBuf, FileHash)> = self.files.iter().collect();
        files.sort();
        files.dedup();
        let mut hash = Sha256::new();
        for (path, content) in files {
            let name = path.as_os_str().as_encoded_bytes();
            hash.update((name.len() as u64).to_be_bytes());
            hash.update(name);
            hash.update(content);
        }
        hex::encode(hash.finalize())
    }

    /// The paths of all files that were used.
    pub fn paths(&self) -> Vec<PathBuf> {
        let paths: BTreeSet<&PathBuf> = self.files.iter().map(|(path, _)| path).collect();
        paths.into_iter().cloned().collect()
    }
}

/// Reads files, the files of folders, and what they include, each once.
pub fn read(paths: &[PathBuf], outside: &Outside<'_>) -> Reading {
    let mut reading = Reading::default();
    let mut waiting: VecDeque<PathBuf> = VecDeque::new();
    for path in paths {
        waiting.extend(expand(path, &mut reading.found));
    }
    let mut seen = BTreeSet::new();
    while let Some(path) = waiting.pop_front() {
        let identity = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        if seen.insert(identity) {
            waiting.extend(read_one(path, outside, &mut reading));
        }
    }
    reading
}

/// Reads one file and says which files it includes.
fn read_one(path: PathBuf, outside: &Outside<'_>, reading: &mut Reading) -> Vec<PathBuf> {
    let bytes = match contents(&path) {
        Ok(bytes) if bytes.len() as u64 > LARGEST => {
            let message = "the file is larger than 64 MiB";
            let found = Diagnostic::of_file(Code::TooLarge, &path, message);
            reading.found.push(found);
            reading.files.push((path, hash_of(&[])));
            return Vec::new();
        }
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("the file cannot be read: {error}");
            reading
                .found
                .push(Diagnostic::of_file(Code::Unreadable, &path, message));
            reading.files.push((path, hash_of(&[])));
            return Vec::new();
        }
    };
    reading.files.push((path.clone(), hash_of(&bytes)));
    let Ok(text) = String::from_utf8(bytes) else {
        let message = "the file is not UTF-8 text";
        reading
            .found
            .push(Diagnostic::of_file(Code::Unreadable, path, message));
        return Vec::new();
    };
    let file = reading.sources.add(path, text);
    let Some(mut tree) = tree::parse(&reading.sources, file, &mut reading.found) else {
        mask::mask_text(&mut reading.sources, file);
        return Vec::new();
    };
    mask::mask_tree(&mut reading.sources, &tree);
    let Reading { sources, found, .. } = reading;
    let brought = interpolate::interpolate(&mut tree, sources, outside, found);
    let included = includes(&tree, sources, found);
    let brought_files = brought.files.into_iter();
    let hashed = brought_files.map(|(path, bytes)| (path, hash_of(&bytes)));
    reading.files.extend(hashed);
    reading.secrets.extend(brought.secrets);
    mask::secrets(&tree.value, &mut reading.secrets);
    reading.trees.push(tree);
    included
}

fn hash_of(bytes: &[u8]) -> FileHash {
    Sha256::digest(bytes).into()
}

/// The bytes of a file, and one more than allowed of one that is too large.
fn contents(path: &Path) -> std::io::Result<Vec<u8>> {
    let file = std::fs::File::open(path)?;
    // What it says of its size spares growing; a device says nothing true.
    let size = file.metadata().map_or(0, |about| about.len().min(LARGEST));
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A folder counts as its YAML files, in the order of their names.
fn expand(path: &Path, found: &mut Vec<Diagnostic>) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_path_buf()];
    }
    // Tests are no part of what runs: `mirror test` asks for them.
    let is_yaml = |name: &str| {
        (name.ends_with(".yaml") || name.ends_with(".yml")) && !is_test_file(Path::new(name))
    };
    let files = list(path, &is_yaml);
    if files.is_empty() {
        let message = "the folder has no *.yaml file";
        found.push(Diagnostic::of_file(Code::Empty, path, message));
    }
    files
}

/// The files of a folder whose name `wanted` takes, sorted; hidden ones are left out (Kubernetes
/// keeps `..data` beside the files).
fn list(folder: &Path, wanted: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let here = Path::new(".");
    let opened = if folder.as_os_str().is_empty() {
        here
    } else {
        folder
    };
    let Ok(entries) = std::fs::read_dir(opened) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.') && wanted(name))
        .map(|name| folder.join(name))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

/// The files that a tree includes. A name without `*` and `?` must exist.
fn includes(tree: &Tree, sources: &Sources, found: &mut Vec<Diagnostic>) -> Vec<PathBuf> {
    let folder = sources.get(tree.file).map_or(Path::new(""), |s| s.folder());
    let patterns = tree.value.get("include").and_then(Value::as_array);
    let mut files = Vec::new();
    for (index, pattern) in patterns.into_iter().flatten().enumerate() {
        let Some(pattern) = pattern.as_str() else {
            continue;
        };
        let path = folder.join(pattern);
        let is_pattern = |text: &str| text.contains(['*', '?']);
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
        let parent = path.parent().unwrap_or(Path::new(""));
        let at = pointer::item("/include", index);
        let place = tree.spots.get(&at).map(|s| sources.place(s.value));
        match (name, place) {
            (_, Some(place)) if is_pattern(&parent.to_string_lossy()) => {
                let message = "`*` and `?` may stand in the file name only";
                found.push(Diagnostic::new(Code::Unreadable, place, message));
            }
            (Some(name), Some(place)) if is_pattern(&name) => {
                let matching = matching(parent, &name);
                if matching.is_empty() {
                    found.push(nothing_matches(place, parent));
                }
                files.extend(matching);
            }
            (_, Some(place)) if !path.exists() => {
                let message = format!("{} does not exist", path.display());
                found.push(Diagnostic::new(Code::Unreadable, place, message));
            }
            _ => files.extend(expand(&path, found)),
        }
    }
    files
}

/// An empty folder may be meant; a misspelt one is not, and its routes would be missing.
fn nothing_matches(place: Place, folder: &Path) -> Diagnostic {
    let shown = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let help = match shown.is_dir() {
        true => format!("no file of {} has such a name", shown.display()),
        false => format!("there is no folder {}", shown.display()),
    };
    let message = "the pattern matches no file";
    Diagnostic::new(Code::NothingIncluded, place, message).help(help)
}

fn matching(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let regex = regex::escape(pattern)
        .replace(r"\*", ".*")
        .replace(r"\?", ".");
    match Regex::new(&format!("^{regex}$")) {
        Ok(regex) => list(folder, &|name| {
            regex.is_match(name) && !is_test_file(Path::new(name))
        }),
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::interpolate::{Allowed, Unset, Variables};

    fn nothing() -> Outside<'static> {
        static VARIABLES: Variables = Variables {
            allowed: Allowed::All,
            unset: Unset::Refused,
        };
        Outside {
            environment: &|_| None,
            variables: &VARIABLES,
        }
    }

    fn names(reading: &Reading) -> Vec<String> {
        let name = |s: &crate::config::place::SourceFile| {
            s.path.file_name().unwrap().to_string_lossy().into_owned()
        };
        reading.sources.iter().map(name).collect()
    }

    #[test]
    fn folders_and_includes_are_followed_once() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        std::fs::create_dir(folder.path().join("routes.d")).unwrap();
        write("mirror.yaml", "include: ['routes.d/*.yaml', mirror.yaml]\n");
        write("routes.d/b.yaml", "include: [../mirror.yaml]\n");
        write("routes.d/a.yaml", "routes: {}\n");
        write("routes.d/.hidden.yaml", "[");
        write("routes.d/c.txt", "[");
        let reading = read(&[folder.path().join("mirror.yaml")], &nothing());
        assert_eq!(names(&reading), ["mirror.yaml", "a.yaml", "b.yaml"]);
        assert!(reading.found.is_empty(), "{:?}", reading.found);
        let before = reading.hash();
        write("routes.d/a.yaml", "routes: {a: 1}\n");
        let reading = read(&[folder.path().join("routes.d")], &nothing());
        assert_eq!(names(&reading), ["a.yaml", "b.yaml", "mirror.yaml"]);
        assert_ne!(before, reading.hash());
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("m.yaml");
        std::fs::write(&file, "include: [no.yaml, 'a*/b.yaml']\n").unwrap();
        let reading = read(&[file.clone(), folder.path().join("none.yaml")], &nothing());
        assert_eq!(reading.found.len(), 3, "{:?}", reading.found);
        assert!(reading.found.iter().all(|d| d.code == Code::Unreadable));
        std::fs::write(&file, "include: ['x*.yaml', 'no/*.yaml']\n").unwrap();
        let found = read(std::slice::from_ref(&file), &nothing()).found;
        assert!(found.iter().all(|d| d.code == Code::NothingIncluded));
        assert_eq!(found.len(), 2, "{found:?}");
        std::fs::write(&file, [0xff, 0xfe]).unwrap();
        assert_eq!(read(&[file], &nothing()).found[0].code, Code::Unreadable);
    }
}
