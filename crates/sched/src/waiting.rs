//! Liveness of contexts that could run but should not: loops that wait for somebody else's write.
//!
//! SKI's heuristics (Fonseca, Rodrigues, Brandenburg, OSDI 2014). H1 (halt) is blocking, which the world knows. H3 (a
//! loop that reads the same values again) is here: a context that comes back to the same point with the same registers
//! and has written nothing shared since is set aside until somebody writes to what it read. A context that yields (H2,
//! pause) is set aside until somebody else writes anything or synchronises. H4 (starvation) is the driver's patience.

use raddle_world::ContextId;

/// Points of a loop without progress at most, if the world does not limit its instructions.
const MEMORY: usize = 8;

/// One stop of the current context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Passed {
    /// Steps that the context had made.
    steps: u64,
    registers: u64,
    /// What it was about to read.
    object: Option<u64>,
    writes: bool,
}

/// What a stop tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Made,
    /// The same registers as a short while ago.
    Repeats,
}

/// Contexts that are set aside.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waiting {
    /// Instructions of a loop at most.
    window: Option<u64>,
    /// Stops of the current context since it was switched to, as far back as a loop can reach.
    passed: Vec<Passed>,
    /// Who is set aside, and what it read; nothing if that is not known.
    aside: Vec<(ContextId, Vec<u64>)>,
    /// How often somebody was set aside.
    pub(crate) times: u64,
}

impl Waiting {
    pub(crate) fn new(window: Option<u64>) -> Self {
        Self {
            window,
            ..Self::default()
        }
    }

    /// Another context goes on, or this one has passed points that nobody looked at.
    pub(crate) fn switch(&mut self) {
        self.passed.clear();
    }

    /// A context stands at a point again.
    pub(crate) fn stop(
        &mut self,
        who: ContextId,
        steps: u64,
        registers: u64,
        object: Option<u64>,
        writes: bool,
    ) -> Progress {
        self.forget(steps);
        let now = Passed {
            steps,
            registers,
            object,
            writes,
        };
        let before = self.passed.iter().position(|p| p.registers == registers);
        let Some(before) = before else {
            self.passed.push(now);
            return Progress::Made;
        };
        let turn = &self.passed[before..];
        let read: Vec<u64> = turn.iter().filter_map(|p| p.object).collect();
        if !turn.iter().any(|p| p.writes) && !read.is_empty() {
            self.set_aside(who, read);
        }
        self.passed.clear();
        Progress::Repeats
    }

    /// Forgets the stops that a loop which comes back now cannot have begun with.
    fn forget(&mut self, steps: u64) {
        let gone = match self.window {
            Some(window) => self
                .passed
                .partition_point(|passed| steps - passed.steps > window),
            None => self.passed.len().saturating_sub(MEMORY),
        };
        self.passed.drain(..gone);
    }

    /// A context asked to be run later.
    pub(crate) fn yields(&mut self, who: ContextId) {
        self.set_aside(who, Vec::new());
    }

    fn set_aside(&mut self, who: ContextId, read: Vec<u64>) {
        self.aside.retain(|(id, _)| *id != who);
        self.aside.push((who, read));
        self.times += 1;
    }

    /// Somebody is about to write to this object.
    pub(crate) fn written(&mut self, by: ContextId, object: u64) {
        self.aside
            .retain(|(id, read)| *id == by || !(read.is_empty() || read.contains(&object)));
    }

    /// A context runs, for whatever reason: it looks again.
    pub(crate) fn run(&mut self, who: ContextId) {
        self.aside.retain(|(id, _)| *id != who);
    }

    pub(crate) fn is_aside(&self, who: ContextId) -> bool {
        self.aside.iter().any(|(id, _)| *id == who)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.aside.is_empty()
    }

    /// Everybody may look again.
    pub(crate) fn revive_all(&mut self) {
        self.aside.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPINNER: ContextId = ContextId(1);

    #[test]
    fn a_reading_loop_waits_for_a_write_to_what_it_read() {
        let mut waiting = Waiting::default();
        let mut reads = |steps| waiting.stop(SPINNER, steps, 7, Some(40), false);
        assert_eq!(reads(10), Progress::Made);
        assert_eq!(reads(15), Progress::Repeats);
        assert!(waiting.is_aside(SPINNER));
        waiting.written(ContextId(2), 41);
        assert!(waiting.is_aside(SPINNER));
        waiting.written(ContextId(2), 40);
        assert!(!waiting.is_aside(SPINNER));
    }

    #[test]
    fn a_loop_that_writes_is_not_set_aside() {
        let mut waiting = Waiting::default();
        let mut writes = |steps| waiting.stop(SPINNER, steps, 7, Some(40), true);
        writes(10);
        assert_eq!(writes(15), Progress::Repeats);
        assert!(!waiting.is_aside(SPINNER));
    }

    /// Whether a loop is seen that takes so many instructions and passes so many points.
    fn is_seen(window: Option<u64>, instructions: u64, points: u64) -> bool {
        let mut waiting = Waiting::new(window);
        for turn in 0..2 {
            for point in 0..points {
                let steps = 1_000 + turn * instructions + point;
                if waiting.stop(SPINNER, steps, point, Some(40), false) == Progress::Repeats {
                    return true;
                }
            }
        }
        false
    }

    #[test]
    fn a_loop_may_be_as_long_as_the_window() {
        assert!(is_seen(Some(20), 20, 1));
        assert!(is_seen(Some(20), 20, 20));
        assert!(!is_seen(Some(20), 21, 1));
        assert!(!is_seen(Some(0), 1, 1));
    }

    #[test]
    fn without_a_window_a_loop_may_pass_eight_points() {
        assert!(is_seen(None, 1_000_000, 8));
        assert!(!is_seen(None, 1_000_000, 9));
    }
}
