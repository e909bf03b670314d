//! What exploring one test of a kernel came to: in words, and as figures for programs.

use std::collections::BTreeSet;
use std::time::Duration;

use raddle_campaign::Report;
use raddle_kernel::campaign::{KernelReport, LivenessRule, Target};
use raddle_kernel::recording::KernelRecording;
use raddle_kernel::world::Heuristics;
use raddle_linearize::Figures;
use raddle_report::words::counted;
use raddle_stdx::width::to_u64;

use crate::commands::campaign::summary::{all_interleavings, ending, timing};

/// What comparing with serial orders came to, for the end of a summary.
pub(super) fn compared_words(compared: Figures) -> String {
    let mut words = format!(
        "; {} histories of calls compared with serial orders, {} of which no serial order explains",
        compared.histories, compared.deviating
    );
    if compared.undecided > 0 {
        words.push_str(&format!(
            "; {} of them have too many serial orders to be decided",
            compared.undecided
        ));
    }
    words
}

/// Figures of one test for programs.
pub(super) fn figures(
    target: &Target,
    kernel: &KernelReport,
    elapsed: Duration,
) -> serde_json::Value {
    let report = &kernel.campaign;
    let total = report.spent.total().as_secs_f64().max(1e-9);
    let share = |part: Duration| part.as_secs_f64() / total;
    serde_json::json!({
        "test": target.test.as_ref().map(|test| &test.path),
        "schedules": report.schedules,
        "distinct": report.distinct,
        "failing": report.failing,
        "first_failing": report.first_failing,
        "decisions": report.decisions,
        "points": report.points,
        "shared_places": report.shared_places,
        "steps": report.steps,
        "baseline_steps": report.baseline_steps,
        "liveness": report.tally.counts,
        "liveness_schedules": report.tally.schedules,
        "liveness_schedules_any": report.tally.any,
        "liveness_percent": report.tally.percentages(report.schedules),
        "liveness_per_schedule": report.tally.per_schedule(report.schedules),
        "outside": report.tally.outside,
        "liveness_places": report.tally.places.each_ref().map(BTreeSet::len),
        "instructions": report.spent.instructions,
        "restored_pages": report.spent.pages,
        "restore_share": share(report.spent.restore),
        "detector_share": share(report.spent.detect),
        "race_groups": report.races.len(),
        "interrupted": report.was_cancelled,
        "schedules_dropped": report.dropped,
        "findings_as_found": report.as_found,
        "seconds": elapsed.as_secs_f64(),
        "fixed_threads": kernel.fixed_threads,
    })
}

/// How often SKI's heuristics spoke, as in its Tables 6.2 and 6.3.
fn ski_tables(report: &Report<KernelRecording, Heuristics>) -> String {
    let row = |figures: [f64; 5], unit: &str| {
        let names = ["H1", "H2", "H3", "H4", "H*"];
        let cells = names.iter().zip(figures);
        let cells: Vec<String> = cells
            .map(|(name, figure)| format!("{name} {figure:.2}{unit}"))
            .collect();
        cells.join(", ")
    };
    format!(
        "; SKI's heuristics spoke in this share of the schedules: {}; so often per schedule: {}",
        row(report.tally.percentages(report.schedules), " %"),
        row(report.tally.per_schedule(report.schedules), "")
    )
}

/// What was explored and what was not.
pub(super) fn summary(kernel: &KernelReport, liveness: LivenessRule, elapsed: Duration) -> String {
    let report = &kernel.campaign;
    let seconds = elapsed.as_secs_f64().max(0.001);
    let thousands = |count: u64| count as f64 / report.schedules.max(1) as f64 / 1000.0;
    let mut text = format!(
        "explored {} schedules ({} distinct) in {:.1} s ({:.0}/s), {} failing; {} communication points, up to {} decisions, {:.0} thousand instructions each ({:.0} with the checks); {}",
        report.schedules,
        report.distinct,
        elapsed.as_secs_f64(),
        report.schedules as f64 / seconds,
        report.failing,
        report.points,
        report.decisions,
        thousands(report.steps),
        thousands(report.spent.instructions),
        counted(
            to_u64(report.findings.len() + report.races.len()),
            "finding"
        ),
    );
    let [halted, paused, looping, starving] = report.tally.counts;
    text.push_str(&format!(
        "; passed over: {halted} halted, {paused} paused, {looping} looping, {starving} starving"
    ));
    if liveness == LivenessRule::Ski {
        text.push_str(&ski_tables(report));
    }
    if report.tally.outside > 0 {
        text.push_str(&format!(
            "; {} somebody outside of --contexts went on because nobody else could",
            counted(report.tally.outside, "time")
        ));
    }
    if !report.races.is_empty() {
        let groups = counted(to_u64(report.races.len()), "group");
        text.push_str(&format!(", among the findings {groups} of data races"));
    }
    if report.unexplained > 0 {
        text.push_str(&format!(
            "; {} further kinds of failures are not shown",
            report.unexplained
        ));
    }
    let explored = all_interleavings(report, report.findings.len());
    text.push_str(&explored.unwrap_or_default());
    ending(report, &mut text);
    if let Some((what, count)) = &report.unsupported {
        text.push_str(&format!(
            "; {count} schedules ended at something not supported: {what}"
        ));
    }
    if report.decisions == 0 {
        text.push_str("; nothing was interleaved: the threads never met");
    }
    timing(&report.spent, &mut text);
    text
}
