//! `cargo xtask bench linearize`: Redis and memcached as Debian ships them, with concurrent tests that `raddle linearize
//! import` makes of a script, and the server of the corpus with the inputs of Table 5.2.
//!
//! What a test gave is kept in a file; a test that has its file is not run again, so the same command goes on where it was
//! stopped.
#![expect(clippy::print_stdout, reason = "the tables are the result")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::cpu;
use crate::shell;

/// Compares servers with serial orders.
#[derive(Debug, Args)]
pub(crate) struct Linearize {
    /// Tests of each server at most.
    #[arg(long, default_value_t = 300)]
    inputs: u64,
    /// Schedules of each test.
    #[arg(long, default_value_t = 400)]
    schedules: u64,
    /// Begin no test after so many minutes.
    #[arg(long)]
    minutes: Option<u64>,
    /// The raddle to use; default: a release build.
    #[arg(long)]
    raddle: Option<PathBuf>,
}

/// Servers with a script and a template in `bench/programs/linearize`.
const SERVERS: [&str; 2] = ["redis", "memcached"];

/// What a test gave.
#[derive(Debug, Serialize, Deserialize)]
struct Outcome {
    cpu_seconds: f64,
    document: Document,
}

/// What `raddle linearize --json` prints.
#[derive(Debug, Serialize, Deserialize)]
struct Document {
    findings: Vec<Finding>,
    summary: Summary,
}

#[derive(Debug, Serialize, Deserialize)]
struct Finding {
    kind: String,
    title: String,
    serial: Option<Serial>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Serial {
    orders: Vec<Order>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    same_results: Option<bool>,
    same_state: Option<bool>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Summary {
    schedules: u64,
    failing: u64,
    histories: u64,
    undecided: u64,
}

/// Where everything is.
struct Place {
    raddle: PathBuf,
    folder: PathBuf,
    until: Option<Instant>,
    schedules: u64,
}

impl Linearize {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let minutes = |minutes: u64| Instant::now() + Duration::from_secs(60 * minutes);
        let place = Place {
            raddle: std::path::absolute(shell::release_build(self.raddle.as_deref())?)?,
            folder: shell::target_folder().join("bench-linearize"),
            until: self.minutes.map(minutes),
            schedules: self.schedules,
        };
        std::fs::create_dir_all(&place.folder)?;
        table_5_2(&place)?;
        println!(
            "\nTests made by `raddle linearize import` of `bench/programs/linearize`, {} schedules each, one worker.\n",
            self.schedules
        );
        println!(
            "| server | tests | schedules | per CPU second | histories | undecided | tests with a finding |"
        );
        println!("|---|---|---|---|---|---|---|");
        let mut findings = Vec::new();
        for server in SERVERS {
            findings.extend(self.server(&place, server)?);
        }
        println!();
        for finding in &findings {
            println!("- {finding}");
        }
        println!("{} findings of servers.", findings.len());
        Ok(())
    }

    /// One row; gives the findings in words.
    fn server(&self, place: &Place, name: &str) -> anyhow::Result<Vec<String>> {
        let sources = shell::root().join("bench/programs/linearize");
        let folder = place.folder.join(name);
        let tests = folder.join("tests");
        let inputs = self.inputs.to_string();
        let made = Command::new(&place.raddle)
            .args(["linearize", "import", "--tests", &inputs, "--template"])
            .arg(sources.join(format!("{name}.toml")))
            .arg("--to")
            .arg(&tests)
            .arg(sources.join(format!("{name}.txt")))
            .output()?;
        let said = String::from_utf8_lossy(&made.stderr);
        ensure!(made.status.success(), "{name}: {said}");
        let mut outcomes = Vec::new();
        for test in files(&tests)? {
            match place.compare(&test, &folder)? {
                Some(outcome) => outcomes.push((stem(&test), outcome)),
                None => break,
            }
        }
        let sum = |of: fn(&Summary) -> u64| -> u64 {
            let each = outcomes.iter();
            each.map(|(_, outcome)| of(&outcome.document.summary)).sum()
        };
        let seconds: f64 = outcomes
            .iter()
            .map(|(_, outcome)| outcome.cpu_seconds)
            .sum();
        let schedules = sum(|summary| summary.schedules);
        let is_found = |outcome: &Outcome| !outcome.document.findings.is_empty();
        println!(
            "| {name} | {} | {schedules} | {:.0} | {} | {} | {} |",
            outcomes.len(),
            f64::from(u32::try_from(schedules)?) / seconds.max(0.001),
            sum(|summary| summary.histories),
            sum(|summary| summary.undecided),
            outcomes
                .iter()
                .filter(|(_, outcome)| is_found(outcome))
                .count(),
        );
        let all = outcomes.iter().flat_map(|(test, outcome)| {
            let findings = outcome.document.findings.iter();
            findings.map(move |finding| format!("{name} {test}: {}", finding.title))
        });
        Ok(all.collect())
    }
}

impl Place {
    /// What a test gives, now or earlier; nothing if the time is up.
    fn compare(&self, test: &Path, folder: &Path) -> anyhow::Result<Option<Outcome>> {
        let results = folder.join(format!("results-{}x", self.schedules));
        std::fs::create_dir_all(&results)?;
        let file = results.join(format!("{}.json", stem(test)));
        if !file.is_file() {
            if self.until.is_some_and(|until| Instant::now() >= until) {
                return Ok(None);
            }
            let before = cpu::of_children();
            let output = Command::new(&self.raddle)
                .current_dir(folder)
                .args([
                    "linearize",
                    "--jobs",
                    "1",
                    "--seed",
                    "1",
                    "--json",
                    "--schedules",
                ])
                .args([&self.schedules.to_string()])
                .arg(test)
                .output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            let document = serde_json::from_slice(&output.stdout);
            let outcome = Outcome {
                cpu_seconds: cpu::of_children() - before,
                document: document.with_context(|| format!("{}: {said}", test.display()))?,
            };
            std::fs::write(&file, serde_json::to_string_pretty(&outcome)?)?;
        }
        let outcome = serde_json::from_slice(&std::fs::read(&file)?);
        outcome
            .map(Some)
            .with_context(|| format!("{} is damaged: remove it", file.display()))
    }
}

/// The inputs of Table 5.2 against the server of the corpus.
fn table_5_2(place: &Place) -> anyhow::Result<()> {
    let corpus = shell::root().join("corpus/table_server");
    let folder = place.folder.join("table");
    std::fs::create_dir_all(&folder)?;
    let built = Command::new("gcc")
        .args(["-g", "-O1", "-pthread", "-o"])
        .arg(folder.join("server"))
        .arg(corpus.join("server.c"))
        .status()?;
    ensure!(built.success(), "the server of the corpus does not compile");
    println!(
        "The inputs of Table 5.2 and the documented deviations (`false_...`), {} schedules each.\n",
        place.schedules
    );
    println!("| input | finding | schedules with it | O_A, S_A | O_B, S_B |");
    println!("|---|---|---|---|---|");
    for test in files(&corpus.join("tests"))? {
        let Some(outcome) = place.compare(&test, &folder)? else {
            println!("The time was up.");
            break;
        };
        let Document { findings, summary } = &outcome.document;
        let kinds: Vec<&str> = findings.iter().map(|finding| &*finding.kind).collect();
        let orders = findings.iter().find_map(|finding| finding.serial.as_ref());
        let fits = |at: usize| {
            let order = orders.and_then(|serial| serial.orders.get(at));
            order.map_or("-".to_owned(), |order| {
                format!("{}, {}", yes(order.same_results), yes(order.same_state))
            })
        };
        println!(
            "| {} | {} | {} of {} | {} | {} |",
            stem(&test),
            kinds.join(", "),
            summary.failing,
            summary.schedules,
            fits(0),
            fits(1),
        );
    }
    Ok(())
}

fn yes(is_same: Option<bool>) -> &'static str {
    match is_same {
        Some(true) => "yes",
        Some(false) => "no",
        None => "does not end",
    }
}

/// The files of a folder by their names.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let files = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<PathBuf> = files.collect::<anyhow::Result<_>>()?;
    files.sort();
    Ok(files)
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
