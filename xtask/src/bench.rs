//! Named measurements; each prints a table for the manual.

use clap::Subcommand;

mod harden;

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Hardening: sites and points of real programs, overhead, recovery time, and the setjmp mechanism beside it.
    Harden(harden::Harden),
}

pub(crate) fn run(bench: &Bench) -> anyhow::Result<()> {
    match bench {
        Bench::Harden(harden) => harden.run(),
    }
}
