//! `cargo xtask bench explore`: how many schedules and CPU seconds each scheduler needs to the bug, schedules per
//! second and their shares, what native runs, helgrind and `ThreadSanitizer` do on the same programs, and long
//! campaigns on programs without a bug.
//!
//! All times are CPU times of the processes, so that other load on the machine matters little.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};

use crate::shell;

pub(super) mod corpus;
mod fixed;
mod peers;
mod shapes;
pub(super) mod speed;
mod study;

/// Ends a process that has used up its CPU seconds.
const SIGXCPU: i32 = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Schedules and CPU seconds to the bug by scheduler, over many seeds.
    Study,
    /// Schedules per second, with shares.
    Speed,
    /// Runs per second: native, helgrind and ThreadSanitizer.
    Peers,
    /// CPU seconds to the bug: native, ThreadSanitizer, helgrind and each scheduler.
    TimeToBug,
    /// Schedules to the bug for the shapes of programs of the literature, beside the best published figure.
    Shapes,
    /// 10,000 schedules of every fixed variant: nothing may be found.
    Fixed,
}

/// Measures the search.
#[derive(Debug, Args)]
pub(crate) struct Explore {
    /// What to measure; default: everything.
    #[arg(value_enum)]
    parts: Vec<Part>,
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// Schedules of one seed in a cell of the study at most.
    #[arg(long, default_value_t = 5000)]
    cap: u64,
    /// CPU seconds of one cell of the times to the bug at most.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Only programs whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Only this scheduler; may be given several times.
    #[arg(long)]
    scheduler: Vec<String>,
    /// The raddle to use; default: a release build.
    #[arg(long)]
    raddle: Option<PathBuf>,
}

impl Explore {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        shell::release_build(self.raddle.as_deref())?;
        let parts = if self.parts.is_empty() {
            Part::value_variants()
        } else {
            &self.parts
        };
        for part in parts {
            match part {
                Part::Study => study::study(self)?,
                Part::Speed => speed::speed(self)?,
                Part::Peers => peers::peers(self)?,
                Part::TimeToBug => peers::time_to_bug(self)?,
                Part::Shapes => shapes::shapes(self)?,
                Part::Fixed => fixed::fixed(self)?,
            }
        }
        Ok(())
    }

    fn raddle(&self) -> PathBuf {
        self.raddle.clone().unwrap_or_else(shell::released)
    }

    fn programs<'a>(&self, of: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        of.iter().copied().filter(|name| name.contains(&self.only))
    }

    fn schedulers(&self) -> Vec<&'static str> {
        let is_wanted = |name: &&str| {
            self.scheduler.is_empty() || self.scheduler.iter().any(|wanted| wanted == name)
        };
        study::SCHEDULERS.into_iter().filter(is_wanted).collect()
    }

    /// Explores with one worker and gives what is counted.
    fn explore(&self, program: &Path, options: &[&str]) -> anyhow::Result<Summary> {
        let output = Command::new(self.raddle())
            .args(["explore", "--jobs", "1", "--json", "--output"])
            .arg(corpus::folder())
            .args(options)
            .arg("--")
            .arg(program)
            .output()?;
        let mut document: serde_json::Value =
            serde_json::from_slice(&output.stdout).with_context(|| {
                format!(
                    "{}: {}",
                    program.display(),
                    String::from_utf8_lossy(&output.stderr)
                )
            })?;
        Ok(Summary(document["summary"].take()))
    }

    /// Explores with one worker until the first failure is known: its minimisation and explanation are not waited
    /// for. Gives the schedules up to the one that failed, or nothing if there was no failure within the options and
    /// the CPU seconds.
    fn search(
        &self,
        program: &Path,
        options: &[&str],
        seconds: u64,
    ) -> anyhow::Result<Option<u64>> {
        // The hard limit lies above, so that the process ends by the signal of the soft one.
        let mut child = Command::new("prlimit")
            .arg(format!("--cpu={seconds}:{}", seconds + 10))
            .arg(self.raddle())
            .args(["explore", "--jobs", "1", "--concise", "--until-found"])
            .args(["--time", "3600", "--output"])
            .arg(corpus::folder())
            .args(options)
            .arg("--")
            .arg(program)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut messages = String::new();
        for line in BufReader::new(child.stderr.take().context("standard error")?).lines() {
            let line = line?;
            if let Some(schedules) = first_failure(&line) {
                child.kill()?;
                child.wait()?;
                return Ok(Some(schedules));
            }
            messages.push_str(&line);
        }
        let status = child.wait()?;
        // It ended by itself, with nothing or with data races only, or has used up its CPU seconds.
        let is_usual = matches!(status.code(), Some(0 | 1)) || status.signal() == Some(SIGXCPU);
        ensure!(is_usual, "{}: {status}: {messages}", program.display());
        Ok(None)
    }
}

/// Schedules that were needed, from `raddle: 1 failure after 33 schedules, the first in schedule 12`: they are counted
/// from 0, so that is one more.
fn first_failure(message: &str) -> Option<u64> {
    let (before, first) = message.split_once(" schedules, the first in schedule ")?;
    let is_failure = before.starts_with("raddle: ") && before.contains("failure");
    let number: u64 = first.parse().ok()?;
    is_failure.then_some(number + 1)
}

/// What `raddle explore --json` counts.
struct Summary(serde_json::Value);

impl Summary {
    /// The number with this name, also one of those of `--timing`; zero if there is none.
    fn number(&self, name: &str) -> u64 {
        let number = self.0.get(name).or_else(|| self.0["nanoseconds"].get(name));
        number.and_then(serde_json::Value::as_u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::first_failure;

    #[test]
    fn the_message_of_the_first_failure_is_known() {
        let one = "raddle: 1 failure after 33 schedules, the first in schedule 12";
        assert_eq!(first_failure(one), Some(13));
        let several = "raddle: 2 different failures after 97 schedules, the first in schedule 40";
        assert_eq!(first_failure(several), Some(41));
        assert_eq!(
            first_failure("raddle: interrupted after 97 schedules"),
            None
        );
    }
}
