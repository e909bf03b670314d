//! Failures as they were found: on disk before anything else is done with them.

use raddle_campaign::Found;
use raddle_report::Finding;
use raddle_report::finding::{Confidence, Severity};

use super::run::{Outcome, Rules};
use super::session::{Recordable, Session};
use crate::recording::KernelRecording;

/// A failure that was neither replayed nor made small nor explained.
pub(super) fn as_found(
    session: &mut Session<'_>,
    failing: &Outcome,
    rules: Rules,
) -> Found<KernelRecording> {
    let failure = failing.failure.as_ref();
    let failure = failure.expect("only failing runs are kept");
    let digests = failing.digests;
    let digests = digests.expect("the first failing run of a kind has its digests");
    let target = session.target;
    let test = target.test.as_ref();
    let finding = Finding {
        title: failure.title(test),
        objects: test.iter().map(|test| test.path.clone()).collect(),
        why: failure.why(session.serial_runs(&rules)),
        fingerprint: failure.fingerprint(),
        serial: failure.serial(),
        ..Finding::new(failure.rule(), Severity::Error, Confidence::Predicted)
    };
    let run = Recordable {
        schedule: failing.kept_schedule(),
        rules,
        start_digest: session.start_digest(),
        digests,
    };
    let recording = target.recording(&finding, run);
    Found { finding, recording }
}
