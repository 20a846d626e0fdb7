//! Mermaid: a flowchart that Markdown viewers draw.

use super::{Graph, identifier};

/// Clusters as cylinders, routes as boxes between them.
pub(super) fn draw(graph: &Graph) -> String {
    let mut text = String::from("flowchart LR\n");
    for cluster in &graph.clusters {
        let id = identifier("cluster", &cluster.name);
        text += &format!("    {id}[(\"{}\")]\n", escape(&cluster.name));
    }
    for route in &graph.routes {
        let id = identifier("route", &route.name);
        let lines = route.lines().into_iter().map(|line| escape(&line));
        let label: Vec<String> = std::iter::once(format!("<b>{}</b>", escape(&route.name)))
            .chain(lines)
            .collect();
        text += &format!("    {id}[\"{}\"]\n", label.join("<br/>"));
        for source in &route.sources {
            text += &format!("    {} --> {id}\n", identifier("cluster", source));
        }
        for target in &route.targets {
            text += &format!("    {id} --> {}\n", identifier("cluster", target));
        }
    }
    text
}

/// What Mermaid would read as its own, as entities.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            c if c.is_alphanumeric() || " .,:;_-/→()".contains(c) => escaped.push(c),
            c => escaped += &format!("#{};", u32::from(c)),
        }
    }
    escaped
}
