//! The same programs elsewhere: native runs, helgrind and `ThreadSanitizer`, their speed and their time to the bug.
#![expect(clippy::print_stdout, reason = "the tables are the result")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Explore, corpus, speed};
use crate::bench::cpu;

/// Seconds after which a run counts as hanging.
const RUN_SECONDS: &str = "10";

/// A way to run a program of the corpus without raddle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peer {
    Native,
    ThreadSanitizer,
    Helgrind,
}

impl Peer {
    /// The program for it; none where it does not apply.
    fn build(self, name: &str) -> anyhow::Result<Option<PathBuf>> {
        match self {
            // The sanitizer of stable Rust does not see its standard library.
            Self::ThreadSanitizer if name.starts_with("rust/") => Ok(None),
            Self::ThreadSanitizer => corpus::build(name, "buggy", &["-fsanitize=thread"]).map(Some),
            Self::Native | Self::Helgrind => corpus::build(name, "buggy", &[]).map(Some),
        }
    }

    /// Runs the program once; true if it fails, hangs or is reported.
    fn fails(self, program: &Path) -> anyhow::Result<bool> {
        let mut command = Command::new("timeout");
        command.arg(RUN_SECONDS);
        match self {
            Self::Native => {}
            // It wants its address space as it expects it.
            Self::ThreadSanitizer => {
                command.args(["setarch", "-R", "--"]);
            }
            Self::Helgrind => {
                command.args(["valgrind", "-q", "--tool=helgrind", "--error-exitcode=66"]);
            }
        }
        let status = command
            .arg(program)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        Ok(!status.success())
    }
}

/// Runs per CPU second, and runs that fail.
pub(super) fn peers(bench: &Explore) -> anyhow::Result<()> {
    println!("## The same programs elsewhere: runs per CPU second, and runs that fail\n");
    println!("| program | native | helgrind | ThreadSanitizer |");
    println!("|---|---|---|---|");
    for name in bench.programs(&speed::PROGRAMS) {
        let native = repeat(Peer::Native, name, 200)?;
        let helgrind = repeat(Peer::Helgrind, name, 5)?;
        let sanitized = repeat(Peer::ThreadSanitizer, name, 50)?;
        println!("| {name} | {native} | {helgrind} | {sanitized} |");
    }
    println!();
    Ok(())
}

fn repeat(peer: Peer, name: &str, times: u32) -> anyhow::Result<String> {
    let Some(program) = peer.build(name)? else {
        return Ok("-".into());
    };
    let before = cpu::of_children();
    let mut failures = 0;
    for _ in 0..times {
        failures += u32::from(peer.fails(&program)?);
    }
    let seconds = cpu::of_children() - before;
    Ok(format!(
        "{:.0}/s, {failures} of {times}",
        f64::from(times) / seconds.max(1e-3)
    ))
}

/// CPU seconds to the first failure or report, for others and for each of our schedulers.
pub(super) fn time_to_bug(bench: &Explore) -> anyhow::Result<()> {
    let schedulers: Vec<&str> = bench.schedulers();
    println!(
        "## CPU seconds to the bug, at most {} (runs or schedules)\n",
        bench.seconds
    );
    println!(
        "| program | native | ThreadSanitizer | helgrind | {} |",
        schedulers.join(" | ")
    );
    println!("|---|---|---|---|{}", "---|".repeat(schedulers.len()));
    for name in bench.programs(&corpus::HARD) {
        let mut cells = Vec::new();
        for peer in [Peer::Native, Peer::ThreadSanitizer, Peer::Helgrind] {
            cells.push(stress(bench, peer, name)?);
        }
        let program = corpus::build(name, "buggy", &[])?;
        for scheduler in &schedulers {
            cells.push(search(bench, &program, scheduler)?);
        }
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!();
    Ok(())
}

/// Runs again and again until one fails.
fn stress(bench: &Explore, peer: Peer, name: &str) -> anyhow::Result<String> {
    let Some(program) = peer.build(name)? else {
        return Ok("-".into());
    };
    #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
    let limit = bench.seconds as f64;
    let before = cpu::of_children();
    let mut runs = 0;
    loop {
        runs += 1;
        let found = peer.fails(&program)?;
        let seconds = cpu::of_children() - before;
        if found {
            return Ok(format!("{seconds:.2} ({runs})"));
        }
        if seconds >= limit {
            return Ok(format!("not in {seconds:.0} ({runs})"));
        }
    }
}

/// One search with the first seed, process start included.
fn search(bench: &Explore, program: &Path, scheduler: &str) -> anyhow::Result<String> {
    let before = cpu::of_children();
    let found = bench.search(program, &["--scheduler", scheduler], bench.seconds)?;
    let seconds = cpu::of_children() - before;
    Ok(match found {
        Some(schedules) => format!("{seconds:.2} ({schedules})"),
        None => format!("not in {seconds:.0}"),
    })
}
