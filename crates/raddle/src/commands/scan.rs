//! `raddle scan`: find concurrency bugs by reading C source.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use raddle_report::render::{Case, Results, sarif, terminal};
use raddle_scan::{Level, Options, Phase, Report, Summary};
use raddle_stdx::regular_file;

use crate::exit::{Code, Failure};
use crate::report_options::{self, ReportOptions};
use crate::{message, project};

mod diff;

/// Find concurrency bugs in C source, without building it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle scan fs/btrfs\n  raddle scan --diff HEAD~1 .\n  raddle scan --only lock-leak --json drivers/net"
)]
pub(crate) struct Scan {
    /// Files and folders to scan.
    paths: Vec<PathBuf>,
    /// Only findings that the tree did not have at this git revision; the paths default to the current folder.
    #[arg(long, value_name = "REV")]
    diff: Option<String>,
    /// Use the patterns in this file as well; may be repeated.
    #[arg(long, value_name = "FILE")]
    pattern: Vec<PathBuf>,
    /// Use only this pattern; may be repeated.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// List the patterns and stop.
    #[arg(long)]
    list_patterns: bool,
    /// List the functions of a class of the idiom tables, with the table that names each, and stop.
    #[arg(long, value_name = "NAME")]
    list_class: Option<String>,
    /// Explain for each pattern (or those of `--only`) where it stopped matching in this function, and stop.
    #[arg(long, value_name = "FILE:FUNCTION")]
    why: Option<String>,
    /// Run the patterns over the C files in this folder and compare with their `//~ name` marks.
    #[arg(long, value_name = "DIR")]
    test_patterns: Option<PathBuf>,
    /// Show every finding, not only the best ranked of each pattern and object.
    #[arg(long)]
    all: bool,
    /// Show only findings that are not in this earlier `--json` result.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    #[command(flatten)]
    report: ReportOptions,
    /// Threads for parsing; results do not depend on it.
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Configuration file; without it, the nearest raddle.toml here or above.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Bytes of a pattern file at most.
const PATTERN_BYTES_MAX: u64 = 16 << 20;
/// Findings shown per pattern unless `--all` is given.
const PER_PATTERN: usize = 200;
/// Functions that were not understood and are named.
const LOST_SHOWN: usize = 10;

impl Scan {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let mut options = self.options()?;
        if self.list_patterns {
            return list(&options);
        }
        if let Some(class) = &self.list_class {
            return list_class(class, &options);
        }
        if let Some(folder) = &self.test_patterns {
            return test(folder, &options);
        }
        if self.diff.is_some() {
            if options.paths.is_empty() {
                options.paths.push(PathBuf::from("."));
            }
            options.limit = None;
        }
        if options.paths.is_empty() {
            return Err(anyhow::anyhow!(
                "name a file or folder to scan, as in `raddle scan fs/btrfs`"
            )
            .into());
        }
        // What was named and is not there must not pass for clean, least of all where no user reads the output.
        for path in &options.paths {
            raddle_scan::check_path(path)?;
        }
        if let Some(wanted) = &self.why {
            return why(wanted, &options);
        }
        let begun = Instant::now();
        let mut report = with_progress(|progress| raddle_scan::scan(&options, progress))?;
        if let Some(revision) = &self.diff {
            forget_former(revision, &options, &mut report)?;
        }
        let old = self.forget_known(&mut report)?;
        self.print(&report, old, &options, begun.elapsed())?;
        Ok(if report.findings.is_empty() {
            Code::Clean
        } else {
            Code::Findings
        })
    }

    fn options(&self) -> Result<Options, Failure> {
        let project = project::read(self.config.as_deref())?;
        let config = project.config.scan;
        let mut patterns = raddle_scan::shipped_files();
        let from_config = config.patterns.iter().map(|path| project.folder.join(path));
        for path in from_config.chain(self.pattern.iter().cloned()) {
            let text = regular_file::read(&path, PATTERN_BYTES_MAX)
                .with_context(|| format!("cannot read the pattern file {}", path.display()))?;
            let text = String::from_utf8_lossy(&text).into_owned();
            patterns.push((path.display().to_string(), text));
        }
        let jobs = self.jobs.unwrap_or_else(|| {
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
        });
        Ok(Options {
            paths: self.paths.clone(),
            patterns,
            only: self.only.clone(),
            jobs,
            level: Level::FULL,
            limit: (!self.all).then_some(PER_PATTERN),
            config,
            former: Vec::new(),
        })
    }

    /// Drops findings of the baseline; returns how many.
    fn forget_known(&self, report: &mut Report) -> Result<usize, Failure> {
        let Some(path) = &self.baseline else {
            return Ok(0);
        };
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the baseline {}", path.display()))?;
        let value: serde_json::Value = serde_json::from_str(&text)
            .with_context(|| format!("{} is no result of `raddle scan --json`", path.display()))?;
        let known: Vec<&str> = value["findings"]
            .as_array()
            .map(|findings| {
                findings
                    .iter()
                    .filter_map(|finding| finding["fingerprint"].as_str())
                    .collect()
            })
            .with_context(|| format!("{} has no list of findings", path.display()))?;
        let before = report.findings.len();
        report
            .findings
            .retain(|finding| !known.contains(&finding.fingerprint.as_str()));
        Ok(before - report.findings.len())
    }

    fn print(
        &self,
        report: &Report,
        old: usize,
        options: &Options,
        elapsed: Duration,
    ) -> Result<(), Failure> {
        let rules = raddle_scan::list_patterns(&options.patterns)?;
        let rules = rules.into_iter().map(|pattern| sarif::Rule {
            name: pattern.name,
            title: pattern.title,
            about: pattern.about,
        });
        let paths: Vec<String> = options
            .paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let closing = closing(report, old);
        let results = Results {
            suite: "raddle scan".to_owned(),
            cases: vec![Case {
                name: paths.join(" "),
                milliseconds: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
                findings: report.findings.clone(),
                skipped: None,
                summary: closing.trim_end().to_owned(),
            }],
            rules: rules.collect(),
            counts: serde_json::to_value(&report.summary)?,
            closing,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            project: report_options::project()?,
        };
        let style = report_options::style(terminal::Style::PLAIN.width);
        self.report.tell(&results, style)?;
        Ok(())
    }
}

/// Drops what the tree had before the change.
fn forget_former(revision: &str, options: &Options, report: &mut Report) -> Result<(), Failure> {
    let former = diff::former_texts(revision)?;
    if former.is_empty() {
        report.findings.clear();
        return Ok(());
    }
    let options = Options {
        former,
        ..options.clone()
    };
    let old = with_progress(|progress| raddle_scan::scan(&options, progress))?;
    report.findings.retain(|finding| {
        !old.findings
            .iter()
            .any(|known| known.fingerprint == finding.fingerprint)
    });
    Ok(())
}

/// The last lines: what was looked at, and what was not.
fn closing(report: &Report, old: usize) -> String {
    let summary: &Summary = &report.summary;
    let mut text = format!(
        "scanned {} files ({} lines, {} functions) and {} files for context with {} patterns; {} findings",
        summary.files,
        summary.lines,
        summary.functions,
        summary.context_files,
        summary.patterns.len(),
        report.findings.len(),
    );
    for (count, what) in [
        (summary.suppressed, "suppressed"),
        (summary.hidden, "lower ranked not shown (--all)"),
        (raddle_stdx::width::to_u64(old), "known from the baseline"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text.push('\n');
    let damaged = summary.functions_damaged + summary.functions_lost;
    if damaged > 0 {
        text.push_str(&format!(
            "not fully understood: {} functions in part, {} not at all\n",
            summary.functions_damaged, summary.functions_lost
        ));
    }
    for lost in summary.lost.iter().take(LOST_SHOWN) {
        text.push_str(&format!("not understood: {lost}\n"));
    }
    if summary.lost.len() > LOST_SHOWN {
        let more = summary.lost.len() - LOST_SHOWN;
        text.push_str(&format!("not understood: {more} more (--json names all)\n"));
    }
    if summary.functions_cut > 0 {
        text.push_str(&format!(
            "{} functions have more paths than are followed\n",
            summary.functions_cut
        ));
    }
    for note in summary.notes.iter().take(10) {
        text.push_str(&format!("not read: {note}\n"));
    }
    if summary.notes.len() > 10 {
        text.push_str(&format!("not read: {} more\n", summary.notes.len() - 10));
    }
    text
}

fn list(options: &Options) -> Result<Code, Failure> {
    let lines: String = raddle_scan::list_patterns(&options.patterns)?
        .iter()
        .map(|pattern| format!("{:32} {}\n", pattern.name, pattern.title))
        .collect();
    message::result(&lines)?;
    Ok(Code::Clean)
}

fn list_class(class: &str, options: &Options) -> Result<Code, Failure> {
    let Some(members) = raddle_scan::list_class(&options.config.idioms, class) else {
        return Err(anyhow::anyhow!(
            "no idiom table has a class `{class}`; patterns name them with @, see `docs/src/reference/pattern-language.md`"
        )
        .into());
    };
    let lines: String = members
        .iter()
        .map(|(name, table)| format!("{name:40} {table}\n"))
        .collect();
    message::result(&lines)?;
    Ok(Code::Clean)
}

fn why(wanted: &str, options: &Options) -> Result<Code, Failure> {
    let Some((file, function)) = wanted.rsplit_once(':') else {
        return Err(anyhow::anyhow!(
            "--why wants a file and a function, as in `--why super.c:ext4_fill_super`"
        )
        .into());
    };
    let lines = with_progress(|progress| raddle_scan::why(options, file, function, progress))?;
    message::result(&(lines.join("\n") + "\n"))?;
    Ok(Code::Clean)
}

fn test(folder: &Path, options: &Options) -> Result<Code, Failure> {
    let results = raddle_scan::test_patterns(folder, options)?;
    if results.is_empty() {
        return Err(anyhow::anyhow!(
            "{} has no .c files; write C files with `//~ pattern-name` at the lines where a finding must be",
            folder.display()
        )
        .into());
    }
    let mut failed = 0;
    let mut lines = String::new();
    for result in &results {
        let file = result.file.display();
        if result.passed() {
            writeln!(lines, "ok      {file} ({} findings)", result.found)?;
            continue;
        }
        failed += 1;
        let missing = result.missing.iter().map(|place| (place, "found"));
        let unexpected = result.unexpected.iter().map(|place| (place, "expected"));
        for (place, what) in missing.chain(unexpected) {
            writeln!(
                lines,
                "FAILED  {file}:{}: {} was not {what}",
                place.line, place.pattern
            )?;
        }
    }
    writeln!(lines, "{} files, {failed} failed", results.len())?;
    message::result(&lines)?;
    Ok(if failed == 0 {
        Code::Clean
    } else {
        Code::Findings
    })
}

/// Runs `work` with a progress bar, if there is a terminal to show it.
fn with_progress<T, E: Into<anyhow::Error>>(
    work: impl FnOnce(raddle_scan::Progress<'_>) -> Result<T, E>,
) -> Result<T, Failure> {
    if !std::io::stderr().is_terminal() {
        return work(&|_, _, _| {}).map_err(Failure::from);
    }
    let bar = Mutex::new(ProgressBar::new(1));
    let report = |phase: Phase, done: usize, total: usize| {
        let Ok(bar) = bar.lock() else { return };
        let (name, unit) = match phase {
            Phase::Parse => ("parsing", "files"),
            Phase::Analyse => ("analysing", "steps"),
            Phase::Match => ("matching", "patterns"),
        };
        bar.set_length(raddle_stdx::width::to_u64(total));
        bar.set_message(name);
        let template = format!("{{msg}} [{{bar:30}}] {{pos}}/{{len}} {unit} {{per_sec}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        bar.set_position(raddle_stdx::width::to_u64(done));
    };
    let result = work(&report);
    if let Ok(bar) = bar.lock() {
        bar.finish_and_clear();
    }
    result.map_err(Failure::from)
}

/// Texts for `raddle explain`.
pub(crate) fn explanations() -> Vec<(String, String)> {
    match raddle_scan::list_patterns(&raddle_scan::shipped_files()) {
        Ok(patterns) => patterns
            .into_iter()
            .map(|pattern| {
                let text = format!(
                    "{}\n\n{}\n\nFound by `raddle scan`.",
                    pattern.name, pattern.about
                );
                (pattern.name, text)
            })
            .collect(),
        Err(error) => {
            message::error(&error.into());
            Vec::new()
        }
    }
}
