//! The project's own chores, in Rust: `cargo xtask ci` is all that continuous integration runs.

use clap::{Parser, Subcommand};

mod bench;
mod ci;
mod setup;
mod shell;
mod tidy;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Install what the tests need, then run every check and every test.
    Ci,
    /// Check the rules that no lint knows: layers, sizes, banned words, titles.
    Tidy,
    /// Install the Debian packages and cargo tools that builds and tests need.
    Setup,
    /// Measure something and print a table.
    #[command(subcommand)]
    Bench(bench::Bench),
}

fn main() -> anyhow::Result<()> {
    std::env::set_current_dir(shell::root())?;
    match Arguments::parse().task {
        Task::Ci => ci::run(),
        Task::Tidy => tidy::run(),
        Task::Setup => setup::run(),
        Task::Bench(bench) => bench::run(&bench),
    }
}
