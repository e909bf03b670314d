//! `--log FILE`: what a campaign tells while it runs, as lines of a file that `raddle report` draws.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use raddle_campaign::{News, Phase, Progress, Report};
use raddle_report::Finding;
use raddle_report::campaign_log::{
    Begin, End, Failure, FindingLine, Generation, Line, TimeSplit, VERSION,
};
use raddle_report::words::counted;
use raddle_stdx::width::to_u64;

use super::CampaignOptions;
use crate::message;

/// Where the log goes.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LogOption {
    /// Write how the campaign goes to this file, one line of JSON per generation of schedules; `raddle report FILE`
    /// draws it. Measures time as --timing does.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// For rounds of `raddle campaign`, which is the process with this number: the log names the reads-from classes, and
    /// the command ends with that process.
    #[arg(long, value_name = "PID", hide = true)]
    round_of: Option<u32>,
}

impl LogOption {
    /// Has the time measured that the log tells.
    pub(crate) fn measure(&self, options: &mut CampaignOptions) {
        options.timing |= self.log.is_some();
    }

    /// The process with which the command ends.
    pub(crate) fn round_of(&self) -> Option<u32> {
        self.round_of
    }

    /// Makes the file, so that a campaign does not run for an hour before it is known that it cannot be.
    pub(crate) fn open(&self) -> anyhow::Result<Log> {
        let create = |path: &PathBuf| {
            let file = File::create(path);
            file.with_context(|| format!("cannot write the log {}", path.display()))
        };
        let file = self.log.as_ref().map(create).transpose()?;
        Ok(Log {
            file,
            names_classes: self.round_of.is_some(),
        })
    }
}

/// The file, if there is one and nothing has failed.
#[derive(Debug)]
pub(crate) struct Log {
    file: Option<File>,
    names_classes: bool,
}

impl Log {
    /// A campaign begins.
    pub(crate) fn begin(&mut self, name: &str, seed: u64) -> CampaignLog<'_> {
        self.write(&Line::Begin(Begin {
            version: VERSION,
            name: name.to_owned(),
            seed,
        }));
        CampaignLog {
            log: self,
            begun: Instant::now(),
            // The default order is the first one; the news with it come while the second is under way.
            generations: 1,
            schedules: 0,
            explored: None,
        }
    }

    /// A full disk ends the log, not the campaign.
    fn write(&mut self, line: &Line) {
        let Some(file) = &mut self.file else {
            return;
        };
        let written = serde_json::to_string(line)
            .map_err(anyhow::Error::from)
            .and_then(|text| Ok(file.write_all((text + "\n").as_bytes())?));
        if let Err(error) = written {
            message::note(&format!("the log ends here: {error:#}"));
            self.file = None;
        }
    }
}

/// The log of one campaign.
#[derive(Debug)]
pub(crate) struct CampaignLog<'l> {
    log: &'l mut Log,
    begun: Instant,
    /// Generations that were told.
    generations: u64,
    /// Schedules of those.
    schedules: u64,
    /// When schedules ended and explanations began.
    explored: Option<u64>,
}

impl CampaignLog<'_> {
    /// Writes what is new, if a line of the log tells it.
    pub(crate) fn hear<R>(&mut self, news: &News<'_, R>) {
        match news {
            News::Progress(progress) => self.progress(progress),
            News::Failing(found) => self.log.write(&Line::Failure(Failure {
                milliseconds: self.elapsed(),
                kind: found.finding.kind.clone(),
                title: found.finding.title.clone(),
            })),
        }
    }

    fn progress(&mut self, progress: &Progress) {
        let milliseconds = self.elapsed();
        match progress.phase {
            Phase::Exploring if progress.generations > self.generations => {
                self.generations = progress.generations;
                self.schedules = progress.schedules;
                self.log.write(&Line::Generation(Generation {
                    milliseconds,
                    schedules: progress.schedules,
                    distinct: progress.distinct,
                    classes: progress.classes,
                    points: progress.points,
                    interrupted: progress.interrupted,
                    failures: progress.failures,
                }));
            }
            Phase::Explaining { .. } => {
                self.explored.get_or_insert(milliseconds);
            }
            Phase::Starting | Phase::Alone | Phase::Exploring => {}
        }
    }

    /// The campaign is over.
    pub(crate) fn end<R, T>(self, report: &Report<R, T>, findings: &[Finding], summary: &str) {
        let milliseconds = self.elapsed();
        let last = Generation {
            milliseconds: self.explored.unwrap_or(milliseconds),
            schedules: report.schedules,
            distinct: report.distinct,
            classes: report.classes,
            points: report.points,
            interrupted: report.interrupted,
            failures: to_u64(report.findings.len()) + report.unexplained,
        };
        if last.schedules != self.schedules {
            self.log.write(&Line::Generation(last));
        }
        let spent = &report.spent;
        self.log.write(&Line::End(End {
            milliseconds,
            last,
            failing: report.failing,
            first_failing: report.first_failing,
            steps: report.steps,
            classes: if self.log.names_classes {
                report.class_digests.clone()
            } else {
                BTreeSet::new()
            },
            findings: findings.iter().map(finding_line).collect(),
            time: TimeSplit {
                restore: milliseconds_of(spent.restore),
                run: milliseconds_of(spent.run),
                detect: milliseconds_of(spent.detect),
                plan: milliseconds_of(spent.plan),
            },
            not_explored: not_explored(report),
            summary: summary.to_owned(),
        }));
    }

    fn elapsed(&self) -> u64 {
        milliseconds_of(self.begun.elapsed())
    }
}

fn milliseconds_of(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn finding_line(finding: &Finding) -> FindingLine {
    let recording = finding.recording.as_ref();
    FindingLine {
        id: finding.short_id(),
        kind: finding.kind.clone(),
        title: finding.title.clone(),
        command: recording.map(|recording| recording.command.clone()),
    }
}

/// What a campaign knows that it has not seen.
fn not_explored<R, T>(report: &Report<R, T>) -> Vec<String> {
    let mut left = Vec::new();
    match &report.exhaustive {
        Some(all) => {
            if !all.is_complete {
                left.push(format!(
                    "{} of about {:.0} interleavings were explored",
                    all.interleavings, all.estimate
                ));
            }
            if all.cut_short > 0 {
                let runs = counted(all.cut_short, "run");
                left.push(format!("not followed to the end, for their steps: {runs}"));
            }
            let bounds = all.bounds.iter();
            left.extend(bounds.map(|bound| format!("there may be other interleavings: {bound}")));
        }
        None if report.single_delays_done => left.push(String::from(
            "every single delay was tried; combinations of several only by sampling",
        )),
        None => left.push(String::from("not every single delay was tried")),
    }
    let calm = report.points.saturating_sub(report.interrupted);
    if calm > 0 {
        left.push(format!(
            "at {calm} of {} communication points no context was interrupted",
            report.points
        ));
    }
    if let Some((what, count)) = &report.unsupported {
        let schedules = counted(*count, "schedule");
        left.push(format!("{schedules} ended early: {what}"));
    }
    if report.was_cancelled {
        left.push(String::from("it was interrupted"));
    } else if report.was_stopped {
        left.push(String::from("the time was up before the schedules were"));
    }
    if report.dropped > 0 {
        let schedules = counted(report.dropped, "schedule");
        left.push(format!(
            "left out, with the generation that was broken off: {schedules}"
        ));
    }
    if report.unexplained > 0 {
        let failures = counted(report.unexplained, "different failure");
        left.push(format!("not explained: {failures} more"));
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_said() {
        let report: Report<(), ()> = Report {
            points: 9,
            interrupted: 7,
            was_stopped: true,
            dropped: 1,
            ..Report::default()
        };
        assert_eq!(
            not_explored(&report),
            [
                "not every single delay was tried",
                "at 2 of 9 communication points no context was interrupted",
                "the time was up before the schedules were",
                "left out, with the generation that was broken off: 1 schedule",
            ]
        );
    }
}
