//! Loops that wait for another context: order that the program makes by itself (ConMem, section 4.2.6).
//!
//! A read that decides whether a loop goes on, that finds the same value again and again, and then what another context
//! has written meanwhile, ends a wait: whatever the writer did before that write comes before whatever the reader does
//! next, in every schedule. Which reads decide about loops the machine code says; that they wait, runs say. A read that
//! ever left its loop by a write of its own context waits for no other context; one that was released by two writes in
//! one run belongs to a lock rather than to an order. Once a loop is known to wait, every pass through it counts, also
//! one that finds the flag set at once.
//!
//! Deviations: what the writer knew from others by such loops is not handed on; combinations with locks are left to the
//! critical sections themselves.

use std::collections::{BTreeMap, BTreeSet};

use raddle_trace::facts::Facts;
use raddle_world::{ContextId, Site};
use rustc_hash::FxHashMap;

use crate::access::Seen;

/// Reads that find the same value so often wait for another one.
const ROUNDS_MIN: u64 = 2;

/// The loops that wait, and the order that they make in the run that goes on.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Reads that wait, with the writes that have released them.
    known: BTreeMap<Site, BTreeSet<Site>>,
    /// Reads of loops that do not wait, whatever they look like.
    banned: BTreeSet<Site>,
    /// Of the run that goes on: what each context found last, by reading instruction.
    rounds: FxHashMap<(ContextId, Site), Rounds>,
    /// The number of the write that has released the waiters at an instruction.
    released: FxHashMap<(Site, u64), u64>,
    /// What each context has waited for: the counters of others.
    order: FxHashMap<ContextId, BTreeMap<ContextId, u32>>,
}

#[derive(Debug, Clone, Copy)]
struct Rounds {
    addr: u64,
    value: u64,
    count: u64,
}

impl Waiting {
    /// A read that decides about a loop, with the write whose value it found, if that is known.
    pub(crate) fn read(&mut self, read: &Seen, writer: Option<&Seen>) {
        let Some(value) = read.value else {
            return;
        };
        let site = read.spot.site;
        let addr = read.spot.addr;
        let now = Rounds {
            addr,
            value,
            count: 1,
        };
        let last = self.rounds.insert((read.context, site), now);
        let is_same = |last: &Rounds| (last.addr, last.value) == (addr, value);
        if let Some(last) = last.filter(is_same) {
            let count = last.count + 1;
            self.rounds
                .insert((read.context, site), Rounds { count, ..now });
        }
        let has_waited = last.is_some_and(|last| {
            last.addr == addr && last.value != value && last.count >= ROUNDS_MIN
        });
        let Some(writer) = writer else {
            return;
        };
        if has_waited {
            self.end_wait((site, addr), read, writer);
        }
        let is_waiting = self.known.contains_key(&site) && !self.banned.contains(&site);
        if is_waiting && writer.context != read.context {
            let known = self.order.entry(read.context).or_default();
            let clock = known.entry(writer.context).or_default();
            *clock = (*clock).max(writer.clock);
        }
    }

    fn end_wait(&mut self, (site, addr): (Site, u64), read: &Seen, writer: &Seen) {
        let released = self.released.entry((site, addr)).or_insert(writer.number);
        if writer.context == read.context || *released != writer.number {
            self.banned.insert(site);
        } else {
            let writes = self.known.entry(site).or_default();
            writes.insert(writer.spot.site);
        }
    }

    /// A run has ended.
    pub(crate) fn end_run(&mut self) {
        self.rounds.clear();
        self.released.clear();
        self.order.clear();
    }

    /// The loops that wait, each with a write that has released it.
    pub(crate) fn loops(&self) -> Vec<(Site, Site)> {
        let known = self.known.iter();
        let waiting = known.filter(|(site, _)| !self.banned.contains(site));
        let first = waiting.filter_map(|(site, writes)| Some((*site, *writes.first()?)));
        first.collect()
    }
}

/// What comes before what in every schedule: by the synchronisation that the world knows, and by loops that wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) waiting: &'a Waiting,
}

impl Order<'_> {
    /// Whether an access comes before whatever a context does now.
    pub(crate) fn is_before(&self, earlier: &Seen, who: ContextId) -> bool {
        let Seen { context, clock, .. } = earlier;
        let waited = || {
            let known = self.waiting.order.get(&who)?.get(context)?;
            Some(known >= clock)
        };
        self.facts.is_ordered(who, *context, *clock) || waited().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests;
