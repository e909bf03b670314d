//! `raddle report`: draws findings as a page, or writes them in another form.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use raddle_campaign::Leave;
use raddle_explore::{Replayer, changed_files};
use raddle_report::campaign_log::{self, Campaign};
use raddle_report::render::{self, Case, Format, Results, json};
use raddle_report::words::counted;
use raddle_report::{Finding, RecordingFile, recovery_log};
use raddle_stdx::regular_file;
use raddle_stdx::width::to_u64;
use raddle_trace::{Enveloped, Recording};

use super::explore::{oracle, start_failure};
use super::{kernel, replay};
use crate::exit::{Code, Failure};
use crate::keep::{RECORDING_BYTES_MAX, shell_word};
use crate::{message, report_options};

/// Draw findings as a page for browsers: one file, which needs nothing else. Or write them as text for a mailing list,
/// an issue tracker, a build server.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle report bank-A-1c9e.raddle -o bank.html\n  raddle scan --json . > findings.json; raddle report findings.json\n  raddle report --form mail bank-A-1c9e.raddle\n  raddle explore --log bank.log -- ./bank; raddle report bank.log -o campaign.html\n  raddle report /var/log/server.log -o survived.html"
)]
pub(crate) struct Report {
    /// What `--json` of another command has printed, a recording, what `--log` of a campaign wrote, or the log of a
    /// hardened program.
    input: PathBuf,
    /// What to write: html, text, concise, json, sarif, junit, github, markdown or mail.
    #[arg(long, value_name = "FORM", default_value = "html", value_parser = report_options::form)]
    form: Format,
    /// The file to write, or `-` to print. Default: report.html for a page; other forms are printed.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What is drawn as a page of its own: no findings, but how something went.
enum Course {
    Campaigns(Vec<Campaign>),
    /// What a hardened program survived.
    Recoveries(recovery_log::Log),
}

impl Report {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        if let Some(course) = self.course()? {
            return self.draw(&course);
        }
        let findings = self.findings()?;
        let count = to_u64(findings.len());
        let results = Results {
            suite: self.input.display().to_string(),
            cases: vec![Case {
                name: self.input.display().to_string(),
                milliseconds: 0,
                findings,
                skipped: None,
                summary: String::new(),
            }],
            rules: Vec::new(),
            counts: serde_json::Value::Null,
            closing: counted(count, "finding") + "\n",
            version: env!("CARGO_PKG_VERSION").to_owned(),
            project: report_options::project()?,
        };
        let style = raddle_report::render::terminal::Style::PLAIN;
        let text = self.form.render(&results, style)?;
        let usual = if self.form == Format::Html {
            "report.html"
        } else {
            "-"
        };
        let output = self.output.unwrap_or_else(|| usual.into());
        report_options::write(&output, &text)?;
        if output.as_os_str() != "-" {
            let count = counted(count, "finding");
            message::note(&format!("wrote {} with {count}", output.display()));
        }
        Ok(Code::Clean)
    }

    /// How a campaign or a hardened program went, if the input is the log of one.
    fn course(&self) -> anyhow::Result<Option<Course>> {
        if kernel::is_recording(&self.input) {
            // It may be the folder of a bundle.
            return Ok(None);
        }
        let path = self.input.display();
        let text = regular_file::read(&self.input, RECORDING_BYTES_MAX)
            .with_context(|| format!("cannot read {path}"))?;
        let text = String::from_utf8_lossy(&text);
        if campaign_log::is_log(&text) {
            let campaigns = campaign_log::read(&text);
            let campaigns = campaigns.with_context(|| format!("cannot use {path}"))?;
            return Ok(Some(Course::Campaigns(campaigns)));
        }
        // Findings and recordings are JSON, and may hold any text.
        let is_json = text.trim_start().starts_with(['{', '[']) || Recording::is_kind_of(&text);
        if is_json || !recovery_log::is_log(&text) {
            return Ok(None);
        }
        Ok(Some(Course::Recoveries(recovery_log::read(&text))))
    }

    /// The page of a course.
    fn draw(&self, course: &Course) -> Result<Code, Failure> {
        let name = self.input.display().to_string();
        if self.form != Format::Html {
            return Err(anyhow!(
                "{name} is a log, which is drawn as a page only: leave out --form"
            )
            .into());
        }
        let (page, with) = match course {
            Course::Campaigns(campaigns) => (
                render::campaign::document(&name, campaigns),
                counted(to_u64(campaigns.len()), "campaign"),
            ),
            Course::Recoveries(log) => (
                render::recoveries::document(&name, log),
                counted(to_u64(log.sites.len()), "place"),
            ),
        };
        let output = self.output.clone().unwrap_or_else(|| "report.html".into());
        report_options::write(&output, &page)?;
        if output.as_os_str() != "-" {
            message::note(&format!("wrote {} with {with}", output.display()));
        }
        Ok(Code::Clean)
    }

    fn findings(&self) -> Result<Vec<Finding>, Failure> {
        let path = self.input.display();
        if kernel::is_recording(&self.input) {
            return Ok(vec![kernel::explained(&self.input)?]);
        }
        let text = regular_file::read(&self.input, RECORDING_BYTES_MAX)
            .with_context(|| format!("cannot read {path}"))?;
        let text = String::from_utf8_lossy(&text);
        if Recording::is_kind_of(&text) {
            return Ok(vec![explained(&self.input)?]);
        }
        let findings = json::read(&text).with_context(|| format!("cannot use {path}"))?;
        Ok(findings)
    }
}

/// Replays a recording and explains its failure.
pub(super) fn explained(path: &Path) -> Result<Finding, Failure> {
    let shown = path.display();
    let recording = replay::read(path)?;
    if recording.ordinary.is_some() {
        return Err(anyhow!(
            "{shown} is the recording of an ordinary run, which nobody judged: there is no finding to tell; `raddle replay {word}` has the run again, `--gdb 1234` goes through it, and `raddle explore {word}` looks for what can go wrong in it",
            word = shell_word(path)
        )
        .into());
    }
    replay::check_files(path, &recording, &changed_files(&recording))?;
    let judge = oracle::judge(recording.expected.output.as_deref(), None);
    let mut replayer = Replayer::start(&recording, judge).map_err(start_failure)?;
    let replayed = replayer.run();
    if !replayed.same_run {
        return Err(anyhow!(
            "the replay of {shown} is not the recorded run; `raddle replay` says where it leaves it"
        )
        .into());
    }
    let mut finding = replayer.explain(Leave::endless()).ok_or_else(|| {
        anyhow!(
            "whether {shown} is wrong only its oracle can tell: explore with `--report html=FILE`"
        )
    })?;
    finding.recording = Some(RecordingFile {
        file: shown.to_string(),
        command: format!("raddle replay {}", shell_word(path)),
    });
    Ok(finding)
}
