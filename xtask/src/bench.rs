//! Measurements, as ratios to baselines taken in the same run; each prints a table for the manual.

use clap::Subcommand;

mod engine;
mod scan;

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Speed of the engine: kernels, programs, restores.
    Engine,
    /// The static scanner: what each analysis brings, speed, memory, and Coccinelle beside it.
    Scan(scan::Scan),
}

pub(crate) fn run(bench: &Bench) -> anyhow::Result<()> {
    match bench {
        Bench::Engine => engine::run(),
        Bench::Scan(scan) => scan.run(),
    }
}
