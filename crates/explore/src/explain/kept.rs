//! Failures as they were found: on disk before anything else is done with them.

use raddle_campaign::{Failures, Kept, as_found_note};
use raddle_report::Finding;
use raddle_report::finding::{Confidence, Severity};
use raddle_trace::Recording;

use super::{ending, recording};
use crate::campaign::{News, Options};
use crate::judge::Rules;
use crate::schedule_run::Outcome;
use crate::session::Session;

/// Keeps the failures that came since the last time, and tells of them.
pub(crate) fn keep_new(
    kept: &mut Kept<(Finding, Recording)>,
    failures: &Failures<Outcome>,
    session: &Session,
    (rules, options): (&Rules, &Options),
    news: &mut dyn FnMut(News<'_>),
) {
    kept.add_new(
        failures,
        options.findings_max,
        &mut |outcome| as_found(session, outcome, rules, options),
        &mut |(finding, recording)| news(News::Failing { finding, recording }),
    );
}

/// A failure that was neither replayed nor made small nor explained.
fn as_found(
    session: &Session,
    failing: &Outcome,
    rules: &Rules,
    options: &Options,
) -> (Finding, Recording) {
    let failure = failing.failure.as_ref();
    let failure = failure.expect("only failing runs are kept");
    let digests = failing.digests;
    let digests = digests.expect("the first failing run of a kind has its digests");
    let finding = Finding {
        kind: failure.kind().into(),
        severity: Severity::Error,
        confidence: Confidence::Predicted,
        title: ending::title(failure),
        objects: Vec::new(),
        steps: Vec::new(),
        why: String::new(),
        notes: vec![as_found_note(
            failing.index,
            failing.drive.schedule.len(),
            options.seed,
        )],
        fingerprint: failure.fingerprint(),
        replay: None,
    };
    let recording = recording(session, &finding, failing, digests, rules, options);
    (finding, recording)
}
