//! Clusters and routes as a picture: what a specification says, drawn in several languages.
//!
//! [`Graph`] is what there is to draw; each language is a module with one function.

mod dot;
mod mermaid;
mod svg;
mod text;

use crate::config::spec::{Access, ClusterSpec, RouteSpec, Spec};
use crate::handler::StepSpec;
use crate::handler::outline::{FlowNames, Outline, OutlineName, Part};
use crate::partition::{OnFewer, PolicySpec};
use serde::Serialize;
use std::sync::Arc;

/// A picture's language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    /// For people.
    Text,
    /// A Mermaid flowchart, for pages of Markdown.
    Mermaid,
    /// Graphviz.
    Dot,
    /// A drawing, without any other tool.
    Svg,
    /// For programs.
    Json,
}

/// What there is to draw.
#[derive(Clone, Debug, Serialize)]
pub struct Graph {
    /// The clusters, in the order of their names.
    pub clusters: Vec<Cluster>,
    /// The routes, in the order of their names.
    pub routes: Vec<Route>,
}

/// A cluster.
#[derive(Clone, Debug, Serialize)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Where it is reached.
    pub bootstrap_servers: Vec<String>,
    /// Whether it is promised that nothing is written there.
    pub read_only: bool,
}

/// A route.
#[derive(Clone, Debug, Serialize)]
pub struct Route {
    /// Its name.
    pub name: String,
    /// The user's words about it.
    pub about: Option<String>,
    /// Names of clusters.
    pub sources: Vec<String>,
    /// Names of clusters.
    pub targets: Vec<String>,
    /// Patterns of the topics that are copied.
    pub include: Vec<String>,
    /// Patterns of topics that are left out.
    pub exclude: Vec<String>,
    /// What the topics are called at the target; empty if as at the source.
    pub renamed: Vec<String>,
    /// The actions of the handlers, in order.
    pub handlers: Vec<String>,
    /// The partition policy.
    pub partitions: String,
    /// The dead-letter topic.
    pub dead_letter: Option<String>,
}

impl Graph {
    /// The picture of `spec`.
    pub fn of(spec: &Spec) -> Self {
        let clusters = spec.clusters.values().map(|cluster| Cluster {
            name: cluster.name.to_string(),
            bootstrap_servers: cluster.bootstrap_servers.clone(),
            read_only: cluster.access == Access::Read,
        });
        Self {
            clusters: clusters.collect(),
            routes: spec.routes.values().map(|r| Route::of(r)).collect(),
        }
    }

    /// The picture in a language.
    ///
    /// # Errors
    /// Never in practice: it is written into memory.
    pub fn draw(&self, language: Language) -> serde_json::Result<String> {
        Ok(match language {
            Language::Text => text::draw(self),
            Language::Mermaid => mermaid::draw(self),
            Language::Dot => dot::draw(self),
            Language::Svg => svg::draw(self),
            Language::Json => serde_json::to_string_pretty(self)? + "\n",
        })
    }
}

impl Route {
    fn of(route: &RouteSpec) -> Self {
        let names =
            |clusters: &[Arc<ClusterSpec>]| clusters.iter().map(|c| c.name.to_string()).collect();
        Self {
            name: route.name.to_string(),
            about: route.about.clone(),
            sources: names(&route.sources),
            targets: names(&route.targets),
            include: route.topics.include_patterns.clone(),
            exclude: route.topics.exclude_patterns.clone(),
            renamed: renamed(route),
            handlers: route.chain.specs().map(action).collect(),
            partitions: policy(&route.policy),
            dead_letter: route.dead_letter.clone(),
        }
    }

    /// What is said beside the name: one line for each thing, without what goes without saying.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.topics()];
        if !self.renamed.is_empty() {
            lines.push(format!("as {}", self.renamed.join(" or ")));
        }
        if !self.handlers.is_empty() {
            lines.push(self.handlers.join(" → "));
        }
        lines.push(format!("partitions: {}", self.partitions));
        if let Some(topic) = &self.dead_letter {
            lines.push(format!("dead letters: {topic}"));
        }
        lines
    }

    fn topics(&self) -> String {
        let include = self.include.join(", ");
        match self.exclude.as_slice() {
            [] => include,
            exclude => format!("{include} without {}", exclude.join(", ")),
        }
    }
}

/// The target's names as templates; none where the source's stay.
fn renamed(route: &RouteSpec) -> Vec<String> {
    let placeholders = FlowNames {
        route: "{route}",
        source: "{source}",
        target: "{target}",
    };
    let outlines = route.chain.outlines(&placeholders);
    let names: Vec<String> = outlines.iter().map(name).collect();
    match names.as_slice() {
        [only] if only == "{topic}" => Vec::new(),
        _ => names,
    }
}

fn name(outline: &Outline) -> String {
    let parts = match &outline.name {
        OutlineName::ByContent(allow) => return format!("one of {}", allow.join(", ")),
        OutlineName::Parts(parts) => parts.iter(),
    };
    let text = parts.map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::SourceTopic => "{topic}".to_owned(),
        Part::Capture(capture) => format!("{{{capture}}}"),
    });
    text.collect()
}

fn action(step: &StepSpec) -> String {
    if let Some(name) = &step.name {
        return name.clone();
    }
    match (&step.filter, &step.rename, &step.use_) {
        (Some(_), _, _) => "filter".to_owned(),
        (_, Some(_), _) => "rename".to_owned(),
        (_, _, Some(name)) => name.clone(),
        _ => "reformat".to_owned(),
    }
}

fn policy(policy: &PolicySpec) -> String {
    match policy {
        PolicySpec::Match {
            on_fewer: OnFewer::Stop,
        } => "match".to_owned(),
        PolicySpec::Match {
            on_fewer: OnFewer::Modulo,
        } => "match, or modulo".to_owned(),
        PolicySpec::KeyHash => "key_hash".to_owned(),
        PolicySpec::Modulo => "modulo".to_owned(),
        PolicySpec::RoundRobin => "round_robin".to_owned(),
        PolicySpec::Fixed(partition) => format!("always {partition}"),
        PolicySpec::By(path) => format!("by {path}"),
    }
}

/// `text` in lines of `width` characters at most, broken at blanks where there are some.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut rest: Vec<char> = word.chars().collect();
        while !rest.is_empty() {
            let last = lines.last_mut();
            let Some(line) = last else { break };
            let used = line.chars().count();
            let blank = usize::from(used > 0);
            if used + blank + rest.len() <= width {
                line.push_str(&" ".repeat(blank));
                line.extend(rest.drain(..));
            } else if used > 0 {
                lines.push(String::new());
            } else {
                line.extend(rest.drain(..width));
            }
        }
    }
    lines
}

/// A name that every language takes as an identifier.
fn identifier(kind: &str, name: &str) -> String {
    let letters = name.chars().map(|c| if c == '-' { '_' } else { c });
    format!("{kind}_{}", letters.collect::<String>())
}

#[cfg(test)]
mod tests;
