//! The calls of a test's threads as marks: where each begins and ends, as the progress words of the agent tell.
//!
//! A thread writes the number of its statement before it makes the call. Between that and the call there are only the
//! agent's own instructions, so that a world that looks often enough can stop right before a call.

use std::sync::Arc;

use raddle_stdx::width::to_usize;
use raddle_world::{Event, EventKind, Mark, Site};

use super::{KernelWorld, Started, context_of};

/// Steps between two looks at a progress word: fewer than the agent needs from writing it to making the call.
const LOOK: u64 = 8;

/// The calls of a test, and how closely they are followed.
#[derive(Debug, Clone)]
pub struct ToldCalls {
    /// For each thread the numbers and texts of its calls, in their order.
    pub threads: Arc<Vec<Vec<(usize, String)>>>,
    /// Whether runs stop before each call; otherwise it is noted when a slice ends.
    pub stops: bool,
    /// Places of the data area that are read when the test is over: offset and size.
    pub buffers: Arc<Vec<(usize, usize)>>,
}

/// How far a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Called {
    begun: usize,
    ended: usize,
}

impl KernelWorld {
    /// Tells of calls from the next test on, or no longer.
    pub fn tell_calls(&mut self, calls: Option<ToldCalls>) {
        let threads = calls.as_ref().map_or(0, |calls| calls.threads.len());
        self.state.called = vec![Called::default(); threads];
        self.told_calls = calls;
    }

    /// What the buffers of the test held when it was over, if they were wanted.
    pub fn buffers(&self) -> &[Vec<u8>] {
        &self.state.buffers
    }

    /// Steps that a processor may make between two looks at its progress word.
    pub(super) fn look_after(&self) -> u64 {
        match &self.told_calls {
            Some(calls) if calls.stops => LOOK,
            _ => u64::MAX,
        }
    }

    pub(super) fn stops_at_calls(&self) -> bool {
        self.told_calls.as_ref().is_some_and(|calls| calls.stops)
    }

    /// Looks at the progress word of the thread on a processor; says whether a call began or ended.
    pub(super) fn look_at_calls(&mut self, cpu: usize) -> bool {
        if self.told_calls.is_none() {
            return false;
        }
        let mut started = self.state.started.iter();
        let found = started.find(|(_, started)| started.cpu == cpu);
        let Some((thread, Started { progress, .. })) = found.map(|(a, b)| (to_usize(*a), *b))
        else {
            return false;
        };
        let mut word = [0; 8];
        if progress == 0 || !self.machine.read_virtual(cpu, progress, &mut word) {
            return false;
        }
        match u64::from_le_bytes(word) {
            0 => false,
            u64::MAX => self.tell_call(cpu, thread, None),
            word => self.tell_call(cpu, thread, Some(to_usize(word - 1))),
        }
    }

    /// A thread has come to a statement, or to its end; says whether that is news.
    pub(super) fn tell_call(&mut self, cpu: usize, thread: usize, at: Option<usize>) -> bool {
        let Some(calls) = &self.told_calls else {
            return false;
        };
        let calls = Arc::clone(&calls.threads);
        let (Some(own), Some(called)) = (calls.get(thread), self.state.called.get_mut(thread))
        else {
            return false;
        };
        let before = *called;
        // A statement of another thread is in a word that was overwritten.
        let reached = at.map_or(Some(own.len()), |at| {
            own.iter().position(|(number, _)| *number == at)
        });
        let Some(reached) = reached.filter(|reached| *reached >= before.ended) else {
            return false;
        };
        let begun = (reached + usize::from(at.is_some())).min(own.len());
        *called = Called {
            begun: begun.max(before.begun),
            ended: reached,
        };
        for (number, (_, text)) in own.iter().enumerate().take(begun).skip(before.ended) {
            if number >= before.begun {
                let name = text.clone();
                let is_probe = false;
                self.push_mark(cpu, Mark::Begin { name, is_probe });
            }
            if number < reached {
                self.push_mark(cpu, Mark::End);
            }
        }
        (begun, reached) != (before.begun, before.ended)
    }

    fn push_mark(&mut self, cpu: usize, mark: Mark) {
        let context = context_of(cpu);
        self.events.push(Event {
            context,
            step: self.state.contexts.get(context).steps,
            site: Site::NOWHERE,
            kind: EventKind::Mark(Box::new(mark)),
        });
    }

    /// The test is over: reads its buffers, while the agent stands where it sees them.
    pub(super) fn read_buffers(&mut self, cpu: usize) {
        let (Some(calls), Some(data)) = (&self.told_calls, self.state.data_area) else {
            return;
        };
        let wanted = Arc::clone(&calls.buffers);
        let read = |(offset, size): &(usize, usize)| {
            let mut bytes = vec![0; *size];
            let at = data + raddle_stdx::width::to_u64(*offset);
            let is_there = self.machine.read_virtual(cpu, at, &mut bytes);
            if is_there { bytes } else { Vec::new() }
        };
        self.state.buffers = wanted.iter().map(read).collect();
    }
}
