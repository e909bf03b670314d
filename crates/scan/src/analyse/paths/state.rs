//! What is known on one path through a function, and how paths are joined.

use super::judge::PathFactKind;
use super::uses::Uses;
use super::value::{ANY, Node, Signs, Value, Values};
use crate::analyse::locks::{Lock, LockSet};
use crate::front::ast::E;
use crate::front::lex::Sym;

/// A lock held on this path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) lock: Lock,
    /// The address of the lock, or of the object it belongs to.
    pub(crate) instance: Value,
    /// Where it was taken.
    pub(crate) by: u32,
    /// Something that may release it was called.
    pub(crate) unsure: bool,
    /// It is a lock of what a callee returned, which took it.
    pub(crate) handed: bool,
}

/// A lock that was taken and released on this path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) lock: Lock,
    pub(crate) instance: Value,
    pub(crate) by: u32,
    pub(crate) released: u32,
    /// It was exactly this lock, and certainly held.
    pub(crate) is_sure: bool,
}

/// A lock of the caller that was released on this path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Freed {
    pub(crate) lock: Lock,
    pub(crate) instance: Value,
    pub(crate) by: u32,
}

/// An object that must not be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(super) object: Value,
    /// Where it went.
    pub(super) by: u32,
    pub(super) kind: PathFactKind,
}

/// An object that only a section or lock keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Borrowed {
    pub(super) object: Value,
    /// Nothing stands for RCU.
    pub(super) lock: Option<Lock>,
}

/// What a local holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) local: Sym,
    pub(super) value: Value,
    /// The expression it was set to.
    pub(super) source: E,
}

/// What is known of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) value: Value,
    pub(super) signs: Signs,
    /// The expression that told.
    pub(super) source: E,
}

/// One path, or several that do not differ in their locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(super) locals: Vec<Slot>,
    pub(super) memory: Vec<(Value, Value)>,
    /// Results of the latest calls.
    pub(super) results: Vec<(E, Value)>,
    pub(super) facts: Vec<Fact>,
    /// Objects found in the RCU section that is open, or under a lock that is held.
    pub(super) borrowed: Vec<Borrowed>,
    pub(super) gone: Vec<Gone>,
    pub(crate) held: Vec<Held>,
    pub(crate) freed: Vec<Freed>,
    pub(crate) done: Vec<Done>,
    pub(crate) held_set: LockSet,
    /// Without what may have been released by something unknown.
    pub(crate) sure_set: LockSet,
    pub(crate) freed_set: LockSet,
    /// Paths of different facts were joined here: what follows may be impossible.
    pub(crate) joined: bool,
    /// The path takes a way that is seldom meant to be taken.
    pub(crate) unlikely: bool,
}

/// Results of calls that are remembered.
const RESULTS_MAX: usize = 12;
/// Locks released on a path that are remembered.
const DONE_MAX: usize = 12;
/// Paths with the same locks kept apart by facts.
const VARIANTS_MAX: usize = 12;
/// Paths kept at one event.
const STATES_MAX: usize = 40;

impl State {
    pub(super) fn new() -> Self {
        Self {
            locals: Vec::new(),
            memory: Vec::new(),
            results: Vec::new(),
            facts: Vec::new(),
            borrowed: Vec::new(),
            gone: Vec::new(),
            held: Vec::new(),
            freed: Vec::new(),
            done: Vec::new(),
            held_set: LockSet::EMPTY,
            sure_set: LockSet::EMPTY,
            freed_set: LockSet::EMPTY,
            joined: false,
            unlikely: false,
        }
    }

    pub(super) fn local(&self, local: Sym) -> Option<Slot> {
        self.locals.iter().copied().find(|slot| slot.local == local)
    }

    pub(super) fn set_local(&mut self, local: Sym, value: Value, source: E) {
        let slot = Slot {
            local,
            value,
            source,
        };
        match self.locals.binary_search_by_key(&local, |slot| slot.local) {
            Ok(place) => self.locals[place] = slot,
            Err(place) => self.locals.insert(place, slot),
        }
    }

    pub(super) fn stored(&self, address: Value) -> Option<Value> {
        let found = self.memory.iter().find(|(known, _)| *known == address);
        found.map(|(_, value)| *value)
    }

    pub(super) fn store(&mut self, address: Value, value: Value) {
        match self.memory.iter_mut().find(|(known, _)| *known == address) {
            Some(slot) => slot.1 = value,
            None => self.memory.push((address, value)),
        }
    }

    pub(super) fn result(&self, call: E) -> Option<Value> {
        let found = self.results.iter().rev().find(|(known, _)| *known == call);
        found.map(|(_, value)| *value)
    }

    pub(super) fn set_result(&mut self, call: E, value: Value) {
        self.results.retain(|(known, _)| *known != call);
        if self.results.len() >= RESULTS_MAX {
            self.results.remove(0);
        }
        self.results.push((call, value));
    }

    pub(super) fn signs(&self, value: Value) -> Signs {
        let found = self.facts.binary_search_by_key(&value, |fact| fact.value);
        found.map_or(ANY, |place| self.facts[place].signs)
    }

    /// Narrows what is known of `value`; false if that is impossible.
    pub(super) fn narrow(&mut self, value: Value, signs: Signs, source: E) -> bool {
        match self.facts.binary_search_by_key(&value, |fact| fact.value) {
            Ok(place) => {
                self.facts[place].signs &= signs;
                if self.facts[place].source == E::NONE {
                    self.facts[place].source = source;
                }
                self.facts[place].signs != 0
            }
            Err(place) => {
                let fact = Fact {
                    value,
                    signs,
                    source,
                };
                if signs != ANY {
                    self.facts.insert(place, fact);
                }
                signs != 0
            }
        }
    }

    /// Forgets what nothing from `position` on asks for, so that paths which differ in nothing else meet again.
    pub(super) fn forget(&mut self, uses: &Uses, position: u32) {
        self.locals
            .retain(|slot| uses.is_named_from(slot.local, position));
        let locals = &self.locals;
        self.results
            .retain(|(call, _)| uses.is_tested_from(*call, position));
        self.facts.retain(|fact| {
            uses.is_tested_from(fact.source, position)
                || locals.iter().any(|slot| slot.value == fact.value)
        });
    }

    pub(super) fn remember_done(&mut self, done: Done) {
        self.done
            .retain(|old| old.instance != done.instance || old.lock != done.lock);
        if self.done.len() >= DONE_MAX {
            self.done.remove(0);
        }
        self.done.push(done);
    }

    fn has_same_locks(&self, other: &Self) -> bool {
        self.held == other.held
            && self.freed == other.freed
            && self.done == other.done
            && self.gone == other.gone
    }

    /// Keeps what both know; a local that differs holds something new.
    fn join(&mut self, other: &Self, values: &mut Values, position: u32) {
        let both: Vec<Sym> = self
            .locals
            .iter()
            .chain(&other.locals)
            .map(|slot| slot.local)
            .collect();
        for local in both {
            if self.local(local) != other.local(local) {
                let value = values.add(Node::Joined(position, local));
                self.set_local(local, value, E::NONE);
            }
        }
        self.memory.retain(|pair| other.memory.contains(pair));
        self.results.retain(|pair| other.results.contains(pair));
        for fact in &mut self.facts {
            fact.signs |= other.signs(fact.value);
        }
        self.facts.retain(|fact| fact.signs != ANY);
        self.joined = true;
        self.unlikely &= other.unlikely;
    }
}

/// Adds a path to those that reach an event; false if it had to be dropped.
pub(super) fn add(
    states: &mut Vec<State>,
    state: State,
    values: &mut Values,
    position: u32,
) -> bool {
    let mut last = None;
    let mut count = 0;
    for (place, known) in states.iter().enumerate() {
        if !known.has_same_locks(&state) {
            continue;
        }
        if *known == state {
            return true;
        }
        last = Some(place);
        count += 1;
    }
    if let Some(last) = last
        && (count >= VARIANTS_MAX || states.len() >= STATES_MAX)
    {
        states[last].join(&state, values, position);
        return true;
    }
    if states.len() >= STATES_MAX {
        return false;
    }
    states.push(state);
    true
}
