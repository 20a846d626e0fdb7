//! Several trees → one document, and every pointer's place.

use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::place::{Place, Sources, Span};
use crate::config::pointer;
use crate::config::spots::{Spot, Spots};
use crate::config::tree::Tree;
use crate::config::written::written;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Keys whose entries come together from several files, each name once.
const BY_NAME: [&str; 3] = ["clusters", "handlers", "routes"];
/// Keys whose lists are joined.
const LISTS: [&str; 2] = ["include", "tests"];

/// The whole configuration as written, one value with places.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The value.
    pub value: Value,
    /// Where each node stands.
    pub spots: Spots,
    /// Nodes whose text came from a variable or a file.
    pub substituted: BTreeSet<String>,
    /// Those of them whose text could not be had; that is reported already.
    pub unset: BTreeSet<String>,
    /// What stands in the file at nodes whose text came from a variable or a file.
    pub written: BTreeMap<String, String>,
    /// The files.
    pub sources: Sources,
}

impl Document {
    /// Joins trees. Settings and names that two files give are errors with both places.
    pub fn join(trees: Vec<Tree>, sources: Sources, found: &mut Vec<Diagnostic>) -> Self {
        let mut document = Self {
            value: Value::Object(Map::new()),
            sources,
            ..Self::default()
        };
        for tree in trees {
            document.add(tree, found);
        }
        document
    }

    fn add(&mut self, mut tree: Tree, found: &mut Vec<Diagnostic>) {
        let Value::Object(members) = std::mem::take(&mut tree.value) else {
            let root = tree.spots.get("").map_or(0, |s| s.value.start);
            let (file, start, end) = (tree.file, root, root + 1);
            let place = self.sources.place(Span { file, start, end });
            found.push(
                Diagnostic::new(Code::WrongType, place, "the file is not a map")
                    .help("it begins with `version: 1`, then `clusters:` and `routes:`"),
            );
            return;
        };
        // The first file comes as it is; a copy of every place would cost as much as the reading.
        if self.spots.is_empty() {
            self.value = Value::Object(members);
            self.spots = tree.spots;
            self.substituted = tree.substituted;
            self.unset = tree.unset;
            self.written = tree.written;
            return;
        }
        for (name, value) in members {
            self.add_member(name, value, &tree, found);
        }
    }

    fn add_member(&mut self, name: String, value: Value, tree: &Tree, found: &mut Vec<Diagnostic>) {
        let at = pointer::child("", &name);
        let same = self.value.get(&name) == Some(&value);
        match (self.value.get_mut(&name), value) {
            (None, value) => {
                self.take(&at, &at, tree);
                self.set(name, value);
            }
            (Some(Value::Object(_)), Value::Object(entries)) if BY_NAME.contains(&&*name) => {
                for (entry, value) in entries {
                    self.add_entry(&at, entry, value, tree, found);
                }
            }
            (Some(Value::Array(list)), Value::Array(more)) if LISTS.contains(&&*name) => {
                let from = list.len();
                let count = more.len();
                list.extend(more);
                for index in 0..count {
                    let to = pointer::item(&at, from + index);
                    self.take(&pointer::item(&at, index), &to, tree);
                }
            }
            (Some(_), _) if name == "version" && same => {}
            (Some(_), _) => found.push(self.twice(&at, &name, tree)),
        }
    }

    fn add_entry(
        &mut self,
        section: &str,
        name: String,
        value: Value,
        tree: &Tree,
        found: &mut Vec<Diagnostic>,
    ) {
        let at = pointer::child(section, &name);
        match self.value.pointer_mut(section) {
            Some(Value::Object(map)) if !map.contains_key(&name) => {
                map.insert(name, value);
                self.take(&at, &at, tree);
            }
            _ => found.push(self.twice(&at, &name, tree)),
        }
    }

    fn set(&mut self, name: String, value: Value) {
        if let Value::Object(map) = &mut self.value {
            map.insert(name, value);
        }
    }

    /// Takes over the places below `from` in `tree` as those below `to`.
    fn take(&mut self, from: &str, to: &str, tree: &Tree) {
        self.spots.take_over(&tree.spots, from, to);
        for pointer in below(&tree.substituted, from) {
            self.substituted.insert(format!("{to}{pointer}"));
        }
        for (pointer, text) in tree.written.range(from.to_owned()..) {
            match pointer.strip_prefix(from) {
                Some(rest) if is_below(rest) => {
                    self.written.insert(format!("{to}{rest}"), text.clone())
                }
                Some(_) => continue,
                None => break,
            };
        }
        for pointer in below(&tree.unset, from) {
            self.unset.insert(format!("{to}{pointer}"));
        }
    }

    fn twice(&self, at: &str, name: &str, tree: &Tree) -> Diagnostic {
        let again = tree.spots.get(at).and_then(|s| s.key);
        let place = again.map_or_else(|| self.place(at), |span| self.sources.place(span));
        Diagnostic::new(
            Code::DefinedTwice,
            place,
            format!("`{name}` is defined in two files"),
        )
        .related(self.place_of_key(at), "first here")
    }

    /// The spot of `pointer`, or of what stands above it. What a route takes from `defaults:`
    /// stands there.
    fn spot(&self, pointer: &str) -> Option<Spot> {
        let mut at = pointer;
        loop {
            let inherited = || self.spots.get(&defaults_of(at)?);
            if let Some(spot) = self.spots.get(at).or_else(inherited) {
                return Some(spot);
            }
            at = pointer::split(at)?.0;
        }
    }

    /// The span to point at for a value: the scalar itself, the key of a collection, the first
    /// line of an item.
    pub fn span(&self, pointer: &str) -> Option<Span> {
        let spot = self.spot(pointer)?;
        let text = self.sources.slice(spot.value);
        let whole = !text.is_empty() && !text.contains('\n');
        Some(match spot.key {
            Some(key) if !whole => key,
            _ => self.sources.first_line(spot.value),
        })
    }

    /// The place of a value.
    pub fn place(&self, pointer: &str) -> Place {
        self.place_of(self.span(pointer))
    }

    /// The place of a key.
    pub fn place_of_key(&self, pointer: &str) -> Place {
        let key = self.spots.get(pointer).and_then(|s| s.key);
        self.place_of(key.or_else(|| self.span(pointer)))
    }

    /// The place of the bytes `inside` of `text`, where `text` is what is written as the value,
    /// in whatever style.
    pub fn place_inside(&self, pointer: &str, text: &str, inside: Range<usize>) -> Place {
        let scalar = self.spot(pointer).map(|spot| spot.value);
        let part = scalar.and_then(|scalar| self.part(scalar, text, inside.clone()));
        let span = || Some(self.sources.narrow(self.span(pointer)?, text, inside));
        self.place_of(part.or_else(span))
    }

    /// The place of the bytes `inside` of `text`, where `text` is what is written as the key.
    pub fn place_inside_key(&self, pointer: &str, text: &str, inside: Range<usize>) -> Place {
        let key = self.spots.get(pointer).and_then(|spot| spot.key);
        match key.and_then(|key| self.part(key, text, inside)) {
            Some(part) => self.place_of(Some(part)),
            None => self.place_of_key(pointer),
        }
    }

    /// The bytes `inside` of `text`, where `text` is what is written at `scalar`.
    fn part(&self, scalar: Span, text: &str, inside: Range<usize>) -> Option<Span> {
        let part = written(self.sources.slice(scalar), text, inside)?;
        Some(Span {
            start: scalar.start + part.start,
            end: scalar.start + part.end,
            ..scalar
        })
    }

    fn place_of(&self, span: Option<Span>) -> Place {
        let start = Span {
            file: 0,
            start: 0,
            end: 0,
        };
        self.sources.place(span.unwrap_or(start))
    }

    /// The folder that relative paths at `pointer` start from.
    pub fn folder(&self, pointer: &str) -> PathBuf {
        let file = self.spot(pointer).map_or(0, |s| s.value.file);
        let folder = self.sources.get(file).map(|s| s.folder());
        folder.unwrap_or(Path::new("")).to_path_buf()
    }

    /// Whether something at or below `pointer` was put in by `${…}`.
    pub fn has_substituted(&self, pointer: &str) -> bool {
        below(&self.substituted, pointer).next().is_some()
    }

    /// Whether the value at `pointer` may be repeated in a message.
    pub fn may_be_shown(&self, pointer: &str) -> bool {
        let origin = defaults_of(pointer).unwrap_or_default();
        !self.substituted.contains(pointer)
            && !self.substituted.contains(&origin)
            && !crate::config::mask::is_secret_pointer(pointer)
    }
}

/// What is left of the pointers at and below `from`.
fn below<'a>(pointers: &'a BTreeSet<String>, from: &'a str) -> impl Iterator<Item = &'a str> {
    pointers
        .range(from.to_owned()..)
        .map_while(move |pointer| pointer.strip_prefix(from))
        .filter(|rest| is_below(rest))
}

/// Whether what is left of a pointer after a prefix means the node itself or one inside it.
fn is_below(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/')
}

/// Where in `defaults:` a setting of a route would come from.
fn defaults_of(pointer: &str) -> Option<String> {
    let (_, setting) = pointer.strip_prefix("/routes/")?.split_once('/')?;
    Some(format!("/defaults/{setting}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tree;

    fn join(texts: &[&str]) -> (Document, Vec<Diagnostic>) {
        let mut sources = Sources::default();
        let mut found = Vec::new();
        let mut trees = Vec::new();
        for (i, text) in texts.iter().enumerate() {
            let file = sources.add(format!("{i}.yaml").into(), (*text).to_owned());
            trees.extend(tree::parse(&sources, file, &mut found));
        }
        (Document::join(trees, sources, &mut found), found)
    }

    #[test]
    fn files_are_joined_and_places_kept() {
        let (document, found) = join(&[
            "version: 1\nroutes: {a: {source: x}}\ntests: [1]\n",
            "version: 1\nroutes:\n  b: {source: y}\ntests: [2]\n",
        ]);
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(
            document.place("/routes/b/source").to_string(),
            "1.yaml:3:15"
        );
        assert_eq!(document.place("/tests/1").to_string(), "1.yaml:4:9");
        assert_eq!(
            document.place("/routes/a/nothing").to_string(),
            "0.yaml:2:13"
        );
    }

    #[test]
    fn a_name_in_two_files_names_both_places() {
        let (_, found) = join(&["routes: {a: {}}\ngroup: g\n", "group: h\nroutes: {a: {}}\n"]);
        let lines: Vec<_> = found.iter().map(Diagnostic::one_line).collect();
        assert_eq!(
            lines,
            [
                "1.yaml:1:1: error[E0108]: `group` is defined in two files",
                "1.yaml:2:10: error[E0108]: `a` is defined in two files",
            ]
        );
        assert_eq!(found[1].related[0].0.to_string(), "0.yaml:1:10");
    }

    #[test]
    fn a_setting_of_a_route_may_stand_in_the_defaults() {
        let (document, _) =
            join(&["defaults: {limits: {in_flight: x}}\nroutes: {a: {source: b}}\n"]);
        assert_eq!(
            document.place("/routes/a/limits/in_flight").to_string(),
            "0.yaml:1:32"
        );
    }

    #[test]
    fn a_file_that_is_no_map_is_refused() {
        let (_, found) = join(&["- a\n"]);
        assert_eq!(found[0].code, Code::WrongType);
    }
}
