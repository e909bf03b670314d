//! What was explored, and what was not, in one line.

use std::time::Duration;

use raddle_explore::ProgramReport;
use raddle_report::finding::{Confidence, Severity};
use raddle_report::words::counted;
use raddle_stdx::width::to_u64;

use crate::commands::campaign::summary::{all_interleavings, ending, timing};

pub(super) fn summary(report: &ProgramReport, findings: usize, elapsed: Duration) -> String {
    let rate = u128::from(report.schedules) * 1000 / elapsed.as_millis().max(1);
    let mut text = format!(
        "explored {} schedules ({} distinct, {} reads-from classes, {rate}/s) of {} threads with up to {} decisions each, interrupted at {} of {} communication points on {} shared places; {}, {} schedules failed",
        report.schedules,
        report.distinct,
        report.classes,
        report.contexts,
        report.decisions,
        report.interrupted,
        report.points,
        report.shared_places,
        counted(to_u64(findings), "finding"),
        report.failing,
    );
    if report.unexplained > 0 {
        text.push_str(&format!(
            "; {} more failures not explained",
            report.unexplained
        ));
    }
    races(report, &mut text);
    text.push_str(&match all_interleavings(report, findings) {
        Some(words) => words,
        None if report.single_delays_done => "; every single delay was tried".into(),
        None => "; not every single delay was tried".into(),
    });
    ending(report, &mut text);
    if let Some((what, count)) = &report.unsupported {
        text.push_str(&format!("; {count} schedules ended early: {what}"));
    }
    timing(&report.spent, &mut text);
    text
}

fn races(report: &ProgramReport, text: &mut String) {
    let confirmed = |confidence| confidence == Confidence::Confirmed;
    let races = &report.races;
    let doubtful = races
        .iter()
        .filter(|race| !confirmed(race.finding.confidence))
        .count();
    let harmless = races
        .iter()
        .map(|race| &race.finding)
        .filter(|race| confirmed(race.confidence) && race.severity == Severity::Note)
        .count();
    if doubtful > 0 {
        text.push_str(&format!(
            "; {doubtful} possible data races where synchronisation is not known (libraries, code without debug information)"
        ));
    }
    if harmless > 0 {
        text.push_str(&format!(
            "; {harmless} data races that look harmless (--races lists them)"
        ));
    }
}
