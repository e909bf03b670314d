//! What campaigns mean for the exit status: the same for programs and kernels.

use anyhow::anyhow;
use raddle_campaign::{Found, Report};
use raddle_report::Finding;
use raddle_report::finding::{Confidence, Severity};
use raddle_world::Unsupported;

use crate::exit::{Code, Failure};
use crate::message;

/// What one or several campaigns came to.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    has_findings: bool,
    is_interrupted: bool,
    /// Something that ended every schedule of a campaign.
    unsupported: Option<Box<Unsupported>>,
    campaigns: u64,
    vacuous: u64,
}

impl Verdict {
    /// Takes a campaign into account.
    pub(crate) fn add<R, T>(
        &mut self,
        report: &Report<R, T>,
        counts_races: bool,
        is_vacuous: bool,
    ) {
        let has_races = counts_races && report.races.iter().any(is_certain);
        self.has_findings |= !report.findings.is_empty() || has_races;
        self.is_interrupted |= report.was_cancelled;
        if let Some((what, count)) = &report.unsupported
            && *count == report.schedules
        {
            self.unsupported.get_or_insert_with(|| what.clone());
        }
        self.campaigns += 1;
        self.vacuous += u64::from(is_vacuous);
    }

    /// Ctrl-C came before the next campaign began.
    pub(crate) fn interrupted(&mut self) {
        self.is_interrupted = true;
    }

    /// The exit status.
    ///
    /// # Errors
    /// If nothing could be explored to its end.
    pub(crate) fn code(self) -> Result<Code, Failure> {
        if self.has_findings {
            return Ok(Code::Findings);
        }
        if self.is_interrupted {
            return Ok(Code::Interrupted);
        }
        if let Some(what) = self.unsupported {
            return Err(Failure {
                code: Code::Unsupported,
                error: anyhow!("every schedule ended at something unsupported: {what}"),
            });
        }
        if self.vacuous == self.campaigns {
            message::note("nothing was interleaved, so nothing was tested");
            return Ok(Code::Vacuous);
        }
        Ok(Code::Clean)
    }
}

/// Whether a race counts as a finding: it was run again, and does not look harmless.
fn is_certain<R>(race: &Found<Option<R>>) -> bool {
    let Found { finding, recording } = race;
    recording.is_some() && is_shown(finding, false)
}

/// Whether a race is worth telling.
pub(crate) fn is_shown(race: &Finding, even_harmless: bool) -> bool {
    race.confidence == Confidence::Confirmed && (even_harmless || race.severity > Severity::Note)
}
