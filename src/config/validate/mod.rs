//! The document → [`Spec`]: pure, and every mistake at once.

mod clusters;
mod identity;
mod loops;
mod network;
mod order;
mod partitions;
mod process;
mod promise;
mod properties;
mod reach;
mod routes;
mod topic_configs;
mod topics;
mod writers;

use crate::case::{self, Case};
use crate::config::LoadOptions;
use crate::config::chains::{self, Chains};
use crate::config::diagnostic::{Code, Diagnostic, Severity};
use crate::config::document::Document;
use crate::config::pointer;
use crate::config::spec::{ClusterSpec, Name, RouteSpec, Spec};
use crate::config::suggest;
use crate::handler::Shelf;
use identity::Identities;
use network::Network;
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// The state of a validation: what is asked, and what was found.
pub struct Check<'a> {
    /// The document, without what the schema refused.
    pub document: &'a Document,
    /// Registered handlers and listeners.
    pub options: &'a LoadOptions<'a>,
    /// The pointers of what the schema refused.
    wrong: &'a BTreeSet<String>,
    /// What was found.
    pub found: Vec<Diagnostic>,
}

impl<'a> Check<'a> {
    /// Reports `message` at the value of `at`.
    pub fn say(&mut self, code: Code, at: &str, message: impl Into<String>) -> &mut Diagnostic {
        let place = self.document.place(at);
        self.push(Diagnostic::new(code, place, message))
    }

    /// Reports `message` at the key of `at`.
    pub fn say_of_key(&mut self, code: Code, at: &str, message: String) -> &mut Diagnostic {
        let place = self.document.place_of_key(at);
        self.push(Diagnostic::new(code, place, message))
    }

    /// Reports `message` at the bytes `inside` of the text that stands at `at`.
    pub fn say_inside(
        &mut self,
        code: Code,
        at: &str,
        (text, inside): (&str, Range<usize>),
        message: String,
    ) -> &mut Diagnostic {
        let place = self.document.place_inside(at, text, inside);
        self.push(Diagnostic::new(code, place, message))
    }

    /// Reports `diagnostic`.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.push(diagnostic);
    }

    fn push(&mut self, diagnostic: Diagnostic) -> &mut Diagnostic {
        let index = self.found.len();
        self.found.push(diagnostic);
        &mut self.found[index]
    }

    /// Whether the schema refused what stands at `at`, or something around it.
    pub fn is_wrong(&self, at: &str) -> bool {
        let mut above = Some(at);
        while let Some(here) = above {
            if self.wrong.contains(here) {
                return true;
            }
            above = here.rfind('/').map(|end| &here[..end]);
        }
        false
    }

    /// Whether the schema refused something at, around or inside `at`.
    pub fn is_wrong_below(&self, at: &str) -> bool {
        let inside = format!("{at}/");
        let mut behind = self.wrong.range(inside.clone()..);
        self.is_wrong(at)
            || behind
                .next()
                .is_some_and(|wrong| wrong.starts_with(&inside))
    }

    /// Whether no error was found so far.
    fn is_clean(&self) -> bool {
        let mut found = self.found.iter();
        self.wrong.is_empty() && found.all(|d| d.severity() == Severity::Warning)
    }

    /// A value in a message: itself, unless it was put in or is a secret.
    pub fn quoted(&self, at: &str, value: &str) -> String {
        match self.document.may_be_shown(at) {
            true => format!("`{value}`"),
            false => "(its text is not shown: it was put in by `${…}`)".to_owned(),
        }
    }

    /// Whether messages may contain names that come out of a route's patterns and templates: none of
    /// them was put in by `${…}`.
    pub fn route_names_may_be_shown(&self, route: &RouteSpec) -> bool {
        self.names_may_be_shown(&pointer::child("/routes", route.name.as_str()))
    }

    /// The same for the route that stands at `of_route`.
    pub fn names_may_be_shown(&self, of_route: &str) -> bool {
        let inside = ["topics", "handlers", "dead_letter"];
        let own = inside.map(|part| pointer::child(of_route, part));
        let shared = ["/defaults", "/handlers"].map(str::to_owned);
        let mut parts = own.iter().chain(&shared);
        !parts.any(|part| self.document.has_substituted(part))
    }

    /// The members of the map at top-level key `section`.
    pub fn section(
        &self,
        section: &str,
    ) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        let document: &'a Document = self.document;
        let members = document.value.get(section).and_then(Value::as_object);
        members.into_iter().flat_map(Map::iter)
    }

    /// The clusters that the routes name as their `source`, or as their `target`.
    fn named_as(&self, end: &'static str) -> impl Iterator<Item = &'a str> + use<'a> {
        let ends = self.section("routes").filter_map(move |(_, r)| r.get(end));
        let names = ends.flat_map(|end| match end {
            Value::Array(names) => names.as_slice(),
            one => std::slice::from_ref(one),
        });
        names.filter_map(Value::as_str)
    }

    /// `text` as a name; what is none is reported at the key of `at`.
    pub fn name_of_key(&mut self, at: &str, text: &str) -> Option<Name> {
        let name = Name::new(text);
        if name.is_none() {
            let message = format!("`{text}` is not a name");
            self.say_of_key(Code::BadName, at, message).help = Some(NAME_HELP.to_owned());
        }
        name
    }

    /// `text` as a name; what is none is reported at the value of `at`.
    pub fn name(&mut self, at: &str, text: &str) -> Option<Name> {
        let name = Name::new(text);
        if name.is_none() {
            let message = format!("{} is not a name", self.quoted(at, text));
            self.say(Code::BadName, at, message).help = Some(NAME_HELP.to_owned());
        }
        name
    }

    /// Reports a name that is none of `names`.
    pub fn unknown<'n>(
        &mut self,
        code: Code,
        (kind, at, word): (&str, &str, &str),
        names: impl Iterator<Item = &'n str>,
    ) {
        let message = format!("unknown {kind} {}", self.quoted(at, word));
        let help = suggest::help(word, names).filter(|_| self.document.may_be_shown(at));
        self.say(code, at, message).help = help;
    }
}

const NAME_HELP: &str =
    "names are made of `a-z`, `0-9`, `_` and `-`: they are part of consumer group names";

/// Makes the spec, and its tests. `None` if something is missing or wrong; the reasons are among `found`, or
/// were found by the schema before.
pub fn validate(
    document: &Document,
    options: &LoadOptions<'_>,
    wrong: &BTreeSet<String>,
    found: &mut Vec<Diagnostic>,
) -> Option<(Spec, Vec<Case>)> {
    let mut check = Check {
        document,
        options,
        wrong,
        found: Vec::new(),
    };
    let process = process::read(&mut check);
    let clusters = clusters::read(&mut check);
    let mut chains = Chains::of(&document.value);
    let running = options.running.into_iter().flat_map(|s| s.routes.values());
    let mut shelf = Shelf::beside(running.map(|route| &route.chain));
    chains_alone(&mut chains, &mut shelf, &mut check);
    let routes = routes::read(&clusters, (&mut chains, &mut shelf), &mut check);
    drop(shelf);
    properties::for_the_other_end(&mut check);
    together(&clusters, &routes, &mut check);
    let cases = case::read(&routes, &mut check);
    // Beside an error this would be noise: a misspelt name leaves its cluster unused.
    if check.is_clean() && found.is_empty() {
        unused(&chains, &mut check);
    }
    let process = process.map(|process| Spec {
        clusters: clusters.built,
        routes: routes.into_iter().map(|r| (r.name.clone(), r)).collect(),
        ..process
    });
    found.append(&mut check.found);
    process.map(|spec| (spec, cases))
}

/// What only shows when all routes are looked at together.
fn together(clusters: &clusters::Clusters, routes: &[Arc<RouteSpec>], check: &mut Check<'_>) {
    let identities = Identities::of(clusters.built.values());
    let network = Network::of(routes, identities);
    let returning = loops::report(&network, check);
    reach::dead_letters(&network, &returning, check);
    writers::report(&network, check);
    one_cluster(&network.identities, check);
}

/// Warns of clusters that are one by their addresses and differ in nothing but the name. With other
/// credentials or another `access` two names are meant.
fn one_cluster(identities: &Identities, check: &mut Check<'_>) {
    for shared in &identities.shared {
        let (first, second) = (&shared.first, &shared.second);
        let renamed = ClusterSpec {
            name: first.name.clone(),
            bootstrap_servers: first.bootstrap_servers.clone(),
            ..second.as_ref().clone()
        };
        if renamed != **first {
            continue;
        }
        let at = |name: &Name| pointer::child("/clusters", name.as_str());
        let at_servers = pointer::child(&at(&second.name), "bootstrap_servers");
        let message = match check.document.has_substituted(&at_servers) {
            true => format!("`{}` is the same cluster as `{}`", second.name, first.name),
            false => format!(
                "`{}` is the same cluster as `{}`: both are reached at {}",
                second.name, first.name, shared.address
            ),
        };
        let place = check.document.place_of_key(&at(&first.name));
        let at_second = check.document.place_of_key(&at(&second.name));
        let warning = Diagnostic::new(Code::OneCluster, at_second, message);
        check.report(
            warning.related(place, "the other name").help(
                "use one name: the same topics under two names are copied, and counted, twice",
            ),
        );
    }
}

/// Checks every named chain by itself, so that one that no route uses is checked too.
fn chains_alone(chains: &mut Chains<'_>, shelf: &mut Shelf, check: &mut Check<'_>) {
    let mut alone = Chains::of(&check.document.value);
    for (name, steps) in check.section("handlers") {
        let at = pointer::child("/handlers", name);
        check.name_of_key(&at, name);
        let steps = steps.as_array().map(Vec::as_slice).unwrap_or_default();
        let steps = alone.resolve_named(name, steps, &at, check);
        chains::compile(&steps, shelf, check);
    }
    chains.used_by_chains(&alone);
}

/// Warns of clusters and chains that nothing uses.
fn unused(chains: &Chains<'_>, check: &mut Check<'_>) {
    let ends = ["source", "target"].into_iter();
    let used: HashSet<&str> = ends.flat_map(|end| check.named_as(end)).collect();
    let clusters = check.section("clusters").map(|(name, _)| name.as_str());
    let clusters: Vec<&str> = clusters.filter(|name| !used.contains(name)).collect();
    for name in clusters {
        let at = pointer::child("/clusters", name);
        let message = format!("no route uses the cluster `{name}`");
        check.say_of_key(Code::UnusedCluster, &at, message);
    }
    for name in chains.unused() {
        let at = pointer::child("/handlers", name);
        let message = format!("no route uses the chain `{name}`");
        check.say_of_key(Code::UnusedChain, &at, message);
    }
}
