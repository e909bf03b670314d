//! What happened in a run, or what stands in the source: steps, and how they depend on each other.

use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::place::{Code, Place, Word};

/// Somebody who takes part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Context {
    /// `thread 2`, `CPU 0`, for static findings the part of the pattern.
    pub label: String,
    /// Creation path: `[0, 2, 1]` is the second child of the third child of the first context. Empty if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<u32>,
    /// Where it was created, if that is part of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Place>,
}

impl Context {
    /// One of which nothing but the name is known.
    pub fn named(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            path: Vec::new(),
            created: None,
        }
    }
}

/// One piece of evidence: who does what, to what, where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Step {
    /// Number of the context in `contexts`.
    pub context: usize,
    #[serde(flatten)]
    pub action: Action,
    /// The name of what it is done to: a variable, a lock, a heap block; for static findings the expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Where that is in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Word>,
    /// Bytes that are touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u8>,
    /// What was there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What is there afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    pub place: Place,
    /// The instruction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// The function of a library that does so on behalf of the place, which has called it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Number of its call stack in `stacks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<usize>,
    pub locks: Locks,
    /// Steps that all contexts have made since the start of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global_step: Option<u64>,
    /// The same instruction did the same so many times more right before, as in a loop.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeats: u64,
    /// For each context the number of its steps in this list that are known to come no later, itself included. Empty
    /// if nothing is known of the order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clock: Vec<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Step {
    /// A step of which nothing but this is known.
    pub fn new(context: usize, action: Action, place: Place) -> Self {
        Self {
            context,
            action,
            object: None,
            address: None,
            size: None,
            before: None,
            after: None,
            place,
            code: None,
            via: None,
            stack: None,
            locks: Locks::Unknown,
            global_step: None,
            repeats: 0,
            clock: Vec::new(),
        }
    }
}

/// The locks that a context holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Locks {
    /// Nobody has looked.
    #[default]
    Unknown,
    /// These and no others, as far as locks are known; in the order in which they were taken.
    Known(Vec<Held>),
}

impl Locks {
    /// Locks of which only the names are known.
    pub fn named(names: impl IntoIterator<Item = String>) -> Self {
        let held = names.into_iter().map(|name| Held {
            name,
            address: None,
            is_shared: false,
            section: None,
        });
        Self::Known(held.collect())
    }

    /// The locks, if they are known.
    pub fn known(&self) -> Option<&[Held]> {
        match self {
            Self::Unknown => None,
            Self::Known(held) => Some(held),
        }
    }
}

/// A lock that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Held {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Word>,
    /// Others may hold it at the same time, as readers of a read-write lock do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shared: bool,
    /// Which critical section of the run it is: equal for steps that no release of the lock lies between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<u64>,
}

/// What memory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Value {
    /// The low 64 bits.
    pub bits: Word,
    /// Bytes that the access touches.
    pub size: u8,
}

impl Value {
    /// As people write it: small negative numbers have a sign, and what looks like an address is hexadecimal.
    pub fn shown(self) -> String {
        let value = self.bits.0;
        let bits = u32::from(self.size.min(8)) * 8;
        let value = if bits < 64 {
            value & ((1 << bits) - 1)
        } else {
            value
        };
        let is_small_negative = bits >= 32 && value >> (bits - 8) == 0xFF;
        if is_small_negative {
            let missing = 64 - bits;
            return (value << missing)
                .cast_signed()
                .wrapping_shr(missing)
                .to_string();
        }
        if value < 1 << 32 {
            value.to_string()
        } else {
            format!("{value:#x}")
        }
    }
}

/// How one step depends on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Edge {
    pub kind: EdgeKind,
    /// Number of the earlier step.
    pub from: usize,
    /// Number of the later step.
    pub to: usize,
}

/// In what way one step depends on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EdgeKind {
    /// Synchronisation of the program puts them in this order in every run that does the same: a lock that one gives up
    /// and the other takes, a wake-up, the creation of a thread.
    HappensBefore,
    /// The later one reads what the earlier one wrote.
    ReadsFrom,
    /// The scheduler has stopped the context of the earlier one and has let that of the later one go on.
    Switch,
}

/// A context that cannot go on, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Wait {
    /// Number of the context that waits.
    pub context: usize,
    /// Number of the step at which it stands.
    pub step: usize,
    /// The name of what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Number of the context that would have to do something first, if there is one in particular.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<usize>,
    /// It is one of those that wait for each other in a circle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_circle: bool,
}

/// A run that is told beside the failing one; contexts and stacks are those of the finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Run {
    /// One line: in what its order differs and how it ends.
    pub title: String,
    pub steps: Vec<Step>,
    #[serde(default)]
    pub edges: Vec<Edge>,
}

/// A heap block with its life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Block {
    pub address: Word,
    pub size: u64,
    pub allocated: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed: Option<Moment>,
}

/// Who did something once, and with which stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Moment {
    /// Number of the context.
    pub context: usize,
    /// Number of the stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<usize>,
}

/// How a run was found and made small.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Search {
    /// Number of the schedule in which it was first seen.
    pub schedule: u64,
    /// Switches away from a context that could have gone on.
    pub preemptions: u64,
    /// All switches.
    pub switches: u64,
    /// Switches between the read and the write of one instruction.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub torn: u64,
    /// Times the clock jumped to a timer although others could have run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock_jumps: u64,
    /// No preemption can be left out.
    pub is_minimal: bool,
    /// Replays that were made.
    pub replays: u64,
    /// Those that were the same run.
    pub replays_same: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_signs_and_addresses_are_hexadecimal() {
        let shown = |bits, size| {
            let bits = Word(bits);
            Value { bits, size }.shown()
        };
        assert_eq!(shown(0xFFFF_FFFF, 4), "-1");
        assert_eq!(shown(7, 4), "7");
        assert_eq!(shown(0xFF, 1), "255");
        assert_eq!(shown(0x5555_0000_1000, 8), "0x555500001000");
        assert_eq!(shown(u64::MAX, 8), "-1");
    }

    #[test]
    fn unknown_locks_are_not_the_same_as_none() {
        let text = |locks: Locks| serde_json::to_string(&locks).unwrap();
        assert_eq!(text(Locks::Unknown), "\"unknown\"");
        assert_eq!(text(Locks::named([])), r#"{"known":[]}"#);
        assert_eq!(
            text(Locks::named(["m".to_owned()])),
            r#"{"known":[{"name":"m"}]}"#
        );
    }
}
