//! All flows of the file together: which topics each takes, and what it calls them at the target.

use super::identity::{ClusterId, Identities};
use crate::config::language::{self, Combine, Extent, Head, Language, TooLarge};
use crate::config::spec::{ClusterSpec, RouteSpec, TopicSelection};
use crate::handler::Clock;
use crate::handler::outline::{Certainty, FlowNames, OutlineName, Part};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Topics that clusters and replicators keep for themselves; selected only by their literal name.
const INTERNAL: [&str; 4] = [
    "__.*",
    r"(.*\.)?heartbeats",
    r".*\.checkpoints\.internal",
    r"mm2-offset.*\.internal",
];

/// The flows of a file.
pub struct Network<'s> {
    /// Which names mean one cluster.
    pub identities: Identities,
    /// In the order of the file.
    pub flows: Vec<Flow<'s>>,
    /// The flows that read each cluster, by index.
    readers: HashMap<ClusterId, Vec<usize>>,
}

/// One source and one target of a route.
pub struct Flow<'s> {
    /// The route.
    pub route: &'s RouteSpec,
    /// Where it reads.
    pub source: &'s ClusterSpec,
    /// Where it writes.
    pub target: &'s ClusterSpec,
    /// The cluster that is read.
    pub source_id: ClusterId,
    /// The cluster that is written.
    pub target_id: ClusterId,
    /// The topics that it takes.
    pub selection: Rc<Selection<'s>>,
    /// What it calls them.
    pub forms: Vec<Form>,
}

/// What a flow may call a target topic.
#[derive(Clone, Debug)]
pub struct Form {
    /// The name.
    pub name: FormName,
    /// Whether every record gets it.
    pub certainty: Certainty,
    /// What is written under it.
    pub content: Content,
}

/// What is written under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Records.
    Records,
    /// Records that could not be delivered.
    DeadLetters,
}

/// A name in symbols.
#[derive(Clone, Debug)]
pub enum FormName {
    /// The source topic between these texts.
    Around(String, String),
    /// This one.
    Fixed(String),
    /// These parts, among them captures, or the source topic more than once.
    Made(Vec<Part>),
    /// One of these whole-name regexes.
    Allowed(Vec<String>),
}

impl FormName {
    /// The form of an outlined name.
    pub fn of(name: OutlineName) -> Self {
        let parts = match name {
            OutlineName::ByContent(allow) => return Self::Allowed(allow),
            OutlineName::Parts(parts) => parts,
        };
        match parts.as_slice() {
            [] => Self::Fixed(String::new()),
            [Part::Text(text)] => Self::Fixed(text.clone()),
            [Part::SourceTopic] => Self::Around(String::new(), String::new()),
            [Part::Text(text), Part::SourceTopic] => Self::Around(text.clone(), String::new()),
            [Part::SourceTopic, Part::Text(text)] => Self::Around(String::new(), text.clone()),
            [Part::Text(before), Part::SourceTopic, Part::Text(after)] => {
                Self::Around(before.clone(), after.clone())
            }
            _ => Self::Made(parts),
        }
    }

    /// Whether it is this name and no other.
    pub fn is_fixed(&self, name: &str) -> bool {
        matches!(self, Self::Fixed(text) if text == name)
    }

    /// How all names of this form begin, for topics that begin with one of `heads`.
    pub fn heads(&self, heads: &[Head]) -> Vec<Head> {
        let after = |text: &str| {
            let all = heads.iter();
            all.map(|head| Head::whole(text).then(head)).collect()
        };
        match self {
            Self::Fixed(text) => vec![Head::whole(text)],
            Self::Around(before, suffix) => {
                let heads: Vec<Head> = after(before);
                let suffix = Head::whole(suffix);
                heads.into_iter().map(|head| head.then(&suffix)).collect()
            }
            Self::Made(parts) => match parts.as_slice() {
                [Part::Text(text), Part::SourceTopic, ..] => after(text)
                    .into_iter()
                    .map(|head: Head| Head::beginning(head.text))
                    .collect(),
                [Part::Text(text), ..] => vec![Head::beginning(text)],
                _ => vec![Head::beginning("")],
            },
            Self::Allowed(allow) => allow.iter().map(|p| language::head(p)).collect(),
        }
    }
}

/// The topics that a route takes.
pub struct Selection<'s> {
    /// As validated.
    pub topics: &'s TopicSelection,
    /// How they begin.
    pub heads: Vec<Head>,
    language: OnceCell<Result<Language, TooLarge>>,
}

impl<'s> Selection<'s> {
    /// The topics of `topics`.
    pub fn of(topics: &'s TopicSelection) -> Self {
        Self {
            topics,
            heads: topics.include.iter().map(|p| p.head().clone()).collect(),
            language: OnceCell::new(),
        }
    }

    /// Them as a set; made once.
    ///
    /// # Errors
    /// The set is too large.
    pub fn language(&self) -> Result<&Language, TooLarge> {
        let made = self.language.get_or_init(|| self.make());
        made.as_ref().map_err(|error| *error)
    }

    fn make(&self) -> Result<Language, TooLarge> {
        let include = &self.topics.include_patterns;
        let internal = language::patterns(&INTERNAL)?;
        let mut selected = language::patterns(include)?.combine(&internal, Combine::Without)?;
        // An internal topic is selected by an include that is literally its name.
        for literal in include.iter().filter(|p| internal.contains(p)) {
            selected = selected.combine(&Language::word(literal), Combine::Either)?;
        }
        if self.topics.exclude_patterns.is_empty() {
            return Ok(selected);
        }
        let exclude = language::patterns(&self.topics.exclude_patterns)?;
        selected.combine(&exclude, Combine::Without)
    }
}

impl<'s> Network<'s> {
    /// The flows of `routes`.
    pub fn of(routes: &'s [Arc<RouteSpec>], identities: Identities) -> Self {
        let mut flows = Vec::new();
        for route in routes {
            let selection = Rc::new(Selection::of(&route.topics));
            for source in &route.sources {
                for target in &route.targets {
                    flows.extend(flow(route, source, target, &selection, &identities));
                }
            }
        }
        let mut readers: HashMap<ClusterId, Vec<usize>> = HashMap::new();
        for (index, flow) in flows.iter().enumerate() {
            readers.entry(flow.source_id).or_default().push(index);
        }
        Self {
            identities,
            flows,
            readers,
        }
    }

    /// The flows that read `cluster`.
    pub fn readers_of(&self, cluster: ClusterId) -> impl Iterator<Item = &Flow<'s>> {
        let readers = self.readers.get(&cluster).into_iter().flatten();
        readers.map(|&index| &self.flows[index])
    }
}

fn flow<'s>(
    route: &'s RouteSpec,
    source: &'s ClusterSpec,
    target: &'s ClusterSpec,
    selection: &Rc<Selection<'s>>,
    identities: &Identities,
) -> Option<Flow<'s>> {
    let names = FlowNames {
        route: route.name.as_str(),
        source: source.name.as_str(),
        target: target.name.as_str(),
    };
    let outlines = route.chain.outlines(&names).into_iter();
    let mut forms: Vec<Form> = outlines
        .map(|outline| Form {
            name: FormName::of(outline.name),
            certainty: outline.certainty,
            content: Content::Records,
        })
        .collect();
    forms.extend(route.dead_letter.iter().map(|topic| Form {
        name: FormName::Fixed(topic.clone()),
        certainty: Certainty::ByRecord,
        content: Content::DeadLetters,
    }));
    Some(Flow {
        route,
        source,
        target,
        source_id: identities.get(source)?,
        target_id: identities.get(target)?,
        selection: selection.clone(),
        forms,
    })
}

impl Flow<'_> {
    /// The names that records of `topic` get at the target, as the running flow would find them;
    /// `None` if it does not take the topic, or cannot name it.
    pub fn names_of(&self, topic: &str) -> Option<Vec<String>> {
        let (source, target) = (&self.source.name, &self.target.name);
        let bound = self.route.bind(source, target, topic, Clock::default())?;
        let bound = bound.ok()?;
        Some(bound.targets().known.clone())
    }

    /// The names that `form` may give, as a set; more than it gives where captures are in it.
    ///
    /// # Errors
    /// The set is too large.
    pub fn image(&self, form: &FormName, topics: &Language) -> Result<Language, TooLarge> {
        match form {
            FormName::Fixed(text) => Ok(Language::word(text)),
            FormName::Around(before, after) => {
                let begun = Language::word(before).then(topics)?;
                begun.then(&Language::word(after))
            }
            FormName::Allowed(allow) => language::patterns(allow),
            FormName::Made(parts) => {
                let mut name = Language::word("");
                for part in parts {
                    name = name.then(&self.part(part, topics)?)?;
                }
                Ok(name)
            }
        }
    }

    fn part(&self, part: &Part, topics: &Language) -> Result<Language, TooLarge> {
        match part {
            Part::Text(text) => Ok(Language::word(text)),
            Part::SourceTopic => Ok(topics.clone()),
            Part::Capture(name) => {
                let include = &self.selection.topics.include_patterns;
                language::capture(include, name).unwrap_or_else(|| Ok(Language::nothing()))
            }
        }
    }
}

/// Which of `left` and `right` may have a name in common, by their heads, up to `most` pairs. The
/// cost is that of sorting, not that of comparing each with each.
pub fn meeting<L: Copy, R: Copy>(
    left: &[(Head, L)],
    right: &[(Head, R)],
    most: usize,
) -> Vec<(L, R)> {
    let mut sorted: Vec<&(Head, R)> = right.iter().collect();
    sorted.sort_by(|a, b| a.0.text.cmp(&b.0.text));
    let mut by_text: HashMap<&str, Vec<&(Head, R)>> = HashMap::new();
    for item in &sorted {
        by_text.entry(&item.0.text).or_default().push(item);
    }
    let mut pairs = Vec::new();
    for (head, l) in left {
        let shorter = (0..head.text.len()).filter(|&at| head.text.is_char_boundary(at));
        let shorter = shorter
            .filter_map(|at| by_text.get(&head.text[..at]))
            .flatten();
        let from = sorted.partition_point(|item| item.0.text < head.text);
        let longer = sorted[from..].iter();
        let longer = longer.take_while(|item| match head.extent {
            Extent::Whole => item.0.text == head.text,
            Extent::Beginning => item.0.text.starts_with(&head.text),
        });
        for item in shorter.chain(longer).filter(|item| item.0.meets(head)) {
            if pairs.len() >= most {
                return pairs;
            }
            pairs.push((*l, item.1));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_as_sets_are_what_selects_says() {
        let patterns = |list: &[&str]| list.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>();
        let include = patterns(&[".+", "__known", "a.heartbeats", "x|yy"]);
        let topics = TopicSelection::new(&include, &patterns(&["tmp.*", "y"])).unwrap();
        let selection = Selection::of(&topics);
        let set = selection.language().unwrap();
        for name in [
            "orders",
            "__known",
            "__other",
            "heartbeats",
            "a.heartbeats",
            "b.heartbeats",
            "tmp1",
            "y",
            "yy",
            "x.checkpoints.internal",
            "mm2-offset-syncs.a.internal",
        ] {
            assert_eq!(set.contains(name), topics.selects(name).is_some(), "{name}");
        }
    }

    #[test]
    fn heads_meet_as_if_each_were_compared_with_each() {
        let heads = ["", "a", "ab", "abc", "b", "ab"].map(Head::beginning);
        let wholes = ["a", "ab", "b", "abc", ""].map(Head::whole);
        let all: Vec<Head> = heads.into_iter().chain(wholes).collect();
        let numbered: Vec<(Head, usize)> = all.iter().cloned().zip(0..).collect();
        let mut found = meeting(&numbered, &numbered, usize::MAX);
        found.sort_unstable();
        let mut expected = Vec::new();
        for (a, x) in &numbered {
            for (b, y) in &numbered {
                if a.meets(b) {
                    expected.push((*x, *y));
                }
            }
        }
        assert_eq!(found, expected);
    }
}
