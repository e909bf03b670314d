//! Failures as they were found: on disk before anything else is done with them.

use raddle_campaign::as_found_note;
use raddle_report::Finding;
use raddle_report::finding::{Confidence, Severity};

use super::Found;
use super::run::{Outcome, Rules};
use super::session::Session;

/// A failure that was neither replayed nor made small nor explained.
pub(super) fn as_found(
    session: &mut Session<'_>,
    failing: &Outcome,
    rules: Rules,
    seed: u64,
) -> Found {
    let failure = failing.failure.as_ref();
    let failure = failure.expect("only failing runs are kept");
    let digests = failing.digests;
    let digests = digests.expect("the first failing run of a kind has its digests");
    let test = session.target.test.as_ref();
    let finding = Finding {
        kind: failure.rule().to_owned(),
        severity: Severity::Error,
        confidence: Confidence::Predicted,
        title: failure.title(test),
        objects: test.iter().map(|test| test.path.clone()).collect(),
        steps: Vec::new(),
        why: failure.why().to_owned(),
        notes: vec![as_found_note(
            failing.index,
            failing.drive.schedule.len(),
            seed,
        )],
        fingerprint: failure.fingerprint(),
        replay: None,
    };
    Found {
        finding,
        schedule: failing.drive.schedule.clone(),
        rules,
        start_digest: session.start_digest(),
        digests,
    }
}
