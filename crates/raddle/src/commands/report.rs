//! `raddle report`: draws findings as a page, or writes them in another form.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use raddle_campaign::Leave;
use raddle_explore::{Replayer, changed_files};
use raddle_report::campaign_log::{self, Campaign};
use raddle_report::render::{Case, Format, Results, json};
use raddle_report::words::counted;
use raddle_report::{Finding, RecordingFile};
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
    after_help = "Examples:\n  raddle report bank-A-1c9e.raddle -o bank.html\n  raddle scan --json . > findings.json; raddle report findings.json\n  raddle report --form mail bank-A-1c9e.raddle\n  raddle explore --log bank.log -- ./bank; raddle report bank.log -o campaign.html"
)]
pub(crate) struct Report {
    /// What `--json` of another command has printed, a recording of `raddle explore`, or what `--log` of a campaign wrote.
    input: PathBuf,
    /// What to write: html, text, concise, json, sarif, junit, github, markdown or mail.
    #[arg(long, value_name = "FORM", default_value = "html", value_parser = report_options::form)]
    form: Format,
    /// The file to write, or `-` to print. Default: report.html for a page; other forms are printed.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Report {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        if let Some(campaigns) = self.campaigns()? {
            return self.draw(&campaigns);
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

    /// The campaigns of a log, if the input is one.
    fn campaigns(&self) -> anyhow::Result<Option<Vec<Campaign>>> {
        let path = self.input.display();
        let text = regular_file::read(&self.input, RECORDING_BYTES_MAX)
            .with_context(|| format!("cannot read {path}"))?;
        let text = String::from_utf8_lossy(&text);
        if !campaign_log::is_log(&text) {
            return Ok(None);
        }
        let campaigns = campaign_log::read(&text);
        Ok(Some(
            campaigns.with_context(|| format!("cannot use {path}"))?,
        ))
    }

    /// The page of campaigns.
    fn draw(&self, campaigns: &[Campaign]) -> Result<Code, Failure> {
        if self.form != Format::Html {
            return Err(anyhow!(
                "{} is the log of a campaign, which is drawn as a page only: leave out --form",
                self.input.display()
            )
            .into());
        }
        let name = self.input.display().to_string();
        let page = raddle_report::render::campaign::document(&name, campaigns);
        let output = self.output.clone().unwrap_or_else(|| "report.html".into());
        report_options::write(&output, &page)?;
        if output.as_os_str() != "-" {
            let count = counted(to_u64(campaigns.len()), "campaign");
            message::note(&format!("wrote {} with {count}", output.display()));
        }
        Ok(Code::Clean)
    }

    fn findings(&self) -> Result<Vec<Finding>, Failure> {
        let path = self.input.display();
        if kernel::is_recording(&self.input) {
            return Err(anyhow!(
                "{path} is a recording of a kernel: `raddle kernel replay --json {} > findings.json`, then `raddle report findings.json`",
                shell_word(&self.input)
            )
            .into());
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
