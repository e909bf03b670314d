//! `cargo xtask bench against --old RADDLE`: is this build slower than another one?
//!
//! Each row is one campaign of a fixed number of schedules on one worker, run by both builds in alternation. A third
//! run, of the old build again, says how much a row wavers by itself. All times are CPU times of whole commands.
#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::ensure;
use clap::Args;

use super::explore::{corpus, speed};
use super::kernel::{CALLS, Guest};
use super::{cpu, median};
use crate::shell;

/// Instructions of all schedules of a row, about.
const INSTRUCTIONS: u64 = 100_000_000;
/// Schedules of a row at most.
const SCHEDULES_MAX: u64 = 5_000;
/// Schedules of a row on a kernel.
const KERNEL_SCHEDULES: u64 = 1_000;
/// Programs whose bugs are found, made small and told.
const EXPLAINED: [&str; 6] = [
    "apache/log_buffer",
    "mysql/binlog_order",
    "mozilla/string_buffer",
    "classic/bounded_buffer_if",
    "pbzip2/fifo_lock",
    "transmission/bandwidth",
];

/// Compares this build with another one.
#[derive(Debug, Args)]
pub(crate) struct Against {
    /// The `raddle` to compare with.
    #[arg(long)]
    old: PathBuf,
    #[arg(long, default_value_t = 15)]
    pairs: usize,
    /// Only rows whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// The raddle to measure; default: a release build.
    #[arg(long)]
    raddle: Option<PathBuf>,
}

/// What both builds are asked to do.
struct Row {
    name: String,
    arguments: Vec<String>,
}

impl Against {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let new = shell::release_build(self.raddle.as_deref())?;
        println!("| campaign | new / old | from, to | old / old |");
        println!("|---|---|---|---|");
        for row in self.rows(&new)? {
            let mut ratios = [Vec::new(), Vec::new()];
            for pair in 0..self.pairs {
                let mut builds = [self.old.as_path(), new.as_path(), self.old.as_path()];
                // The order changes from pair to pair, so that coming first is no advantage.
                if pair % 2 == 1 {
                    builds.rotate_left(1);
                }
                let mut seconds = Vec::new();
                for build in builds {
                    seconds.push((build == new, row.seconds(build)?));
                }
                let of = |is_new| seconds.iter().filter(move |(new, _)| *new == is_new);
                let old: Vec<f64> = of(false).map(|(_, seconds)| *seconds).collect();
                let new: f64 = of(true).map(|(_, seconds)| *seconds).sum();
                ratios[0].push(new / old[0].max(0.01));
                ratios[1].push(old[1] / old[0].max(0.01));
            }
            let [mut between, same] = ratios;
            let spread = same.iter().map(|ratio| (ratio - 1.0).abs()).collect();
            between.sort_by(f64::total_cmp);
            let (first, last) = (between.len() / 10, between.len() - 1 - between.len() / 10);
            println!(
                "| {} | {:.3} | {:.3} to {:.3} | +- {:.3} |",
                row.name,
                between[between.len() / 2],
                between[first],
                between[last],
                median(spread)
            );
        }
        Ok(())
    }

    fn rows(&self, new: &Path) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        for name in speed::PROGRAMS {
            for (kind, options) in [("explore", &[][..]), ("explore --races", &["--races"])] {
                let row = format!("{kind} {name}");
                if row.contains(&self.only) {
                    rows.push(Row::program(new, row, name, options)?);
                }
            }
        }
        for name in EXPLAINED {
            let row = format!("explain {name}");
            if row.contains(&self.only) {
                rows.push(Row::explained(row, name)?);
            }
        }
        if CALLS
            .iter()
            .any(|name| format!("kernel {name}").contains(&self.only))
        {
            let guest = Guest::new(new.to_path_buf(), None)?;
            for name in CALLS {
                let row = format!("kernel {name}");
                if row.contains(&self.only) {
                    rows.push(Row::kernel(&guest, row, name));
                }
            }
        }
        ensure!(!rows.is_empty(), "no row is called `{}`", self.only);
        Ok(rows)
    }
}

impl Row {
    /// Schedules of the fixed variant of a program.
    fn program(raddle: &Path, name: String, case: &str, options: &[&str]) -> anyhow::Result<Self> {
        let program = corpus::build(case, "fixed", &[])?;
        let output = Command::new(raddle)
            .args(["explore", "-j1", "--json", "--schedules", "64", "--"])
            .arg(&program)
            .output()?;
        let told: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let number = |name: &str| told["summary"][name].as_u64().unwrap_or(1).max(1);
        let steps = number("steps") / number("schedules");
        let schedules = (INSTRUCTIONS / steps.max(1))
            .clamp(64, SCHEDULES_MAX)
            .to_string();
        let mut arguments = explore(&["--schedules", &schedules]);
        arguments.extend(options.iter().map(|option| (*option).to_owned()));
        arguments.extend(["--".to_owned(), program.display().to_string()]);
        Ok(Self { name, arguments })
    }

    /// The bug of a program found, made small and told.
    fn explained(name: String, case: &str) -> anyhow::Result<Self> {
        let program = corpus::build(case, "buggy", &[])?;
        let mut arguments = explore(&["--until-found", "--schedules", "100000"]);
        arguments.extend(["--".to_owned(), program.display().to_string()]);
        Ok(Self { name, arguments })
    }

    fn kernel(guest: &Guest, name: String, test: &str) -> Self {
        let count = KERNEL_SCHEDULES.to_string();
        let words = ["kernel", "explore", "-j1", "--time", "36000", "--schedules"];
        let mut arguments: Vec<String> = words.map(str::to_owned).into();
        arguments.extend([
            count,
            "--kernel".to_owned(),
            guest.kernel().display().to_string(),
        ]);
        arguments.push(guest.call(test).display().to_string());
        Self { name, arguments }
    }

    /// CPU seconds of this row with a build. What it prints is not looked at: a build that finds something in a fixed
    /// variant fails tests.
    fn seconds(&self, raddle: &Path) -> anyhow::Result<f64> {
        // Each build keeps boot snapshots and recordings of its own: their forms differ.
        let own = raddle.to_string_lossy().replace('/', "_");
        let folder = corpus::folder().join(format!("against{own}"));
        std::fs::create_dir_all(&folder)?;
        let mut command = Command::new(raddle);
        command.arg(&self.arguments[0]);
        let rest = if self.arguments[0] == "kernel" {
            command
                .args([&self.arguments[1], "--cache"])
                .arg(folder.join("cache"));
            &self.arguments[2..]
        } else {
            &self.arguments[1..]
        };
        command
            .arg("--output")
            .arg(folder.join("recordings"))
            .args(rest);
        let before = cpu::of_children();
        let status = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        ensure!(
            matches!(status.code(), Some(0 | 1)),
            "{}: {} ended with {status}",
            self.name,
            raddle.display()
        );
        Ok(cpu::of_children() - before)
    }
}

fn explore(options: &[&str]) -> Vec<String> {
    let words = ["explore", "-j1", "--time", "600", "--concise"];
    words
        .iter()
        .chain(options)
        .map(|word| (*word).to_owned())
        .collect()
}
