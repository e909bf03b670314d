//! The line that tells how far a campaign is.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use raddle_campaign::{Found, News, Phase, Progress};
use raddle_report::{Finding, RecordingFile};

use crate::message;
use crate::watch::{Stage, StageNow};

/// How often the line changes on a terminal.
const INTERVAL: Duration = Duration::from_millis(100);
/// When it is first written elsewhere; then after twice that time, and so on.
const FIRST_NOTE: Duration = Duration::from_secs(2);

/// What bounds a campaign.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// `u64::MAX` for none.
    pub(crate) schedules: u64,
    pub(crate) time: Duration,
}

/// A line that changes on a terminal, or one now and then where it would only fill a log.
pub(crate) struct Line {
    bar: ProgressBar,
    now: Arc<Mutex<Progress>>,
    failures: u64,
    is_interrupted: bool,
    /// Its end ends the thread that writes.
    _writes: Sender<()>,
}

impl Line {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = if is_terminal {
            ProgressBar::new_spinner()
        } else {
            ProgressBar::hidden()
        };
        let style = ProgressStyle::with_template("{spinner} {wide_msg}");
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        let now = Arc::new(Mutex::new(Progress::default()));
        let (writes, over) = channel::<()>();
        let (shown, progress) = (bar.clone(), Arc::clone(&now));
        std::thread::spawn(move || {
            let begun = Instant::now();
            let mut wait = if is_terminal { INTERVAL } else { FIRST_NOTE };
            loop {
                let progress = *progress.lock().unwrap_or_else(PoisonError::into_inner);
                let text = line(progress, bounds, begun.elapsed());
                if is_terminal {
                    shown.set_message(text);
                    shown.tick();
                } else if begun.elapsed() >= FIRST_NOTE {
                    message::note(&text);
                    wait = begun.elapsed();
                }
                if over.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        Self {
            bar,
            now,
            failures: 0,
            is_interrupted: false,
            _writes: writes,
        }
    }

    fn show(&mut self, progress: Progress) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = progress;
        if progress.failures > self.failures {
            self.failures = progress.failures;
            self.note(&failures_so_far(progress));
        }
    }

    /// Tells of a failure at once.
    /// Shows what a campaign tells, and has a failure kept as soon as it is seen.
    pub(crate) fn hear<R>(
        &mut self,
        news: News<'_, R>,
        stage: &StageNow,
        keep: impl FnOnce(&Finding, &R) -> anyhow::Result<RecordingFile>,
    ) {
        match news {
            News::Progress(progress) => {
                self.show(progress);
                // The time that is left depends on how far a campaign is.
                if let Phase::Explaining { number, of } = progress.phase {
                    stage.set(Stage::Explaining { number, of });
                }
            }
            News::Failing(Found { finding, recording }) => {
                stage.set(Stage::Failing);
                let kept = keep(finding, recording);
                self.found(&finding.title, kept.as_ref().map(|kept| &kept.command));
            }
        }
    }

    fn found(&mut self, title: &str, replay: Result<&String, &anyhow::Error>) {
        self.bar.suspend(|| message::found(title, replay));
    }

    /// Says once that an end was asked for, and what is still done.
    pub(crate) fn interrupted(&mut self) {
        if !self.is_interrupted {
            self.is_interrupted = true;
            self.note("interrupted: explaining what was found so far; Ctrl-C again ends at once");
        }
    }

    fn note(&self, text: &str) {
        self.bar.suspend(|| message::note(text));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn line(progress: Progress, bounds: Bounds, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match progress.phase {
        Phase::Starting => format!("running to where schedules begin, {seconds} s"),
        Phase::Alone => format!("running once without interruptions, {seconds} s"),
        Phase::Exploring => exploring(progress, bounds, elapsed),
        Phase::Explaining { number, of } => {
            format!("explaining failure {number} of {of}, {seconds} s")
        }
    }
}

fn exploring(progress: Progress, bounds: Bounds, elapsed: Duration) -> String {
    let Progress {
        schedules,
        distinct,
        failures,
        points,
        interrupted,
        ..
    } = progress;
    let millis = elapsed.as_millis().max(1);
    let rate = u128::from(schedules) * 1000 / millis;
    let by_time = bounds.time.saturating_sub(elapsed).as_secs();
    let left = u128::from(bounds.schedules.saturating_sub(schedules));
    let by_schedules = (left * millis / u128::from(schedules.max(1))).div_ceil(1000);
    let eta = u128::from(by_time).min(by_schedules);
    let failures = match failures {
        1 => "1 failure".to_owned(),
        count => format!("{count} failures"),
    };
    format!(
        "{schedules} schedules, {rate}/s, eta {eta} s, {distinct} distinct, {failures}, {interrupted} of {points} points"
    )
}

/// A user who waits, or reads a log later, learns of a failure when it happens.
fn failures_so_far(progress: Progress) -> String {
    let failures = match progress.failures {
        1 => "1 failure".to_owned(),
        count => format!("{count} different failures"),
    };
    let first = progress.first_failing.map_or_else(String::new, |first| {
        format!(", the first in schedule {first}")
    });
    format!("{failures} after {} schedules{first}", progress.schedules)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRESS: Progress = Progress {
        phase: Phase::Exploring,
        generations: 1000,
        schedules: 1_200_000,
        distinct: 350_000,
        failures: 12,
        first_failing: Some(77),
        points: 1500,
        interrupted: 1400,
        classes: 0,
    };

    #[test]
    fn even_a_long_campaign_fits_into_a_line() {
        let bounds = Bounds {
            schedules: 10_000_000,
            time: Duration::from_secs(86_400),
        };
        let text = line(PROGRESS, bounds, Duration::from_secs(400));
        assert_eq!(
            text,
            "1200000 schedules, 3000/s, eta 2934 s, 350000 distinct, 12 failures, 1400 of 1500 points"
        );
        assert!(text.len() < 100);
    }

    #[test]
    fn the_end_comes_with_whatever_is_used_up_first() {
        let eta = |schedules, time| {
            let time = Duration::from_secs(time);
            let text = line(
                PROGRESS,
                Bounds { schedules, time },
                Duration::from_secs(400),
            );
            let parts: Vec<&str> = text.split(", ").collect();
            parts[2].to_owned()
        };
        assert_eq!(eta(u64::MAX, 460), "eta 60 s");
        assert_eq!(eta(1_203_000, 460), "eta 1 s");
        assert_eq!(eta(1_200_000, 300), "eta 0 s");
    }
}
