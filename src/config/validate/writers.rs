//! Who writes which target topic: two routes that write one, and names that Kafka cannot tell apart.

use super::Check;
use super::identity::ClusterId;
use super::network::{Content, Flow, Form, FormName, Network, meeting};
use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::language::{self, Combine, Extent, Head, Language, MAX_NAME, TooLarge};
use crate::config::pointer;
use crate::config::spec::Accept;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Pairs of writers whose heads are compared, and pairs whose sets are.
const MOST_PAIRS: usize = 200_000;
const MOST_COMPARED: usize = 2_000;

/// Topics that one form of one flow writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Writer {
    flow: usize,
    form: usize,
    /// The include pattern that the topics come from.
    pattern: usize,
}

/// Reports target topics that two routes write, and those whose names clash.
pub fn report(network: &Network<'_>, check: &mut Check<'_>) {
    let mut by_target: BTreeMap<ClusterId, Vec<(Head, Writer)>> = BTreeMap::new();
    for (flow, of) in network.flows.iter().enumerate() {
        for (form, named) in of.forms.iter().enumerate() {
            if matches!(named.name, FormName::Allowed(_)) {
                continue;
            }
            let writers = by_target.entry(of.target_id).or_default();
            for (pattern, head) in of.selection.heads.iter().enumerate() {
                for head in named.name.heads(std::slice::from_ref(head)) {
                    let writer = Writer {
                        flow,
                        form,
                        pattern,
                    };
                    writers.push((head, writer));
                }
            }
        }
    }
    let mut writers = Writers {
        network,
        images: HashMap::new(),
        compared: 0,
    };
    for list in by_target.values() {
        writers.shared(list, check);
        writers.clashes(list, check);
    }
    if writers.compared > MOST_COMPARED {
        let message = format!(
            "too many routes may write the same topics: only {MOST_COMPARED} pairs of them were compared"
        );
        check
            .say_of_key(Code::SharedTarget, "/routes", message)
            .help =
            Some("patterns that begin with a text of their own are told apart at once".to_owned());
    }
}

struct Writers<'n, 's> {
    network: &'n Network<'s>,
    images: HashMap<Writer, Result<Language, TooLarge>>,
    compared: usize,
}

/// A topic that two routes write.
struct Meeting {
    name: String,
    how: How,
}

/// How two routes meet in a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
enum How {
    /// Both copy this one source topic to it.
    Twice(String),
    /// They copy different ones.
    Mixed,
}

impl<'s> Writers<'_, 's> {
    fn flow(&self, writer: Writer) -> &Flow<'s> {
        &self.network.flows[writer.flow]
    }

    fn form(&self, writer: Writer) -> &Form {
        &self.flow(writer).forms[writer.form]
    }

    /// Topics that two routes write. Each route says so once.
    fn shared(&mut self, list: &[(Head, Writer)], check: &mut Check<'_>) {
        let mut told = BTreeSet::new();
        let mut pairs = meeting(list, list, MOST_PAIRS);
        pairs.retain(|(a, b)| a.flow < b.flow);
        pairs.sort_unstable_by_key(|(a, b)| (b.flow, a.flow, *b, *a));
        for (first, second) in pairs {
            let (one, two) = (self.flow(first).route, self.flow(second).route);
            let dead = |of| self.form(of).content == Content::DeadLetters;
            // One topic for the dead letters of many routes is what they are for.
            let both_dead = dead(first) && dead(second);
            if one.name == two.name || both_dead || told.contains(&two.name) {
                continue;
            }
            self.compared += 1;
            if self.compared > MOST_COMPARED {
                return;
            }
            let Some(met) = self.meet(first, second) else {
                continue;
            };
            let accepted = [one, two]
                .iter()
                .any(|r| r.accept.contains(&Accept::Reorder));
            if met.how == How::Mixed && accepted {
                continue;
            }
            told.insert(two.name.clone());
            self.say_shared((first, second), &met, check);
        }
    }

    fn say_shared(&self, (first, second): (Writer, Writer), met: &Meeting, check: &mut Check<'_>) {
        let (one, two) = (self.flow(first), self.flow(second));
        let routes = [one, two].map(|f| f.route);
        let shown = routes.iter().all(|r| check.route_names_may_be_shown(r));
        let topic = |name: &str| match shown {
            true => format!("`{name}`"),
            false => "a topic".to_owned(),
        };
        let (target, other) = (&two.target.name, &one.route.name);
        let (message, help) = match &met.how {
            How::Twice(source) => (
                format!(
                    "{} of {} is copied twice to {} of {target}: by this route and by `{other}`",
                    topic(source),
                    two.source.name,
                    topic(&met.name),
                ),
                "put it under `exclude:` of one of the two",
            ),
            How::Mixed => (
                format!(
                    "{} of {target} is written by route `{other}` too: their records are mixed",
                    topic(&met.name),
                ),
                "rename the topics of one of the two, or write `accept: [reorder]` at one of them if that is meant",
            ),
        };
        let related = check.document.place(&target_of(one));
        let place = check.document.place(&target_of(two));
        let warning = Diagnostic::new(Code::SharedTarget, place, message);
        check.report(
            warning
                .related(related, format!("route `{other}` writes here"))
                .help(help),
        );
    }

    /// A topic that both write, if there is one for sure.
    fn meet(&mut self, first: Writer, second: Writer) -> Option<Meeting> {
        let (exact_one, exact_two) = (self.is_exact(first), self.is_exact(second));
        let names: Vec<String> = match (exact_one, exact_two) {
            (true, true) => {
                let both = self.image(first)?.clone();
                let both = both.combine(self.image(second)?, Combine::Both).ok()?;
                language::words(&both, 4, MAX_NAME)
            }
            // Captures: names that samples of topics really get.
            (false, _) => self.sampled(first),
            (true, false) => self.sampled(second),
        };
        names.into_iter().find_map(|name| {
            let from = self.origins(first, &name);
            let to = self.origins(second, &name);
            let same_source = self.flow(first).source_id == self.flow(second).source_id;
            let twice = from.iter().find(|topic| to.contains(topic));
            let records = [first, second]
                .iter()
                .all(|w| self.form(*w).content == Content::Records);
            let how = match twice {
                Some(topic) if same_source && records => How::Twice(topic.clone()),
                _ => How::Mixed,
            };
            (!from.is_empty() && !to.is_empty()).then_some(Meeting { name, how })
        })
    }

    fn is_exact(&self, writer: Writer) -> bool {
        matches!(
            self.form(writer).name,
            FormName::Fixed(_) | FormName::Around(..)
        )
    }

    fn pattern(&self, writer: Writer) -> &'s str {
        let topics = self.flow(writer).selection.topics;
        &topics.include_patterns[writer.pattern]
    }

    /// Source topics that `writer` gives that name.
    fn origins(&self, writer: Writer, name: &str) -> Vec<String> {
        let flow = self.flow(writer);
        let selects = |topic: &str| flow.selection.topics.selects(topic).is_some();
        let candidates = match &self.form(writer).name {
            FormName::Around(before, after) => {
                let inner = name.strip_prefix(before.as_str());
                let inner = inner.and_then(|n| n.strip_suffix(after.as_str()));
                inner.map(str::to_owned).into_iter().collect()
            }
            _ => language::samples(self.pattern(writer)),
        };
        let of_name = |topic: &String| match self.form(writer).content {
            Content::DeadLetters => self.form(writer).name.is_fixed(name),
            Content::Records => flow
                .names_of(topic)
                .is_some_and(|n| n.iter().any(|n| n == name)),
        };
        let origins = candidates.into_iter().filter(|t| selects(t) && of_name(t));
        origins.collect()
    }

    /// Names that samples of the writer's topics get.
    fn sampled(&self, writer: Writer) -> Vec<String> {
        let flow = self.flow(writer);
        let samples = language::samples(self.pattern(writer)).into_iter();
        samples
            .filter_map(|topic| flow.names_of(&topic))
            .flatten()
            .collect()
    }

    /// The names that `writer` gives, as a set; `None` if it is too large.
    fn image(&mut self, writer: Writer) -> Option<&Language> {
        if !self.images.contains_key(&writer) {
            let made = self.make(writer);
            self.images.insert(writer, made);
        }
        self.images.get(&writer)?.as_ref().ok()
    }

    fn make(&self, writer: Writer) -> Result<Language, TooLarge> {
        let flow = self.flow(writer);
        let of_pattern = language::patterns(&[self.pattern(writer)])?;
        let topics = of_pattern.combine(flow.selection.language()?, Combine::Both)?;
        flow.image(&self.form(writer).name, &topics)
    }

    /// Names whose beginnings differ in `.` and `_` alone. Inside what a regex leaves open nothing is
    /// said: there every pattern would clash with itself.
    fn clashes(&mut self, list: &[(Head, Writer)], check: &mut Check<'_>) {
        let fold = |head: &Head| Head {
            text: head.text.replace('.', "_"),
            extent: head.extent,
        };
        let has_mark = |head: &Head| head.text.contains(['.', '_']);
        let marked = list.iter().zip(0..).filter(|((head, _), _)| has_mark(head));
        let folded: Vec<(Head, usize)> = marked.map(|((head, _), i)| (fold(head), i)).collect();
        let mut pairs = meeting(&folded, &folded, MOST_PAIRS);
        pairs.retain(|(a, b)| a < b && !list[*a].0.meets(&list[*b].0));
        pairs.sort_unstable_by_key(|(a, b)| (*b, *a));
        let mut told = BTreeSet::new();
        for (a, b) in pairs {
            let ((head_a, first), (head_b, second)) = (&list[a], &list[b]);
            let at = self.include_of(*second);
            if told.contains(&at) {
                continue;
            }
            let wholes = [head_a, head_b].iter().all(|h| h.extent == Extent::Whole);
            if !wholes {
                self.compared += 1;
                if self.compared > MOST_COMPARED {
                    return;
                }
            }
            let clash = match wholes {
                true => Some((head_a.text.clone(), head_b.text.clone())),
                false => self.clash(*first, *second),
            };
            if let Some(names) = clash {
                self.say_clash((*first, *second), &names, check);
                told.insert(at);
            }
        }
    }

    fn clash(&mut self, first: Writer, second: Writer) -> Option<(String, String)> {
        if !self.is_exact(first) || !self.is_exact(second) {
            return None;
        }
        let one = self.image(first)?.clone();
        language::clash(&one, self.image(second)?, MAX_NAME)
    }

    fn say_clash(
        &self,
        (first, second): (Writer, Writer),
        (one, two): &(String, String),
        check: &mut Check<'_>,
    ) {
        let routes = [first, second].map(|w| self.flow(w).route);
        let target = &self.flow(second).target.name;
        let message = match routes.iter().all(|r| check.route_names_may_be_shown(r)) {
            true => format!("`{one}` and `{two}` of {target} differ only in `.` and `_`"),
            false => format!("two topics of {target} differ only in `.` and `_`"),
        };
        let related = check.document.place(&self.include_of(first));
        let place = check.document.place(&self.include_of(second));
        let warning = Diagnostic::new(Code::NamesClash, place, message);
        check.report(warning.related(related, "the other one comes from here").help(
            "Kafka's metrics cannot tell them apart, and it refuses to create the second: rename one of them",
        ));
    }

    fn include_of(&self, writer: Writer) -> String {
        let route = pointer::child("/routes", self.flow(writer).route.name.as_str());
        if self.form(writer).content == Content::DeadLetters {
            return pointer::child(&pointer::child(&route, "dead_letter"), "topic");
        }
        let topics = pointer::child(&route, "topics");
        pointer::item(&pointer::child(&topics, "include"), writer.pattern)
    }
}

fn target_of(flow: &Flow<'_>) -> String {
    let route = pointer::child("/routes", flow.route.name.as_str());
    pointer::child(&route, "target")
}
