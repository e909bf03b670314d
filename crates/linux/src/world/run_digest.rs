//! The digest of a run: system calls with their results, and how far each context came before another went on.
//!
//! How a run is cut into slices leaves no trace: a replay stops at other places than the run it repeats.

use raddle_stdx::Digest;
use raddle_world::ContextId;

/// How far the running context has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reached {
    pub(super) context: ContextId,
    pub(super) steps: u64,
    /// 0 once the context has ended.
    pub(super) pc: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RunDigest {
    digest: Digest,
    last: Option<Reached>,
}

impl RunDigest {
    pub(super) fn word(&mut self, word: u64) {
        self.digest.word(word);
    }

    /// Takes the end of a slice.
    pub(super) fn reached(&mut self, now: Reached) {
        if let Some(last) = self.last
            && last.context != now.context
        {
            self.fold(last);
        }
        self.last = Some(now);
    }

    pub(super) fn value(mut self) -> u64 {
        if let Some(last) = self.last {
            self.fold(last);
        }
        self.digest.value()
    }

    fn fold(&mut self, reached: Reached) {
        self.digest.word(u64::from(reached.context.0));
        self.digest.word(reached.steps);
        self.digest.word(reached.pc);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(slices: &[(u32, u64)]) -> u64 {
        let mut digest = RunDigest::default();
        for (context, steps) in slices {
            digest.reached(Reached {
                context: ContextId(*context),
                steps: *steps,
                pc: 7,
            });
        }
        digest.value()
    }

    #[test]
    fn slices_leave_no_trace_but_switches_do() {
        assert_eq!(digest(&[(0, 5), (0, 9), (1, 3)]), digest(&[(0, 9), (1, 3)]));
        assert_ne!(digest(&[(0, 9), (1, 3)]), digest(&[(0, 8), (1, 3)]));
        assert_ne!(digest(&[(0, 9), (1, 3)]), digest(&[(0, 9)]));
    }
}
