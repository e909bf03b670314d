//! What a run did with locks, conditions and futexes, kept to explain why nobody can go on at its end.

use std::collections::BTreeMap;

use raddle_report::finding::Place;
use raddle_world::{Access, ContextId, EventKind};

const FUTEX: u32 = 202;
const FUTEX_WAKE: u64 = 1;
const FUTEX_WAKE_BITSET: u64 = 10;
const FUTEX_COMMAND: u64 = 0x7F;

/// Somebody signalled a condition or woke a futex.
#[derive(Debug, Clone)]
pub(crate) struct Wake {
    pub(crate) context: ContextId,
    pub(crate) place: Option<Place>,
    /// When, as a number that grows.
    at: u64,
}

/// The record of one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    now: u64,
    /// Wake-ups by the address of the condition or futex.
    wakes: BTreeMap<u64, Vec<Wake>>,
    /// When a context last began to wait, by its address.
    waits: BTreeMap<(ContextId, u64), u64>,
    /// Who last changed a word from zero by a locked instruction: the holder of an inlined lock.
    takers: BTreeMap<u64, ContextId>,
}

impl History {
    pub(crate) fn access(&mut self, context: ContextId, access: &Access) {
        if access.how.is_atomic() && access.value == Some(0) {
            self.takers.insert(access.addr, context);
        }
    }

    pub(crate) fn synchronisation(
        &mut self,
        context: ContextId,
        kind: &EventKind,
        place: Option<Place>,
    ) {
        self.now += 1;
        match *kind {
            EventKind::Notify { object, .. } => self.wake(context, object, place),
            EventKind::WaitBegin { object } => {
                self.waits.insert((context, object), self.now);
            }
            _ => {}
        }
    }

    pub(crate) fn system_call(
        &mut self,
        context: ContextId,
        number: u32,
        arguments: &[u64; 6],
        place: Option<Place>,
    ) {
        if number != FUTEX {
            return;
        }
        self.now += 1;
        match arguments[1] & FUTEX_COMMAND {
            FUTEX_WAKE | FUTEX_WAKE_BITSET => self.wake(context, arguments[0], place),
            _ => {
                self.waits.insert((context, arguments[0]), self.now);
            }
        }
    }

    fn wake(&mut self, context: ContextId, object: u64, place: Option<Place>) {
        let at = self.now;
        self.wakes
            .entry(object)
            .or_default()
            .push(Wake { context, place, at });
    }

    /// The last wake-up by somebody else that came before a context began the wait it is in.
    pub(crate) fn lost_wake(&self, waiter: ContextId, object: u64) -> Option<&Wake> {
        let begun = *self.waits.get(&(waiter, object))?;
        let wakes = self.wakes.get(&object)?;
        let mut earlier = wakes.iter().rev().filter(|wake| wake.at < begun);
        earlier.find(|wake| wake.context != waiter)
    }

    /// Who holds the inlined lock at an address, if the word still says that it is held.
    pub(crate) fn taker(&self, addr: u64, word: u64) -> Option<ContextId> {
        let is_held = word & 0xFFFF_FFFF != 0;
        self.takers.get(&addr).copied().filter(|_| is_held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_before_the_wait_is_lost_and_one_after_is_not() {
        let (a, b) = (ContextId(1), ContextId(2));
        let notify = EventKind::Notify {
            object: 7,
            everyone: false,
        };
        let mut history = History::default();
        history.synchronisation(a, &notify, None);
        history.synchronisation(b, &EventKind::WaitBegin { object: 7 }, None);
        assert_eq!(history.lost_wake(b, 7).map(|wake| wake.context), Some(a));
        assert!(history.lost_wake(a, 7).is_none());
        let mut history = History::default();
        history.synchronisation(b, &EventKind::WaitBegin { object: 7 }, None);
        history.synchronisation(a, &notify, None);
        assert!(history.lost_wake(b, 7).is_none());
    }
}
