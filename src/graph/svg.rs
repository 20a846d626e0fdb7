//! A drawing: sources on the left, routes in the middle, targets on the right.
//!
//! A cluster that is read and written stands on both sides: no line goes around a box, so that twenty
//! clusters are as readable as two. Boxes stand in an order that crosses few lines.

use super::{Graph, Route, wrapped};
use std::fmt::Write as _;

/// Characters in a line of a route's box.
const LINE: usize = 46;
/// Pixels of a character of the monospaced font, of a line, and around a text.
const CHARACTER: usize = 7;
const LEADING: usize = 16;
const MARGIN: usize = 12;
const GAP: usize = 18;
const CLUSTER_HEIGHT: usize = 34;
const LANE: usize = 130;

/// A box with its place.
struct Block<'g> {
    name: &'g str,
    lines: Vec<String>,
    top: usize,
    height: usize,
}

impl Block<'_> {
    fn middle(&self) -> usize {
        self.top + self.height / 2
    }
}

/// The drawing.
pub(super) fn draw(graph: &Graph) -> String {
    let routes = ordered(graph);
    let mut middle: Vec<Block<'_>> = routes.iter().map(|route| block(route)).collect();
    let mut left = clusters(&routes, |route| &route.sources);
    let mut right = clusters(&routes, |route| &route.targets);
    for cluster in &graph.clusters {
        let used = find(&left, &cluster.name).or(find(&right, &cluster.name));
        if used.is_none() {
            left.push(cluster_block(&cluster.name));
        }
    }
    let height = [&left, &middle, &right].map(|c| tall(c)).into_iter().max();
    let height = height.unwrap_or(0);
    for column in [&mut left, &mut middle, &mut right] {
        place(column, height);
    }
    let cluster_width = width(&left).max(width(&right)).max(90);
    let route_width = width(&middle).max(120);
    let at = [
        MARGIN,
        MARGIN + cluster_width + LANE,
        MARGIN + cluster_width + 2 * LANE + route_width,
    ];
    let whole = (at[2] + cluster_width + MARGIN, height + 2 * MARGIN);
    let mut svg = opening(whole);
    for (route, of_route) in routes.iter().zip(&middle) {
        let starts = route.sources.iter().filter_map(|s| find(&left, s));
        for start in starts {
            let from = (at[0] + cluster_width, start.middle());
            line(&mut svg, from, (at[1], of_route.middle()), &route.name);
        }
        let ends = route.targets.iter().filter_map(|t| find(&right, t));
        for end in ends {
            let from = (at[1] + route_width, of_route.middle());
            line(&mut svg, from, (at[2], end.middle()), &route.name);
        }
    }
    for (column, x) in [(&left, at[0]), (&right, at[2])] {
        for of_cluster in column {
            rectangle(&mut svg, of_cluster, (x, cluster_width), "cluster");
        }
    }
    for of_route in &middle {
        rectangle(&mut svg, of_route, (at[1], route_width), "route");
    }
    svg + "</svg>\n"
}

/// The routes, those of the same sources and targets next to each other.
fn ordered(graph: &Graph) -> Vec<&Route> {
    let mut routes: Vec<&Route> = graph.routes.iter().collect();
    routes.sort_by_key(|route| (&route.sources, &route.targets, &route.name));
    routes
}

fn block(route: &Route) -> Block<'_> {
    let lines = route.lines();
    let lines: Vec<String> = lines.iter().flat_map(|line| wrapped(line, LINE)).collect();
    Block {
        name: &route.name,
        height: MARGIN + LEADING * (lines.len() + 1),
        lines,
        top: 0,
    }
}

/// The clusters at one end of the routes, at about the height of their routes.
fn clusters<'g>(routes: &[&'g Route], end: fn(&Route) -> &Vec<String>) -> Vec<Block<'g>> {
    let mut found: Vec<(&'g str, usize, usize)> = Vec::new();
    for (position, route) in routes.iter().enumerate() {
        for name in end(route) {
            match found.iter_mut().find(|(known, ..)| known == name) {
                Some((_, sum, count)) => {
                    *sum += position;
                    *count += 1;
                }
                None => found.push((name, position, 1)),
            }
        }
    }
    found.sort_by_key(|(name, sum, count)| (sum * 1000 / count, *name));
    found
        .into_iter()
        .map(|(name, ..)| cluster_block(name))
        .collect()
}

fn cluster_block(name: &str) -> Block<'_> {
    Block {
        name,
        lines: Vec::new(),
        top: 0,
        height: CLUSTER_HEIGHT,
    }
}

fn tall(column: &[Block<'_>]) -> usize {
    let boxes: usize = column.iter().map(|b| b.height).sum();
    boxes + GAP * column.len().saturating_sub(1)
}

fn width(column: &[Block<'_>]) -> usize {
    let lines = column
        .iter()
        .flat_map(|b| b.lines.iter().map(|l| l.chars().count()));
    let names = column.iter().map(|b| b.name.chars().count());
    lines.chain(names).max().unwrap_or(0) * CHARACTER + 2 * MARGIN
}

/// Spreads a column over the height.
fn place(column: &mut [Block<'_>], height: usize) {
    let spare = height - tall(column).min(height);
    let between = spare / (column.len() + 1);
    let mut top = MARGIN + between;
    for of_column in column {
        of_column.top = top;
        top += of_column.height + GAP + between;
    }
}

fn find<'b, 'g>(column: &'b [Block<'g>], name: &str) -> Option<&'b Block<'g>> {
    column.iter().find(|b| b.name == name)
}

fn opening((width, height): (usize, usize)) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>Clusters and routes</title>\n\
         <style>\n\
         text {{ font: 12px ui-monospace, monospace; fill: #1a1a1a }}\n\
         .name {{ font-weight: bold }}\n\
         .cluster {{ fill: #dbe9f6; stroke: #2b5d8a }}\n\
         .route {{ fill: #ffffff; stroke: #555555 }}\n\
         .way {{ fill: none; stroke: #888888; stroke-width: 1.5 }}\n\
         </style>\n\
         <defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#888888\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    )
}

fn line(svg: &mut String, (x, y): (usize, usize), (to_x, to_y): (usize, usize), route: &str) {
    let middle = usize::midpoint(x, to_x);
    let route = escape(route);
    // Writing into a string cannot fail.
    let _ = writeln!(
        svg,
        "<path class=\"way\" marker-end=\"url(#end)\" d=\"M{x} {y}C{middle} {y} {middle} {to_y} {to_x} {to_y}\"><title>{route}</title></path>"
    );
}

fn rectangle(svg: &mut String, of: &Block<'_>, (x, width): (usize, usize), class: &str) {
    let Block { top, height, .. } = of;
    let round = match class {
        "cluster" => height / 2,
        _ => 4,
    };
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" x=\"{x}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"{round}\"/>"
    );
    let (anchor, text_x) = match class {
        "cluster" => (" text-anchor=\"middle\"", x + width / 2),
        _ => ("", x + MARGIN),
    };
    let mut baseline = match class {
        "cluster" => top + height / 2 + 4,
        _ => top + LEADING + 2,
    };
    let name = escape(of.name);
    let _ = writeln!(
        svg,
        "<text class=\"name\" x=\"{text_x}\" y=\"{baseline}\"{anchor}>{name}</text>"
    );
    for text in &of.lines {
        baseline += LEADING;
        let text = escape(text);
        let _ = writeln!(svg, "<text x=\"{text_x}\" y=\"{baseline}\">{text}</text>");
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
