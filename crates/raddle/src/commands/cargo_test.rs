//! `cargo raddle test [FILTER]`: explores each test of a workspace.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use super::campaign::LogOption;
use super::explore::{Batch, ExploreOptions, ToExplore, run_cases, tests};
use crate::exit::{Code, Failure};
use crate::hub::HubOptions;
use crate::interrupt::Interrupt;
use crate::message;
use crate::program_options::{ProgramOptions, Surroundings};
use crate::project::Project;
use crate::units;

/// Build the tests of a Rust workspace and explore each of them by itself.
#[derive(Debug, Args)]
#[command(
    name = "cargo-test",
    after_help = "Examples:\n  cargo raddle test\n  cargo raddle test queue:: --schedules 2000\n  cargo raddle test -- -p my-crate --release"
)]
pub(crate) struct CargoTest {
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    options: ExploreOptions,
    #[command(flatten)]
    log: LogOption,
    /// Time for all tests together, such as `10m`: each gets an equal share of what is left, but no more than `--time`.
    #[arg(long, value_name = "TIME", value_parser = units::seconds)]
    total_time: Option<u64>,
    /// Explore only every n-th test, beginning with the k-th: for n machines that share the work.
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    #[command(flatten)]
    hub: HubOptions,
}

/// One of several equal parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shard {
    number: usize,
    of: usize,
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text
            .split_once('/')
            .and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { number, of }),
            _ => Err(format!(
                "`{text}` is no part; give one such as 1/3: the first of three"
            )),
        }
    }
}

impl Shard {
    /// The cases of this part; tests that are neighbours, and often alike, go to different parts.
    fn of<T>(self, cases: Vec<T>) -> anyhow::Result<Vec<T>> {
        let count = cases.len();
        let part: Vec<T> = cases
            .into_iter()
            .skip(self.number - 1)
            .step_by(self.of)
            .collect();
        if part.is_empty() {
            bail!(
                "there is nothing to explore in part {} of {}: there are only {count} tests",
                self.number,
                self.of
            );
        }
        Ok(part)
    }
}

/// A test program that cargo has built.
struct Built {
    program: PathBuf,
    /// The folder of its package, in which cargo runs tests.
    package: PathBuf,
    name: String,
}

impl CargoTest {
    pub(crate) fn run(mut self) -> Result<Code, Failure> {
        self.log.measure(&mut self.options.campaign);
        let interrupt = Interrupt::listen()?;
        let cases = self.wanted.cases(self.options.seed(), &interrupt)?;
        let cases = match self.shard {
            Some(shard) => shard.of(cases)?,
            None => cases,
        };
        let batch = Batch {
            cases,
            suppressions: self.wanted.surroundings.suppressions()?,
            total_time: self.total_time.map(Duration::from_secs),
            log: self.log.open()?,
        };
        let by = (&self.options, &self.hub);
        run_cases(by, "cargo raddle test", batch, &interrupt)
    }
}

/// Which tests, and how they are run.
#[derive(Debug, Args)]
pub(super) struct Wanted {
    /// Only tests whose name contains this.
    filter: Option<String>,
    #[command(flatten)]
    surroundings: Surroundings,
    /// Arguments for `cargo test`, such as `-p NAME`, `--lib` or `--release`.
    #[arg(last = true, value_name = "CARGO ARGUMENTS")]
    cargo: Vec<OsString>,
}

impl Wanted {
    /// What the workspace says about itself.
    pub(super) fn project(&self) -> anyhow::Result<Project> {
        self.surroundings.project()
    }

    /// Builds the tests of a workspace; each of them is a case of its own.
    pub(super) fn cases(
        &self,
        seed: u64,
        interrupt: &Interrupt,
    ) -> Result<Vec<ToExplore>, Failure> {
        let mut cases = Vec::new();
        for built in build(&self.cargo)? {
            let surroundings = self.surroundings.clone().inside(&built.package);
            let program = ProgramOptions::of(&built.program, surroundings);
            let inputs = program.inputs(seed)?;
            let Some(mut tests) = tests(&inputs, interrupt)? else {
                message::note(&format!(
                    "{} has a test harness of its own and is left out; explore it with `raddle explore`",
                    built.program.display()
                ));
                continue;
            };
            if let Some(filter) = &self.filter {
                tests.retain(|test| test.contains(filter));
            }
            cases.extend(ToExplore::of_tests(&built.name, &inputs, &tests));
        }
        if cases.is_empty() {
            return Err(anyhow::anyhow!(
                "there is no test{} to explore",
                self.filter
                    .as_ref()
                    .map_or_else(String::new, |filter| format!(
                        " with `{filter}` in its name"
                    ))
            )
            .into());
        }
        Ok(cases)
    }
}

/// Lets cargo build the tests and tell where they are.
fn build(arguments: &[OsString]) -> anyhow::Result<Vec<Built>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "test",
            "--no-run",
            "--message-format=json-render-diagnostics",
        ])
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo could not build the tests");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(built).collect())
}

/// A line of cargo's messages, if it is about a test program.
fn built(line: &str) -> Option<Built> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let program = message["executable"].as_str().filter(|_| is_test)?;
    let manifest = Path::new(message["manifest_path"].as_str()?);
    Some(Built {
        program: program.into(),
        package: manifest.parent()?.to_owned(),
        name: message["target"]["name"].as_str()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_test_programs_are_taken() {
        let line = |test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{{"name":"a"}},"profile":{{"test":{test}}},"executable":"/w/target/a-1"}}"#
            )
        };
        let found = built(&line(true)).unwrap();
        assert_eq!(found.package, Path::new("/w/a"));
        assert_eq!(found.name, "a");
        assert!(built(&line(false)).is_none());
        assert!(built("not json").is_none());
    }

    #[test]
    fn shards_are_disjoint_and_complete() {
        let tests: Vec<u32> = (0..10).collect();
        let shard = |text: &str| text.parse::<Shard>().unwrap();
        let mut all: Vec<u32> = ["1/3", "2/3", "3/3"]
            .iter()
            .flat_map(|text| shard(text).of(tests.clone()).unwrap())
            .collect();
        all.sort_unstable();
        assert_eq!(all, tests);
        shard("3/3").of(vec![1, 2]).unwrap_err();
        for wrong in ["0/3", "4/3", "1", "a/b", "1/0"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
