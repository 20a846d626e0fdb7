//! The picture in words.

use super::{Cluster, Graph, Route};

/// The clusters, then the routes with what they do.
pub(super) fn draw(graph: &Graph) -> String {
    let width = graph.clusters.iter().map(|c| c.name.len()).max();
    let mut text = String::from("clusters\n");
    for cluster in &graph.clusters {
        text += &cluster_line(cluster, width.unwrap_or(0));
    }
    for route in &graph.routes {
        text += &route_lines(route);
    }
    text
}

fn cluster_line(cluster: &Cluster, width: usize) -> String {
    let promise = match cluster.read_only {
        true => "  (read only)",
        false => "",
    };
    let servers = cluster.bootstrap_servers.join(", ");
    format!("  {:width$}  {servers}{promise}\n", cluster.name)
}

fn route_lines(route: &Route) -> String {
    let mut text = format!(
        "\n{}: {} → {}\n",
        route.name,
        route.sources.join(", "),
        route.targets.join(", ")
    );
    if let Some(about) = &route.about {
        text += &format!("  {}\n", about.trim());
    }
    for line in route.lines() {
        text += &format!("  {line}\n");
    }
    text
}
