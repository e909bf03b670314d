//! `cargo xtask bench kernel`: tables in the manner of SKI's 2 to 8 (Fonseca, Rodrigues, Brandenburg, OSDI 2014).
//!
//! All times are CPU times of the processes, so that other load on the machine matters little.
#![expect(clippy::print_stdout, reason = "the tables are the result")]

mod guest;
mod stress;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::cpu;
use crate::shell;
use guest::Summary;
pub(super) use guest::{Guest, machine_options, packaged};

/// The races of the module that fail in some way.
const BUGS: [&str; 9] = [
    "open-close",
    "watch",
    "torn",
    "error-value",
    "refcount",
    "rcu",
    "timer",
    "double-free",
    "lost-wakeup",
];

/// Pairs of calls for speed.
pub(super) const CALLS: [&str; 6] = [
    "pipe-write-write",
    "pipe-read-read",
    "futex-wait-wake",
    "futex-requeue-wake",
    "inotify-add-add",
    "epoll-add-add",
];

/// Loops without PAUSE that wait.
const LOOPS: [&str; 2] = ["short", "long"];

/// A longer test: about 100 thousand instructions, nearly all of which are explored.
const STREAM: &str = "pipe-stream";
const STREAM_TEXT: &str = "\
setup:
    buffer p 8
    pipe2(p, O_NONBLOCK) == 0
    buffer b 8

thread writer:
    repeat 20 { write(p.i32[1], \"x\", 1) == 1 }

thread reader:
    repeat 20 { read(p.i32[0], b, 1) in {1, -EAGAIN} }
";

const SCHEDULERS: [&str; 3] = ["portfolio", "ski", "pike"];

/// Schedules that are run before a measurement begins; fewer before one of few.
const WARM_UP: u64 = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Schedules until a seeded bug shows.
    Expose,
    /// Which part of many schedules makes a seeded bug show.
    Fraction,
    /// Schedules per CPU second, alone and with race detectors and file-system checkers.
    Throughput,
    /// How often and at how many places processors were passed over.
    Heuristics,
    /// Instructions and communication points of a run.
    Size,
    /// One schedule, again and again.
    Determinism,
    /// A loop of the same calls inside the guest.
    Stress,
}

/// Measures the exploration of kernels.
#[derive(Debug, Args)]
pub(crate) struct Kernel {
    /// What to measure; default: everything.
    #[arg(value_enum)]
    parts: Vec<Part>,
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// Schedules in which a bug is to show at most.
    #[arg(long, default_value_t = 5_000)]
    cap: u64,
    /// Schedules of which a part shows the bug.
    #[arg(long, default_value_t = 50_000)]
    schedules: u64,
    /// Schedules of a measurement of speed.
    #[arg(long, default_value_t = 8_000)]
    speed: u64,
    /// Replays of one schedule.
    #[arg(long, default_value_t = 1_000)]
    replays: u64,
    /// Only tests whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// The raddle to use; default: a release build.
    #[arg(long)]
    raddle: Option<PathBuf>,
    /// Kernel; default: the one that `cargo xtask setup` downloads.
    #[arg(long)]
    kernel: Option<PathBuf>,
}

impl Kernel {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let raddle = shell::release_build(self.raddle.as_deref())?;
        let guest = Guest::new(raddle, self.kernel.as_deref())?;
        let parts = if self.parts.is_empty() {
            Part::value_variants()
        } else {
            &self.parts
        };
        for part in parts {
            match part {
                Part::Expose => self.expose(&guest)?,
                Part::Fraction => self.fraction(&guest)?,
                Part::Throughput => self.throughput(&guest)?,
                Part::Heuristics => self.heuristics(&guest)?,
                Part::Size => self.size(&guest)?,
                Part::Determinism => self.determinism(&guest)?,
                Part::Stress => stress::table(&guest, &self.only)?,
            }
        }
        Ok(())
    }

    fn wanted<'a>(&self, names: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        let only = self.only.clone();
        names
            .iter()
            .copied()
            .filter(move |name| name.contains(&only))
    }

    fn expose(&self, guest: &Guest) -> anyhow::Result<()> {
        println!(
            "## Schedules until the bug shows: median (least to most) of {} seeds, at most {} (CPU seconds per seed)\n",
            self.seeds, self.cap
        );
        println!("| bug | {} |", SCHEDULERS.join(" | "));
        println!("|---|{}", "---|".repeat(SCHEDULERS.len()));
        for bug in self.wanted(&BUGS) {
            let mut cells = Vec::new();
            for scheduler in SCHEDULERS {
                cells.push(self.exposed(guest, bug, scheduler)?);
            }
            println!("| {bug} | {} |", cells.join(" | "));
        }
        println!();
        Ok(())
    }

    fn exposed(&self, guest: &Guest, bug: &str, scheduler: &str) -> anyhow::Result<String> {
        let before = cpu::of_children();
        let cap = self.cap.to_string();
        let mut counts = Vec::new();
        for seed in 0..self.seeds {
            let seed = seed.to_string();
            let options = ["--until-found", "--scheduler", scheduler, "--seed", &seed];
            let options = [&options[..], &["--schedules", &cap]].concat();
            let summary = guest.explore(&guest.bug(bug), &options)?;
            counts.push(summary.first_failing.map_or(u64::MAX, |index| index + 1));
        }
        counts.sort_unstable();
        let found: Vec<u64> = counts.iter().copied().filter(|c| *c != u64::MAX).collect();
        let seconds = (cpu::of_children() - before) / ratio(self.seeds, 1);
        let (Some(least), Some(most)) = (found.first(), found.last()) else {
            return Ok(format!("never ({seconds:.1} s)"));
        };
        let median = match counts[counts.len() / 2] {
            u64::MAX => format!(">{cap}"),
            median => median.to_string(),
        };
        let missed = counts.len() - found.len();
        let missed = if missed == 0 {
            String::new()
        } else {
            format!(", {missed} seeds not at all")
        };
        Ok(format!(
            "{median} ({least} to {most}{missed}) ({seconds:.1} s)"
        ))
    }

    fn fraction(&self, guest: &Guest) -> anyhow::Result<()> {
        println!(
            "## Part of {} schedules that shows the bug, seed 0\n",
            self.schedules
        );
        println!("| bug | {} |", SCHEDULERS.join(" | "));
        println!("|---|{}", "---|".repeat(SCHEDULERS.len()));
        let schedules = self.schedules.to_string();
        for bug in self.wanted(&BUGS) {
            let mut cells = Vec::new();
            for scheduler in SCHEDULERS {
                let options = ["--scheduler", scheduler, "--schedules", &schedules];
                let summary = guest.explore(&guest.bug(bug), &options)?;
                let part = 100.0 * ratio(summary.failing, summary.schedules);
                cells.push(format!("{} ({part:.2} %)", summary.failing));
            }
            println!("| {bug} | {} |", cells.join(" | "));
        }
        println!();
        Ok(())
    }

    fn throughput(&self, guest: &Guest) -> anyhow::Result<()> {
        println!(
            "## Schedules per CPU second, {} schedules, learning on\n",
            self.speed
        );
        println!(
            "| test | thousand instructions | plain | restore | pages | + races (order) | + races (close) | detectors' share | + fsck | + both |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|");
        for call in self.wanted(&CALLS) {
            let cells = self.speeds(guest, &guest.call(call), &[])?;
            println!("| {call} | {} | - | - |", cells.join(" | "));
        }
        for name in self.wanted(&[STREAM]) {
            let test = guest.write(&format!("{name}.ktest"), STREAM_TEXT)?;
            let cells = self.speeds(guest, &test, &[])?;
            println!("| {name} | {} | - | - |", cells.join(" | "));
        }
        for test in guest.file_systems()? {
            if !test.name.contains(&self.only) {
                continue;
            }
            let options: Vec<&str> = test.options.iter().map(String::as_str).collect();
            let cells = self.speeds(guest, &test.plain, &options)?;
            let races = [&options[..], &["--races"]].concat();
            let checked = self.rate(guest, &test.checked, &options, self.speed / 40)?;
            let both = self.rate(guest, &test.checked, &races, self.speed / 40)?;
            println!(
                "| {} | {} | {:.0} | {:.0} |",
                test.name,
                cells.join(" | "),
                checked.0,
                both.0
            );
        }
        println!();
        Ok(())
    }

    fn speeds(&self, guest: &Guest, test: &Path, options: &[&str]) -> anyhow::Result<[String; 7]> {
        let (plain, summary) = self.rate(guest, test, options, self.speed)?;
        let close = [options, &["--races=close"]].concat();
        let order = [options, &["--races"]].concat();
        let (order, watched) = self.rate(guest, test, &order, self.speed / 8)?;
        let (close, _) = self.rate(guest, test, &close, self.speed / 8)?;
        let per_run = |count: u64| ratio(count, summary.schedules);
        Ok([
            format!("{:.0}", per_run(summary.instructions) / 1e3),
            format!("{plain:.0}"),
            format!("{:.0} us", 1e6 * summary.restore_share / plain),
            format!("{:.0}", per_run(summary.restored_pages)),
            format!("{order:.0}"),
            format!("{close:.0}"),
            format!("{:.0} %", 100.0 * watched.detector_share),
        ])
    }

    /// Schedules per CPU second without what it takes to start.
    fn rate(
        &self,
        guest: &Guest,
        test: &Path,
        options: &[&str],
        schedules: u64,
    ) -> anyhow::Result<(f64, Summary)> {
        let timed = |count: u64| -> anyhow::Result<(f64, Summary)> {
            let count = count.to_string();
            let before = cpu::of_children();
            let summary = guest.explore(test, &[options, &["--schedules", &count]].concat())?;
            Ok((cpu::of_children() - before, summary))
        };
        // The first run of a machine boots it.
        timed(1)?;
        let warm_up = WARM_UP.min(schedules);
        let (start, _) = timed(warm_up)?;
        let (all, summary) = timed(warm_up + schedules)?;
        Ok((ratio(schedules, 1) / (all - start).max(1e-3), summary))
    }

    fn heuristics(&self, guest: &Guest) -> anyhow::Result<()> {
        println!(
            "## Processors passed over: times per schedule (distinct instructions), {} schedules\n",
            self.speed
        );
        println!("| test | H1 halted | H2 paused | H3 looping | H4 starving | any |");
        println!("|---|---|---|---|---|---|");
        let loops = self
            .wanted(&LOOPS)
            .map(|name| (format!("{name} loop"), guest.loop_test(name)));
        for (name, path) in self.all(guest).into_iter().chain(loops) {
            let summary = guest.explore(&path, &["--schedules", &self.speed.to_string()])?;
            let cells: Vec<String> = summary
                .liveness
                .iter()
                .zip(summary.liveness_schedules)
                .zip(summary.liveness_places)
                .map(|((count, schedules), places)| {
                    let times = ratio(*count, summary.schedules);
                    let share = 100.0 * ratio(schedules, summary.schedules);
                    format!("{times:.2}, {share:.2} % ({places})")
                })
                .collect();
            let any = 100.0 * ratio(summary.liveness_schedules_any, summary.schedules);
            println!("| {name} | {} | {any:.2} % |", cells.join(" | "));
        }
        println!();
        Ok(())
    }

    fn size(&self, guest: &Guest) -> anyhow::Result<()> {
        println!("## Instructions and communication points, 600 schedules\n");
        println!(
            "| test | thousand instructions, explored | with the checks | communication points | shared places | decisions at most |"
        );
        println!("|---|---|---|---|---|---|");
        for (name, path) in self.all(guest) {
            let summary = guest.explore(&path, &["--schedules", "600"])?;
            let explored = ratio(summary.steps, summary.schedules);
            println!(
                "| {name} | {:.0} | {:.0} | {} | {} | {} |",
                explored / 1e3,
                ratio(summary.instructions, summary.schedules) / 1e3,
                summary.points,
                summary.shared_places,
                summary.decisions
            );
        }
        println!();
        Ok(())
    }

    /// Pairs of calls, and the fixed twins of bugs, whose runs are not cut short.
    fn all(&self, guest: &Guest) -> Vec<(String, PathBuf)> {
        let calls = self
            .wanted(&CALLS)
            .map(|name| (name.to_owned(), guest.call(name)));
        let bugs = self
            .wanted(&BUGS)
            .map(|name| format!("{name}-fixed"))
            .map(|name| (name.clone(), guest.bug(&name)));
        calls.chain(bugs).collect()
    }

    fn determinism(&self, guest: &Guest) -> anyhow::Result<()> {
        println!(
            "## One schedule of `torn`, {} replays: digests of all accesses\n",
            self.replays
        );
        println!("| workers | CPU seconds | result |");
        println!("|---|---|---|");
        let recording = guest.recording("torn")?;
        for workers in [1, 2, 4] {
            let before = cpu::of_children();
            let told = guest.retrace(&recording, self.replays, workers)?;
            let seconds = cpu::of_children() - before;
            println!("| {workers} | {seconds:.1} | {told} |");
        }
        println!();
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn ratio(count: u64, of: u64) -> f64 {
    count as f64 / of.max(1) as f64
}
