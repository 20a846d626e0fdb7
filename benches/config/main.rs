//! What the control plane costs: checking a file of many routes against a plain load of the same file by
//! `serde_yaml`, changing one route of a thousand, and the memory of both. Run with `make bench`;
//! `cargo bench --locked --features sandbox --bench config` runs it alone.
//!
//! Times are CPU times, so that what else runs on the machine counts little. The contenders take
//! turns, and medians count. Memory is measured in a process of its own for each figure.

mod check;
mod memory;
mod reload;
mod text;

use memory::Figure;
use std::path::Path;

/// As the program that is shipped.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Routes of the file that is judged.
const ROUTES: usize = 1_000;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, measure, figure, folder, routes] = args.as_slice()
        && measure == "measure"
    {
        let figure = Figure::named(figure).expect("a figure");
        let routes = routes.parse().expect("a number of routes");
        return figure.measure_here(Path::new(folder), routes);
    }
    check::compare(&[100, ROUTES, 10_000]);
    reload::change_one(ROUTES);
    memory::compare(ROUTES);
}
