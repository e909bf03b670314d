//! `raddle explore`: finds the failing interleavings of an unmodified program.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use raddle_explore::{Algorithm, Focus, Options, Progress, Report, StartFailure, explore};
use raddle_report::Finding;
use raddle_report::finding::Confidence;
use raddle_report::render::{json, sarif, terminal};

use crate::diff_lines;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::message;
use crate::program_options::ProgramOptions;

/// Find the interleavings that make a program fail.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle explore -- ./program arg\n  raddle explore --until-found --schedules 100000 -- ./program\n  raddle explore --races --json -- ./program"
)]
pub(crate) struct Explore {
    /// Schedules to run at most. Default: 10000, or as many as fit if --time or --until-found is given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    schedules: Option<u64>,
    /// Seconds to explore at most [default: 60]; what is found in a given number of schedules does not depend on
    /// it.
    #[arg(long, value_name = "SECONDS")]
    time: Option<u64>,
    /// Stop after the first generation of schedules that has a failure.
    #[arg(long)]
    until_found: bool,
    /// Seed of the campaign.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Workers; results do not depend on it. Default: one per core.
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// `portfolio`, or one algorithm: delay, preemption, pct2, pct3, pct5, random, pos, urw, surw, reads-from.
    #[arg(long, value_name = "NAME", default_value = "portfolio")]
    scheduler: String,
    /// Where schedules begin: `first-thread` or the name of a function.
    #[arg(long, value_name = "PLACE", default_value = "first-thread")]
    snapshot_at: String,
    /// Look for data races in every schedule, not only in a sample of them.
    #[arg(long)]
    races: bool,
    /// Switch threads only in this function or line; may be given several times.
    #[arg(long, value_name = "FUNCTION|FILE:LINE")]
    focus: Vec<String>,
    /// Switch threads only in lines that changed since this revision (as in `git diff REV`).
    #[arg(long, value_name = "REV")]
    diff: Option<String>,
    /// Explore all interleavings of a small program (at system calls, synchronisation and communication points)
    /// instead of sampling; says when all were explored, or how many there probably are.
    #[arg(long, conflicts_with_all = ["scheduler", "focus", "diff"])]
    exhaustive: bool,
    /// Never let a timer or time-out come while some thread could still run.
    #[arg(long)]
    no_time_jumps: bool,
    /// The exit status that is right; default: that of the run without interruptions.
    #[arg(long, value_name = "STATUS")]
    expect_exit: Option<u8>,
    /// Instructions of one schedule before it counts as hanging; default: a multiple of a plain run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..))]
    max_steps: Option<u64>,
    /// Folder for recordings.
    #[arg(long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// Print JSON.
    #[arg(long, conflicts_with_all = ["sarif", "concise"])]
    json: bool,
    /// Print SARIF 2.1.0.
    #[arg(long, conflicts_with = "concise")]
    sarif: bool,
    /// Print one line per finding.
    #[arg(long)]
    concise: bool,
    #[command(flatten)]
    program: ProgramOptions,
}

const SCHEDULES_DEFAULT: u64 = 10_000;
/// Seconds.
const TIME_DEFAULT: u64 = 60;
/// Different failures that are minimised and explained.
const FINDINGS_MAX: usize = 10;

impl Explore {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let interrupt = Interrupt::listen()?;
        let options = self.options(&interrupt)?;
        let begun = Instant::now();
        let bar = progress_bar(options.schedules);
        let limit = Duration::from_secs(self.time.unwrap_or(TIME_DEFAULT));
        let result = explore(&options, &mut |progress| {
            show(&bar, progress);
            if interrupt.is_requested() {
                bar.suspend(|| {
                    message::note(
                        "interrupted: explaining what was found so far; Ctrl-C again ends at once",
                    );
                });
            }
            begun.elapsed() < limit
        });
        bar.finish_and_clear();
        let elapsed = begun.elapsed();
        let mut report = result.map_err(start_failure)?;
        self.write_recordings(&mut report)?;
        let findings = self.findings(&report);
        self.print(&report, &findings, elapsed)?;
        code(&report, &findings)
    }

    fn options(&self, interrupt: &Interrupt) -> anyhow::Result<Options> {
        let algorithm = match self.scheduler.as_str() {
            "portfolio" => None,
            name => Some(Algorithm::by_name(name).ok_or_else(|| {
                anyhow!(
                    "there is no scheduler `{name}`; choose portfolio or one of {}",
                    Algorithm::names().join(", ")
                )
            })?),
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let Ok(snapshot_at) = self.snapshot_at.parse();
        let is_timed = self.time.is_some() || self.until_found || self.exhaustive;
        let schedules = match self.schedules {
            Some(schedules) => schedules,
            None if is_timed => u64::MAX,
            None => SCHEDULES_DEFAULT,
        };
        Ok(Options {
            inputs: self.program.inputs(self.seed)?,
            snapshot_at,
            schedules,
            until_found: self.until_found,
            workers: raddle_explore::campaign::useful_workers(
                self.jobs.unwrap_or(cores),
                schedules,
            ),
            seed: self.seed,
            algorithm,
            races: self.races,
            expected_exit: self.expect_exit.map(i32::from),
            steps_max: self.max_steps,
            findings_max: FINDINGS_MAX,
            exhaustive: self.exhaustive,
            varies_time: !self.no_time_jumps,
            focus: self.focus()?,
            cancel: interrupt.flag(),
        })
    }

    fn focus(&self) -> anyhow::Result<Vec<Focus>> {
        let mut focus: Vec<Focus> = Vec::new();
        for text in &self.focus {
            let Ok(place) = text.parse();
            focus.push(place);
        }
        if let Some(revision) = &self.diff {
            focus.extend(diff_lines::changed_since(revision)?);
        }
        Ok(focus)
    }

    /// Each finding gets a file, named after the program and the finding.
    fn write_recordings(&self, report: &mut Report) -> anyhow::Result<()> {
        if report.findings.is_empty() {
            return Ok(());
        }
        std::fs::create_dir_all(&self.output)
            .with_context(|| format!("cannot create {}", self.output.display()))?;
        for (finding, recording) in &mut report.findings {
            let name = format!("{}-{}.raddle", self.program.name(), finding.short_id());
            let path = self.output.join(name);
            std::fs::write(&path, recording.to_text())
                .with_context(|| format!("cannot write the recording {}", path.display()))?;
            finding.replay = Some(format!("raddle replay {}", shown(&path)));
        }
        Ok(())
    }

    /// What counts as found: failures, and data races that are certain.
    fn findings(&self, report: &Report) -> Vec<Finding> {
        let failures = report.findings.iter().map(|(finding, _)| finding.clone());
        let races = report
            .races
            .iter()
            .filter(|race| race.confidence == Confidence::Confirmed);
        failures.chain(races.cloned()).collect()
    }

    fn print(
        &self,
        report: &Report,
        findings: &[Finding],
        elapsed: Duration,
    ) -> anyhow::Result<()> {
        let summary = summary(report, findings.len(), elapsed);
        if self.json {
            let text = json::document(
                findings,
                serde_json::json!({
                    "schedules": report.schedules,
                    "distinct": report.distinct,
                    "failing": report.failing,
                    "contexts": report.contexts,
                    "decisions": report.decisions,
                    "points": report.points,
                    "shared_places": report.shared_places,
                    "reads_from_classes": report.classes,
                    "reads_from_pairs": report.pairs,
                    "steps": report.steps,
                }),
            )?;
            return out(&format!("{text}\n"));
        }
        if self.sarif {
            let text = sarif::document(findings, &rules(), env!("CARGO_PKG_VERSION"))?;
            return out(&format!("{text}\n"));
        }
        if self.concise {
            let lines: String = findings.iter().map(terminal::concise).collect();
            return out(&format!("{lines}{summary}\n"));
        }
        let style = terminal::Style {
            colour: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
            width: 110,
        };
        let mut text = String::new();
        for (finding, number) in findings.iter().zip(1..) {
            text.push_str(&terminal::finding(finding, number, findings.len(), style));
        }
        text.push_str(&summary);
        text.push('\n');
        out(&text)
    }
}

fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    text.strip_prefix("./").map_or(text.clone(), str::to_owned)
}

/// A program that cannot be explored, with the exit code of its kind.
pub(super) fn start_failure(failure: StartFailure) -> Failure {
    let code = match failure {
        StartFailure::Unsupported(_) => Code::Unsupported,
        StartFailure::EndedAlone { .. } => Code::Vacuous,
        _ => Code::Usage,
    };
    Failure {
        code,
        error: anyhow!(failure),
    }
}

fn code(report: &Report, findings: &[Finding]) -> Result<Code, Failure> {
    if !findings.is_empty() {
        return Ok(Code::Findings);
    }
    if report.was_cancelled {
        return Ok(Code::Interrupted);
    }
    if let Some((text, count)) = &report.unsupported
        && *count == report.schedules
    {
        return Err(Failure {
            code: Code::Unsupported,
            error: anyhow!("every schedule ended at something unsupported: {text}"),
        });
    }
    if report.decisions == 0 {
        message::note(
            "no two threads or processes could ever run at the same time: nothing was interleaved, so nothing was tested",
        );
        return Ok(Code::Vacuous);
    }
    Ok(Code::Clean)
}

fn summary(report: &Report, findings: usize, elapsed: Duration) -> String {
    let rate = u128::from(report.schedules) * 1000 / elapsed.as_millis().max(1);
    let mut text = format!(
        "explored {} schedules ({} distinct, {} reads-from classes, {rate}/s) of {} threads with up to {} decisions each, {} communication points on {} shared places; {findings} finding{}, {} schedules failed",
        report.schedules,
        report.distinct,
        report.classes,
        report.contexts,
        report.decisions,
        report.points,
        report.shared_places,
        if findings == 1 { "" } else { "s" },
        report.failing,
    );
    if report.unexplained > 0 {
        text.push_str(&format!(
            "; {} more failures not explained",
            report.unexplained
        ));
    }
    let doubtful = report
        .races
        .iter()
        .filter(|race| race.confidence != Confidence::Confirmed);
    let doubtful = doubtful.count();
    if doubtful > 0 {
        text.push_str(&format!(
            "; {doubtful} possible data races in code whose atomic accesses cannot be told from plain ones"
        ));
    }
    text.push_str(&completeness(report, findings));
    if report.was_cancelled {
        text.push_str("; interrupted before the schedules were used up");
    } else if report.was_stopped {
        text.push_str("; stopped by the time limit");
    }
    if let Some((what, count)) = &report.unsupported {
        text.push_str(&format!("; {count} schedules ended early: {what}"));
    }
    text
}

/// What was tried completely, and what was not.
fn completeness(report: &Report, findings: usize) -> String {
    let timers = if report.timed_stops > 0 {
        ", timers only when nobody can run"
    } else {
        ""
    };
    match report.exhaustive {
        Some(all) if all.is_complete => format!(
            "; all {} interleavings at this granularity explored{timers}: {}",
            all.interleavings,
            if findings == 0 {
                "no failure"
            } else {
                "see above"
            }
        ),
        Some(some) => format!(
            "; {} of about {:.0} interleavings at this granularity explored{timers}{}",
            some.interleavings,
            some.estimate,
            if some.cut_short > 0 {
                format!("; {} runs did not end by themselves", some.cut_short)
            } else {
                String::new()
            }
        ),
        None if report.single_delays_done => "; every single delay was tried".into(),
        None => "; not every single delay was tried".into(),
    }
}

fn progress_bar(schedules: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let is_endless = schedules == u64::MAX;
    let template = if is_endless {
        "{pos} schedules {per_sec} {msg} {elapsed}"
    } else {
        "{pos}/{len} schedules {per_sec} {msg} eta {eta}"
    };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = if is_endless {
        ProgressBar::no_length()
    } else {
        ProgressBar::new(schedules)
    };
    bar.with_style(style)
}

fn show(bar: &ProgressBar, progress: Progress) {
    bar.set_position(progress.schedules);
    bar.set_message(format!(
        "{} distinct, {} classes, {} failures, {} points",
        progress.distinct, progress.classes, progress.failures, progress.points
    ));
}

/// Writes the result; a reader that went away is no error.
pub(super) fn out(text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write the result")
        }
        _ => Ok(()),
    }
}

/// What each kind of finding means.
const KINDS: [(&str, &str, &str); 6] = [
    (
        "crash",
        "the program is killed by a signal in some interleaving",
        "A memory access or instruction faults when threads run in a certain order. Look at the last steps: usually one thread uses what another has not yet made, or has already taken away.",
    ),
    (
        "assertion",
        "an assertion, panic or abort happens in some interleaving",
        "The program itself notices that something is wrong. The steps show which accesses of other threads came between two of its own that should have been one.",
    ),
    (
        "wrong-exit",
        "the exit status depends on the interleaving",
        "Without interruptions the program ends with one status, in the order shown with another.",
    ),
    (
        "deadlock",
        "no thread can ever go on",
        "Threads wait for each other in a circle, or for a signal that was sent before they began to wait. Take locks in one order everywhere; check the condition under the lock before waiting.",
    ),
    (
        "hang",
        "the program does not end although every thread gets its turn",
        "A livelock, or a loop that waits for something that no longer happens.",
    ),
    (
        "data-race",
        "two accesses to the same memory, one a write, that nothing orders",
        "Neither a lock nor creation, joining or an atomic operation puts the two accesses in an order. Compilers may assume that this never happens.",
    ),
];

fn rules() -> Vec<sarif::Rule> {
    let rule = |(name, title, about): &(&str, &str, &str)| sarif::Rule {
        name: (*name).to_owned(),
        title: (*title).to_owned(),
        about: (*about).to_owned(),
    };
    KINDS.iter().map(rule).collect()
}

/// The kinds with their texts, for `raddle explain`.
pub(super) fn explanations() -> Vec<(String, String)> {
    let text = |(name, title, about): &(&str, &str, &str)| {
        ((*name).to_owned(), format!("{name}: {title}\n\n{about}"))
    };
    KINDS.iter().map(text).collect()
}
