//! Measurements, as ratios to baselines taken in the same run.

use clap::Subcommand;

mod engine;

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Speed of the engine: kernels, programs, restores.
    Engine,
}

pub(crate) fn run(bench: &Bench) -> anyhow::Result<()> {
    match bench {
        Bench::Engine => engine::run(),
    }
}
