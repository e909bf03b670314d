//! Schedules and CPU seconds to the bug by scheduler, over many seeds.
#![expect(clippy::print_stdout, reason = "the tables are the result")]

use std::path::Path;

use super::{Explore, corpus};
use crate::bench::cpu;

pub(super) const SCHEDULERS: [&str; 11] = [
    "portfolio",
    "delay",
    "preemption",
    "pct2",
    "pct3",
    "pct5",
    "random",
    "pos",
    "urw",
    "surw",
    "reads-from",
];

/// CPU seconds of one seed: more than the schedules take.
const SEED_SECONDS: u64 = 600;
/// A schedule of these takes as long as thirty of the others.
const HUNDRED_THREADS: [&str; 2] = ["hard/setters_100", "hard/two_stage_100"];
const HUNDRED_THREADS_CAP: u64 = 250;

/// One cell per program and scheduler: the median of schedules over all seeds.
pub(super) fn study(bench: &Explore) -> anyhow::Result<()> {
    let schedulers: Vec<&str> = bench.schedulers();
    println!(
        "## Schedules to the bug: median of {} seeds, found within {}, with a hundred threads within {HUNDRED_THREADS_CAP} (CPU seconds of all seeds)\n",
        bench.seeds, bench.cap
    );
    println!("| program | {} |", schedulers.join(" | "));
    println!("|---|{}", "---|".repeat(schedulers.len()));
    for name in bench.programs(&corpus::HARD) {
        let program = corpus::build(name, "buggy", &[])?;
        let cap = if HUNDRED_THREADS.contains(&name) {
            bench.cap.min(HUNDRED_THREADS_CAP)
        } else {
            bench.cap
        };
        let mut cells = Vec::new();
        for scheduler in &schedulers {
            cells.push(cell(bench, &program, scheduler, cap)?);
        }
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!();
    Ok(())
}

fn cell(bench: &Explore, program: &Path, scheduler: &str, cap: u64) -> anyhow::Result<String> {
    let mut counts = Vec::new();
    let before = cpu::of_children();
    for seed in 0..bench.seeds {
        let (seed, cap) = (seed.to_string(), cap.to_string());
        let options = ["--scheduler", scheduler, "--seed", &seed];
        let options = [&options[..], &["--schedules", &cap]].concat();
        let found = bench.search(program, &options, SEED_SECONDS)?;
        counts.push(found.unwrap_or(u64::MAX));
    }
    let seconds = cpu::of_children() - before;
    counts.sort_unstable();
    let found = counts.iter().filter(|count| **count != u64::MAX).count();
    let median = counts[counts.len() / 2];
    let median = if median == u64::MAX {
        format!(">{cap}")
    } else {
        median.to_string()
    };
    Ok(if found == counts.len() {
        format!("{median} ({seconds:.1} s)")
    } else {
        format!("{median}, {found}/{} ({seconds:.1} s)", counts.len())
    })
}
