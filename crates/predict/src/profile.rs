//! What is remembered of a run: for each eight bytes who used them how, and what could have come between.
//!
//! Memory grows with the memory that contexts share, not with the length of the run: of accesses that are alike
//! (context, instruction, direction) the last one is kept.

use raddle_stdx::width::to_u64;
use raddle_trace::facts::{Facts, MappedGranule};
use raddle_trace::observer::{Needs, Observation, Observer};
use raddle_world::{Access, AccessKind, ContextId, ContextTable, Event, EventKind, Section, Site};
use rustc_hash::FxHashMap;

use crate::memory_errors;
use crate::target::{Kind, Spot, Targets};
use crate::unserializable::{self, Between};

/// Accesses of different kinds that are kept for eight bytes; as many as there are bits in a mask.
const ACCESSES_MAX: usize = 64;
/// Pairs of accesses of one context that are kept for eight bytes.
const PAIRS_MAX: usize = 64;

/// One access, as far as it matters later.
#[derive(Debug, Clone)]
pub struct Seen {
    pub context: ContextId,
    pub spot: Spot,
    pub reads: bool,
    pub writes: bool,
    /// What was read, or written by a plain store, if it is known.
    pub value: Option<u64>,
    pub size: u8,
    /// The counter of its context, for questions of order.
    pub clock: u32,
    /// Own steps of its context.
    pub step: u64,
    /// Number among all accesses of the run.
    pub number: u64,
    pub held: Vec<Section>,
    /// Accesses of others, by their index in the cell, that no order puts before this one.
    concurrent: u64,
}

impl Seen {
    /// Whether both do the same in the eyes of a reader of the program.
    fn is_alike(&self, other: &Self) -> bool {
        let key = |seen: &Self| (seen.context, seen.spot.site, seen.reads, seen.writes);
        key(self) == key(other)
    }

    /// Whether this access and another one of the same context lie in one critical section of a lock that a third holds.
    pub fn is_excluded_with(&self, other: &Self, third: &Self) -> bool {
        let common = self.held.iter().filter(|section| {
            let same = |held: &&Section| held.lock == section.lock && held.serial == section.serial;
            other.held.iter().any(|held| same(&held))
        });
        common
            .into_iter()
            .any(|section| third.held.iter().any(|held| held.lock == section.lock))
    }
}

/// What is known of eight bytes.
#[derive(Debug, Default)]
struct Cell {
    accesses: Vec<Seen>,
    /// The last access of each context.
    last: Vec<Seen>,
    /// Two accesses in a row of one context.
    pairs: Vec<(Seen, Seen)>,
    /// The first write since the memory was handed out.
    first_write: Option<Seen>,
    is_read: bool,
}

/// Looks at runs and collects what could go wrong in others.
#[derive(Debug, Default)]
pub struct Profile {
    cells: FxHashMap<MappedGranule, Cell>,
    visits: FxHashMap<(ContextId, Site, u64), u64>,
    /// Accesses so far.
    pub accesses: u64,
    /// What was found so far.
    pub targets: Targets,
}

impl Profile {
    /// A run has ended: what could come between is known of each run by itself.
    pub fn end_run(&mut self, contexts: &ContextTable) {
        self.targets.name_contexts(contexts);
        self.cells.clear();
        self.visits.clear();
    }

    fn access(&mut self, event: &Event, access: &Access, facts: &Facts) {
        self.accesses += 1;
        let who = event.context;
        let granule = access.addr & !7;
        let visit = self.visits.entry((who, event.site, granule)).or_default();
        *visit += 1;
        let now = Seen {
            context: who,
            spot: Spot {
                site: event.site,
                addr: granule,
                visit: *visit,
            },
            reads: access.how != AccessKind::Write,
            writes: access.how.writes(),
            value: access.value,
            size: access.size,
            clock: facts.clock(),
            step: event.step,
            number: self.accesses,
            held: facts.held(who).to_vec(),
            concurrent: 0,
        };
        let cell = self.cells.entry(MappedGranule::of(access)).or_default();
        cell.take(now, facts, &mut self.targets);
    }

    /// Memory is somebody else's from now on.
    fn forget(&mut self, addr: u64, size: u64, facts: &Facts) {
        for granule in facts.granules(addr, size) {
            self.cells.remove(&granule);
        }
    }

    /// A block is freed: whoever used it might have come later.
    fn free(&mut self, event: &Event, addr: u64, facts: &Facts) {
        let Some(within) = facts.allocation_at(addr) else {
            return;
        };
        let size = within.allocation.size;
        let spot = Spot {
            site: event.site,
            addr,
            visit: 1,
        };
        for granule in facts.granules(addr, size) {
            let Some(cell) = self.cells.get(&granule) else {
                continue;
            };
            for used in &cell.last {
                let is_other = used.context != event.context;
                if is_other && !facts.is_ordered(event.context, used.context, used.clock) {
                    let target = memory_errors::dangling(used, spot, facts.held(event.context));
                    self.targets.add(target);
                }
            }
        }
    }
}

impl Cell {
    fn take(&mut self, mut now: Seen, facts: &Facts, targets: &mut Targets) {
        let who = now.context;
        for (index, other) in self.accesses.iter().enumerate() {
            let is_ordered = facts.is_ordered(who, other.context, other.clock);
            if other.context != who && !is_ordered {
                now.concurrent |= 1 << index;
            }
        }
        self.remote_after(&now, facts, targets);
        self.remote_before(&now, targets);
        self.memory_errors(&now, facts, targets);
        self.keep(now);
    }

    /// This access could have come between two earlier ones of another context.
    fn remote_after(&self, now: &Seen, facts: &Facts, targets: &mut Targets) {
        for (first, second) in &self.pairs {
            let is_other = first.context != now.context;
            if is_other && !facts.is_ordered(now.context, second.context, second.clock) {
                let between = Between {
                    first,
                    remote: now,
                    second,
                };
                targets.extend(unserializable::targets(between));
            }
        }
    }

    /// An earlier access of another context could have come between this one and the one before.
    fn remote_before(&self, now: &Seen, targets: &mut Targets) {
        let Some(first) = self.last.iter().find(|last| last.context == now.context) else {
            return;
        };
        for (index, remote) in self.accesses.iter().enumerate() {
            let is_concurrent = first.concurrent >> index & 1 == 1;
            // What came between has happened already.
            if is_concurrent && remote.number < first.number {
                let between = Between {
                    first,
                    remote,
                    second: now,
                };
                targets.extend(unserializable::targets(between));
            }
        }
    }

    fn memory_errors(&self, now: &Seen, facts: &Facts, targets: &mut Targets) {
        let own = |of: &Seen| {
            let same = self.last.iter().find(|last| last.context == of.context);
            same.cloned()
        };
        for (index, other) in self.accesses.iter().enumerate() {
            if now.concurrent >> index & 1 == 0 {
                continue;
            }
            for (read, write) in [(now, other), (other, now)] {
                targets.extend(memory_errors::null(read, write, own(read).as_ref()));
            }
        }
        if let Some(write) = &self.first_write
            && write.context != now.context
            && now.reads
            && !facts.is_ordered(now.context, write.context, write.clock)
        {
            targets.extend(memory_errors::uninitialised(write, now));
        }
    }

    fn keep(&mut self, now: Seen) {
        if now.writes && self.first_write.is_none() && !self.is_read {
            self.first_write = Some(now.clone());
        }
        self.is_read |= now.reads;
        let last = self
            .last
            .iter_mut()
            .find(|last| last.context == now.context);
        match last {
            Some(last) => {
                let pair = (last.clone(), now.clone());
                *last = now.clone();
                let is_alike = |(first, second): &(Seen, Seen)| {
                    first.is_alike(&pair.0) && second.is_alike(&pair.1)
                };
                let known = self.pairs.iter().position(is_alike);
                put(&mut self.pairs, known, pair, PAIRS_MAX);
            }
            None => self.last.push(now.clone()),
        }
        let known = self.accesses.iter().position(|seen| seen.is_alike(&now));
        put(&mut self.accesses, known, now, ACCESSES_MAX);
    }
}

/// Replaces what is known, or adds it as long as there is room.
fn put<T>(all: &mut Vec<T>, known: Option<usize>, new: T, most: usize) {
    match known {
        Some(index) => all[index] = new,
        None if all.len() < most => all.push(new),
        None => {}
    }
}

impl Observer for Profile {
    fn needs(&self) -> Needs {
        Needs::of(Observation::Values)
    }

    fn event(&mut self, event: &Event, facts: &Facts) {
        match &event.kind {
            EventKind::Access(access) => {
                for piece in facts.data(access) {
                    let value = access.is_in_one_granule().then_some(access.value).flatten();
                    self.access(event, &Access { value, ..piece }, facts);
                }
            }
            EventKind::Alloc { addr, size } => self.forget(*addr, *size, facts),
            EventKind::Free { addr } => self.free(event, *addr, facts),
            _ => {}
        }
    }
}

impl Profile {
    /// Candidates so far.
    pub fn len(&self) -> u64 {
        to_u64(self.targets.len())
    }

    pub fn is_empty(&self) -> bool {
        self.targets.len() == 0
    }

    /// Candidates of a kind.
    pub fn count(&self, kind: Kind) -> u64 {
        self.targets.count(kind)
    }
}

#[cfg(test)]
mod tests;
