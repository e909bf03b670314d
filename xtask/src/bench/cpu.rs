//! Clocks of measurements.

use std::collections::BTreeMap;
use std::process::Child;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike as _};

/// How often a running process is looked at.
const POLL: Duration = Duration::from_millis(20);

/// Clock ticks per second of `/proc`; the same on every x86-64 Linux.
const TICKS: f64 = 100.0;

/// CPU seconds of all children that have ended and were waited for, to the microsecond.
pub(super) fn of_children() -> f64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0.0, |used| {
        seconds(used.user_time()) + seconds(used.system_time())
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "CPU times of benches are far below 2^53 microseconds"
)]
fn seconds(time: TimeVal) -> f64 {
    time.num_microseconds() as f64 / 1e6
}

/// Waits for a process and gives the CPU seconds of its first thread and its busiest other thread, together.
pub(super) fn longest_chain(child: &mut Child) -> std::io::Result<f64> {
    let mut threads: BTreeMap<String, f64> = BTreeMap::new();
    let tasks = format!("/proc/{}/task", child.id());
    while child.try_wait()?.is_none() {
        for entry in std::fs::read_dir(&tasks).into_iter().flatten().flatten() {
            if let Ok(text) = std::fs::read_to_string(entry.path().join("stat")) {
                let name = entry.file_name().to_string_lossy().into_owned();
                threads.insert(name, user_and_system(&text).into_iter().sum());
            }
        }
        std::thread::sleep(POLL);
    }
    let first = threads.remove(&child.id().to_string()).unwrap_or(0.0);
    Ok(first + threads.into_values().fold(0.0, f64::max))
}

/// CPU seconds outside and inside the kernel, of a line of `/proc/PID/stat`: fields 14 and 15.
pub(super) fn user_and_system(text: &str) -> [f64; 2] {
    fields(text, 11)
}

/// Two fields that count clock ticks, `skip` fields behind the name.
fn fields(text: &str, skip: usize) -> [f64; 2] {
    let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let mut ticks = rest
        .split(' ')
        .skip(skip)
        .map(|field| field.parse::<f64>().unwrap_or(0.0));
    [(); 2].map(|()| ticks.next().unwrap_or(0.0) / TICKS)
}
