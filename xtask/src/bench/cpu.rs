//! Clocks of measurements.

use std::time::{SystemTime, UNIX_EPOCH};

/// Clock ticks per second of `/proc`; the same on every x86-64 Linux.
const TICKS: f64 = 100.0;

/// CPU seconds of all children that have ended and were waited for.
pub(super) fn of_children() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in parentheses: state is field 3, cutime 16, cstime 17.
    let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks: f64 = rest
        .split(' ')
        .skip(13)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    ticks / TICKS
}

/// Seconds on the wall.
pub(super) fn wall() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}
