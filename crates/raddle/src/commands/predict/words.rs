//! What was predicted, in words and in figures.

use std::collections::BTreeMap;
use std::time::Duration;

use raddle_campaign::Subject;
use raddle_predict::{Outcome, Predicted, Predictions};
use raddle_report::words::counted;
use raddle_stdx::width::to_u64;

use crate::commands::campaign::summary::ending;

/// What was predicted that led to a failure.
pub(super) fn reason(predicted: &[Predicted], fingerprint: &str) -> Option<String> {
    let led = predicted
        .iter()
        .find(|predicted| predicted.fingerprint.as_deref() == Some(fingerprint))?;
    Some(format!("predicted: {}", told(led)))
}

/// A prediction in a line.
fn told(predicted: &Predicted) -> String {
    let places = predicted.places.iter();
    let places = places.map(|(place, role)| format!("{role} {place}"));
    let kind = predicted.target.kind;
    let case = kind.case().map(|case| format!(" {case}"));
    format!(
        "{}{}, {}: {} in {}",
        kind.name(),
        case.unwrap_or_default(),
        places.collect::<Vec<_>>().join(", "),
        word(predicted.outcome),
        counted(predicted.attempts, "attempt")
    )
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Confirmed => "confirmed",
        Outcome::Benign => "benign",
        Outcome::Blocked => "blocked",
        Outcome::NotReached => "not reached",
        Outcome::Untried => "untried",
    }
}

/// What was predicted and not confirmed, line by line.
pub(super) fn open(predicted: &[Predicted]) -> String {
    let open = predicted.iter();
    let open = open.filter(|predicted| predicted.outcome != Outcome::Confirmed);
    open.map(|predicted| format!("{}\n", told(predicted)))
        .collect()
}

/// The order that the program makes by itself, line by line.
pub(super) fn synchronisation<S: Subject>(predictions: &Predictions<S>) -> String {
    let loops = predictions.waiting.iter();
    loops
        .map(|(read, write)| format!("waits in a loop: {read}, ended by {write}\n"))
        .collect()
}

/// How many targets came to what.
fn outcomes(predicted: &[Predicted]) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for predicted in predicted {
        *counts.entry(word(predicted.outcome)).or_default() += 1;
    }
    counts
}

/// What was looked at and what was not.
pub(super) fn summary<S: Subject>(predictions: &Predictions<S>, elapsed: Duration) -> String {
    let report = &predictions.report;
    let outcomes: Vec<String> = outcomes(&predictions.predicted)
        .iter()
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    let mut text = format!(
        "looked at {} accesses of {} contexts in {}; {}{}{}; {} in {:.1} s",
        predictions.accesses,
        report.contexts,
        counted(predictions.profiled, "run"),
        counted(to_u64(predictions.predicted.len()), "prediction"),
        if outcomes.is_empty() { "" } else { ": " },
        outcomes.join(", "),
        counted(to_u64(report.findings.len()), "finding"),
        elapsed.as_secs_f64(),
    );
    ending(report, &mut text);
    text
}

/// The same for programs; `lists_all` also what was not confirmed.
pub(super) fn figures<S: Subject>(
    predictions: &Predictions<S>,
    lists_all: bool,
    elapsed: Duration,
) -> serde_json::Value {
    let listed = predictions.predicted.iter();
    let listed = listed.filter(|predicted| lists_all || predicted.outcome == Outcome::Confirmed);
    let listed = listed.map(|predicted| {
        let places = predicted.places.iter();
        let places =
            places.map(|(place, role)| serde_json::json!({ "role": role, "place": place }));
        serde_json::json!({
            "kind": predicted.target.kind.name(),
            "case": predicted.target.kind.case(),
            "outcome": word(predicted.outcome),
            "attempts": predicted.attempts,
            "local_gap": predicted.target.gap,
            "places": places.collect::<Vec<_>>(),
            "fingerprint": predicted.fingerprint,
        })
    });
    let waiting = predictions.waiting.iter();
    let waiting =
        waiting.map(|(read, write)| serde_json::json!({ "read": read, "ended_by": write }));
    serde_json::json!({
        "accesses": predictions.accesses,
        "profile_runs": predictions.profiled,
        "passing_runs": predictions.passing,
        "forced_runs": predictions.forced,
        "excluded": predictions.excluded,
        "waiting_loops": waiting.collect::<Vec<_>>(),
        "failure_sites": predictions.failure_sites,
        "critical_reads": predictions.critical_reads,
        "targets": outcomes(&predictions.predicted),
        "listed": listed.collect::<Vec<_>>(),
        "seconds": elapsed.as_secs_f64(),
    })
}
