//! What a route can reach: patterns that match no topic, and names that no topic may have.

use super::Check;
use super::network::{FormName, Network, Selection};
use crate::config::chains::{Compiled, Steps, place_of_fault};
use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::language::{self, Combine, Head, Language, MAX_NAME, TooLarge};
use crate::config::pointer;
use crate::config::spec::{Accept, ClusterSpec, Name, TopicSelection};
use crate::handler::outline::{FlowNames, OutlineName};
use crate::handler::{Binding, Chain, ChainFault, Clock, Inside};
use regex_syntax::hir::Hir;
use std::collections::{BTreeSet, HashMap};

/// A route on its way: what its patterns and its renames are looked at with.
pub struct Reach<'r> {
    /// Where the route stands.
    pub at: &'r str,
    /// Its name.
    pub route: &'r Name,
    /// Its topics.
    pub topics: &'r TopicSelection,
    /// The syntax of each `include`.
    pub include: &'r [Hir],
    /// The syntax of each `exclude`.
    pub exclude: &'r [Hir],
    /// Its handlers.
    pub compiled: &'r Compiled<'r>,
    /// Where they stand.
    pub steps: &'r Steps<'r>,
    /// Its first source.
    pub source: &'r ClusterSpec,
    /// Its first target.
    pub target: &'r ClusterSpec,
    /// What its user accepts.
    pub accept: &'r [Accept],
}

/// Why a pattern matches no topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Barren {
    /// No topic may be called so.
    Illegal,
    /// Only topics that clusters keep for themselves are called so.
    Internal,
    /// What it matches is excluded.
    Excluded,
}

impl Barren {
    fn words(self) -> &'static str {
        match self {
            Barren::Illegal => {
                "no topic can be called so: names have `a-z A-Z 0-9 . _ -`, 249 characters at most"
            }
            Barren::Internal => {
                "topics that Kafka and replicators keep for themselves are out, unless named literally"
            }
            Barren::Excluded => "`exclude` takes out everything that it matches",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Barren::Illegal => {
                "a pattern is matched against the whole name, without slashes or spaces"
            }
            Barren::Internal => "write the topic's whole name, without regex characters",
            Barren::Excluded => "make `exclude` narrower, or remove the pattern",
        }
    }
}

impl Reach<'_> {
    /// Reports patterns without topics, names that cannot be made, and topics that become one.
    pub fn report(&self, check: &mut Check<'_>) {
        let texts: Vec<Vec<String>> = self.include.iter().map(language::samples_of).collect();
        if self.patterns(&texts, check) == Selects::Nothing || self.steps.list.is_empty() {
            return;
        }
        let samples = self.samples(&texts);
        match self.compiled {
            // What the names become, a step that is missing would decide as well.
            Compiled::Part(chain, steps) => self.captures(chain, steps, &samples, check),
            Compiled::Whole(chain) => {
                self.captures(chain, self.steps, &samples, check);
                self.names(chain, &samples, check);
                self.merges(chain, &samples, check);
            }
        }
    }

    /// `texts` are likely to match, a list for each `include`.
    fn patterns(&self, texts: &[Vec<String>], check: &mut Check<'_>) -> Selects {
        let include = &self.topics.include_patterns;
        let each = texts.iter().enumerate();
        let barren: Vec<Option<Barren>> = each.map(|(i, texts)| self.barren(i, texts)).collect();
        let list = pointer::child(&pointer::child(self.at, "topics"), "include");
        let only = include.len() == 1;
        for (index, reason) in barren.iter().enumerate() {
            let Some(reason) = reason.filter(|_| !only) else {
                continue;
            };
            let at = pointer::item(&list, index);
            // A control character is reported already, with better help.
            if include[index].contains(char::is_control) {
                continue;
            }
            let message = format!("this pattern selects no topic: {}", reason.words());
            check.say(Code::MatchesNothing, &at, message).help = Some(reason.help().to_owned());
        }
        let exclude = pointer::child(&pointer::child(self.at, "topics"), "exclude");
        let excluded = self.exclude.iter().zip(&self.topics.exclude_patterns);
        for (index, (hir, pattern)) in excluded.enumerate() {
            if is_illegal(hir, pattern) && !pattern.contains(char::is_control) {
                let at = pointer::item(&exclude, index);
                let message = format!(
                    "this pattern excludes no topic: {}",
                    Barren::Illegal.words()
                );
                check.say(Code::MatchesNothing, &at, message).help =
                    Some(Barren::Illegal.help().to_owned());
            }
        }
        match barren.iter().all(Option::is_some) {
            false => Selects::Something,
            true => {
                let at = match only {
                    true => pointer::item(&list, 0),
                    false => list,
                };
                let reason = barren.first().copied().flatten().unwrap_or(Barren::Illegal);
                let message = match only {
                    true => format!("the route can select no topic: {}", reason.words()),
                    false => "the route can select no topic".to_owned(),
                };
                check.say(Code::SelectsNothing, &at, message).help = Some(reason.help().to_owned());
                Selects::Nothing
            }
        }
    }

    /// Why the pattern of that index selects nothing, if that is so. An example settles it, mostly.
    fn barren(&self, index: usize, texts: &[String]) -> Option<Barren> {
        if language::can_match(&self.include[index]) == Some(false) {
            return Some(Barren::Illegal);
        }
        let pattern = &self.topics.include[index];
        let head = &pattern.head().text;
        if texts
            .iter()
            .chain([head])
            .any(|text| self.takes(index, text))
        {
            return None;
        }
        self.barren_for_sure(pattern.pattern()).ok().flatten()
    }

    /// Whether the pattern of that index is one that selects `topic`.
    fn takes(&self, index: usize, topic: &str) -> bool {
        super::topics::is_topic(topic)
            && self.topics.include[index].is_match(topic)
            && self.topics.selects(topic).is_some()
    }

    fn barren_for_sure(&self, pattern: &str) -> Result<Option<Barren>, TooLarge> {
        let nothing = |language: &Language| language::shortest(language, MAX_NAME).is_none();
        let all = language::patterns(&[pattern])?;
        if nothing(&all) {
            return Ok(Some(Barren::Illegal));
        }
        let selection = Selection::of(self.topics);
        if !nothing(&all.combine(selection.language()?, Combine::Both)?) {
            return Ok(None);
        }
        let exclude = language::patterns(&self.topics.exclude_patterns)?;
        let excluded = nothing(&all.combine(&exclude, Combine::Without)?);
        Ok(Some(match excluded {
            true => Barren::Excluded,
            false => Barren::Internal,
        }))
    }

    /// Those of `texts` that the route selects, by the pattern that selects them.
    fn samples<'t>(&self, texts: &'t [Vec<String>]) -> Vec<(usize, &'t str)> {
        let mut samples = Vec::new();
        for (index, texts) in texts.iter().enumerate() {
            let texts = texts.iter().map(String::as_str);
            samples.extend(texts.filter(|t| self.takes(index, t)).map(|t| (index, t)));
        }
        samples
    }

    fn binding<'t>(&'t self, topic: &'t str) -> Option<Binding<'t>> {
        Some(Binding {
            route: self.route.as_str(),
            source: self.source.name.as_str(),
            target: self.target.name.as_str(),
            topic,
            selected_by: self.topics.selects(topic)?,
            clock: Clock::default(),
            record_bytes: None,
        })
    }

    fn bind(&self, chain: &Chain, topic: &str) -> Option<Result<Vec<String>, ChainFault>> {
        let bound = chain.bind(&self.binding(topic)?);
        Some(bound.map(|bound| bound.targets().known.clone()))
    }

    /// Captures in templates that no topic of a pattern fills, most often since the pattern does not have them.
    fn captures(
        &self,
        chain: &Chain,
        steps: &Steps<'_>,
        samples: &[(usize, &str)],
        check: &mut Check<'_>,
    ) {
        let mut told = Told::new();
        for index in 0..self.topics.include_patterns.len() {
            let of_pattern = samples.iter().filter(|(pattern, _)| *pattern == index);
            let bindings = of_pattern.filter_map(|(_, topic)| self.binding(topic));
            let mut each = bindings.map(|binding| chain.unfilled(&binding));
            let Some(mut faults) = each.next() else {
                continue;
            };
            for others in each {
                faults.retain(|fault| others.iter().any(|other| is_same(fault, other)));
            }
            for fault in faults {
                let at = naming(place_of_fault(&fault.pointer, steps), check);
                self.say(fault, at, &mut told, check);
            }
        }
    }

    /// What no topic of a pattern can be called, such as a name that is too long.
    fn names(&self, chain: &Chain, samples: &[(usize, &str)], check: &mut Check<'_>) {
        let mut told = Told::new();
        for index in 0..self.topics.include_patterns.len() {
            let of_pattern = samples.iter().filter(|(pattern, _)| *pattern == index);
            let mut results = of_pattern
                .filter_map(|(_, topic)| self.bind(chain, topic))
                .peekable();
            let first = results.peek().and_then(|r| r.as_ref().err()).cloned();
            let Some(mut fault) = first.filter(|_| results.all(|r| r.is_err())) else {
                continue;
            };
            let at = match fault.pointer.as_str() {
                "" => {
                    let topics = pointer::child(self.at, "topics");
                    let name = fault.inside.take().map(|inside| inside.text);
                    fault.inside = name.and_then(|name| self.capture(index, &name));
                    pointer::item(&pointer::child(&topics, "include"), index)
                }
                // A capture that cannot be filled, which is told.
                _ if fault.inside.is_some() => continue,
                pointer => naming(place_of_fault(pointer, self.steps), check),
            };
            self.say(fault, at, &mut told, check);
        }
    }

    fn say(&self, fault: ChainFault, at: String, told: &mut Told, check: &mut Check<'_>) {
        let part = fault.inside.as_ref().map(|inside| inside.bytes.start);
        if !told.insert((at.clone(), part, fault.message.clone())) {
            return;
        }
        let message = match self.may_be_shown(check) {
            true => fault.message,
            false => "a template of this step can be filled for no topic of the route".to_owned(),
        };
        let diagnostic = match fault.inside {
            Some(Inside { text, bytes }) => {
                check.say_inside(Code::BadStep, &at, (&text, bytes), message)
            }
            None => check.say(Code::BadStep, &at, message),
        };
        diagnostic.help = fault.help;
    }

    /// Where the capture `name` stands in the pattern of that index.
    fn capture(&self, index: usize, name: &str) -> Option<Inside> {
        let text = self.topics.include_patterns.get(index)?;
        let at = text.find(&format!("<{name}>"))? + 1;
        Some(Inside {
            text: text.clone(),
            bytes: at..at + name.len(),
        })
    }

    /// Whether what the topics are called may be repeated: no pattern and no rename was put in.
    fn may_be_shown(&self, check: &Check<'_>) -> bool {
        let topics = pointer::child(self.at, "topics");
        let renames = self
            .steps
            .pointers
            .iter()
            .map(|at| pointer::child(at, "rename"));
        let mut parts = renames.chain([topics, "/defaults".to_owned()]);
        !parts.any(|part| check.document.has_substituted(&part))
    }

    /// Topics of the route that get one name.
    fn merges(&self, chain: &Chain, samples: &[(usize, &str)], check: &mut Check<'_>) {
        let names = FlowNames {
            route: self.route.as_str(),
            source: self.source.name.as_str(),
            target: self.target.name.as_str(),
        };
        let outlines = chain.outlines(&names);
        let by_content = outlines
            .iter()
            .any(|o| matches!(o.name, OutlineName::ByContent(_)));
        let mut forms = outlines.into_iter().map(|o| FormName::of(o.name));
        let apart = forms.all(|name| matches!(name, FormName::Around(..)));
        if apart || by_content || self.accept.contains(&Accept::Reorder) {
            return;
        }
        let mut first_of: HashMap<String, &str> = HashMap::new();
        for &(_, topic) in samples {
            for name in self
                .bind(chain, topic)
                .and_then(Result::ok)
                .unwrap_or_default()
            {
                let first = *first_of.entry(name.clone()).or_insert(topic);
                if first != topic {
                    return self.say_merge((first, topic), &name, check);
                }
            }
        }
    }

    fn say_merge(&self, (first, second): (&str, &str), name: &str, check: &mut Check<'_>) {
        let at = self.renaming_step();
        let message = match check.names_may_be_shown(self.at) {
            true => format!(
                "several topics become one: `{first}` and `{second}` are both `{name}` at the target"
            ),
            false => "several topics become one at the target".to_owned(),
        };
        check.say(Code::TopicsMerge, &at, message).help = Some(
            "put `{topic}`, or a capture for each part that varies, into the name; or write `accept: [reorder]` at the route, and `partitions: key_hash` to keep each key in one partition"
                .to_owned(),
        );
    }

    /// The last step that names topics.
    fn renaming_step(&self) -> String {
        let both = self.steps.list.iter().zip(&self.steps.pointers).rev();
        let renaming = both.into_iter().find_map(|(step, at)| {
            let rename = step.get("rename")?;
            let word = ["topic", "to"]
                .into_iter()
                .find(|w| rename.get(w).is_some())?;
            Some(pointer::child(&pointer::child(at, "rename"), word))
        });
        renaming.unwrap_or_else(|| self.at.to_owned())
    }
}

/// What was told already: where, from which byte of a text, and what.
type Told = BTreeSet<(String, Option<usize>, String)>;

/// Whether two topics lack the same thing.
fn is_same(here: &ChainFault, there: &ChainFault) -> bool {
    here.pointer == there.pointer && here.inside == there.inside
}

/// The name in the step at `at`, if it renames topics; else the step.
fn naming(at: String, check: &Check<'_>) -> String {
    let name = pointer::child(&pointer::child(&at, "rename"), "topic");
    match check.document.spots.contains(&name) {
        true => name,
        false => at,
    }
}

/// Whether a route selects a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Selects {
    /// It may.
    Something,
    /// It cannot.
    Nothing,
}

/// Whether no topic can be called as `pattern`, whose syntax is `hir`, says.
fn is_illegal(hir: &Hir, pattern: &str) -> bool {
    let by_look = language::can_match(hir);
    let by_search = || {
        let all = language::patterns(&[pattern]);
        all.is_ok_and(|all| language::shortest(&all, MAX_NAME).is_none())
    };
    by_look.map_or_else(by_search, |can| !can)
}

/// Dead letters that another route copies on without naming their topic. `returning` are pairs of routes that
/// are reported already.
pub fn dead_letters(
    network: &Network<'_>,
    returning: &BTreeSet<(String, String)>,
    check: &mut Check<'_>,
) {
    let mut told = BTreeSet::new();
    for writer in &network.flows {
        let Some(topic) = writer.route.dead_letter.as_deref() else {
            continue;
        };
        for reader in network.readers_of(writer.target_id) {
            let pair = (writer.route.name.to_string(), reader.route.name.to_string());
            let Some(pattern) = reader.selection.topics.selects(topic) else {
                continue;
            };
            let mut patterns = reader.selection.topics.include_patterns.iter();
            let index = patterns.position(|p| p == pattern.pattern());
            let index = index.unwrap_or_default();
            let literal = *pattern.head() == Head::whole(topic);
            if literal || returning.contains(&pair) || !told.insert(pair) {
                continue;
            }
            let of_reader = pointer::child("/routes", reader.route.name.as_str());
            let include = pointer::child(&pointer::child(&of_reader, "topics"), "include");
            let of_writer = pointer::child("/routes", writer.route.name.as_str());
            let written = pointer::child(&pointer::child(&of_writer, "dead_letter"), "topic");
            let place = check.document.place(&written);
            let message = format!(
                "this pattern selects the dead letters of route `{}`: they are copied on to {}",
                writer.route.name, reader.target.name
            );
            let here = check.document.place(&pointer::item(&include, index));
            let warning = Diagnostic::new(Code::DeadLettersCopied, here, message);
            check.report(warning.related(place, "written here").help(
                "put the dead-letter topic under `exclude:`; to copy it on purpose, name it literally",
            ));
        }
    }
}
