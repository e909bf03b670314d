//! What is remembered of runs: for each eight bytes who used them how, and what could have come between.
//!
//! Memory grows with the memory that contexts share, not with the length of the run.

use raddle_stdx::width::to_u64;
use raddle_trace::facts::{Facts, LockChange, MappedGranule, touched_bytes};
use raddle_trace::observer::{Needs, Observation, Observer};
use raddle_world::{
    Access, AccessKind, ContextId, ContextTable, Event, EventKind, LockSource, Site,
};
use rustc_hash::FxHashMap;

use crate::access::{Held, Seen};
use crate::cell::Cell;
use crate::critical_reads::ProgramCode;
use crate::memory_errors;
use crate::overflow;
use crate::target::{Kind, Spot, Target, Targets};
use crate::values::{Invariant, Values};
use crate::waiting::{Order, Waiting};
use crate::wrong_value;

/// Looks at runs and collects what could go wrong in others.
#[derive(Debug, Default)]
pub struct Profile {
    cells: FxHashMap<MappedGranule, Cell>,
    arrivals: Arrivals,
    /// Where each critical section was entered, by context and serial number.
    entries: FxHashMap<(ContextId, u64), Spot>,
    code: ProgramCode,
    waiting: Waiting,
    /// What the run that goes on shows; it counts when the run has ended well.
    running: Targets,
    running_values: Values,
    values: Values,
    targets: Targets,
    /// Accesses so far.
    pub accesses: u64,
    /// Interleavings that order or critical sections exclude, counted once for each three accesses.
    pub excluded: u64,
}

/// How often each context came to each instruction.
#[derive(Debug, Default)]
struct Arrivals {
    /// By context, instruction and granule; zero for whatever it touches.
    visits: FxHashMap<(ContextId, Site, u64), u64>,
    /// The instruction that each context executed last, and its steps then.
    last: FxHashMap<ContextId, (Site, u64)>,
}

impl Arrivals {
    /// Where a context stands. What an instruction does besides its first access, as what a called library does, cannot
    /// be told before it happens: it is held at whatever it touches.
    fn spot(&mut self, event: &Event, granule: u64) -> Spot {
        let who = event.context;
        let now = (event.site, event.step);
        let is_new = self.last.insert(who, now) != Some(now);
        let mut count = |addr: u64| {
            let visits = self.visits.entry((who, event.site, addr)).or_default();
            *visits += u64::from(is_new);
            (*visits).max(1)
        };
        let any = count(0);
        let addr = if is_new { granule } else { 0 };
        let visit = if is_new { count(granule) } else { any };
        Spot {
            site: event.site,
            addr,
            visit,
        }
    }

    /// The next arrival at a function that takes a lock.
    fn lock(&mut self, who: ContextId, site: Site, lock: u64) -> Spot {
        let visits = self.visits.entry((who, site, lock)).or_default();
        *visits += 1;
        Spot {
            site,
            addr: lock,
            visit: *visits,
        }
    }
}

impl Profile {
    /// A profile that knows which reads decide about failures and which become addresses.
    pub fn with(code: ProgramCode) -> Self {
        Self {
            code,
            ..Self::default()
        }
    }

    /// A run has ended: what could come between is known of each run by itself. A run that failed is a finding, and
    /// predicts nothing.
    pub fn end_run(&mut self, contexts: &ContextTable, has_failed: bool) {
        self.retire_all();
        self.running.name_contexts(contexts);
        self.close(has_failed);
    }

    fn retire_all(&mut self) {
        let cells = std::mem::take(&mut self.cells);
        let mut cells: Vec<Cell> = cells.into_values().collect();
        // Hash maps have no order that a seed may depend on.
        cells.sort_by_key(|cell| cell.accesses.first().map(|seen| seen.number));
        for cell in &cells {
            self.retire(cell);
        }
    }

    fn close(&mut self, has_failed: bool) {
        self.retire_all();
        let found = std::mem::take(&mut self.running);
        let values = std::mem::take(&mut self.running_values);
        self.excluded += found.excluded;
        if !has_failed {
            self.targets.absorb(found);
            self.values.absorb(values);
        }
        self.arrivals = Arrivals::default();
        self.entries.clear();
        self.waiting.end_run();
    }

    /// Nothing more will happen to a place: what could reads have found there?
    fn retire(&mut self, cell: &Cell) {
        if cell.is_shared() {
            wrong_value::targets(cell, &mut self.code.critical, &mut self.running);
            overflow::targets(cell, &mut self.code.indices, &mut self.running);
        }
    }

    /// Targets in the order in which they are worth trying, each with its instances.
    pub fn ranked(&mut self) -> Vec<Vec<Target>> {
        let values = &self.values;
        let mut targets = std::mem::take(&mut self.targets);
        targets.retain(|target| values.allow(target));
        targets.ranked()
    }

    /// What the other value of a target would break, of what all runs of the profile had in common.
    pub fn broken_by(&self, target: &Target) -> Option<Invariant> {
        self.values.broken_by(target)
    }

    fn access(&mut self, event: &Event, access: &Access, facts: &Facts, synchronises: bool) {
        self.accesses += 1;
        let who = event.context;
        let reads = access.how != AccessKind::Write;
        let spot = self.arrivals.spot(event, access.addr & !7);
        if let Some(value) = access.value.filter(|_| reads) {
            self.running_values.note(event.site, value, access.size);
        }
        let held = facts.held(who).iter().map(|section| Held {
            lock: section.lock,
            serial: section.serial,
            entry: self
                .entries
                .get(&(who, section.serial))
                .copied()
                .unwrap_or(Spot {
                    site: section.site,
                    addr: section.lock,
                    visit: 1,
                }),
        });
        let now = Seen {
            context: who,
            spot,
            reads,
            writes: access.how.writes(),
            value: access.value.filter(|_| reads),
            written: access.value.filter(|_| !reads),
            overwritten: None,
            bytes: touched_bytes(access),
            synchronises,
            clock: facts.clock(),
            step: event.step,
            number: self.accesses,
            held: held.collect(),
            own_before: Vec::new(),
            own_after: Vec::new(),
            from: None,
            is_first_use: false,
            concurrent: 0,
        };
        let cell = self.cells.entry(MappedGranule::of(access)).or_default();
        if now.reads && self.code.critical.decides_loop(now.spot.site) {
            self.waiting.read(&now, cell.writer(now.bytes));
        }
        let waiting = &self.waiting;
        cell.take(now, &Order { facts, waiting }, &mut self.running);
    }

    /// The lock of a critical section was obtained: where that is held before.
    fn note_sections(&mut self, event: &Event, facts: &Facts) {
        for change in facts.lock_changes() {
            if let LockChange::Obtained(section) = change {
                let who = event.context;
                let entry = match section.source {
                    LockSource::Function => self.arrivals.lock(who, section.site, section.lock),
                    _ => {
                        let key = (who, section.site, section.lock & !7);
                        let visits = self.arrivals.visits.get(&key);
                        Spot {
                            site: section.site,
                            addr: section.lock & !7,
                            visit: visits.copied().unwrap_or(1),
                        }
                    }
                };
                self.entries.insert((who, section.serial), entry);
            }
        }
    }

    /// Memory belongs to a new block from now on.
    fn forget(&mut self, addr: u64, size: u64, facts: &Facts) {
        let granules: Vec<MappedGranule> = facts.granules(addr, size).collect();
        for granule in granules {
            if let Some(cell) = self.cells.remove(&granule) {
                self.retire(&cell);
            }
        }
    }

    /// A block is freed: another context that used it might have come later.
    fn free(&mut self, event: &Event, addr: u64, facts: &Facts) {
        let Some(within) = facts.allocation_at(addr) else {
            return;
        };
        let size = within.allocation.size;
        let free = Spot {
            site: event.site,
            addr: 0,
            visit: 1,
        };
        let held: Vec<u64> = facts
            .held(event.context)
            .iter()
            .map(|section| section.lock)
            .collect();
        let waiting = &self.waiting;
        let order = Order { facts, waiting };
        for granule in facts.granules(addr, size) {
            let Some(cell) = self.cells.get(&granule) else {
                continue;
            };
            for used in &cell.accesses {
                let is_other = used.context != event.context;
                if is_other && !order.is_before(used, event.context) {
                    self.running.add(memory_errors::dangling(used, free, &held));
                }
            }
        }
    }
}

impl Observer for Profile {
    fn needs(&self) -> Needs {
        Needs::of(Observation::Values)
    }

    fn event(&mut self, event: &Event, facts: &Facts) {
        match &event.kind {
            EventKind::Access(access) => {
                let is_data = facts.is_data();
                for piece in access.pieces() {
                    // A word that is a lock has its own meaning.
                    if !is_data && facts.was_lock(&piece) {
                        continue;
                    }
                    let value = access.is_in_one_granule().then_some(access.value).flatten();
                    self.access(event, &Access { value, ..piece }, facts, !is_data);
                }
            }
            EventKind::Alloc { addr, size } => self.forget(*addr, *size, facts),
            EventKind::Free { addr } => self.free(event, *addr, facts),
            _ => {}
        }
        self.note_sections(event, facts);
    }
}

impl Profile {
    /// Loops of the program that wait for another context: the read that ends each of them, and a write that did so.
    pub fn waiting_loops(&self) -> Vec<(Site, Site)> {
        self.waiting.loops()
    }

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
