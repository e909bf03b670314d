//! `cargo xtask bench kernel-campaign`: many tests on the packaged kernel, in parts that survive an interruption.
//!
//! Either tests of a file system from a seed (`raddle kernel generate`) or the hand-written pairs of calls with the race
//! detector. What a part gave is kept in a file whose name says how it was made; a part that has its file is not run
//! again, so the same command goes on where it was stopped. Parts do not depend on each other.
#![expect(clippy::print_stdout, reason = "the tables are the result")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::cpu;
use super::kernel::{machine_options, packaged};
use crate::shell;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tests {
    /// Generated calls on ext4.
    Ext4,
    /// Generated calls on btrfs.
    Btrfs,
    /// Generated calls on tmpfs.
    Tmpfs,
    /// The pairs of `corpus/kernel/calls`, with `--races`.
    Calls,
}

/// Explores many tests of the packaged kernel, in parts.
#[derive(Debug, Args)]
pub(crate) struct KernelCampaign {
    #[arg(value_enum)]
    tests: Tests,
    /// Generated tests up to this number.
    #[arg(long, default_value_t = 2_000)]
    inputs: u64,
    /// Number of the first generated test, so that several commands can share a campaign and its folder.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Generated tests of a part.
    #[arg(long, default_value_t = 50)]
    part: u64,
    /// Of 100 generated tests, how many end with the file-system checker.
    #[arg(long, default_value_t = 25)]
    fsck: u64,
    /// Seed of generated tests and of schedules.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Schedules of each test; default: 200 of a generated one, 5000 of a pair of calls.
    #[arg(long)]
    schedules: Option<u64>,
    /// Begin no part after so many minutes.
    #[arg(long)]
    minutes: Option<u64>,
    /// Workers of raddle.
    #[arg(long, short, default_value_t = 1)]
    jobs: usize,
    /// The raddle to use; default: a release build.
    #[arg(long)]
    raddle: Option<PathBuf>,
    /// Kernel; default: the one that `cargo xtask setup` downloads.
    #[arg(long)]
    kernel: Option<PathBuf>,
    /// Folder for tests, recordings and results; default: `kernel-campaign` in the target folder.
    #[arg(long)]
    folder: Option<PathBuf>,
}

/// Kind of reports of races.
const RACE: &str = "kernel-data-race";

/// Tests that are explored by one command.
#[derive(Debug)]
struct Part {
    /// Name of its files.
    name: String,
    tests: Vec<PathBuf>,
    options: Vec<String>,
}

/// What a part gave.
#[derive(Debug, Serialize, Deserialize)]
struct Outcome {
    tests: u64,
    /// Tests that end with a program, the file-system checker.
    checked: u64,
    cpu_seconds: f64,
    document: Document,
}

/// What `raddle kernel explore --json` prints.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Document {
    findings: Vec<serde_json::Value>,
    summary: Vec<Summary>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Summary {
    test: String,
    schedules: u64,
    distinct: u64,
    failing: u64,
    instructions: u64,
    race_groups: u64,
}

impl KernelCampaign {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let folder = match &self.folder {
            Some(folder) => folder.clone(),
            None => shell::target_folder().join("kernel-campaign"),
        };
        std::fs::create_dir_all(folder.join("results"))?;
        let raddle = shell::release_build(self.raddle.as_deref())?;
        let kernel = match &self.kernel {
            Some(kernel) => kernel.clone(),
            None => packaged()?,
        };
        let parts = self.parts(&raddle, &folder)?;
        let limit = self
            .minutes
            .map(|minutes| Duration::from_secs(60 * minutes));
        let mut outcomes = Vec::new();
        for part in &parts {
            let file = folder.join("results").join(format!("{}.json", part.name));
            // Another command that shares the folder may be at this part.
            let claim = std::fs::File::create(file.with_extension("lock"))?;
            if claim.try_lock().is_err() {
                continue;
            }
            if !file.is_file() {
                if limit.is_some_and(|limit| begun.elapsed() >= limit) {
                    break;
                }
                let outcome = self.explore(part, &raddle, &kernel, &folder)?;
                std::fs::write(&file, serde_json::to_string_pretty(&outcome)?)?;
            }
            let outcome: Outcome = serde_json::from_slice(&std::fs::read(&file)?)
                .with_context(|| format!("{} is damaged: remove it", file.display()))?;
            println!("{}: {}", part.name, Sum::of([&outcome]).line());
            outcomes.push(outcome);
        }
        println!(
            "\n{} of {} parts: {}\n",
            outcomes.len(),
            parts.len(),
            Sum::of(&outcomes).line()
        );
        print_findings(&outcomes);
        Ok(())
    }

    fn schedules(&self) -> u64 {
        self.schedules.unwrap_or(match self.tests {
            Tests::Calls => 5_000,
            _ => 200,
        })
    }

    fn parts(&self, raddle: &Path, folder: &Path) -> anyhow::Result<Vec<Part>> {
        let how = format!("seed{}-{}x", self.seed, self.schedules());
        if self.tests == Tests::Calls {
            let parts = files(&shell::root().join("corpus/kernel/calls"))?;
            return Ok(parts
                .into_iter()
                .map(|test| Part {
                    name: format!("calls-{how}-{}", stem(&test)),
                    tests: vec![test],
                    options: vec!["--races".to_owned()],
                })
                .collect());
        }
        let fs = match self.tests {
            Tests::Ext4 => "ext4",
            Tests::Btrfs => "btrfs",
            Tests::Tmpfs | Tests::Calls => "tmpfs",
        };
        let mut parts = Vec::new();
        let mut first = self.first;
        while first < self.inputs {
            let count = self.part.clamp(1, self.inputs - first);
            let name = format!("{fs}-{how}-fsck{}-{first:05}+{count}", self.fsck);
            let tests =
                self.generate(raddle, fs, first, count, &folder.join("tests").join(&name))?;
            let text = std::fs::read_to_string(&tests[0])?;
            parts.push(Part {
                name,
                tests,
                options: machine_options(&text),
            });
            first += count;
        }
        Ok(parts)
    }

    fn generate(
        &self,
        raddle: &Path,
        fs: &str,
        first: u64,
        count: u64,
        into: &Path,
    ) -> anyhow::Result<Vec<PathBuf>> {
        let numbers = [
            ("--seed", self.seed),
            ("--fsck", self.fsck),
            ("--first", first),
            ("--count", count),
        ];
        let mut command = Command::new(raddle);
        command.args(["kernel", "generate", "--fs", fs]);
        for (option, value) in numbers {
            command.args([option, &value.to_string()]);
        }
        let output = command.arg(into).output().context("cannot start raddle")?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        files(into)
    }

    fn explore(
        &self,
        part: &Part,
        raddle: &Path,
        kernel: &Path,
        folder: &Path,
    ) -> anyhow::Result<Outcome> {
        let before = cpu::of_children();
        let output = Command::new(raddle)
            .args(["kernel", "explore", "--json", "--time", "36000", "--kernel"])
            .arg(kernel)
            .arg("--cache")
            .arg(folder.join("cache"))
            .arg("--output")
            .arg(folder.join("recordings"))
            .args(["--seed", &self.seed.to_string()])
            .args(["--schedules", &self.schedules().to_string()])
            .args(["--jobs", &self.jobs.to_string()])
            .args(&part.options)
            .args(&part.tests)
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start raddle")?;
        ensure!(
            matches!(output.status.code(), Some(0 | 1)),
            "{} ended with {}",
            part.name,
            output.status
        );
        let mut checked = 0;
        for test in &part.tests {
            let text = std::fs::read_to_string(test)?;
            let check = text.split_once("\ncheck:").map_or("", |(_, check)| check);
            checked += u64::from(check.contains("run("));
        }
        Ok(Outcome {
            tests: count(part.tests.len()),
            checked,
            cpu_seconds: cpu::of_children() - before,
            document: serde_json::from_slice(&output.stdout).context("raddle printed no JSON")?,
        })
    }
}

/// Figures of several parts together.
#[derive(Debug, Default)]
struct Sum {
    tests: u64,
    checked: u64,
    schedules: u64,
    distinct: u64,
    failing: u64,
    findings: u64,
    instructions: u64,
    races: u64,
    cpu_seconds: f64,
}

impl Sum {
    fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Self {
        let mut sum = Self::default();
        for outcome in outcomes {
            sum.tests += outcome.tests;
            sum.checked += outcome.checked;
            sum.cpu_seconds += outcome.cpu_seconds;
            sum.findings += count(outcome.document.findings.len());
            for summary in &outcome.document.summary {
                sum.schedules += summary.schedules;
                sum.distinct += summary.distinct;
                sum.failing += summary.failing;
                sum.instructions += summary.instructions;
                sum.races += summary.race_groups;
            }
        }
        // Groups of races stand among the findings.
        sum.findings -= sum.races;
        sum
    }

    fn line(&self) -> String {
        format!(
            "{} tests ({} with a checker), {} schedules ({} distinct), {} failing, {} findings, {} groups of races, {} million instructions, {:.0} CPU seconds",
            self.tests,
            self.checked,
            self.schedules,
            self.distinct,
            self.failing,
            self.findings,
            self.races,
            self.instructions / 1_000_000,
            self.cpu_seconds
        )
    }
}

/// Each title with the tests that report it and how it is judged.
fn print_findings(outcomes: &[Outcome]) {
    let mut titles: BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> = BTreeMap::new();
    for document in outcomes.iter().map(|outcome| &outcome.document) {
        for finding in &document.findings {
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let (tests, judgements) = titles.entry(text(&finding["title"])).or_default();
            // A race names an address; races are looked for in one test at a time.
            let is_race = text(&finding["kind"]) == RACE;
            let of_part = document.summary.first().filter(|_| is_race);
            let test = of_part.map_or_else(|| text(&finding["objects"][0]), |of| of.test.clone());
            tests.insert(stem(Path::new(&test)));
            judgements.insert(if is_race {
                text(&finding["notes"][0])
            } else {
                text(&finding["kind"])
            });
        }
    }
    if titles.is_empty() {
        return;
    }
    println!("| finding | judged | tests |");
    println!("|---|---|---|");
    for (title, (tests, judgements)) in titles {
        let [tests, judgements] = [tests, judgements].map(|all| Vec::from_iter(all).join("; "));
        println!("| {title} | {judgements} | {tests} |");
    }
}

/// Files of a folder, sorted.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        files.push(entry?.path());
    }
    ensure!(!files.is_empty(), "{} is empty", folder.display());
    files.sort();
    Ok(files)
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn count(of: usize) -> u64 {
    u64::try_from(of).unwrap_or(u64::MAX)
}
