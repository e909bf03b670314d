//! All explored cases as one result: for people, and as figures for programs.

use std::time::Duration;

use raddle_report::render::{Case, Results};

use super::explored::{Explored, Vacuous};
use super::{ExploreOptions, kinds};
use crate::commands::kind;
use crate::report_options;

/// All cases, in every form.
pub(super) fn results(
    options: &ExploreOptions,
    program: &str,
    explored: &[Explored],
    is_single: bool,
) -> anyhow::Result<Results> {
    let counts: Vec<serde_json::Value> =
        explored.iter().map(|case| counts(options, case)).collect();
    let case = |case: &Explored| Case {
        name: case.name.clone(),
        milliseconds: u64::try_from(case.elapsed.as_millis()).unwrap_or(u64::MAX),
        findings: case.findings.clone(),
        skipped: case.vacuous.map(|reason| reason.to_string()),
        summary: case.summary(),
    };
    Ok(Results {
        suite: program.to_owned(),
        cases: explored.iter().map(case).collect(),
        rules: kind::rules(&kinds::KINDS),
        counts: match counts.as_slice() {
            [one] if is_single => one.clone(),
            all => serde_json::json!({ "tests": all }),
        },
        closing: closing(explored, is_single),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: report_options::project()?,
    })
}

/// What became of each case, for people.
fn closing(explored: &[Explored], is_single: bool) -> String {
    let mut text = String::new();
    for case in explored {
        if !is_single {
            let verdict = match (&case.vacuous, case.findings.len()) {
                (Some(_), _) => "nothing tested",
                (None, 0) if case.report.was_cancelled => "interrupted",
                (None, 0) => "ok",
                _ => "FAILED",
            };
            text.push_str(&format!("test {} ... {verdict}: ", case.name));
        }
        text.push_str(&case.summary());
        text.push('\n');
    }
    if !is_single {
        text.push_str(&totals(explored));
    }
    text
}

fn totals(explored: &[Explored]) -> String {
    let failed = explored.iter().filter(|case| !case.findings.is_empty());
    let vacuous = |why| {
        explored
            .iter()
            .filter(move |case| case.vacuous == Some(why))
    };
    let schedules: u64 = explored.iter().map(|case| case.report.schedules).sum();
    let mut text = format!(
        "{} tests explored in {schedules} schedules: {} failed, {} without threads",
        explored.len(),
        failed.count(),
        vacuous(Vacuous::NoThreads).count()
    );
    let not_begun = vacuous(Vacuous::NotBegun).count();
    if not_begun > 0 {
        text.push_str(&format!(
            ", {not_begun} ended before their first schedule was over"
        ));
    }
    text.push('\n');
    text
}

fn counts(options: &ExploreOptions, case: &Explored) -> serde_json::Value {
    let report = &case.report;
    let mut counts = serde_json::json!({
        "name": case.name,
        "findings": case.findings.len(),
        "vacuous": case.vacuous.is_some(),
        "schedules": report.schedules,
        "distinct": report.distinct,
        "failing": report.failing,
        "first_failing": report.first_failing,
        "contexts": report.contexts,
        "decisions": report.decisions,
        "points": report.points,
        "points_interrupted": report.interrupted,
        "shared_places": report.shared_places,
        "reads_from_classes": report.classes,
        "reads_from_pairs": report.pairs,
        "steps": report.steps,
        "interrupted": report.was_cancelled,
        "schedules_dropped": report.dropped,
        "findings_as_found": report.as_found,
    });
    if options.campaign.timing {
        let nanoseconds = |spent: Duration| u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX);
        counts["nanoseconds"] = serde_json::json!({
            "restore": nanoseconds(report.spent.restore),
            "run": nanoseconds(report.spent.run),
            "detect": nanoseconds(report.spent.detect),
            "plan": nanoseconds(report.spent.plan),
        });
    }
    counts
}
