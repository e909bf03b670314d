//! What a call of a function does to locks, in terms of its parameters.

use super::value::{ANY, Node, Signs, Value, Values};
use crate::analyse::locks::Lock;
use crate::analyse::program::Name;

/// One step from a root to a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TermStep {
    Field(Name),
    Load,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TermRoot {
    Param(u32),
    Global(Name),
    /// What the function returns.
    Result,
}

/// A value that the caller can name too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Term {
    root: TermRoot,
    steps: Vec<TermStep>,
}

/// Steps that are followed.
const STEPS_MAX: usize = 8;

impl Term {
    pub(super) fn of(values: &Values, value: Value) -> Option<Self> {
        Self::of_returned(values, value, None)
    }

    /// The same in a function that returns `result`.
    pub(super) fn of_returned(
        values: &Values,
        value: Value,
        result: Option<Value>,
    ) -> Option<Self> {
        let mut steps = Vec::new();
        let mut here = value;
        let root = loop {
            if steps.len() > STEPS_MAX {
                return None;
            }
            if Some(here) == result && !matches!(values.node(here), Node::Param(_)) {
                break TermRoot::Result;
            }
            here = match values.node(here) {
                Node::Field(base, name) => {
                    steps.push(TermStep::Field(name));
                    base
                }
                Node::Load(base) => {
                    steps.push(TermStep::Load);
                    base
                }
                Node::Param(number) => break TermRoot::Param(number),
                Node::Global(name) => break TermRoot::Global(name),
                _ => return None,
            };
        };
        steps.reverse();
        Some(Self { root, steps })
    }

    /// Whether it is part of what the function returns.
    pub(super) fn is_of_result(&self) -> bool {
        self.root == TermRoot::Result
    }

    /// The value in a caller that gives these arguments.
    pub(super) fn value(
        &self,
        values: &mut Values,
        args: &[Value],
        result: Option<Value>,
    ) -> Option<Value> {
        let mut value = match self.root {
            TermRoot::Result => result?,
            TermRoot::Param(number) => *args.get(crate::front::lex::at(number))?,
            TermRoot::Global(name) => values.add(Node::Global(name)),
        };
        for step in &self.steps {
            let node = match step {
                TermStep::Field(name) => Node::Field(value, *name),
                TermStep::Load => Node::Load(value),
            };
            value = values.add(node);
        }
        Some(value)
    }
}

/// A lock as the callee knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) lock: Lock,
    pub(crate) term: Option<Term>,
}

/// One way through the function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Signs of the results of such ways.
    pub(crate) signs: Signs,
    pub(crate) takes: Vec<Touched>,
    pub(crate) frees: Vec<Touched>,
}

/// All ways through a function, as far as they differ in locks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Summary {
    pub(crate) outcomes: Vec<Outcome>,
    /// Locks taken on the straight way, released again or not.
    pub(crate) passes: Vec<Touched>,
    /// Locks of callers that are released on some way which cannot be told.
    pub(crate) doubts: Vec<Lock>,
    /// Locks released somewhere inside.
    pub(crate) releases: Vec<Lock>,
}

/// Different effects that are kept apart.
const OUTCOMES_MAX: usize = 4;

impl Summary {
    /// Whether a call changes no lock, whatever the result.
    pub(crate) fn is_plain(&self) -> bool {
        self.outcomes
            .iter()
            .all(|outcome| outcome.takes.is_empty() && outcome.frees.is_empty())
    }

    /// Whether the result tells which of the ways was taken.
    pub(super) fn is_told_by_result(&self) -> bool {
        let mut seen = 0;
        self.outcomes.iter().all(|outcome| {
            let is_new = seen & outcome.signs == 0;
            seen |= outcome.signs;
            is_new
        })
    }

    /// What all ways do, and what only some do.
    pub(super) fn split(&self) -> (Outcome, Outcome) {
        let mut always = Outcome {
            signs: ANY,
            takes: Vec::new(),
            frees: Vec::new(),
        };
        let mut sometimes = always.clone();
        for outcome in &self.outcomes {
            for touched in &outcome.takes {
                let everywhere = self
                    .outcomes
                    .iter()
                    .all(|other| other.takes.contains(touched));
                let list = if everywhere {
                    &mut always
                } else {
                    &mut sometimes
                };
                if !list.takes.contains(touched) {
                    list.takes.push(touched.clone());
                }
            }
            for touched in &outcome.frees {
                let everywhere = self
                    .outcomes
                    .iter()
                    .all(|other| other.frees.contains(touched));
                let list = if everywhere {
                    &mut always
                } else {
                    &mut sometimes
                };
                if !list.frees.contains(touched) {
                    list.frees.push(touched.clone());
                }
            }
        }
        (always, sometimes)
    }

    /// Adds a way; ways of the same effect become one.
    pub(super) fn add(&mut self, outcome: Outcome) {
        let known = self
            .outcomes
            .iter()
            .position(|known| known.takes == outcome.takes && known.frees == outcome.frees);
        match known {
            Some(place) => self.outcomes[place].signs |= outcome.signs,
            None if self.outcomes.len() < OUTCOMES_MAX => self.outcomes.push(outcome),
            // Too many kinds: the result tells nothing any more.
            None => self.outcomes.iter_mut().for_each(|known| known.signs = ANY),
        }
    }
}
