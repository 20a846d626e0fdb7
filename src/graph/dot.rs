//! Graphviz.

use super::{Graph, identifier};

/// Clusters as cylinders, routes as boxes between them.
pub(super) fn draw(graph: &Graph) -> String {
    let mut text = String::from(
        "digraph mirror {\n    rankdir=LR;\n    node [fontname=\"sans-serif\", fontsize=11];\n",
    );
    for cluster in &graph.clusters {
        let id = identifier("cluster", &cluster.name);
        let label = escape(&cluster.name);
        text += &format!("    \"{id}\" [shape=cylinder, label=\"{label}\"];\n");
    }
    for route in &graph.routes {
        let id = identifier("route", &route.name);
        let mut label = escape(&route.name) + "\\n";
        for line in route.lines() {
            label += &format!("{}\\l", escape(&line));
        }
        text += &format!("    \"{id}\" [shape=box, label=\"{label}\"];\n");
        for source in &route.sources {
            text += &format!("    \"{}\" -> \"{id}\";\n", identifier("cluster", source));
        }
        for target in &route.targets {
            text += &format!("    \"{id}\" -> \"{}\";\n", identifier("cluster", target));
        }
    }
    text + "}\n"
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
