//! Failures as they were found: on disk before anything else is done with them.

use raddle_campaign::{Found, Symptom as _};
use raddle_detect::Failure;
use raddle_report::Finding;
use raddle_report::finding::{Confidence, Severity};
use raddle_stdx::Digest;
use raddle_trace::Recording;

use super::{ending, recording};
use crate::judge::Rules;
use crate::libtest;
use crate::schedule_run::Outcome;
use crate::session::Session;

/// A failure that was neither replayed nor made small nor explained.
pub(crate) fn as_found(session: &Session, failing: &Outcome, rules: &Rules) -> Found<Recording> {
    let failure = failing.failure.as_ref();
    let failure = failure.expect("only failing runs are kept");
    let digests = failing.digests;
    let digests = digests.expect("the first failing run of a kind has its digests");
    let finding = Finding {
        title: ending::title(failure),
        fingerprint: libtest::named(
            &session.about.inputs.arguments,
            name(failure, failing.index),
        ),
        ..Finding::new(failure.kind(), Severity::Error, Confidence::Predicted)
    };
    let recording = Recording {
        preemptions: failing.switches,
        fingerprint: failure.fingerprint(),
        ..recording(session, &finding, failing.kept_schedule(), digests, rules)
    };
    Found { finding, recording }
}

/// The name of a failure of which nothing is known yet. Where it says nothing of where the bug is, there may be several
/// that look the same.
fn name(failure: &Failure, schedule: u64) -> String {
    let fingerprint = failure.fingerprint();
    if !failure.is_vague() {
        return fingerprint;
    }
    let mut digest = Digest::default();
    digest.bytes(fingerprint.as_bytes());
    digest.word(schedule);
    format!("{:016x}", digest.value())
}
