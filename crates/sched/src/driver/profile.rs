//! What a finished run tells about the size of the program.

use std::collections::BTreeMap;

use raddle_world::{ContextId, World};

use super::Drive;
use crate::scheduler::Profile;

impl Drive {
    /// Stops of a run by the paths of its contexts, for a profile.
    pub fn stops_by_path<W: World>(&self, world: &W) -> Vec<(raddle_trace::Path, u64)> {
        let table = world.contexts();
        self.stops
            .iter()
            .zip(0..)
            .filter(|(count, _)| **count > 0)
            .map(|(count, id)| (table.get(ContextId(id)).path.to_vec(), *count))
            .collect()
    }

    /// What this run tells about the size of the program.
    pub fn profile<W: World>(&self, world: &W) -> Profile {
        let table = world.contexts();
        let path = |id| table.get(ContextId(id)).path.to_vec();
        let mut profile = Profile {
            decisions: self.decisions,
            timed_stops: self.timed_stops,
            stops: self.stops_by_path(world).into_iter().collect(),
            visits: BTreeMap::new(),
            kinds: self
                .kinds
                .iter()
                .zip(0..)
                .map(|(kind, id)| (path(id), *kind))
                .collect(),
            trail: self.trail.clone(),
        };
        for (who, site) in &self.points {
            let visits = profile.visits.entry(path(who.0)).or_default();
            *visits.entry(*site).or_default() += 1;
        }
        profile
    }
}
