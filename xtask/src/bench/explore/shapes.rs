//! Schedules to the bug for programs of the shapes that samplers are compared on in the literature.
//!
//! The programs are ours (`bench/programs/shapes`); the published figures are medians of the best sampler on public
//! programs of the same shape, so that a row says of which order our figure is, not more.
#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::path::PathBuf;
use std::process::Command;

use anyhow::ensure;

use super::{Explore, corpus};
use crate::bench::cpu;
use crate::shell;

/// CPU seconds of one seed at most.
const SEED_SECONDS: u64 = 120;

/// A program: its source, what is defined for it, and the best published median of schedules.
struct Shape {
    source: &'static str,
    define: &'static str,
    published: Option<u64>,
}

const fn shape(source: &'static str, define: &'static str, published: u64) -> Shape {
    Shape {
        source,
        define,
        published: Some(published),
    }
}

const fn unpublished(source: &'static str, define: &'static str) -> Shape {
    Shape {
        source,
        define,
        published: None,
    }
}

const SHAPES: [Shape; 26] = [
    shape("setters", "N=3", 6),
    shape("setters", "N=4", 6),
    shape("setters", "N=5", 6),
    shape("setters", "N=10", 6),
    shape("setters", "N=20", 6),
    shape("setters", "N=50", 6),
    shape("setters", "N=100", 6),
    shape("two_stage", "N=2", 3),
    shape("two_stage", "N=20", 6),
    shape("two_stage", "N=50", 20),
    shape("two_stage", "N=100", 56),
    shape("string_buffer", "", 8),
    shape("stealing", "VARIANT=1", 1),
    shape("stealing", "VARIANT=2", 3),
    shape("stealing", "VARIANT=3", 6),
    shape("stealing", "VARIANT=4", 6),
    shape("sort_pool", "", 27),
    shape("monitor", "", 23),
    shape("driver", "", 9),
    shape("vulnerable", "VARIANT=1", 13),
    shape("vulnerable", "VARIANT=2", 11),
    shape("vulnerable", "VARIANT=3", 3),
    shape("vulnerable", "VARIANT=4", 11),
    unpublished("fibonacci", "K=5"),
    unpublished("one_order", "N=50"),
    // Published as 368,921; a seed takes minutes, so that it stands outside of the mean.
    unpublished("stack", ""),
];

impl Shape {
    fn name(&self) -> String {
        format!("{} {}", self.source, self.define).trim().to_owned()
    }

    fn build(&self) -> anyhow::Result<PathBuf> {
        let folder = corpus::folder();
        std::fs::create_dir_all(&folder)?;
        let program = folder.join(format!("shape-{}", self.name().replace([' ', '='], "-")));
        let source = format!("bench/programs/shapes/{}.c", self.source);
        let mut compiler = Command::new("gcc");
        compiler.args(["-O1", "-g", "-pthread"]);
        if !self.define.is_empty() {
            compiler.arg(format!("-D{}", self.define));
        }
        let status = compiler
            .arg(shell::root().join(source))
            .arg("-o")
            .arg(&program)
            .status()?;
        ensure!(status.success(), "{} does not compile", self.name());
        Ok(program)
    }

    /// Schedules to the bug with each seed, ascending; the greatest number where it was not found.
    fn counts(&self, bench: &Explore, scheduler: &str) -> anyhow::Result<Vec<u64>> {
        let program = self.build()?;
        let cap = bench.cap.to_string();
        let mut counts = Vec::new();
        for seed in 0..bench.seeds {
            let seed = seed.to_string();
            let options = ["--scheduler", scheduler, "--seed", &seed];
            let options = [&options[..], &["--schedules", &cap]].concat();
            let found = bench.search(&program, &options, SEED_SECONDS)?;
            counts.push(found.unwrap_or(u64::MAX));
        }
        counts.sort_unstable();
        Ok(counts)
    }
}

pub(super) fn shapes(bench: &Explore) -> anyhow::Result<()> {
    let schedulers = match bench.scheduler.as_slice() {
        [] => vec!["portfolio".to_owned()],
        chosen => chosen.to_vec(),
    };
    println!(
        "Median over {} seeds of the schedules up to the first that fails, of at most {}; where not all seeds found the bug, how many did.\n",
        bench.seeds, bench.cap
    );
    println!("| shape | best published | {} |", schedulers.join(" | "));
    println!("|---|---|{}", "---|".repeat(schedulers.len()));
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); schedulers.len()];
    let before = cpu::of_children();
    for shape in SHAPES.iter().filter(|s| s.name().contains(&bench.only)) {
        let mut cells = Vec::new();
        for (scheduler, ratios) in schedulers.iter().zip(&mut ratios) {
            let counts = shape.counts(bench, scheduler)?;
            let found = counts.partition_point(|count| *count != u64::MAX);
            // A median that was not reached counts as the cap.
            let median = counts[counts.len() / 2].min(bench.cap);
            if let Some(published) = shape.published {
                ratios.push(as_ratio(median) / as_ratio(published));
            }
            cells.push(match found == counts.len() {
                true => median.to_string(),
                false => format!("{median}, {found}/{}", counts.len()),
            });
        }
        let published = shape
            .published
            .map_or_else(|| "-".to_owned(), |n| n.to_string());
        let cells = cells.join(" | ");
        println!("| {} | {published} | {cells} |", shape.name());
    }
    let means: Vec<String> = ratios.iter().map(|of| format!("{:.2}", mean(of))).collect();
    let means = means.join(" | ");
    println!("| geometric mean of ours to the best published | 1 | {means} |");
    println!("\n{:.0} CPU seconds.", cpu::of_children() - before);
    Ok(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of schedules are far below 2^53"
)]
fn as_ratio(count: u64) -> f64 {
    count as f64
}

/// The geometric mean; 1 of nothing.
fn mean(ratios: &[f64]) -> f64 {
    let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (sum / as_ratio(raddle_stdx::width::to_u64(ratios.len().max(1)))).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_double_and_half_is_one() {
        assert!((mean(&[2.0, 0.5]) - 1.0).abs() < 1e-9);
        assert!((mean(&[]) - 1.0).abs() < 1e-9);
    }
}
