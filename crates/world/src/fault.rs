//! What the system may do to a context although nothing is wrong with the system: standards allow it, machines do it
//! seldom, and programs must bear it.

use serde::{Deserialize, Serialize};

use crate::context::ContextId;

/// One thing that a context meets in what it is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// A wait for a condition ends though nothing has changed.
    SpuriousWakeUp,
    /// Of several who wait, the last to come is woken instead of the first.
    WakeOrder,
    /// A read or write of a pipe or socket moves one byte only.
    ShortTransfer,
    /// A call that may block ends with EINTR.
    Interrupted,
    /// An allocation fails.
    NoMemory,
}

impl Fault {
    /// All of them, with the names that users know them by.
    pub const ALL: [(&'static str, Self); 5] = [
        ("wake-up", Self::SpuriousWakeUp),
        ("wake-order", Self::WakeOrder),
        ("short", Self::ShortTransfer),
        ("interrupt", Self::Interrupted),
        ("memory", Self::NoMemory),
    ];

    /// The name that users know it by.
    pub fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(_, fault)| *fault == self)
            .map_or("fault", |(name, _)| name)
    }
}

/// The ability to let contexts meet faults.
pub trait MeetFaults {
    /// What a context could meet in the call or function that it is about to begin.
    fn possible(&self, who: ContextId) -> Vec<Fault>;
    /// Lets it meet one; false if that is not possible here.
    fn meet(&mut self, who: ContextId, fault: Fault) -> bool;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<&str> =
            Fault::ALL.iter().map(|(_, fault)| fault.name()).collect();
        assert_eq!(names.len(), Fault::ALL.len());
        assert!(!names.contains("fault"));
    }
}
