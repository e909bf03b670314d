//! Schedules per CPU second, what they divide into, and how much two workers help.
#![expect(clippy::print_stdout, reason = "the tables are the result")]

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Explore, corpus};
use crate::bench::{cpu, median};

/// Programs from all families and of all sizes.
pub(in crate::bench) const PROGRAMS: [&str; 14] = [
    "apache/log_buffer",
    "mysql/binlog_order",
    "mozilla/string_buffer",
    "classic/bounded_buffer_if",
    "classic/dining_philosophers",
    "classic/lost_wakeup",
    "pbzip2/fifo_lock",
    "splash/fft_end",
    "transmission/bandwidth",
    "httrack/global_opt",
    "hard/safe_stack",
    "rust/condvar_if",
    "aget/resume_log",
    "hard/setters_100",
];

/// Instructions of all measured schedules of a program, about; and schedules at most.
const INSTRUCTIONS: u64 = 100_000_000;
const SCHEDULES_MAX: u64 = 10_000;
/// Schedules before the measured ones, in which communication points are learned.
const WARM_UP: u64 = 64;

/// What one kind of exploration does per CPU second.
struct Rate {
    schedules: f64,
    mips: f64,
    shares: String,
}

pub(super) fn speed(bench: &Explore) -> anyhow::Result<()> {
    println!(
        "## Schedules per CPU second of the fixed variant; shares: restore, run, detectors, planning\n"
    );
    println!(
        "| program | instructions | default | MIPS | shares | --races | MIPS | shares | 2 workers |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut columns = [Vec::new(), Vec::new(), Vec::new()];
    for name in bench.programs(&PROGRAMS) {
        let program = corpus::build(name, "fixed", &[])?;
        let count = WARM_UP.to_string();
        let first = bench.explore(&program, &["--schedules", &count])?;
        let steps = first.number("steps") / first.number("schedules").max(1);
        let schedules = (INSTRUCTIONS / steps.max(1)).min(SCHEDULES_MAX);
        let plain = rate(bench, &program, schedules, steps, &[])?;
        let races = rate(bench, &program, schedules / 4, steps, &["--races"])?;
        let scaling = scaling(bench, &program, schedules)?;
        println!(
            "| {name} | {steps} | {:.0} | {:.0} | {} | {:.0} | {:.0} | {} | {scaling:.2} times |",
            plain.schedules, plain.mips, plain.shares, races.schedules, races.mips, races.shares
        );
        columns[0].push(plain.schedules);
        columns[1].push(races.schedules);
        columns[2].push(scaling);
    }
    let [plain, races, scaling] = columns.map(median);
    println!(
        "| **median** | | **{plain:.0}** | | | **{races:.0}** | | | **{scaling:.2} times** |\n"
    );
    Ok(())
}

/// Schedules per CPU second without what it takes to start. The shares are those of a run of their own, since
/// to measure them costs a little.
fn rate(
    bench: &Explore,
    program: &Path,
    schedules: u64,
    steps: u64,
    options: &[&str],
) -> anyhow::Result<Rate> {
    let all = (WARM_UP + schedules).to_string();
    let mut seconds = [0.0; 2];
    for (seconds, count) in seconds.iter_mut().zip([&WARM_UP.to_string(), &all]) {
        let before = cpu::of_children();
        let arguments = [&["--schedules", count, "--time", "600"], options].concat();
        bench.explore(program, &arguments)?;
        *seconds = cpu::of_children() - before;
    }
    let arguments = [&["--schedules", &all, "--time", "600", "--timing"], options].concat();
    let measured = bench.explore(program, &arguments)?;
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let (schedules, steps) = (schedules as f64, steps as f64);
    let schedules = schedules / (seconds[1] - seconds[0]).max(1e-3);
    Ok(Rate {
        schedules,
        mips: schedules * steps / 1e6,
        shares: shares(["restore", "run", "detect", "plan"].map(|part| measured.number(part))),
    })
}

/// Parts of a whole in per cent.
fn shares(parts: [u64; 4]) -> String {
    let total: u64 = parts.iter().sum();
    let percents = parts.map(|part| format!("{}", (part * 100 + total / 2) / total.max(1)));
    format!("{} %", percents.join(", "))
}

/// How much faster two workers are: the longest chain of work, that of the thread that hands out schedules
/// and then of the busiest worker, compared with one worker. Unlike the clock on the wall it can be measured
/// on a busy machine; what it leaves out is waiting for the last schedule of a generation.
fn scaling(bench: &Explore, program: &Path, schedules: u64) -> anyhow::Result<f64> {
    let mut rates = [0.0; 2];
    for (rate, jobs) in rates.iter_mut().zip(["1", "2"]) {
        let mut seconds = [0.0; 2];
        for (seconds, count) in seconds.iter_mut().zip([WARM_UP, WARM_UP + schedules]) {
            let mut child = Command::new(bench.raddle())
                .args(["explore", "--jobs", jobs, "--schedules", &count.to_string()])
                .args(["--time", "600", "--concise", "--output"])
                .arg(corpus::folder())
                .arg("--")
                .arg(program)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            *seconds = cpu::longest_chain(&mut child)?;
        }
        *rate = 1.0 / (seconds[1] - seconds[0]).max(1e-3);
    }
    Ok(rates[1] / rates[0])
}
