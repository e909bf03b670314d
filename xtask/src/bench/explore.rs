//! `cargo xtask bench explore`: how many schedules and CPU seconds each scheduler needs to the bug, schedules per
//! second, and what native runs, helgrind and `ThreadSanitizer` do on the same programs.
//!
//! All times are CPU times of the processes, so that other load on the machine matters little.
#![expect(clippy::print_stdout, reason = "the tables are the result")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};

use super::cpu;
use crate::shell;

/// Programs whose bugs are hard for at least one scheduler.
const HARD: [&str; 10] = [
    "hard/five_handoffs",
    "hard/setters_100",
    "hard/two_stage_100",
    "hard/adjacent_instructions",
    "classic/aba_stack",
    "classic/work_stealing",
    "classic/double_checked",
    "mozilla/four_accesses",
    "rust/spin_lock",
    "timer/sleep_as_join",
];

const SCHEDULERS: [&str; 11] = [
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

/// Programs for speed, from all families.
const SPEED: [&str; 12] = [
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
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Schedules and CPU seconds to the bug by scheduler.
    Study,
    /// Schedules per second.
    Speed,
    /// Native runs, helgrind and ThreadSanitizer.
    Peers,
}

/// Measures the search.
#[derive(Debug, Args)]
pub(crate) struct Explore {
    /// What to measure; default: everything.
    #[arg(value_enum)]
    parts: Vec<Part>,
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// Schedules of one cell of the study at most.
    #[arg(long, default_value_t = 5000)]
    cap: u64,
    /// Only programs whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// An already built raddle.
    #[arg(long, default_value = "target/release/raddle")]
    raddle: PathBuf,
}

impl Explore {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        if self.raddle == Path::new("target/release/raddle") {
            shell::run("cargo", &["build", "--release", "--bin", "raddle"])?;
        }
        let all = [Part::Study, Part::Speed, Part::Peers];
        let parts = if self.parts.is_empty() {
            &all[..]
        } else {
            &self.parts
        };
        for part in parts {
            match part {
                Part::Study => self.study()?,
                Part::Speed => self.speed()?,
                Part::Peers => self.peers()?,
            }
        }
        Ok(())
    }

    fn programs<'a>(&self, of: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        let only = self.only.clone();
        of.iter().copied().filter(move |name| name.contains(&only))
    }

    /// One cell per program and scheduler: the median of schedules over all seeds.
    fn study(&self) -> anyhow::Result<()> {
        println!(
            "## Schedules to the bug: median of {} seeds, found within {} (CPU seconds of all seeds)\n",
            self.seeds, self.cap
        );
        println!("| program | {} |", SCHEDULERS.join(" | "));
        println!("|---|{}", "---|".repeat(SCHEDULERS.len()));
        for name in self.programs(&HARD) {
            let program = build(name, "buggy", &[])?;
            let mut cells = Vec::new();
            for scheduler in SCHEDULERS {
                cells.push(self.cell(&program, scheduler)?);
            }
            println!("| {name} | {} |", cells.join(" | "));
        }
        println!();
        Ok(())
    }

    fn cell(&self, program: &Path, scheduler: &str) -> anyhow::Result<String> {
        let mut counts = Vec::new();
        let before = cpu::of_children();
        for seed in 0..self.seeds {
            let (found, schedules) = self.explore(
                program,
                &[
                    "--until-found",
                    "--scheduler",
                    scheduler,
                    "--seed",
                    &seed.to_string(),
                    "--schedules",
                    &self.cap.to_string(),
                    "--time",
                    "600",
                ],
            )?;
            counts.push(if found { schedules } else { u64::MAX });
        }
        let seconds = cpu::of_children() - before;
        counts.sort_unstable();
        let found = counts.iter().filter(|count| **count != u64::MAX).count();
        let median = counts[counts.len() / 2];
        let median = if median == u64::MAX {
            format!(">{}", self.cap)
        } else {
            median.to_string()
        };
        Ok(if found == counts.len() {
            format!("{median} ({seconds:.1} s)")
        } else {
            format!("{median}, {found}/{} ({seconds:.1} s)", counts.len())
        })
    }

    /// Whether a failure was found, and the number of schedules that were run.
    fn explore(&self, program: &Path, options: &[&str]) -> anyhow::Result<(bool, u64)> {
        let output = Command::new(&self.raddle)
            .args(["explore", "--jobs", "1", "--json", "--output"])
            .arg(folder())
            .args(options)
            .arg("--")
            .arg(program)
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let document: serde_json::Value = serde_json::from_str(&text).with_context(|| {
            format!(
                "{}: {}",
                program.display(),
                String::from_utf8_lossy(&output.stderr)
            )
        })?;
        let field = |name: &str| find_number(&document, name);
        Ok((field("failing") > 0, field("schedules")))
    }

    fn speed(&self) -> anyhow::Result<()> {
        const SCHEDULES: u64 = 10_000;
        println!("## Schedules per CPU second, {SCHEDULES} schedules of the fixed variant\n");
        println!("| program | instructions | default | --races | 2 workers |");
        println!("|---|---|---|---|---|");
        let mut columns = [Vec::new(), Vec::new(), Vec::new()];
        for name in self.programs(&SPEED) {
            let program = build(name, "fixed", &[])?;
            let plain = self.rate(&program, SCHEDULES, &[])?;
            let races = self.rate(&program, SCHEDULES / 4, &["--races"])?;
            let steps = self.instructions(&program)?;
            let scaling = self.scaling(&program, SCHEDULES)?;
            println!("| {name} | {steps} | {plain:.0} | {races:.0} | {scaling:.2} times |");
            columns[0].push(plain);
            columns[1].push(races);
            columns[2].push(scaling);
        }
        let [plain, races, scaling] = columns.map(median);
        println!("| **median** | | **{plain:.0}** | **{races:.0}** | **{scaling:.2} times** |\n");
        Ok(())
    }

    /// Schedules per CPU second without what it takes to start.
    fn rate(&self, program: &Path, schedules: u64, options: &[&str]) -> anyhow::Result<f64> {
        let mut seconds = [0.0; 2];
        for (seconds, count) in seconds.iter_mut().zip([64, 64 + schedules]) {
            let before = cpu::of_children();
            let count = count.to_string();
            let arguments = [&["--schedules", &count, "--time", "600"], options].concat();
            self.explore(program, &arguments)?;
            *seconds = cpu::of_children() - before;
        }
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        Ok(schedules as f64 / (seconds[1] - seconds[0]).max(1e-3))
    }

    /// Instructions of one schedule after the snapshot.
    fn instructions(&self, program: &Path) -> anyhow::Result<u64> {
        let output = Command::new(&self.raddle)
            .args([
                "explore",
                "--jobs",
                "1",
                "--json",
                "--schedules",
                "64",
                "--",
            ])
            .arg(program)
            .output()?;
        let document: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        Ok(find_number(&document, "steps") / find_number(&document, "schedules").max(1))
    }

    /// How much faster two workers are: the longest chain of work, that of the thread that hands out schedules
    /// and then of the busiest worker, compared with one worker. Unlike the clock on the wall it can be measured
    /// on a busy machine; what it leaves out is waiting for the last schedule of a generation.
    fn scaling(&self, program: &Path, schedules: u64) -> anyhow::Result<f64> {
        let mut rates = [0.0; 2];
        for (rate, jobs) in rates.iter_mut().zip(["1", "2"]) {
            let mut seconds = [0.0; 2];
            for (seconds, count) in seconds.iter_mut().zip([64, 64 + schedules]) {
                let mut child = Command::new(&self.raddle)
                    .args(["explore", "--jobs", jobs, "--schedules", &count.to_string()])
                    .args(["--time", "600", "--concise", "--output"])
                    .arg(folder())
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

    fn peers(&self) -> anyhow::Result<()> {
        println!("## The same programs elsewhere: runs per CPU second, and runs that fail\n");
        println!("| program | native | helgrind | ThreadSanitizer |");
        println!("|---|---|---|---|");
        for name in self.programs(&SPEED) {
            let program = build(name, "buggy", &[])?;
            let native = repeat(&mut || Command::new(&program), 200)?;
            let helgrind = repeat(
                &mut || {
                    let mut command = Command::new("valgrind");
                    command.args(["-q", "--tool=helgrind", "--error-exitcode=66"]);
                    command.arg(&program);
                    command
                },
                5,
            )?;
            let sanitized = if name.starts_with("rust/") {
                "-".into()
            } else {
                let program = build(name, "buggy", &["-fsanitize=thread"])?;
                repeat(&mut || without_aslr(&program), 50)?
            };
            println!("| {name} | {native} | {helgrind} | {sanitized} |");
        }
        println!();
        Ok(())
    }
}

/// ThreadSanitizer wants its address space as it expects it.
fn without_aslr(program: &Path) -> Command {
    let mut command = Command::new("setarch");
    command.args(["-R", "--"]).arg(program);
    command
}

/// Runs a command some times: runs per CPU second, and how many did not end with 0.
fn repeat(command: &mut dyn FnMut() -> Command, times: u32) -> anyhow::Result<String> {
    let before = cpu::of_children();
    let mut failures = 0;
    for _ in 0..times {
        let mut timed = Command::new("timeout");
        let inner = command();
        timed
            .arg("10")
            .arg(inner.get_program())
            .args(inner.get_args());
        let status = timed.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        failures += u32::from(!status.success());
    }
    let seconds = cpu::of_children() - before;
    Ok(format!(
        "{:.0}/s, {failures} of {times}",
        f64::from(times) / seconds.max(1e-3)
    ))
}

fn folder() -> PathBuf {
    shell::root().join("target/bench-explore")
}

/// Compiles a program of the corpus as its tests do.
fn build(name: &str, variant: &str, extra: &[&str]) -> anyhow::Result<PathBuf> {
    let case = shell::root().join("corpus").join(name);
    let description: toml::Table = std::fs::read_to_string(case.join("case.toml"))?.parse()?;
    let language = description.get("language").and_then(toml::Value::as_str);
    let (compiler, standard, extension) = match language.unwrap_or("c") {
        "c++" => ("g++", "-O1 -g -std=c++20 -pthread", "cpp"),
        "rust" => ("rustc", "-O -g", "rs"),
        _ => ("gcc", "-O1 -g -pthread", "c"),
    };
    let flags = description.get("flags").and_then(toml::Value::as_array);
    std::fs::create_dir_all(folder())?;
    let suffix = if extra.is_empty() { "" } else { "-tsan" };
    let program = folder().join(format!("{}-{variant}{suffix}", name.replace('/', "-")));
    let status = Command::new(compiler)
        .args(standard.split(' '))
        .args(flags.into_iter().flatten().filter_map(toml::Value::as_str))
        .args(extra)
        .arg(case.join(format!("{variant}.{extension}")))
        .arg("-o")
        .arg(&program)
        .status()?;
    ensure!(status.success(), "{name} does not compile");
    Ok(program)
}

/// The number with this name anywhere in a document.
fn find_number(document: &serde_json::Value, name: &str) -> u64 {
    match document {
        serde_json::Value::Object(fields) => match fields.get(name) {
            Some(serde_json::Value::Number(number)) => number.as_u64().unwrap_or(0),
            _ => fields
                .values()
                .map(|field| find_number(field, name))
                .max()
                .unwrap_or(0),
        },
        _ => 0,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
