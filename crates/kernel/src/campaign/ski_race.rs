//! Data races as SKI finds them (Fonseca et al., OSDI 2014, section 5.2): conflicting accesses of two processors
//! that lie close together in time, without any knowledge of synchronisation.
//!
//! Pairs inside of lock functions are the caller's to remove, by name; pairs are grouped when they share an
//! instruction, directly or through others, because one racy variable makes many pairs. What it misses: conflicts
//! further apart than the window. What it says wrongly: accesses that a lock orders and that happen to be close.

use std::collections::{BTreeMap, VecDeque};

use raddle_detect::{HandOver, Race};
use raddle_trace::facts::touched_bytes;
use raddle_world::{AccessKind, Event, EventKind, Granule};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Accesses of all processors between the two of a pair at most.
const WINDOW: u64 = 2_000;
/// Accesses remembered for eight bytes.
const KEPT: usize = 4;

/// Two instructions that touched the same bytes from two processors, one of them writing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RacePair {
    pub first_pc: u64,
    pub second_pc: u64,
    pub first_writes: bool,
    pub second_writes: bool,
    /// Whether each reads and writes in one instruction.
    pub first_updates: bool,
    pub second_updates: bool,
    /// Whether they touch different bytes beside the common ones.
    pub differs: bool,
    /// Where, when it was seen first.
    pub addr: u64,
    pub size: u8,
    /// How often it was seen.
    pub count: u64,
    /// How often of these the second one had read what the first one wrote later, and by what it did so first.
    pub handed_over: u64,
    pub by: Option<HandOver>,
}

impl RacePair {
    pub(super) fn of(race: &Race) -> Self {
        Self {
            first_pc: race.first.site.pc(),
            second_pc: race.second.site.pc(),
            first_writes: race.first.writes,
            second_writes: race.second.writes,
            first_updates: race.first.updates,
            second_updates: race.second.updates,
            differs: false,
            addr: race.addr,
            size: race.size,
            count: 1,
            handed_over: u64::from(race.handed_over.is_some()),
            by: race.handed_over,
        }
    }

    /// Takes what another run saw of the same two instructions.
    pub(super) fn note(&mut self, other: &Self) {
        self.count += other.count;
        self.handed_over += other.handed_over;
        self.by = self.by.or(other.by);
    }

    /// Whether it was never seen without something that was read before.
    pub(super) fn is_handed_over(&self) -> bool {
        self.handed_over == self.count
    }

    /// The same whichever came first.
    pub(super) fn key(&self) -> (u64, u64) {
        (
            self.first_pc.min(self.second_pc),
            self.first_pc.max(self.second_pc),
        )
    }
}

#[derive(Debug, Clone, Copy)]
struct RecentAccess {
    number: u64,
    context: u32,
    pc: u64,
    /// The bytes of the granule that it touches, one bit each.
    bytes: u8,
    writes: bool,
    updates: bool,
    atomic: bool,
}

/// The detector for one run.
#[derive(Debug, Default)]
pub(super) struct SkiRaces {
    number: u64,
    recent: FxHashMap<Granule, VecDeque<RecentAccess>>,
    found: BTreeMap<(u64, u64), RacePair>,
}

impl SkiRaces {
    pub(super) fn event(&mut self, event: &Event) {
        let EventKind::Access(told) = event.kind else {
            return;
        };
        let raddle_world::Access {
            location,
            addr,
            size,
            how,
            ..
        } = told;
        let (writes, atomic) = (how.writes(), how.is_atomic());
        self.number += 1;
        let granule = location.granule();
        let access = RecentAccess {
            number: self.number,
            context: event.context.0,
            pc: event.pc(),
            bytes: touched_bytes(&told),
            writes,
            updates: how == AccessKind::Update,
            atomic,
        };
        let recent = self.recent.entry(granule).or_default();
        for other in recent.iter() {
            let conflicts = other.context != access.context
                && (other.writes || access.writes)
                && !(other.atomic && access.atomic)
                && other.bytes & access.bytes != 0
                && access.number - other.number <= WINDOW;
            if conflicts {
                let pair = RacePair {
                    first_pc: other.pc,
                    second_pc: access.pc,
                    first_writes: other.writes,
                    second_writes: access.writes,
                    first_updates: other.updates,
                    second_updates: access.updates,
                    differs: other.bytes != access.bytes,
                    addr,
                    size,
                    count: 1,
                    handed_over: 0,
                    by: None,
                };
                self.found
                    .entry(pair.key())
                    .and_modify(|known| known.count += 1)
                    .or_insert(pair);
            }
        }
        if recent.len() == KEPT {
            recent.pop_front();
        }
        recent.push_back(access);
    }

    pub(super) fn found(self) -> Vec<RacePair> {
        self.found.into_values().collect()
    }
}

/// Pairs that share instructions, directly or through others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaceGroup {
    pub pairs: Vec<RacePair>,
}

/// Groups pairs; the order of groups and pairs is that of their instructions.
pub(super) fn group(pairs: &[RacePair]) -> Vec<RaceGroup> {
    let mut parents: Vec<usize> = (0..pairs.len()).collect();
    let mut owner: BTreeMap<u64, usize> = BTreeMap::new();
    for (index, pair) in pairs.iter().enumerate() {
        for pc in [pair.first_pc, pair.second_pc] {
            let other = *owner.entry(pc).or_insert(index);
            let (a, b) = (root(&mut parents, index), root(&mut parents, other));
            parents[a.max(b)] = a.min(b);
        }
    }
    let mut groups: BTreeMap<usize, RaceGroup> = BTreeMap::new();
    for (index, pair) in pairs.iter().enumerate() {
        let root = root(&mut parents, index);
        groups
            .entry(root)
            .or_insert_with(|| RaceGroup { pairs: Vec::new() })
            .pairs
            .push(pair.clone());
    }
    groups.into_values().collect()
}

fn root(parents: &mut [usize], mut index: usize) -> usize {
    while parents[index] != index {
        parents[index] = parents[parents[index]];
        index = parents[index];
    }
    index
}

#[cfg(test)]
mod tests {
    use raddle_world::{ContextId, Location, Site};

    use super::*;

    fn access(context: u32, pc: u64, offset: u16, size: u8, writes: bool) -> Event {
        let location = Location::shared(3, offset);
        let (addr, value) = (u64::from(offset), None);
        Event {
            context: ContextId(context),
            step: 0,
            site: Site::first(pc),
            kind: EventKind::Access(raddle_world::Access {
                how: if writes {
                    AccessKind::Write
                } else {
                    AccessKind::Read
                },
                size,
                location,
                addr,
                value,
            }),
        }
    }

    fn pairs(events: &[Event]) -> Vec<(u64, u64)> {
        let mut races = SkiRaces::default();
        events.iter().for_each(|event| races.event(event));
        races.found().iter().map(RacePair::key).collect()
    }

    #[test]
    fn only_overlapping_conflicts_of_two_processors_count() {
        let events = [
            access(0, 1, 0, 4, true),
            access(1, 2, 4, 4, true),
            access(1, 3, 0, 2, false),
            access(0, 4, 0, 4, false),
            access(0, 5, 64, 8, true),
            access(0, 6, 64, 8, true),
        ];
        assert_eq!(pairs(&events), [(1, 3)]);
    }

    #[test]
    fn far_apart_is_no_race() {
        let mut events = vec![access(0, 1, 0, 8, true)];
        for _ in 0..WINDOW {
            events.push(access(0, 9, 512, 8, false));
        }
        events.push(access(1, 2, 0, 8, true));
        assert_eq!(pairs(&events), []);
    }

    #[test]
    fn groups_join_through_common_instructions() {
        let pair = |a, b| RacePair {
            first_pc: a,
            second_pc: b,
            first_writes: true,
            second_writes: true,
            first_updates: false,
            second_updates: false,
            differs: false,
            addr: 0,
            size: 8,
            count: 1,
            handed_over: 0,
            by: None,
        };
        let groups = group(&[pair(1, 2), pair(5, 6), pair(2, 3), pair(3, 4)]);
        let sizes: Vec<usize> = groups.iter().map(|group| group.pairs.len()).collect();
        assert_eq!(sizes, [3, 1]);
    }
}
