//! What every summary of a campaign says.

use std::time::Duration;

use raddle_campaign::{Report, Spent};

use crate::watch::cut_short;

/// Why it ended before the schedules were used up, if it did.
pub(crate) fn ending<R, T>(report: &Report<R, T>, text: &mut String) {
    if report.was_cancelled {
        text.push_str("; interrupted before the schedules were used up");
    } else if report.was_stopped {
        text.push_str("; stopped by the time limit");
    }
    text.push_str(&cut_short(report.dropped, report.as_found));
}

/// Where the time went, if it was measured.
pub(crate) fn timing(spent: &Spent, text: &mut String) {
    let total = spent.total().as_nanos();
    if total == 0 {
        return;
    }
    let percent = |part: Duration| part.as_nanos() * 100 / total;
    text.push_str(&format!(
        "; time: {} % restoring, {} % running, {} % in detectors, {} % planning",
        percent(spent.restore),
        percent(spent.run),
        percent(spent.detect),
        percent(spent.plan),
    ));
}

/// How many interleavings were explored, if all were to be: that all were is a proof or is not said.
pub(crate) fn all_interleavings<R, T>(report: &Report<R, T>, findings: usize) -> Option<String> {
    let all = report.exhaustive.as_ref()?;
    let timers = if report.timed_stops > 0 {
        ", timers only when nobody can run"
    } else {
        ""
    };
    if all.is_complete {
        let result = if findings == 0 {
            "no failure"
        } else {
            "see above"
        };
        return Some(format!(
            "; all {} interleavings at this granularity explored{timers}: {result}",
            all.interleavings
        ));
    }
    let mut text = format!(
        "; {} of about {:.0} interleavings at this granularity explored{timers}",
        all.interleavings, all.estimate
    );
    if all.cut_short > 0 {
        text.push_str(&format!(
            "; {} runs were not followed to their end: they take too many steps",
            all.cut_short
        ));
    }
    for bound in &all.bounds {
        text.push_str(&format!("; there may be others: {bound}"));
    }
    Some(text)
}
