//! `cargo xtask bench predict`: which bugs of the papers each analysis predicts from runs that end well and confirms,
//! with what effort, and `raddle explore` beside it.
//!
//! All times are CPU times of the processes, so that other load on the machine matters little.
#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;

use super::cpu;
use super::explore::corpus;
use crate::shell;

/// The programs of the corpus that are made after the bugs of a paper.
const SETS: [(&str, &[&str]); 3] = [
    (
        "ctrigger",
        &[
            "apache/cache_refcount",
            "apache/log_corruption",
            "mozilla/js_property_cache",
            "mysql/binlog_rotate",
            "pbzip2/fifo_lock",
            "splash/barnes_tree",
            "splash/fft_end",
            "splash/lu_id",
        ],
    ),
    (
        "conmem",
        &[
            "mysql/proc_info",
            "mysql/query_null",
            "pbzip2/fifo_lock",
            "apache/cache_lookup",
            "mozilla/js_two_timing",
            "pbzip2/fifo_dangling",
            "apache/log_buffer",
            "cherokee/log_message",
            "transmission/bandwidth",
            "splash/fft_end",
        ],
    ),
    (
        "conseq",
        &[
            "aget/resume_log",
            "splash/fft_end",
            "mysql/binlog_rotate",
            "mozilla/inprogress_url",
            "mysql/relay_log_pos",
            "transmission/bandwidth",
            "mozilla/js_undefined",
            "mozilla/four_accesses",
            "mysql/table_state",
            "mysql/stop_slave",
            "openoffice/load_hang",
        ],
    ),
];

/// Measures predictions.
#[derive(Debug, Args)]
pub(crate) struct Predict {
    /// Seconds of one prediction or search at most.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// The whole corpus, too, with all analyses; fixed variants must have no finding.
    #[arg(long)]
    corpus: bool,
    /// The raddle to use; default: a release build.
    #[arg(long)]
    raddle: Option<PathBuf>,
}

/// What came of one program.
struct Measured {
    document: serde_json::Value,
    seconds: f64,
}

impl Measured {
    fn number(&self, key: &str) -> u64 {
        self.document["summary"][key].as_u64().unwrap_or(0)
    }

    fn findings(&self) -> usize {
        self.document["findings"].as_array().map_or(0, Vec::len)
    }

    fn targets(&self, outcome: &str) -> u64 {
        let targets = &self.document["summary"]["targets"];
        targets[outcome].as_u64().unwrap_or(0)
    }

    /// The kind of the first confirmed prediction.
    fn confirmed(&self) -> Option<&str> {
        let listed = self.document["summary"]["listed"].as_array()?;
        listed.first()?["kind"].as_str()
    }
}

impl Predict {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        shell::release_build(self.raddle.as_deref())?;
        self.heading()?;
        for (analysis, programs) in SETS {
            self.set(analysis, programs)?;
        }
        if self.corpus {
            self.whole()?;
        }
        Ok(())
    }

    /// What was measured, when, of which state.
    fn heading(&self) -> anyhow::Result<()> {
        let told = |program: &str, arguments: &[&str]| -> anyhow::Result<String> {
            let output = Command::new(program).args(arguments).output()?;
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let date = told("date", &["-u", "+%F"])?;
        let commit = told("git", &["rev-parse", "--short", "HEAD"])?;
        println!(
            "`cargo xtask bench predict --seconds {}`, {date}, commit {commit}\n",
            self.seconds
        );
        Ok(())
    }

    /// One analysis alone on the bugs of its paper.
    fn set(&self, analysis: &str, programs: &[&str]) -> anyhow::Result<()> {
        println!("## {analysis} on the bugs of its paper\n");
        println!(
            "| program | confirmed by | runs | CPU s | excluded | predictions | confirmed | benign | not forced | explore: schedules | CPU s |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|---|");
        let mut found = 0;
        for name in programs {
            let program = corpus::build(name, "buggy", &[])?;
            let predicted = self.measure("predict", &program, &["--only", analysis])?;
            let explored = self.measure("explore", &program, &["--until-found", "--jobs", "1"])?;
            let [confirmed, benign] = ["confirmed", "benign"].map(|word| predicted.targets(word));
            let others = ["blocked", "not reached", "untried"];
            let others: u64 = others.iter().map(|word| predicted.targets(word)).sum();
            found += u64::from(confirmed > 0);
            println!(
                "| {name} | {} | {} | {:.1} | {} | {} | {confirmed} | {benign} | {others} | {} | {:.1} |",
                predicted.confirmed().unwrap_or("-"),
                predicted.number("profile_runs") + predicted.number("forced_runs"),
                predicted.seconds,
                predicted.number("excluded"),
                confirmed + benign + others,
                explored.number("schedules"),
                explored.seconds,
            );
        }
        println!("\n{found} of {} confirmed.\n", programs.len());
        Ok(())
    }

    /// All analyses on all programs, and on their fixed variants.
    fn whole(&self) -> anyhow::Result<()> {
        println!("## All analyses on the corpus\n");
        println!("| program | findings | confirmed by | runs | CPU s | fixed: findings |");
        println!("|---|---|---|---|---|---|");
        let (mut programs, mut found, mut false_alarms) = (0, 0, 0);
        for name in corpus::all()? {
            let buggy = corpus::build(&name, "buggy", &[])?;
            let buggy = self.measure("predict", &buggy, &[])?;
            let fixed = corpus::build(&name, "fixed", &[])?;
            let fixed = self.measure("predict", &fixed, &[])?;
            programs += 1;
            found += u64::from(buggy.confirmed().is_some());
            false_alarms += fixed.findings();
            println!(
                "| {name} | {} | {} | {} | {:.1} | {} |",
                buggy.findings(),
                buggy.confirmed().unwrap_or("-"),
                buggy.number("profile_runs") + buggy.number("forced_runs"),
                buggy.seconds,
                fixed.findings(),
            );
        }
        println!(
            "\n{found} of {programs} predicted and confirmed, {false_alarms} findings in fixed variants."
        );
        ensure!(false_alarms == 0, "there are findings in fixed variants");
        Ok(())
    }

    fn measure(&self, command: &str, program: &Path, options: &[&str]) -> anyhow::Result<Measured> {
        let before = cpu::of_children();
        let raddle = self.raddle.clone().unwrap_or_else(shell::released);
        let output = Command::new(raddle)
            .args([command, "--json", "--time", &self.seconds.to_string()])
            .arg("--output")
            .arg(corpus::folder())
            .args(options)
            .arg("--")
            .arg(program)
            .output()?;
        let document = serde_json::from_slice(&output.stdout).with_context(|| {
            let errors = String::from_utf8_lossy(&output.stderr);
            format!("`raddle {command}` of {}: {errors}", program.display())
        })?;
        Ok(Measured {
            document,
            seconds: cpu::of_children() - before,
        })
    }
}
