//! What was explored, and what was not, in one line.

use std::time::Duration;

use raddle_explore::Report;
use raddle_report::finding::{Confidence, Severity};

pub(super) fn summary(report: &Report, findings: usize, elapsed: Duration) -> String {
    let rate = u128::from(report.schedules) * 1000 / elapsed.as_millis().max(1);
    let mut text = format!(
        "explored {} schedules ({} distinct, {} reads-from classes, {rate}/s) of {} threads with up to {} decisions each, {} communication points on {} shared places; {findings} finding{}, {} schedules failed",
        report.schedules,
        report.distinct,
        report.classes,
        report.contexts,
        report.decisions,
        report.points,
        report.shared_places,
        if findings == 1 { "" } else { "s" },
        report.failing,
    );
    if report.unexplained > 0 {
        text.push_str(&format!(
            "; {} more failures not explained",
            report.unexplained
        ));
    }
    races(report, &mut text);
    if report.single_delays_done {
        text.push_str("; every single delay was tried");
    } else {
        text.push_str("; not every single delay was tried");
    }
    if report.was_cancelled {
        text.push_str("; interrupted before the schedules were used up");
    } else if report.was_stopped {
        text.push_str("; stopped by the time limit");
    }
    if let Some((what, count)) = &report.unsupported {
        text.push_str(&format!("; {count} schedules ended early: {what}"));
    }
    text
}

fn races(report: &Report, text: &mut String) {
    let confirmed = |confidence| confidence == Confidence::Confirmed;
    let races = &report.races;
    let doubtful = races
        .iter()
        .filter(|race| !confirmed(race.confidence))
        .count();
    let harmless = races
        .iter()
        .filter(|race| confirmed(race.confidence) && race.severity == Severity::Note)
        .count();
    if doubtful > 0 {
        text.push_str(&format!(
            "; {doubtful} possible data races inside libraries whose synchronisation is not known"
        ));
    }
    if harmless > 0 {
        text.push_str(&format!(
            "; {harmless} data races that look harmless (--races lists them)"
        ));
    }
}
