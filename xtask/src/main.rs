//! The project's own chores, in Rust: `cargo xtask ci` is all that continuous integration runs.

use clap::{Parser, Subcommand};

mod bench;
mod check_install;
mod ci;
mod dist;
mod fuzz;
mod fuzz_scan;
mod generate;
mod hostile;
mod install;
mod kernel_package;
mod scan_parse_check;
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
    /// Measure, as ratios to baselines taken in the same run.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Check the rules that no lint knows: layers, sizes, banned words, titles.
    Tidy,
    /// Compare our processor with the host's, instruction by instruction.
    FuzzCpu(fuzz::FuzzCpu),
    /// Run a program on our machine and on the host processor in lock-step and compare every instruction.
    Lockstep {
        /// The program and its arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        program: Vec<String>,
    },
    /// Try to get out of guests and to have files of a stranger do something.
    Attack(hostile::Hostile),
    /// Kill raddle, fill its disk and close its pipes, and count what was lost.
    Faults(hostile::Hostile),
    /// Feed made-up source and patterns to the scanner.
    FuzzScan(fuzz_scan::FuzzScan),
    /// Write the files that are made from code (reference pages).
    Gen {
        /// Only compare them with what is there.
        #[arg(long)]
        check: bool,
    },
    /// Build raddle and install its programs and the hardening plugin.
    Install(install::Install),
    /// Build and install as the README says, in a clean clone, and harden a program with the result.
    CheckInstall,
    /// Build static programs, a Debian package, completions, man pages, checksums and a bill of materials.
    Dist(dist::Dist),
    /// Make what `dist` makes, with little optimisation, and use it on a bare root and on a bare Debian.
    CheckDist,
    /// Install the Debian packages and cargo tools that builds and tests need.
    Setup,
    /// Count the functions of a kernel tree that the scanner cannot read.
    ScanParseCheck(scan_parse_check::ScanParseCheck),
}

fn main() -> anyhow::Result<()> {
    std::env::set_current_dir(shell::root())?;
    match Arguments::parse().task {
        Task::Bench(bench) => bench::run(&bench),
        Task::Attack(hostile) => hostile.run("binary(attack)"),
        Task::Faults(hostile) => hostile.run("binary(faults) | test(survives_a_kill)"),
        Task::Ci => ci::run(),
        Task::Tidy => tidy::run(),
        Task::FuzzCpu(arguments) => fuzz::run(&arguments),
        Task::Lockstep { program } => lockstep(&program),
        Task::FuzzScan(fuzz) => fuzz.run(),
        Task::Gen { check } => generate::run(check),
        Task::Install(install) => install.run(),
        Task::CheckInstall => check_install::run(),
        Task::Dist(dist) => dist.run(),
        Task::CheckDist => dist::check::run(),
        Task::Setup => setup::run(),
        Task::ScanParseCheck(check) => check.run(),
    }
}

fn lockstep(program: &[String]) -> anyhow::Result<()> {
    let mut command = vec![
        "run",
        "--quiet",
        "--release",
        "--package",
        "raddle-lockstep",
    ];
    command.push("--");
    command.extend(program.iter().map(String::as_str));
    shell::run("cargo", &command)
}
