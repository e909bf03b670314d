//! The options of a campaign, whatever is explored.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use raddle_campaign::{Algorithm, Cancel, Clock, Focus, Habits, Options};

use crate::watch::Budget;
use crate::{diff_lines, units};

/// How to explore.
#[derive(Debug, Args)]
pub(crate) struct CampaignOptions {
    /// Schedules to run at most. Default: 10000, or as many as fit if --time or --until-found is given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) schedules: Option<u64>,
    /// Time at most, explanations included: seconds, or 90s, 5m, 1h [default: 60]; the generation of schedules that is under way then does not
    /// count, but what it found is reported.
    #[arg(long, value_name = "TIME", value_parser = units::seconds)]
    time: Option<u64>,
    /// The part of --time that is kept for making findings small and explaining them; default: a quarter. A finding for
    /// which no time is left is reported as it was found, with a recording.
    #[arg(long, value_name = "TIME", value_parser = units::seconds)]
    explain_time: Option<u64>,
    /// Stop after the first generation of schedules that has a failure.
    #[arg(long)]
    until_found: bool,
    /// Seed of the campaign.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Workers; results do not depend on it. Default: one per core.
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// `portfolio`, or one algorithm, such as delay, pct2, pct3, random, pos, urw, surw; a wrong name lists them.
    #[arg(long, value_name = "NAME", default_value = "portfolio")]
    scheduler: String,
    /// Switch contexts only in this function or line; may be given several times.
    #[arg(long, value_name = "FUNCTION|FILE:LINE")]
    focus: Vec<String>,
    /// Switch contexts only in lines that changed since this revision (as in `git diff REV`).
    #[arg(long, value_name = "REV")]
    diff: Option<String>,
    /// Switch contexts only in the functions that this line of the log of a hardened program names; `raddle predict`
    /// predicts only what they take part in. May be given several times.
    #[arg(long, value_name = "LOG LINE|FILE:LINE")]
    site: Vec<String>,
    /// Measure how the time of the schedules divides between restoring the snapshot, running, detectors and planning.
    #[arg(long)]
    pub(crate) timing: bool,
    /// Let data races alone, without a failure, not decide the exit status.
    #[arg(long)]
    pub(crate) no_fail_on_races: bool,
    /// Folder for recordings.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) output: PathBuf,
}

const SCHEDULES_DEFAULT: u64 = 10_000;
/// Seconds.
const TIME_DEFAULT: u64 = 60;
/// Different failures that are minimised and explained.
const FINDINGS_MAX: usize = 10;

impl CampaignOptions {
    /// The options of one campaign.
    ///
    /// # Errors
    /// If there is no scheduler of that name.
    pub(crate) fn campaign(&self, habits: &Habits, cancel: &Cancel) -> anyhow::Result<Options> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let schedules = self.schedules();
        Ok(Options {
            schedules,
            until_found: self.until_found,
            workers: habits.useful_workers(self.jobs.unwrap_or(cores), schedules),
            seed: self.seed,
            algorithm: Algorithm::by_name(&self.scheduler)?,
            races: false,
            findings_max: FINDINGS_MAX,
            varies_time: false,
            every_instruction: false,
            faults: Vec::new(),
            coverage: false,
            cancel: cancel.clone(),
            clock: self.timing.then_some(Instant::now as Clock),
        })
    }

    pub(crate) fn schedules(&self) -> u64 {
        let is_timed = self.time.is_some() || self.until_found;
        match self.schedules {
            Some(schedules) => schedules,
            None if is_timed => u64::MAX,
            None => SCHEDULES_DEFAULT,
        }
    }

    /// The time of one campaign.
    pub(crate) fn budget(&self) -> Budget {
        Budget::of_seconds(self.time.unwrap_or(TIME_DEFAULT), self.explain_time)
    }

    pub(crate) fn has_focus(&self) -> bool {
        !self.focus.is_empty() || !self.site.is_empty() || self.diff.is_some()
    }

    /// The code in which to switch; empty for everywhere.
    ///
    /// # Errors
    /// If git cannot tell what changed, or a site is none.
    pub(crate) fn focus(&self) -> anyhow::Result<Vec<Focus>> {
        let mut focus: Vec<Focus> = Vec::new();
        for text in &self.focus {
            let Ok(place) = text.parse();
            focus.push(place);
        }
        for text in &self.site {
            focus.extend(raddle_campaign::of_site(text)?);
        }
        if let Some(revision) = &self.diff {
            focus.extend(diff_lines::changed_since(revision)?);
        }
        Ok(focus)
    }
}
