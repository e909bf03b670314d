//! Named measurements; each prints a table for the manual.

use clap::Subcommand;

mod scan;

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// The static scanner: what each analysis brings, speed, memory, and Coccinelle beside it.
    Scan(scan::Scan),
}

pub(crate) fn run(bench: &Bench) -> anyhow::Result<()> {
    match bench {
        Bench::Scan(scan) => scan.run(),
    }
}
