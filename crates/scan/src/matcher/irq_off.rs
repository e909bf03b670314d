//! Weaker evidence for a spinning lock taken with interrupts on: most others take it with interrupts off.

use rustc_hash::FxHashMap;

use super::Engine;
use crate::analyse::keys::{Key, View};
use crate::analyse::locks::LockSet;
use crate::analyse::program::EventId;
use crate::idioms::{LockAction, Start};

/// Others that must take a lock with interrupts off, and their share.
const IRQ_OFF_MIN: u32 = 2;
const IRQ_OFF_PERCENT: u32 = 60;

impl Engine<'_> {
    /// Whether a lock is taken with interrupts on that most others take with interrupts off.
    pub(super) fn is_usually_irq_off(&self, place: EventId) -> bool {
        let Some((lock, level)) = self.spin_lock_at(place) else {
            return false;
        };
        let own = self.flows.at(place.function, place.event);
        let spins = |set: LockSet| {
            let members = self.flows.locks.members(set).iter();
            let mut families = members.map(|lock| self.flows.locks.family(*lock));
            families.any(|family| !self.program.table.family(family).sleeps)
        };
        let contexts = self.contexts.of(place.function);
        if spins(own.may)
            || contexts.iter().any(|context| {
                spins(context.may) || matches!(context.start, Start::HardIrq | Start::SoftIrq)
            })
        {
            return false;
        }
        let counts = self.irq_counts.get_or_init(|| self.count_irq_off());
        let counts = counts.get(&lock).copied().unwrap_or_default();
        let off: u32 = counts.iter().skip(level + 1).sum();
        let others = counts.iter().sum::<u32>().saturating_sub(1).max(off);
        off >= IRQ_OFF_MIN && off * 100 >= others * IRQ_OFF_PERCENT
    }

    /// The spinning lock that a call takes, and what it keeps away: nothing more, softirqs, interrupts.
    fn spin_lock_at(&self, place: EventId) -> Option<(Key, usize)> {
        let view = View::new(self.program, place.function);
        let (name, _) = view.unit.named_call(self.program.event(place).expr)?;
        let idiom = self.program.idiom(view.name(name));
        let taken = idiom.lock?;
        let family = self.program.table.family(taken.family);
        if taken.action != LockAction::Acquire || family.sleeps || family.rcu || family.context {
            return None;
        }
        let mut operations = self.flows.operations_at(place.function, place.event);
        let taken = operations.find(|operation| operation.action == LockAction::Acquire)?;
        if self.flows.locks.is_vague(taken.lock) {
            return None;
        }
        let text = self.program.names.bytes(view.name(name));
        let has = |wanted: &[u8]| text.windows(wanted.len()).any(|part| part == wanted);
        let level = if has(b"_irq") {
            2
        } else {
            usize::from(has(b"_bh"))
        };
        Some((self.flows.locks.key(taken.lock), level))
    }

    fn count_irq_off(&self) -> FxHashMap<Key, [u32; 3]> {
        let mut counts: FxHashMap<Key, [u32; 3]> = FxHashMap::default();
        for id in self.program.function_ids() {
            let mut last = u32::MAX;
            for (event, _) in self.flows.operations(id) {
                if *event == last {
                    continue;
                }
                last = *event;
                let place = EventId {
                    function: id,
                    event: *event,
                };
                if let Some((lock, level)) = self.spin_lock_at(place) {
                    counts.entry(lock).or_default()[level] += 1;
                }
            }
        }
        counts
    }
}
