//! Liveness as SKI infers it, for comparison: heuristics H2 to H4 of section 6.3.3 of Fonseca's dissertation ("Effective
//! Techniques for Finding Concurrency Bugs", after Fonseca, Rodrigues, Brandenburg, "SKI: Exposing Kernel Concurrency
//! Bugs through Systematic Schedule Exploration", OSDI 2014). H1, the halt, is the machine's own business.
//!
//! - H2: two PAUSE instructions within h2 instructions; what was read between them is the read set.
//! - H3: the same instructions again and again, in a loop of at most h3, one of which reads the same value from the same
//!   address each time; what the loop reads is the read set.
//! - H4: more than h4 instructions in a row.
//!
//! A context of H2 and H3 is live again when another one writes to its read set, one of H4 when the others have run.
//! Two numbers are not in the text and are chosen here: the iterations after which H3 speaks, and how long others run
//! after H4.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use raddle_pc::machine::CpuAccess;
use raddle_stdx::Digest;
use raddle_world::ContextId;
use raddle_x86::LogKind;

use super::Heuristic;

/// Iterations of a loop after which H3 speaks.
const ITERATIONS: u32 = 16;
/// Instructions whose last visit is remembered for H3.
const INSTRUCTIONS_MAX: usize = 256;
/// Bytes of a word, the unit of read sets.
const WORD_BITS: u32 = 3;

/// The thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Windows {
    /// Instructions between two pauses at most (h2).
    pub(super) pause: u64,
    /// Instructions of a loop at most (h3).
    pub(super) looping: u64,
    /// Instructions in a row (h4), and instructions of others until it may go on.
    pub(super) starving: u64,
}

/// What all contexts are seen to do.
#[derive(Debug, Clone)]
pub(super) struct SkiLiveness {
    windows: Windows,
    contexts: BTreeMap<ContextId, Seen>,
    running: Option<ContextId>,
    /// Some context became live or non-live since that was last asked.
    has_news: bool,
}

/// What one context is seen to do.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// Its step count at its last pause.
    paused: Option<u64>,
    /// Its last reads, oldest first.
    recent: VecDeque<Read>,
    /// The last visit of each instruction that reads.
    visits: BTreeMap<u64, Visit>,
    /// Instructions since another one ran.
    in_a_row: u64,
    waits: Option<Waits>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Read {
    step: u64,
    pc: u64,
    physical: u64,
    size: u8,
}

/// A visit of an instruction, and how often it came back to it in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Visit {
    step: u64,
    physical: u64,
    value: u64,
    /// Digest of what was read where since the visit before.
    way: u64,
    times: u32,
}

/// Why a context is not live.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Waits {
    /// Until another one writes to one of these words.
    Words(BTreeSet<u64>),
    /// Until others have made so many instructions.
    Others(u64),
}

impl SkiLiveness {
    pub(super) fn new(windows: Windows) -> Self {
        Self {
            windows,
            contexts: BTreeMap::new(),
            running: None,
            has_news: false,
        }
    }

    /// Instructions that may be made before liveness is judged again.
    pub(super) fn slice(&self) -> u64 {
        self.windows.looping.max(16)
    }

    /// A context was chosen, for whatever reason.
    pub(super) fn goes_on(&mut self, who: ContextId) {
        let seen = self.contexts.entry(who).or_default();
        seen.waits = None;
        if self.running.replace(who) != Some(who) {
            seen.in_a_row = 0;
        }
        self.has_news = false;
    }

    pub(super) fn is_waiting(&self, who: ContextId) -> bool {
        self.contexts
            .get(&who)
            .is_some_and(|seen| seen.waits.is_some())
    }

    /// Everybody is live again.
    pub(super) fn revive_all(&mut self) {
        self.contexts
            .values_mut()
            .for_each(|seen| seen.waits = None);
    }

    /// Whether a context became live or non-live since this context was chosen.
    pub(super) fn has_news(&self) -> bool {
        self.has_news
    }

    /// A context touches memory; its step counts only grow. Says whether H3 speaks.
    pub(super) fn access(&mut self, who: ContextId, access: &CpuAccess) -> Option<Heuristic> {
        if matches!(
            access.kind,
            LogKind::Write | LogKind::Update | LogKind::AtomicUpdate
        ) {
            self.wake_readers(who, access);
        }
        if access.kind == LogKind::Write {
            return None;
        }
        let windows = self.windows;
        let seen = self.contexts.entry(who).or_default();
        seen.note_read(access, windows.pause.max(windows.looping));
        let comes_again = seen.visit(access, windows.looping)?;
        if seen.waits.is_some() {
            return None;
        }
        seen.waits = Some(Waits::Words(seen.words_since(comes_again)));
        self.has_news = true;
        Some(Heuristic::Looping)
    }

    fn wake_readers(&mut self, writer: ContextId, access: &CpuAccess) {
        let written = words(access.physical, access.size);
        for (who, seen) in &mut self.contexts {
            let is_read = |set: &BTreeSet<u64>| written.clone().any(|word| set.contains(&word));
            if *who != writer && matches!(&seen.waits, Some(Waits::Words(set)) if is_read(set)) {
                seen.waits = None;
                self.has_news = true;
            }
        }
    }

    /// A context has paused. Says whether H2 speaks.
    pub(super) fn pause(&mut self, who: ContextId, step: u64) -> Option<Heuristic> {
        let window = self.windows.pause;
        let seen = self.contexts.entry(who).or_default();
        let before = seen.paused.replace(step)?;
        if step - before > window {
            return None;
        }
        seen.waits = Some(Waits::Words(seen.words_since(before)));
        self.has_news = true;
        Some(Heuristic::Paused)
    }

    /// A context has made so many instructions. Says whether H4 speaks.
    pub(super) fn ran(&mut self, who: ContextId, steps: u64) -> Option<Heuristic> {
        for (other, seen) in &mut self.contexts {
            if *other == who {
                continue;
            }
            if let Some(Waits::Others(left)) = &mut seen.waits {
                *left = left.saturating_sub(steps);
                if *left == 0 {
                    seen.waits = None;
                    self.has_news = true;
                }
            }
        }
        let starving = self.windows.starving;
        let seen = self.contexts.entry(who).or_default();
        seen.in_a_row += steps;
        if seen.in_a_row < starving || seen.waits.is_some() {
            return None;
        }
        seen.in_a_row = 0;
        seen.waits = Some(Waits::Others(starving));
        self.has_news = true;
        Some(Heuristic::Starving)
    }
}

impl Seen {
    fn note_read(&mut self, access: &CpuAccess, window: u64) {
        self.recent.push_back(Read {
            step: access.step,
            pc: access.pc,
            physical: access.physical,
            size: access.size,
        });
        while let Some(oldest) = self.recent.front()
            && access.step.saturating_sub(oldest.step) > window
        {
            self.recent.pop_front();
        }
    }

    /// An instruction reads. Gives where the last iteration began if it has come back often enough in the same way and
    /// read the same value from the same address.
    fn visit(&mut self, access: &CpuAccess, window: u64) -> Option<u64> {
        let value = access.value?;
        let before = self.visits.get(&access.pc).copied();
        let mut now = Visit {
            step: access.step,
            physical: access.physical,
            value,
            way: 0,
            times: 0,
        };
        let is_again = |before: &Visit| {
            let passed = access.step.saturating_sub(before.step);
            (1..=window).contains(&passed)
                && (before.physical, before.value) == (access.physical, value)
        };
        if let Some(before) = before.filter(is_again) {
            now.way = self.way_since(before.step);
            now.times = if before.times > 0 && before.way != now.way {
                1
            } else {
                before.times + 1
            };
        }
        if self.visits.len() >= INSTRUCTIONS_MAX {
            self.visits
                .retain(|_, visit| access.step.saturating_sub(visit.step) <= window);
        }
        self.visits.insert(access.pc, now);
        (now.times >= ITERATIONS).then_some(before?.step)
    }

    fn since(&self, step: u64) -> impl Iterator<Item = &Read> {
        self.recent.iter().filter(move |read| read.step > step)
    }

    /// Which instructions read after a step, and how far behind it.
    fn way_since(&self, step: u64) -> u64 {
        let mut digest = Digest::default();
        for read in self.since(step) {
            digest.word(read.pc);
            digest.word(read.step - step);
        }
        digest.value()
    }

    /// What was read after a step.
    fn words_since(&self, step: u64) -> BTreeSet<u64> {
        let reads = self.since(step);
        reads
            .flat_map(|read| words(read.physical, read.size))
            .collect()
    }
}

/// The words that some bytes are part of.
fn words(physical: u64, size: u8) -> std::ops::RangeInclusive<u64> {
    let last = physical + u64::from(size).saturating_sub(1);
    physical >> WORD_BITS..=last >> WORD_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: Windows = Windows {
        pause: 30,
        looping: 20,
        starving: 1000,
    };
    const A: ContextId = ContextId(0);
    const B: ContextId = ContextId(1);

    fn access(kind: LogKind, step: u64, pc: u64, physical: u64, value: u64) -> CpuAccess {
        CpuAccess {
            cpu: 0,
            kind,
            size: 8,
            step,
            pc,
            addr: physical,
            physical,
            value: Some(value),
        }
    }

    fn write(ski: &mut SkiLiveness, who: ContextId, physical: u64) {
        ski.access(who, &access(LogKind::Write, 0, 0, physical, 1));
    }

    #[test]
    fn pauses_that_are_near_wait_for_a_write_to_what_was_read_between_them() {
        let mut ski = SkiLiveness::new(WINDOWS);
        ski.access(A, &access(LogKind::Read, 5, 1, 0x500, 0));
        assert_eq!(ski.pause(A, 10), None);
        ski.access(A, &access(LogKind::Read, 20, 1, 0x100, 0));
        assert_eq!(ski.pause(A, 40), Some(Heuristic::Paused));
        assert!(ski.is_waiting(A));
        write(&mut ski, B, 0x500);
        write(&mut ski, A, 0x100);
        assert!(ski.is_waiting(A), "neither before the pauses nor its own");
        write(&mut ski, B, 0x104);
        assert!(!ski.is_waiting(A));
        assert_eq!(ski.pause(A, 71), None, "too far from the last one");
    }

    /// Reads at `pc` every four steps, so often; the values are `of(iteration)`.
    fn repeat(
        ski: &mut SkiLiveness,
        times: u64,
        of: impl Fn(u64) -> u64,
    ) -> Vec<Option<Heuristic>> {
        (0..times)
            .map(|i| ski.access(A, &access(LogKind::Read, 4 * i, 7, 0x100, of(i))))
            .collect()
    }

    #[test]
    fn a_loop_that_reads_the_same_value_waits_for_a_write() {
        let mut ski = SkiLiveness::new(WINDOWS);
        let said = repeat(&mut ski, u64::from(ITERATIONS) + 1, |_| 0);
        assert_eq!(said.last(), Some(&Some(Heuristic::Looping)));
        assert!(said[..said.len() - 1].iter().all(Option::is_none));
        write(&mut ski, B, 0x200);
        assert!(ski.is_waiting(A));
        write(&mut ski, B, 0x100);
        assert!(!ski.is_waiting(A));
    }

    #[test]
    fn a_loop_whose_values_change_or_that_is_long_is_none() {
        let mut ski = SkiLiveness::new(WINDOWS);
        repeat(&mut ski, 100, |i| i);
        assert!(!ski.is_waiting(A));
        for i in 0..100 {
            ski.access(B, &access(LogKind::Read, 21 * i, 7, 0x100, 0));
        }
        assert!(!ski.is_waiting(B));
    }

    /// The other reads of the loop need not give the same: that is what makes it a heuristic.
    #[test]
    fn one_instruction_suffices_as_long_as_the_way_is_the_same() {
        let mut ski = SkiLiveness::new(WINDOWS);
        for i in 0..100 {
            ski.access(A, &access(LogKind::Read, 8 * i, 7, 0x100, 0));
            ski.access(A, &access(LogKind::Read, 8 * i + 3, 9, 0x200, i));
        }
        assert!(ski.is_waiting(A));
        for i in 0..100 {
            ski.access(B, &access(LogKind::Read, 8 * i, 7, 0x100, 0));
            ski.access(B, &access(LogKind::Read, 8 * i + 1 + i % 2, 9, 0x200, i));
        }
        assert!(!ski.is_waiting(B));
    }

    #[test]
    fn one_that_ran_too_long_rests_until_others_have_run() {
        let mut ski = SkiLiveness::new(WINDOWS);
        ski.goes_on(A);
        assert_eq!(ski.ran(A, 999), None);
        assert_eq!(ski.ran(A, 1), Some(Heuristic::Starving));
        ski.goes_on(B);
        assert_eq!(ski.ran(B, 600), None);
        assert!(ski.is_waiting(A));
        ski.ran(B, 399);
        assert!(ski.is_waiting(A) && !ski.has_news());
        ski.ran(B, 1);
        assert!(!ski.is_waiting(A) && ski.has_news() && ski.is_waiting(B));
    }
}
