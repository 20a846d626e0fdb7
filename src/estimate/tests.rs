//! Small configurations and large ones.

use super::*;
use crate::config::config_tests::{file, load_text};

fn estimate(route: &str) -> Estimate {
    let loaded = load_text(&file("", route, ""));
    Estimate::of(&loaded.map_err(|r| r.first_error()).unwrap().spec)
}

#[test]
fn workers_threads_and_budgets_count() {
    let small = estimate("");
    let more = estimate("    workers: 4\n");
    let threaded = estimate("    workers: 4\n    handler_threads: 3\n");
    let roomy = estimate("    limits: { in_flight: 256MiB }\n");
    assert!(more.threads > small.threads && more.descriptors > small.descriptors);
    assert_eq!(threaded.threads, more.threads + 12);
    assert_eq!(roomy.memory, small.memory + 2 * (192 << 20));
    // The budget of the process is above those of its routes.
    let wide = estimate("    limits: { in_flight: 8GiB }\n");
    assert_eq!(wide.memory, small.memory + 2 * ((1 << 30) - (64 << 20)));
}

#[test]
fn what_is_over_is_said_with_both_numbers() {
    let small = estimate("");
    let none = Machine::default();
    assert!(small.over(&none).is_empty());
    let tight = Machine {
        memory: Some(64 << 20),
        threads: Some(10),
        descriptors: Some(16),
    };
    let over = small.over(&tight);
    assert_eq!(over.len(), 3);
    assert!(over[0].0.contains("and there is 64 MiB"), "{over:?}");
    assert!(over[2].0.contains("and 16 are allowed"), "{over:?}");
    let line = small.line(&tight);
    assert!(
        line.contains("(of 64 MiB)") && line.contains("(of 16)"),
        "{line}"
    );
}

#[test]
fn sizes_are_short() {
    assert_eq!(
        [512 << 10, 40 << 20, 3 << 29].map(size),
        ["512 KiB", "40 MiB", "1.5 GiB"]
    );
}
