//! The pictures of the examples, and of many clusters.

use super::*;
use crate::config::config_tests::{load_paths, load_text};
use std::path::Path;

fn example(name: &str) -> Graph {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let loaded = load_paths(&[folder.join(name)]);
    Graph::of(&loaded.map_err(|r| r.first_error()).unwrap().spec)
}

fn drawn(graph: &Graph, language: Language) -> String {
    graph.draw(language).unwrap()
}

#[test]
fn a_filtered_feed_in_every_language() {
    let graph = example("filtered-feed.yaml");
    insta::assert_snapshot!("text", drawn(&graph, Language::Text));
    insta::assert_snapshot!("mermaid", drawn(&graph, Language::Mermaid));
    insta::assert_snapshot!("dot", drawn(&graph, Language::Dot));
    insta::assert_snapshot!("svg", drawn(&graph, Language::Svg));
}

#[test]
fn fan_in_and_fan_out() {
    insta::assert_snapshot!("fan_in", drawn(&example("fan-in.yaml"), Language::Text));
    insta::assert_snapshot!(
        "fan_out",
        drawn(&example("fan-out.yaml"), Language::Mermaid)
    );
}

/// Twenty clusters, each copied to a hub and back.
fn wide() -> Graph {
    let mut clusters = String::from("  hub: { bootstrap_servers: ['hub:1'] }\n");
    let mut routes = String::new();
    for n in 0..19 {
        clusters += &format!("  region-{n}: {{ bootstrap_servers: ['r{n}:1'] }}\n");
        routes += &format!(
            "  in-{n}: {{ source: region-{n}, target: hub, topics: {{ include: ['orders-{n}'] }}, handlers: [{{ rename: {{ topic: '{{source}}.<{{topic}}>' }} }}] }}\n"
        );
        routes += &format!(
            "  out-{n}: {{ source: hub, target: region-{n}, topics: {{ include: [catalogue] }} }}\n"
        );
    }
    let routes = routes.replace("<{topic}>", "{topic}");
    let text = format!("version: 1\nclusters:\n{clusters}routes:\n{routes}");
    let loaded = load_text(&text);
    Graph::of(&loaded.map_err(|r| r.first_error()).unwrap().spec)
}

/// The boxes of a drawing: x, y, width, height.
fn boxes(svg: &str) -> Vec<[usize; 4]> {
    let number = |line: &str, name: &str| {
        let rest = line.split_once(&format!(" {name}=\"")).unwrap().1;
        rest.split('"').next().unwrap().parse().unwrap()
    };
    svg.lines()
        .filter(|line| line.starts_with("<rect class"))
        .map(|line| ["x", "y", "width", "height"].map(|name| number(line, name)))
        .collect()
}

#[test]
fn nothing_lies_on_anything_else() {
    for graph in [wide(), example("fan-out.yaml"), example("sandbox.yaml")] {
        let svg = drawn(&graph, Language::Svg);
        let boxes = boxes(&svg);
        for (index, a) in boxes.iter().enumerate() {
            for b in &boxes[..index] {
                let apart = |at: usize| a[at] >= b[at] + b[at + 2] || b[at] >= a[at] + a[at + 2];
                assert!(apart(0) || apart(1), "{a:?} and {b:?}");
            }
        }
        let size = svg.split_once("viewBox=\"0 0 ").unwrap().1;
        let size: Vec<usize> = size
            .split(['"', ' '])
            .take(2)
            .map(|n| n.parse().unwrap())
            .collect();
        for [x, y, width, height] in boxes {
            assert!(x + width <= size[0] && y + height <= size[1]);
        }
    }
}

#[test]
fn every_cluster_is_drawn_even_one_without_routes() {
    let text = "version: 1\nclusters:\n  a: { bootstrap_servers: ['a:1'] }\n  b: { bootstrap_servers: ['b:1'] }\n  alone: { bootstrap_servers: ['c:1'] }\nroutes:\n  r: { source: a, target: b, topics: { include: ['(?<x>[<&\"]|o)+'] } }\n";
    let loaded = load_text(text);
    let graph = Graph::of(&loaded.map_err(|r| r.first_error()).unwrap().spec);
    for language in [
        Language::Text,
        Language::Mermaid,
        Language::Dot,
        Language::Svg,
        Language::Json,
    ] {
        assert!(drawn(&graph, language).contains("alone"), "{language:?}");
    }
    let svg = drawn(&graph, Language::Svg);
    assert!(svg.contains("(?&lt;x&gt;[&lt;&amp;\"]|o)+"), "{svg}");
    assert!(drawn(&graph, Language::Dot).contains(r#"[<&\"]"#));
    assert!(!drawn(&graph, Language::Mermaid).contains("[<"));
}

#[test]
fn long_lines_are_wrapped() {
    assert_eq!(wrapped("aa bb cc", 5), ["aa bb", "cc"]);
    assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
    assert_eq!(wrapped("", 3), [""]);
}
