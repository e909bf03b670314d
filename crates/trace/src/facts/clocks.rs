//! Who comes after what, in two strengths.
//!
//! ```text
//!   event                                   order   happens before
//!   creation, joining, end of a context       x           x
//!   barrier, publish and obtain, once         x           x
//!   condition or event: notify, end of wait   x           x
//!   semaphore: token of another context       x           x
//!   semaphore: token that was given back                  x
//!   flag: store, load that ends a loop        x           x
//!   lock: release, acquire                                x
//!   other locations of locked instructions                x
//! ```
//! What only happens before does so in this schedule: two critical sections of a lock may come in the other order in
//! the next one. What is ordered is so in every schedule in which the same hand-over happens.
//!
//! Both kinds of clocks count the same: a context's own counter is one number, so an access is remembered once.

use raddle_world::{ContextId, EventKind, WaitKind};
use rustc_hash::FxHashMap;

use crate::clock::VectorClock;

/// What is known of before, in both strengths.
#[derive(Debug, Clone, Default)]
struct Known {
    all: VectorClock,
    order: VectorClock,
}

impl Known {
    fn join(&mut self, other: &Self) {
        self.all.join(&other.all);
        self.order.join(&other.order);
    }
}

#[derive(Debug, Default)]
struct Context {
    known: Known,
    /// Its own counter in all clocks.
    slot: usize,
    /// Tokens of semaphores that it has taken and not given back.
    tokens: Vec<u64>,
    has_ended: bool,
}

/// The clocks of one run.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    contexts: Vec<Context>,
    /// Counters that contexts have had so far, and those of ended contexts. A context that is created knows what all the
    /// ended ones knew, so it may go on counting where one of them stopped: clocks are as long as many contexts live
    /// at a time.
    slots: usize,
    free_slots: Vec<usize>,
    objects: FxHashMap<u64, Known>,
    /// Everything that ended contexts knew: a stack or a thread structure may be used again.
    ended: Known,
    /// Conditions only exclude: a context that waits holds a lock, and another schedule may need no wake-up.
    conditions_exclude: bool,
}

impl Clocks {
    pub(super) fn let_conditions_exclude(&mut self) {
        self.conditions_exclude = true;
    }

    /// A context's own counter; zero before its first event.
    #[inline]
    pub(super) fn own(&self, who: ContextId) -> u32 {
        let context = self.contexts.get(index(who));
        context.map_or(0, |context| context.known.all.get(context.slot))
    }

    /// Whether a context knows what another one did when its counter was `clock`.
    #[inline]
    pub(super) fn knows(&self, who: ContextId, other: ContextId, clock: u32) -> bool {
        let [who, other] = [who, other].map(|id| &self.contexts[index(id)]);
        who.known.all.get(other.slot) >= clock
    }

    /// The same by order alone, which no schedule changes.
    pub(super) fn is_ordered(&self, who: ContextId, other: ContextId, clock: u32) -> bool {
        if who == other {
            return true;
        }
        let [who, other] = [who, other].map(|id| &self.contexts[index(id)]);
        who.known.order.get(other.slot) >= clock
    }

    /// Makes a context known.
    #[inline]
    pub(super) fn know(&mut self, who: ContextId) {
        if self.contexts.len() <= index(who) {
            self.grow(index(who));
        }
    }

    #[cold]
    fn grow(&mut self, last: usize) {
        while self.contexts.len() <= last {
            let slot = self.free_slots.pop().unwrap_or_else(|| {
                self.slots += 1;
                self.slots - 1
            });
            // Even a context without a creator comes after the one that had its counter before.
            self.contexts.push(Context {
                known: self.ended.clone(),
                slot,
                ..Context::default()
            });
            self.tick(self.contexts.len() - 1);
        }
    }

    fn tick(&mut self, who: usize) {
        let Context { known, slot, .. } = &mut self.contexts[who];
        known.all.tick(*slot);
        known.order.set(*slot, known.all.get(*slot));
    }

    /// A locked instruction, or something as good: both learn what the other knows.
    pub(super) fn exchange(&mut self, who: ContextId, place: &mut VectorClock) {
        let clock = &mut self.contexts[index(who)].known.all;
        clock.join(place);
        place.join(clock);
    }

    /// What was done so far is over for a context that learns of it: what comes next is not.
    pub(super) fn advance(&mut self, who: ContextId) {
        self.tick(index(who));
    }

    pub(super) fn store(&mut self, who: ContextId, place: &mut VectorClock) {
        place.join(&self.contexts[index(who)].known.all);
        self.tick(index(who));
    }

    pub(super) fn load(&mut self, who: ContextId, place: &VectorClock) {
        self.contexts[index(who)].known.all.join(place);
    }

    /// A flag was set when the context's counter was `clock`: what was ordered before the store is ordered before
    /// the contexts that wait for it.
    pub(super) fn set_flag(&self, who: ContextId, clock: u32, flag: &mut VectorClock) {
        let Context { known, slot, .. } = &self.contexts[index(who)];
        let mut order = known.order.clone();
        order.set(*slot, clock);
        flag.join(&order);
    }

    pub(super) fn see_flag(&mut self, who: ContextId, flag: &VectorClock) {
        self.contexts[index(who)].known.order.join(flag);
    }

    /// Takes in everything but accesses.
    pub(super) fn event(&mut self, context: ContextId, kind: &EventKind) {
        let who = index(context);
        match *kind {
            EventKind::Acquire { object, .. } => {
                if let Some(known) = self.objects.get(&object) {
                    self.contexts[who].known.all.join(&known.all);
                }
            }
            EventKind::Release { object, .. } => self.give_exclusion(who, object),
            EventKind::Obtain { object } | EventKind::BarrierLeave { object } => {
                if let Some(known) = self.objects.get(&object) {
                    self.contexts[who].known.join(known);
                }
            }
            EventKind::Notify { object, on, .. } => self.notify(who, object, on),
            EventKind::BarrierEnter { object } | EventKind::Publish { object } => {
                self.give_order(who, object);
            }
            EventKind::WaitEnd { object, on } => self.waited(who, object, on),
            EventKind::Create { child } => self.create(who, child),
            EventKind::Join { child } => self.join(who, child),
            EventKind::Exit => {
                let context = &mut self.contexts[who];
                context.has_ended = true;
                self.ended.join(&context.known);
                self.free_slots.push(context.slot);
            }
            _ => {}
        }
    }

    fn give_exclusion(&mut self, who: usize, object: u64) {
        let known = self.objects.entry(object).or_default();
        known.all.join(&self.contexts[who].known.all);
        self.tick(who);
    }

    fn give_order(&mut self, who: usize, object: u64) {
        let context = &self.contexts[who];
        self.objects.entry(object).or_default().join(&context.known);
        // The end of a process is told by a thread that is no more, whose counter may be another's.
        if !context.has_ended {
            self.tick(who);
        }
    }

    fn notify(&mut self, who: usize, object: u64, on: WaitKind) {
        let tokens = &mut self.contexts[who].tokens;
        let own = tokens.iter().rposition(|token| *token == object);
        match (on, own) {
            // It gives back what it has taken itself, as with a lock.
            (WaitKind::Semaphore, Some(index)) => {
                tokens.remove(index);
                self.give_exclusion(who, object);
            }
            (WaitKind::Condition, _) if self.conditions_exclude => {
                self.give_exclusion(who, object);
            }
            _ => self.give_order(who, object),
        }
    }

    fn waited(&mut self, who: usize, object: u64, on: WaitKind) {
        let known = self.objects.entry(object).or_default();
        let context = &mut self.contexts[who];
        context.known.join(known);
        match on {
            WaitKind::Semaphore => context.tokens.push(object),
            // One-time initialisation ends for the first caller and for all that come later.
            WaitKind::Once => {
                known.join(&context.known);
                self.tick(who);
            }
            WaitKind::Condition | WaitKind::Event => {}
        }
    }

    fn create(&mut self, who: usize, child: ContextId) {
        self.know(child);
        let parent = self.contexts[who].known.clone();
        let created = &mut self.contexts[index(child)];
        created.known.join(&parent);
        created.known.join(&self.ended);
        self.tick(index(child));
        self.tick(who);
    }

    fn join(&mut self, who: usize, child: ContextId) {
        self.know(child);
        let joined = &mut self.contexts[index(child)];
        // Who has ended says nothing more, and what it knew is needed once.
        let known = if joined.has_ended {
            std::mem::take(&mut joined.known)
        } else {
            joined.known.clone()
        };
        self.contexts[who].known.join(&known);
    }
}

fn index(who: ContextId) -> usize {
    who.0 as usize
}
