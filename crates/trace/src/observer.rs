//! Who looks at a run, and what has to be observed for it.

use raddle_world::Event;
use serde::{Deserialize, Serialize};

use crate::facts::Facts;

/// How closely a run is observed; each includes those before it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Observation {
    /// How it ends.
    #[default]
    Nothing,
    /// Synchronisation, allocation, system calls.
    Synchronisation,
    /// Memory accesses, too.
    Addresses,
    /// With their values.
    Values,
}

/// What has to be observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    pub observation: Observation,
    /// Call stacks of allocations and accesses.
    pub stacks: bool,
}

impl Needs {
    pub const fn of(observation: Observation) -> Self {
        Self {
            observation,
            stacks: false,
        }
    }

    /// What serves both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            observation: self.observation.max(other.observation),
            stacks: self.stacks || other.stacks,
        }
    }

    /// What serves all of these.
    pub fn of_all(observers: &[&mut dyn Observer]) -> Self {
        let needs = observers.iter().map(|observer| observer.needs());
        needs.fold(Self::default(), Self::and)
    }
}

/// Looks at the events of one run.
pub trait Observer {
    fn needs(&self) -> Needs;

    /// An event happened; the facts know of it already.
    fn event(&mut self, event: &Event, facts: &Facts);
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Wants(Needs);

    impl Observer for Wants {
        fn needs(&self) -> Needs {
            self.0
        }

        fn event(&mut self, _: &Event, _: &Facts) {}
    }

    #[test]
    fn a_run_is_observed_as_closely_as_the_most_curious_wants() {
        let mut first = Wants(Needs::of(Observation::Addresses));
        let mut second = Wants(Needs {
            observation: Observation::Synchronisation,
            stacks: true,
        });
        let all = Needs::of_all(&[&mut first, &mut second]);
        assert_eq!(all.observation, Observation::Addresses);
        assert!(all.stacks);
        assert_eq!(Needs::of_all(&[]), Needs::default());
    }
}
