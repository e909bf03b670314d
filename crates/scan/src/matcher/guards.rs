//! Which lock usually guards an object, by counting.

use super::Engine;
use crate::analyse::keys::{Key, KeyParts, View};
use crate::analyse::locks::Lock;
use crate::analyse::program::EventId;
use crate::front::lex::at;

/// The usual lock of an object.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Guard {
    pub(crate) lock: Option<Lock>,
    /// Accesses under that lock, and all accesses that count.
    pub(crate) under: u32,
    pub(crate) all: u32,
    /// Writes under that lock, and all writes that count.
    pub(crate) writes_under: u32,
    pub(crate) writes_all: u32,
}

/// Fewer writes say nothing about who writes under which lock.
const WRITES_MIN: u32 = 4;

impl Guard {
    /// Without one access that is not under the lock: a suspect does not testify in its own case.
    pub(crate) fn without(self, is_write: bool) -> Self {
        Self {
            all: self.all.saturating_sub(1).max(self.under),
            writes_all: self
                .writes_all
                .saturating_sub(u32::from(is_write))
                .max(self.writes_under),
            ..self
        }
    }

    pub(crate) fn percent(self) -> u32 {
        (self.under * 100).checked_div(self.all).unwrap_or(0)
    }

    /// As [`Self::percent`], of writes only.
    pub(crate) fn percent_of_writes(self) -> u32 {
        if self.writes_all < WRITES_MIN {
            return 0;
        }
        self.writes_under * 100 / self.writes_all
    }
}

/// Accesses looked at per object.
const SAMPLE_MAX: usize = 300;

impl Engine<'_> {
    /// The usual lock of `key` as the code around `place` uses it. Accesses to fresh objects and during
    /// initialisation do not count.
    pub(crate) fn guard(&self, key: Key, place: EventId) -> Guard {
        let unit = self.program.unit_of(place.function);
        let folder = self.is_core(key).then(|| self.folders[at(unit)]);
        if let Some(guard) = self.guards.borrow().get(&(key, folder)) {
            return *guard;
        }
        let guard = self.count(key, folder);
        self.guards.borrow_mut().insert((key, folder), guard);
        guard
    }

    /// Structs of the public headers are used everywhere: objects of another subsystem are other objects.
    pub(super) fn is_core(&self, key: Key) -> bool {
        let program = self.program;
        match key.parts() {
            KeyParts::Field(def, _) => program.types.def_home(def).is_some_and(|home| {
                let shown = &program.sources[at(home)].shown;
                shown.starts_with("include/") || shown.contains("/include/")
            }),
            KeyParts::Vague(..) => true,
            _ => false,
        }
    }

    fn count(&self, key: Key, folder: Option<u32>) -> Guard {
        let mut counts: Vec<(Lock, u32, u32)> = Vec::new();
        let mut all = 0;
        let mut writes_all = 0;
        let is_near = |place: &&EventId| {
            let unit = self.program.unit_of(place.function);
            folder.is_none_or(|folder| self.folders[at(unit)] == folder)
        };
        let writes = self.accesses.writes(key).iter().filter(is_near);
        let reads = self.accesses.reads(key).iter().filter(is_near);
        let writes = writes.take(SAMPLE_MAX).map(|place| (place, true));
        let reads = reads.take(SAMPLE_MAX).map(|place| (place, false));
        for (place, is_write) in writes.chain(reads) {
            if !self.counts_for_guard(*place) {
                continue;
            }
            all += 1;
            writes_all += u32::from(is_write);
            for lock in self.held(*place).always {
                let family = self.program.table.family(self.flows.locks.family(lock));
                // What guards a field belongs to an object; a lock without one is held for other reasons.
                if family.rcu
                    || family.context
                    || !family.has_object
                    || self.flows.locks.is_vague(lock)
                {
                    continue;
                }
                match counts
                    .iter_mut()
                    .find(|(known, _, _)| known.is_same_object(lock))
                {
                    Some((_, count, writes)) => {
                        *count += 1;
                        *writes += u32::from(is_write);
                    }
                    None => counts.push((lock, 1, u32::from(is_write))),
                }
            }
        }
        // Ties go to the lock seen first, which does not depend on map order.
        let best = counts
            .iter()
            .rev()
            .max_by_key(|(_, count, writes)| (*count, *writes));
        Guard {
            lock: best.map(|(lock, _, _)| *lock),
            under: best.map_or(0, |(_, count, _)| *count),
            writes_under: best.map_or(0, |(_, _, writes)| *writes),
            writes_all,
            all,
        }
    }

    pub(super) fn counts_for_guard(&self, place: EventId) -> bool {
        let name = self.program.function_name(place.function);
        !self.contexts.is_init_only(place.function)
            && !crate::results::is_construction(&name)
            && !self.is_fresh_at(place)
            && !self.walks_by_rcu(place)
    }

    /// Whether the accessed object hangs on a local that no other context knows yet.
    pub(crate) fn is_fresh_at(&self, place: EventId) -> bool {
        let view = View::new(self.program, place.function);
        let expr = self.program.event(place).expr;
        view.root(expr)
            .is_some_and(|root| self.flows.is_fresh(place.function, place.event, root))
    }
}
