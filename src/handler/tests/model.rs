//! A slow and obviously right model of JSON documents: a tree that keeps every byte.

use crate::handler::json::{Segment, text};

/// A value with everything that is spelled in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// A number, text, truth or null, as spelled.
    Scalar(String),
    /// An object; `blank` is what stands between the braces of an empty one.
    Object { members: Vec<Member>, blank: String },
    /// An array; `blank` is what stands between the brackets of an empty one.
    Array {
        elements: Vec<Element>,
        blank: String,
    },
}

/// A member with the white space around its parts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub(super) before: String,
    /// The name with its quotes.
    pub(super) name: String,
    pub(super) colon: (String, String),
    pub(super) value: Node,
    pub(super) after: String,
}

/// An element with the white space around it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Element {
    pub(super) before: String,
    pub(super) value: Node,
    pub(super) after: String,
}

/// A document with the white space around it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Document {
    pub(super) before: String,
    pub(super) root: Node,
    pub(super) after: String,
}

impl Document {
    /// Reads a document that is known to be JSON.
    pub(super) fn parse(text: &str) -> Self {
        let mut rest = text;
        Self {
            before: blank(&mut rest),
            root: node(&mut rest),
            after: rest.to_owned(),
        }
    }

    pub(super) fn print(&self) -> String {
        format!("{}{}{}", self.before, self.root.print(), self.after)
    }
}

fn blank(rest: &mut &str) -> String {
    take(rest, |c| " \t\r\n".contains(c))
}

fn take(rest: &mut &str, wanted: impl Fn(char) -> bool) -> String {
    let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
    let (taken, after) = rest.split_at(end);
    *rest = after;
    taken.to_owned()
}

fn token(rest: &mut &str) -> String {
    let mut tokens =
        serde_json::Deserializer::from_str(rest).into_iter::<&serde_json::value::RawValue>();
    let token = tokens
        .next()
        .expect("a value")
        .expect("JSON")
        .get()
        .to_owned();
    *rest = &rest[token.len()..];
    token
}

fn node(rest: &mut &str) -> Node {
    match rest.chars().next() {
        Some('{') => {
            let mut members = Vec::new();
            *rest = &rest[1..];
            let mut before = blank(rest);
            while !rest.starts_with('}') {
                let name = token(rest);
                let left = blank(rest);
                *rest = rest.strip_prefix(':').expect("a colon");
                let right = blank(rest);
                let value = node(rest);
                let after = blank(rest);
                members.push(Member {
                    before,
                    name,
                    colon: (left, right),
                    value,
                    after,
                });
                *rest = rest.strip_prefix(',').unwrap_or(rest);
                before = blank(rest);
            }
            *rest = &rest[1..];
            Node::Object {
                members,
                blank: before,
            }
        }
        Some('[') => {
            let mut elements = Vec::new();
            *rest = &rest[1..];
            let mut before = blank(rest);
            while !rest.starts_with(']') {
                let value = node(rest);
                let after = blank(rest);
                elements.push(Element {
                    before,
                    value,
                    after,
                });
                *rest = rest.strip_prefix(',').unwrap_or(rest);
                before = blank(rest);
            }
            *rest = &rest[1..];
            Node::Array {
                elements,
                blank: before,
            }
        }
        _ => Node::Scalar(token(rest)),
    }
}

impl Node {
    pub(super) fn print(&self) -> String {
        match self {
            Self::Scalar(token) => token.clone(),
            Self::Object { members, blank } if members.is_empty() => format!("{{{blank}}}"),
            Self::Array { elements, blank } if elements.is_empty() => format!("[{blank}]"),
            Self::Object { members, .. } => {
                let printed: Vec<String> = members.iter().map(Member::print).collect();
                format!("{{{}}}", printed.join(","))
            }
            Self::Array { elements, .. } => {
                let printed: Vec<String> = elements
                    .iter()
                    .map(|e| format!("{}{}{}", e.before, e.value.print(), e.after))
                    .collect();
                format!("[{}]", printed.join(","))
            }
        }
    }

    /// The value at `path`, the last of a repeated name at each level.
    pub(super) fn get(&self, path: &[Segment]) -> Option<&Node> {
        let Some((first, rest)) = path.split_first() else {
            return Some(self);
        };
        let child = match (first, self) {
            (Segment::Name(name), Self::Object { members, .. }) => {
                &members.iter().rfind(|m| m.is_named(name))?.value
            }
            (Segment::Index(index), Self::Array { elements, .. }) => &elements.get(*index)?.value,
            _ => return None,
        };
        child.get(rest)
    }

    /// Every value that `path` matches.
    pub(super) fn every(&mut self, path: &[Segment]) -> Vec<&mut Node> {
        let Some((first, rest)) = path.split_first() else {
            return vec![self];
        };
        let children: Vec<&mut Node> = match (first, self) {
            (Segment::Name(name), Self::Object { members, .. }) => members
                .iter_mut()
                .filter(|m| m.is_named(name))
                .map(|m| &mut m.value)
                .collect(),
            (Segment::Index(index), Self::Array { elements, .. }) => elements
                .iter_mut()
                .skip(*index)
                .take(1)
                .map(|e| &mut e.value)
                .collect(),
            (Segment::Each, Self::Array { elements, .. }) => {
                elements.iter_mut().map(|e| &mut e.value).collect()
            }
            _ => Vec::new(),
        };
        children
            .into_iter()
            .flat_map(|child| child.every(rest))
            .collect()
    }

    /// Writes `new` at `path`; `None` where a parent does not fit or an element is not there.
    pub(super) fn set(&mut self, path: &[Segment], new: Node) -> Option<()> {
        let Some((first, rest)) = path.split_first() else {
            *self = new;
            return Some(());
        };
        match (first, self) {
            (Segment::Name(name), Self::Object { members, blank }) => {
                if let Some(member) = members.iter_mut().rfind(|m| m.is_named(name)) {
                    return member.value.set(rest, new);
                }
                let mut value = Node::Object {
                    members: Vec::new(),
                    blank: String::new(),
                };
                value.set(rest, new)?;
                members.push(Member {
                    before: std::mem::take(blank),
                    name: spelled(name),
                    colon: Default::default(),
                    value,
                    after: String::new(),
                });
                Some(())
            }
            (Segment::Index(index), Self::Array { elements, .. }) => {
                elements.get_mut(*index)?.value.set(rest, new)
            }
            _ => None,
        }
    }

    /// Removes everything that `path` matches.
    pub(super) fn unset(&mut self, path: &[Segment]) {
        let (last, parents) = path.split_last().expect("a path that is not empty");
        for parent in self.every(parents) {
            match (last, parent) {
                (Segment::Name(name), Self::Object { members, blank }) => {
                    while let Some(at) = members.iter().position(|m| m.is_named(name)) {
                        remove_member(members, at, blank);
                    }
                }
                (Segment::Index(index), Self::Array { elements, blank })
                    if *index < elements.len() =>
                {
                    remove_element(elements, *index, blank);
                }
                (Segment::Each, Self::Array { elements, blank }) => {
                    while !elements.is_empty() {
                        remove_element(elements, 0, blank);
                    }
                }
                _ => {}
            }
        }
    }

    /// Gives the members called `old` of every object at `parents` the name `new`; fails where that
    /// is taken.
    pub(super) fn rename(&mut self, parents: &[Segment], old: &str, new: &str) -> Result<(), ()> {
        for parent in self.every(parents) {
            let Self::Object { members, .. } = parent else {
                continue;
            };
            if old == new || !members.iter().any(|m| m.is_named(old)) {
                continue;
            }
            if members.iter().any(|m| m.is_named(new)) {
                return Err(());
            }
            for member in members.iter_mut().filter(|m| m.is_named(old)) {
                member.name = spelled(new);
            }
        }
        Ok(())
    }

    /// The members of nested objects, each with the names on the way to it.
    pub(super) fn leaves(&self, way: &[String]) -> Vec<(Vec<String>, String)> {
        match self {
            Self::Object { members, .. } if !members.is_empty() => members
                .iter()
                .flat_map(|m| m.value.leaves(&[way, &[m.inner().to_owned()]].concat()))
                .collect(),
            other => vec![(way.to_vec(), other.print())],
        }
    }
}

impl Member {
    fn print(&self) -> String {
        let (left, right) = &self.colon;
        let value = self.value.print();
        format!(
            "{}{}{left}:{right}{value}{}",
            self.before, self.name, self.after
        )
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        serde_json::from_str::<String>(&self.name).is_ok_and(|n| n == name)
    }

    /// The name as spelled, without quotes.
    pub(super) fn inner(&self) -> &str {
        &self.name[1..self.name.len() - 1]
    }
}

/// The next one moves up to where the removed one began; after the last, what follows does.
fn remove_member(members: &mut Vec<Member>, at: usize, blank: &mut String) {
    let gone = members.remove(at);
    if let Some(next) = members.get_mut(at) {
        next.before = gone.before;
    } else if let Some(before) = members.last_mut() {
        before.after = gone.after;
    } else {
        *blank = gone.before + &gone.after;
    }
}

fn remove_element(elements: &mut Vec<Element>, at: usize, blank: &mut String) {
    let gone = elements.remove(at);
    if let Some(next) = elements.get_mut(at) {
        next.before = gone.before;
    } else if let Some(before) = elements.last_mut() {
        before.after = gone.after;
    } else {
        *blank = gone.before + &gone.after;
    }
}

fn spelled(name: &str) -> String {
    String::from_utf8(text::encoded(name)).expect("UTF-8")
}
