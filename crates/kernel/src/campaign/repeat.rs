//! The same schedule again and again, on several workers: every run must be the same to the last access.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use raddle_sched::Follow;
use raddle_trace::Schedule;

use super::run::Rules;
use super::session::{Session, StartFailure, Target};

/// Digest of all memory accesses of a run, each with processor, step, instruction, place and value, and of how it
/// ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trace {
    pub digest: u64,
    pub accesses: u64,
}

/// Runs a schedule so often, on workers that each have a guest of their own. Gives the traces and how often each
/// came: one, if the machine is deterministic.
///
/// # Errors
/// If the test cannot be brought to its start line.
pub fn repeat(
    target: &Target,
    schedule: &Schedule,
    rules: Rules,
    times: u64,
    workers: usize,
) -> Result<BTreeMap<Trace, u64>, StartFailure> {
    let taken = AtomicU64::new(0);
    let results: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers.max(1))
            .map(|_| scope.spawn(|| work(target, schedule, rules, times, &taken)))
            .collect();
        workers.into_iter().filter_map(|w| w.join().ok()).collect()
    });
    let mut all: BTreeMap<Trace, u64> = BTreeMap::new();
    for result in results {
        for (trace, count) in result? {
            *all.entry(trace).or_default() += count;
        }
    }
    Ok(all)
}

fn work(
    target: &Target,
    schedule: &Schedule,
    rules: Rules,
    times: u64,
    taken: &AtomicU64,
) -> Result<BTreeMap<Trace, u64>, StartFailure> {
    let mut session = Session::start(target)?;
    let mut digests = BTreeMap::new();
    while taken.fetch_add(1, Ordering::Relaxed) < times {
        *digests
            .entry(traced(&mut session, schedule, rules))
            .or_default() += 1;
    }
    Ok(digests)
}

fn traced(session: &mut Session<'_>, schedule: &Schedule, rules: Rules) -> Trace {
    session.restore();
    rules.apply(&mut session.world);
    session.world.begin_trace();
    let mut follow = Follow::new(schedule);
    session.drive(&mut follow, rules.policy(), &mut |_, _| {});
    let (digest, accesses) = session.world.end_trace();
    Trace { digest, accesses }
}
