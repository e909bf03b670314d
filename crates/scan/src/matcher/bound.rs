//! What variables of a pattern are bound to.

use crate::analyse::keys::Key;
use crate::analyse::locks::Lock;
use crate::analyse::program::{EventId, FnId};
use crate::front::ast::E;

/// A code element behind a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bound {
    /// An accessed object.
    Object {
        place: EventId,
        expr: E,
        key: Key,
    },
    /// A condition with the shared objects it looks at.
    Condition {
        place: EventId,
        expr: E,
        objects: Vec<(E, Key)>,
    },
    /// The arguments of a call.
    Args {
        place: EventId,
        call: E,
    },
    Function(FnId),
    Lock {
        place: EventId,
        lock: Lock,
    },
}

impl Bound {
    /// Alias keys of everything the element names.
    pub(crate) fn keys(&self) -> Vec<Key> {
        match self {
            Bound::Object { key, .. } => vec![*key],
            Bound::Condition { objects, .. } => objects.iter().map(|(_, key)| *key).collect(),
            Bound::Args { .. } | Bound::Function(_) | Bound::Lock { .. } => Vec::new(),
        }
    }
}

/// A pattern matched in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Partial {
    pub(crate) variables: Vec<Option<Bound>>,
    pub(crate) labels: Vec<Option<EventId>>,
    /// Matched statements in order: sub-pattern and place.
    pub(crate) trace: Vec<(usize, EventId)>,
}

impl Partial {
    pub(crate) fn new(variables: usize, labels: usize) -> Self {
        Self {
            variables: vec![None; variables],
            labels: vec![None; labels],
            trace: Vec::new(),
        }
    }
}
