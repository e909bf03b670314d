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

    /// Takes the beginning of a slice: the context that ran before comes first, whatever this one is about to do.
    pub(super) fn begins(&mut self, who: ContextId) {
        if let Some(last) = self.last.take_if(|last| last.context != who) {
            self.fold(last);
        }
    }

    /// Takes the end of a slice.
    pub(super) fn reached(&mut self, now: Reached) {
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
            run(&mut digest, *context, *steps);
        }
        digest.value()
    }

    fn run(digest: &mut RunDigest, context: u32, steps: u64) {
        let context = ContextId(context);
        digest.begins(context);
        let pc = 7;
        digest.reached(Reached { context, steps, pc });
    }

    #[test]
    fn where_a_slice_ends_before_a_call_leaves_no_trace() {
        let with_call = |slices: &[u64]| {
            let mut digest = RunDigest::default();
            run(&mut digest, 0, 9);
            slices.iter().for_each(|steps| run(&mut digest, 1, *steps));
            digest.begins(ContextId(1));
            digest.word(42);
            run(&mut digest, 1, 5);
            digest.value()
        };
        assert_eq!(with_call(&[]), with_call(&[2, 3]));
    }

    #[test]
    fn slices_leave_no_trace_but_switches_do() {
        assert_eq!(digest(&[(0, 5), (0, 9), (1, 3)]), digest(&[(0, 9), (1, 3)]));
        assert_ne!(digest(&[(0, 9), (1, 3)]), digest(&[(0, 8), (1, 3)]));
        assert_ne!(digest(&[(0, 9), (1, 3)]), digest(&[(0, 9)]));
    }
}
