//! What a run did with locks, conditions and futexes, kept to explain why no context can go on at its end.

use std::collections::{BTreeMap, BTreeSet};

use raddle_report::Place;
use raddle_world::{ContextId, EventKind};

const FUTEX: u32 = raddle_calls::number("futex");
const FUTEX_WAKE: u64 = 1;
const FUTEX_WAKE_BITSET: u64 = 10;
const FUTEX_COMMAND: u64 = 0x7F;

/// A context signalled a condition or woke a futex.
#[derive(Debug, Clone)]
pub(crate) struct Wake {
    pub(crate) context: ContextId,
    pub(crate) place: Option<Place>,
    /// When, as a number that grows.
    at: u64,
    /// A context was waiting for it.
    has_reached: bool,
}

/// The record of one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    now: u64,
    /// Wake-ups by the address of the condition or futex.
    wakes: BTreeMap<u64, Vec<Wake>>,
    /// When a context last began to wait, by its address.
    waits: BTreeMap<(ContextId, u64), u64>,
    /// Those whom no wake-up has reached since, by the address.
    waiting: BTreeMap<u64, BTreeSet<ContextId>>,
}

impl History {
    pub(crate) fn synchronisation(
        &mut self,
        context: ContextId,
        kind: &EventKind,
        place: Option<Place>,
    ) {
        self.now += 1;
        match *kind {
            EventKind::Notify { object, .. } => self.wake(context, object, place),
            EventKind::WaitBegin { object, .. } => self.wait(context, object),
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
            _ => self.wait(context, arguments[0]),
        }
    }

    fn wait(&mut self, context: ContextId, object: u64) {
        self.waits.insert((context, object), self.now);
        self.waiting.entry(object).or_default().insert(context);
    }

    fn wake(&mut self, context: ContextId, object: u64, place: Option<Place>) {
        let wake = Wake {
            context,
            place,
            at: self.now,
            has_reached: self.waiting.remove(&object).is_some(),
        };
        self.wakes.entry(object).or_default().push(wake);
    }

    /// The last wake-up by another context that came before the waiter began the wait it is in, and reached no context.
    pub(crate) fn lost_wake(&self, waiter: ContextId, object: u64) -> Option<&Wake> {
        let begun = *self.waits.get(&(waiter, object))?;
        let wakes = self.wakes.get(&object)?;
        let mut earlier = wakes.iter().rev().filter(|wake| wake.at < begun);
        earlier.find(|wake| wake.context != waiter && !wake.has_reached)
    }
}

#[cfg(test)]
mod tests {
    use raddle_world::WaitKind;

    use super::*;

    #[test]
    fn a_wake_before_the_wait_is_lost_and_one_after_is_not() {
        let (a, b) = (ContextId(1), ContextId(2));
        let notify = EventKind::Notify {
            object: 7,
            on: WaitKind::Condition,
            everyone: false,
        };
        let wait = EventKind::WaitBegin {
            object: 7,
            on: WaitKind::Condition,
        };
        let mut history = History::default();
        history.synchronisation(a, &notify, None);
        history.synchronisation(b, &wait, None);
        assert_eq!(history.lost_wake(b, 7).map(|wake| wake.context), Some(a));
        assert!(history.lost_wake(a, 7).is_none());
        let mut history = History::default();
        history.synchronisation(b, &wait, None);
        history.synchronisation(a, &notify, None);
        assert!(history.lost_wake(b, 7).is_none());
        history.synchronisation(b, &wait, None);
        assert!(
            history.lost_wake(b, 7).is_none(),
            "it ended the wait before"
        );
    }
}
