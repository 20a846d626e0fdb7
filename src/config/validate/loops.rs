//! Routes that feed themselves (I8): a record comes back, over any number of hops, to a flow that
//! copied it before.
//!
//! The search goes from each flow along the flows that may take what it writes, and carries the set of
//! first topics that get so far. Where names are the source topic with text around it, that set is exact. A
//! "yes" is only given with topics that were sent through the real selections and renames; a "no" only
//! where the set is empty; all else is "cannot tell".

use super::Check;
use super::network::{Content, Flow, FormName, Network, meeting};
use crate::config::diagnostic::Code;
use crate::config::language::{self, Combine, Language, MAX_NAME, TooLarge};
use crate::config::pointer;
use crate::handler::outline::Certainty;
use std::collections::{BTreeSet, HashMap};

/// Steps from flow to flow that one search may take from one flow, and in all.
const MOST_STEPS: usize = 2_000;
const MOST_STEPS_IN_ALL: usize = 20_000;
/// Pairs of flows that are looked at.
const MOST_PAIRS: usize = 200_000;
/// Topics that are sent through a way whose set is not exact.
const TRIED: usize = 24;

/// A way on which a flow gets its own records again.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The flows, by index, the first one being the one that feeds itself.
    pub flows: Vec<usize>,
    /// The names that a record has on the way, the first at the first flow's source.
    pub names: Option<Vec<String>>,
    /// How sure it is.
    pub certainty: LoopCertainty,
}

/// How sure a loop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoopCertainty {
    /// Every record goes round.
    Sure,
    /// Records that could not be delivered go round.
    DeadLetters,
    /// It depends on the records, or could not be found out.
    Unknown,
}

/// What was found about all flows.
#[derive(Debug, Default)]
pub struct Findings {
    /// The loops, one for each set of routes.
    pub loops: Vec<Loop>,
    /// Flows whose search was broken off.
    pub broken_off: Vec<usize>,
}

/// Looks for loops.
pub fn find(network: &Network<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut told: BTreeSet<BTreeSet<&str>> = BTreeSet::new();
    for (start, answer) in answers(network) {
        match answer {
            Answer::No => {}
            Answer::BrokenOff => findings.broken_off.push(start),
            Answer::Found(found) => {
                if told.insert(routes(network, &found)) {
                    findings.loops.push(found);
                }
            }
        }
    }
    findings
}

/// What a search from one flow found.
#[derive(Clone, Debug)]
enum Answer {
    /// It does not feed itself.
    No,
    /// It does, or may.
    Found(Loop),
    /// There was nothing yet when the steps ended.
    BrokenOff,
}

/// The answer for each flow that lies on a circle of flows; for all others it is "no".
fn answers(network: &Network<'_>) -> Vec<(usize, Answer)> {
    let followers = followers(network);
    let components = components(&followers);
    let mut left = MOST_STEPS_IN_ALL;
    let mut answers = Vec::new();
    for start in 0..network.flows.len() {
        let on_circle = |&(_, to): &(usize, usize)| components[to] == components[start];
        if !followers[start].iter().any(on_circle) {
            continue;
        }
        let steps = MOST_STEPS.min(left);
        let mut search = Search {
            network,
            followers: &followers,
            components: &components,
            steps,
            best: None,
        };
        let coverage = search.from(start);
        left -= steps - search.steps;
        let answer = match (search.best, coverage) {
            (Some(found), _) => Answer::Found(found),
            (None, Coverage::All) => Answer::No,
            (None, Coverage::Part) => Answer::BrokenOff,
        };
        answers.push((start, answer));
    }
    answers
}

fn routes<'s>(network: &Network<'s>, found: &Loop) -> BTreeSet<&'s str> {
    let flows = found.flows.iter().map(|&f| &network.flows[f]);
    flows.map(|flow| flow.route.name.as_str()).collect()
}

/// For each flow: which form of its names may be taken by which flow, by clusters and heads alone.
fn followers(network: &Network<'_>) -> Vec<Vec<(usize, usize)>> {
    let mut followers = vec![Vec::new(); network.flows.len()];
    let mut readers: HashMap<_, Vec<_>> = HashMap::new();
    for (index, flow) in network.flows.iter().enumerate() {
        let heads = flow.selection.heads.iter();
        let readers = readers.entry(flow.source_id).or_default();
        heads.for_each(|head| readers.push((head.clone(), index)));
    }
    let mut writers: HashMap<_, Vec<_>> = HashMap::new();
    for (index, flow) in network.flows.iter().enumerate() {
        if !readers.contains_key(&flow.target_id) {
            continue;
        }
        for (number, form) in flow.forms.iter().enumerate() {
            let writers = writers.entry(flow.target_id).or_default();
            let heads = form.name.heads(&flow.selection.heads).into_iter();
            heads.for_each(|head| writers.push((head, (index, number))));
        }
    }
    for (cluster, writers) in &writers {
        let readers = readers.get(cluster).map(Vec::as_slice).unwrap_or_default();
        for ((from, form), to) in meeting(writers, readers, MOST_PAIRS) {
            followers[from].push((form, to));
        }
    }
    for list in &mut followers {
        list.sort_unstable();
        list.dedup();
    }
    followers
}

/// The strongly connected component of each flow: only inside one can a record come back.
fn components(followers: &[Vec<(usize, usize)>]) -> Vec<usize> {
    let order = finishing_order(followers);
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); followers.len()];
    for (from, list) in followers.iter().enumerate() {
        list.iter().for_each(|&(_, to)| before[to].push(from));
    }
    let mut component = vec![usize::MAX; followers.len()];
    for &root in order.iter().rev() {
        let mut open = vec![root];
        while let Some(at) = open.pop() {
            if component[at] == usize::MAX {
                component[at] = root;
                open.extend(&before[at]);
            }
        }
    }
    component
}

/// The flows in the order in which a search in depth leaves them.
fn finishing_order(followers: &[Vec<(usize, usize)>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(followers.len());
    let mut seen = vec![false; followers.len()];
    for root in 0..followers.len() {
        let mut open = vec![(root, 0)];
        while let Some((at, next)) = open.pop() {
            if next == 0 && std::mem::replace(&mut seen[at], true) {
                continue;
            }
            match followers[at].get(next) {
                Some(&(_, to)) => open.extend([(at, next + 1), (to, 0)]),
                None => order.push(at),
            }
        }
    }
    order
}

/// A search from one flow.
struct Search<'n, 's> {
    network: &'n Network<'s>,
    followers: &'n [Vec<(usize, usize)>],
    components: &'n [usize],
    /// Steps that are left.
    steps: usize,
    /// The surest loop so far.
    best: Option<Loop>,
}

/// How far a record has come.
#[derive(Clone)]
struct Way {
    /// Flow and form, for each hop.
    hops: Vec<(usize, usize)>,
    /// The name here is one of `inner` between these texts.
    before: String,
    after: String,
    /// The longest those texts were.
    widest: usize,
    inner: Language,
    /// Whether `inner` holds exactly the topics that get here.
    exact: Exactness,
    /// First topics that are worth trying.
    starts: Vec<String>,
    certainty: LoopCertainty,
}

/// Whether a set is what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exactness {
    /// It is.
    Exact,
    /// It may hold more.
    AtMost,
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coverage {
    /// All there is.
    All,
    /// The steps ended before.
    Part,
}

impl Search<'_, '_> {
    /// Looks for a way back to `start`.
    fn from(&mut self, start: usize) -> Coverage {
        let flow = &self.network.flows[start];
        let (inner, exact) = match flow.selection.language() {
            Ok(topics) => (topics.clone(), Exactness::Exact),
            Err(TooLarge) => (language::anything(), Exactness::AtMost),
        };
        let patterns = flow.selection.topics.include_patterns.iter();
        let starts = match exact {
            Exactness::Exact => Vec::new(),
            Exactness::AtMost => patterns.flat_map(|p| language::samples(p)).collect(),
        };
        let way = Way {
            hops: Vec::new(),
            before: String::new(),
            after: String::new(),
            widest: 0,
            inner,
            exact,
            starts,
            certainty: LoopCertainty::Sure,
        };
        self.go_on(start, start, way)
    }

    /// Takes `way` through flow `at` and on.
    fn go_on(&mut self, start: usize, at: usize, way: Way) -> Coverage {
        let flow = &self.network.flows[at];
        let mut written: Option<(usize, Option<Way>)> = None;
        let mut coverage = Coverage::All;
        for &(form, to) in &self.followers[at] {
            let seen = to != start && way.hops.iter().any(|&(flow, _)| flow == to);
            if seen || to == at && at != start || self.components[to] != self.components[start] {
                continue;
            }
            if self.is_sure() {
                return Coverage::All;
            }
            if self.steps == 0 {
                return Coverage::Part;
            }
            self.steps -= 1;
            if written.as_ref().is_none_or(|(number, _)| *number != form) {
                written = Some((form, write(flow, (at, form), &way)));
            }
            let Some((_, Some(here))) = &written else {
                continue;
            };
            let Some(taken) = take(&self.network.flows[to], here) else {
                continue;
            };
            if to == start {
                self.close(taken);
            } else if self.go_on(start, to, taken) == Coverage::Part {
                coverage = Coverage::Part;
            }
        }
        coverage
    }

    fn is_sure(&self) -> bool {
        let best = self.best.as_ref();
        best.is_some_and(|found| found.certainty == LoopCertainty::Sure)
    }

    /// A way that came back: is it one?
    fn close(&mut self, way: Way) {
        let longest = MAX_NAME.saturating_sub(way.widest);
        let mut starts = way.starts;
        if way.exact == Exactness::Exact && starts.is_empty() {
            starts = language::words(&way.inner, 3, longest);
            if starts.is_empty() {
                // All names would grow over the limit on the way.
                return;
            }
        } else {
            starts.extend(language::words(&way.inner, TRIED, longest));
        }
        let names = starts
            .iter()
            .find_map(|s| round(self.network, &way.hops, s));
        let certainty = match &names {
            Some(_) => way.certainty,
            None => LoopCertainty::Unknown,
        };
        let found = Loop {
            flows: way.hops.iter().map(|&(flow, _)| flow).collect(),
            names,
            certainty,
        };
        let rank = |l: &Loop| (l.certainty, l.names.is_none(), l.flows.len());
        if self
            .best
            .as_ref()
            .is_none_or(|best| rank(&found) < rank(best))
        {
            self.best = Some(found);
        }
    }
}

/// The way after a flow wrote under one of its forms; `None` if no name can have it.
fn write(flow: &Flow<'_>, (number, form_number): (usize, usize), way: &Way) -> Option<Way> {
    let mut way = way.clone();
    way.hops.push((number, form_number));
    let form = &flow.forms[form_number];
    way.certainty = way.certainty.max(match (form.content, form.certainty) {
        (Content::DeadLetters, _) => LoopCertainty::DeadLetters,
        (Content::Records, Certainty::Always) => LoopCertainty::Sure,
        (Content::Records, Certainty::ByRecord) => LoopCertainty::Unknown,
    });
    if let FormName::Around(before, after) = &form.name {
        way.before.insert_str(0, before);
        way.after.push_str(after);
        way.widest = way.widest.max(way.before.len() + way.after.len());
        return (way.widest < MAX_NAME).then_some(way);
    }
    // From here on the set is of other names than those at the start.
    if way.starts.is_empty() {
        let longest = MAX_NAME.saturating_sub(way.widest);
        way.starts = language::words(&way.inner, TRIED, longest);
        let patterns = flow.selection.topics.include_patterns.iter();
        way.starts
            .extend(patterns.flat_map(|p| language::samples(p)));
    }
    let around = FormName::Around(way.before.clone(), way.after.clone());
    let here = flow.image(&around, &way.inner);
    let named = here.and_then(|topics| flow.image(&form.name, &topics));
    let fixed = matches!(form.name, FormName::Fixed(_));
    if named.is_err() || !fixed {
        way.exact = Exactness::AtMost;
    }
    way.inner = named.unwrap_or_else(|TooLarge| language::anything());
    (way.before, way.after) = (String::new(), String::new());
    (!way.inner.is_empty()).then_some(way)
}

/// The way into a flow: what of it the flow selects; `None` if nothing.
fn take(flow: &Flow<'_>, way: &Way) -> Option<Way> {
    let selected = flow.selection.language();
    let selected = selected.map(|s| s.between(&way.before, &way.after));
    let inner = selected.and_then(|s| way.inner.combine(&s, Combine::Both));
    let mut way = way.clone();
    match inner {
        Ok(inner) => way.inner = inner,
        Err(TooLarge) => way.exact = Exactness::AtMost,
    }
    (!way.inner.is_empty()).then_some(way)
}

/// The names of a record of topic `start` that goes round on these hops, if it does: the first flow
/// selects the last name too.
fn round(network: &Network<'_>, hops: &[(usize, usize)], start: &str) -> Option<Vec<String>> {
    let first = &network.flows[hops.first()?.0];
    travel(network, hops, start, &|last| {
        first.selection.topics.selects(last).is_some()
    })
}

fn travel(
    network: &Network<'_>,
    hops: &[(usize, usize)],
    start: &str,
    ends: &dyn Fn(&str) -> bool,
) -> Option<Vec<String>> {
    let (&(number, form), rest) = hops.split_first()?;
    let flow = &network.flows[number];
    let form = &flow.forms[form];
    let written = match (form.content, &form.name) {
        (Content::DeadLetters, FormName::Fixed(topic)) => {
            flow.names_of(start)?;
            vec![topic.clone()]
        }
        _ => flow.names_of(start)?,
    };
    for name in written {
        let onward = match rest {
            [] => ends(&name).then(|| vec![name]),
            rest => travel(network, rest, &name, ends),
        };
        if let Some(mut names) = onward {
            names.insert(0, start.to_owned());
            return Some(names);
        }
    }
    None
}

/// Reports what was found. Gives the pairs of routes between which dead letters go back.
pub fn report(network: &Network<'_>, check: &mut Check<'_>) -> BTreeSet<(String, String)> {
    let findings = find(network);
    for found in &findings.loops {
        say(network, found, check);
    }
    for &start in &findings.broken_off {
        let flow = &network.flows[start];
        let at = target_of(flow);
        let message = "cannot tell whether this route feeds itself: there are too many ways from route to route";
        check.say(Code::MayFeedItself, &at, message);
    }
    let returning = findings.loops.iter();
    let returning = returning.filter(|l| l.certainty == LoopCertainty::DeadLetters);
    let pairs = returning.flat_map(|found| {
        let routes = found.flows.iter().map(|&f| &network.flows[f].route.name);
        let next = routes.clone().cycle().skip(1);
        let pairs = routes
            .zip(next)
            .map(|(a, b)| (a.to_string(), b.to_string()));
        pairs.collect::<Vec<_>>()
    });
    pairs.collect()
}

fn target_of(flow: &Flow<'_>) -> String {
    let route = pointer::child("/routes", flow.route.name.as_str());
    pointer::child(&route, "target")
}

fn say(network: &Network<'_>, found: &Loop, check: &mut Check<'_>) {
    let Some(&start) = found.flows.first() else {
        return;
    };
    let flow = &network.flows[start];
    let way = way_in_words(network, found, check);
    let (code, message) = match (found.certainty, found.names.as_deref()) {
        (LoopCertainty::Sure, Some([first, last]))
            if first == last && flow.source.name == flow.target.name =>
        {
            (
                Code::FeedsItself,
                format!(
                    "the route copies topics of `{}` onto themselves",
                    flow.source.name
                ),
            )
        }
        (LoopCertainty::Sure, _) => (
            Code::FeedsItself,
            format!("the route feeds itself: {way}, and is copied again"),
        ),
        (LoopCertainty::DeadLetters, _) => (
            Code::DeadLettersReturn,
            format!("dead letters come back to the route: {way}"),
        ),
        (LoopCertainty::Unknown, Some(_)) => (
            Code::MayFeedItself,
            format!("the route may feed itself, depending on the records: {way}"),
        ),
        (LoopCertainty::Unknown, None) => (
            Code::MayFeedItself,
            format!("cannot tell whether the route feeds itself: {way}"),
        ),
    };
    let help = match found.certainty {
        LoopCertainty::DeadLetters => {
            "put the dead-letter topic under `exclude:`, or give it a name that no `include` matches"
        }
        _ if flow.source_id == flow.target_id && found.flows.len() == 1 => {
            "another target, or a step `rename: { topic: … }` to names that the route does not select"
        }
        _ => {
            "put what came from the other side under `exclude:`, or rename so that no `include` matches it again"
        }
    };
    let mut related = Vec::new();
    for &index in &found.flows[1..] {
        let next = &network.flows[index];
        if next.route.name != flow.route.name {
            let place = check.document.place(&target_of(next));
            related.push((place, format!("by way of route `{}`", next.route.name)));
        }
    }
    related.dedup();
    for shared in &network.identities.shared {
        let on_way = |name| {
            let mut flows = found.flows.iter().map(|&f| &network.flows[f]);
            flows.any(|f| f.source.name == name || f.target.name == name)
        };
        let (first, second) = (&shared.first.name, &shared.second.name);
        if on_way(first.clone()) && on_way(second.clone()) {
            let at = pointer::child("/clusters", second.as_str());
            let place = check.document.place_of_key(&at);
            related.push((place, format!("`{first}` and `{second}` are one cluster")));
        }
    }
    let diagnostic = check.say(code, &target_of(flow), message);
    diagnostic.help = Some(help.to_owned());
    diagnostic.related = related;
}

/// `` `orders` of lisbon → `lisbon.orders` of hub → … ``, or the clusters alone where no names are known.
fn way_in_words(network: &Network<'_>, found: &Loop, check: &Check<'_>) -> String {
    let flows = || found.flows.iter().map(|&f| &network.flows[f]);
    let first = flows().next().map(|f| f.source.name.as_str());
    let clusters = first
        .into_iter()
        .chain(flows().map(|f| f.target.name.as_str()));
    let shown = flows().all(|f| check.route_names_may_be_shown(f.route));
    let words: Vec<String> = match &found.names {
        Some(names) if shown => clusters
            .zip(names)
            .map(|(cluster, name)| format!("`{name}` of {cluster}"))
            .collect(),
        _ => clusters.map(str::to_owned).collect(),
    };
    words.join(" → ")
}

#[cfg(test)]
mod tests;
