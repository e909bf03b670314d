//! Which parts of a sequential test are worth running at the same time: those that touch common memory, one of them
//! writing (Fonseca, "Effective Concurrency Testing for Distributed and Multi-threaded Systems", section 8.3.1).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use raddle_stdx::width::to_u64;
use raddle_trace::{Facts, Needs, Observation, Observer};
use raddle_world::{Event, EventKind, Site};

/// Places of code that touch one place of memory, of which more are not told apart.
const SITES_MAX: usize = 16;
/// Below so many parts, what most of them touch may well be what they are about.
const FEW: usize = 4;

/// Where the memory of a kernel begins: the upper half of the address space.
const KERNEL_MEMORY: u64 = 1 << 63;

/// What one part of a test touches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Footprint {
    /// For each granule of memory the instructions that read it and that write it.
    granules: BTreeMap<u64, [BTreeSet<Site>; 2]>,
}

impl Footprint {
    pub fn note(&mut self, granule: u64, site: Site, is_write: bool) {
        let sites = &mut self.granules.entry(granule).or_default()[usize::from(is_write)];
        if sites.len() < SITES_MAX {
            sites.insert(site);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.granules.is_empty()
    }
}

/// Two parts that touch common memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    pub first: usize,
    pub second: usize,
    /// Pairs of instructions that no better pair has brought together.
    pub new: u64,
    /// All pairs of instructions that touch common memory.
    pub all: u64,
}

/// Pairs of parts, the one first that brings most instructions together which none before it has; those that bring none
/// are left out. What more than half of the parts touch says nothing about any two of them.
pub fn rank(footprints: &[Footprint]) -> Vec<Pair> {
    let mut users: BTreeMap<u64, usize> = BTreeMap::new();
    for granule in footprints.iter().flat_map(|print| print.granules.keys()) {
        *users.entry(*granule).or_default() += 1;
    }
    let is_telling = |granule: &u64| {
        let count = users.get(granule).copied().unwrap_or(0);
        footprints.len() < FEW || 2 * count <= footprints.len()
    };
    let mut meetings = Vec::new();
    for (second, later) in footprints.iter().enumerate() {
        for (first, earlier) in footprints[..second].iter().enumerate() {
            let sites = common(earlier, later, &is_telling);
            if !sites.is_empty() {
                meetings.push((first, second, sites));
            }
        }
    }
    greedily(meetings)
}

/// Two footprints, and the pairs of instructions by which they meet.
type Meeting = (usize, usize, BTreeSet<(Site, Site)>);

/// Takes what brings most that is new, again and again; of equals the earlier.
fn greedily(meetings: Vec<Meeting>) -> Vec<Pair> {
    let mut seen: BTreeSet<(Site, Site)> = BTreeSet::new();
    let mut ranked = Vec::new();
    // How much each may bring: never more than when it was last counted, since what was seen only grows.
    let bounds = meetings.iter().zip(0..);
    let bounds = bounds.map(|((_, _, sites), at)| (to_u64(sites.len()), Reverse(at)));
    let mut bounds: BinaryHeap<(u64, Reverse<usize>)> = bounds.collect();
    while let Some((_, Reverse(at))) = bounds.pop() {
        let (first, second, sites) = &meetings[at];
        let new = to_u64(sites.difference(&seen).count());
        if new == 0 {
            continue;
        }
        if bounds.peek().is_some_and(|next| *next > (new, Reverse(at))) {
            bounds.push((new, Reverse(at)));
            continue;
        }
        ranked.push(Pair {
            first: *first,
            second: *second,
            new,
            all: to_u64(sites.len()),
        });
        seen.extend(sites);
    }
    ranked
}

/// The pairs of instructions that touch a common granule, one of them writing.
fn common(
    one: &Footprint,
    other: &Footprint,
    counts: &dyn Fn(&u64) -> bool,
) -> BTreeSet<(Site, Site)> {
    let mut pairs = BTreeSet::new();
    let (few, many) = if one.granules.len() <= other.granules.len() {
        (one, other)
    } else {
        (other, one)
    };
    for (granule, [reads, writes]) in &few.granules {
        let Some([other_reads, other_writes]) = many.granules.get(granule) else {
            continue;
        };
        if !counts(granule) {
            continue;
        }
        let both = |from: &BTreeSet<Site>, to: &BTreeSet<Site>| -> Vec<(Site, Site)> {
            let each = from.iter().flat_map(|a| to.iter().map(move |b| (*a, *b)));
            each.map(|(a, b)| (a.min(b), a.max(b))).collect()
        };
        pairs.extend(both(writes, other_writes));
        pairs.extend(both(writes, other_reads));
        pairs.extend(both(reads, other_writes));
    }
    pairs
}

/// Watches a sequential run; the caller says where the next part begins.
#[derive(Debug)]
pub struct Profiler {
    /// Whether an event begins a part.
    begins: fn(&Event) -> bool,
    /// Addresses below are no common memory.
    from: u64,
    pub footprints: Vec<Footprint>,
}

impl Profiler {
    pub fn new(begins: fn(&Event) -> bool) -> Self {
        Self {
            begins,
            from: 0,
            footprints: Vec::new(),
        }
    }

    /// One who takes a whole run of a kernel as one part: what it does in the memory of programs is theirs.
    pub fn of_kernel() -> Self {
        Self {
            begins: |_| false,
            from: KERNEL_MEMORY,
            footprints: vec![Footprint::default()],
        }
    }
}

impl Observer for Profiler {
    fn needs(&self) -> Needs {
        Needs::of(Observation::Addresses)
    }

    fn event(&mut self, event: &Event, _: &Facts) {
        if (self.begins)(event) {
            self.footprints.push(Footprint::default());
        }
        let (Some(current), EventKind::Access(access)) = (self.footprints.last_mut(), &event.kind)
        else {
            return;
        };
        if access.addr < self.from {
            return;
        }
        for piece in access.pieces() {
            let granule = piece.location.granule().number();
            current.note(granule, event.site, access.how.writes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Granules that are written, and granules that are read, each by an instruction of its own.
    fn print(writes: &[u64], reads: &[u64]) -> Footprint {
        let mut print = Footprint::default();
        for granule in writes {
            print.note(*granule, Site::first(1000 + granule), true);
        }
        for granule in reads {
            print.note(*granule, Site::first(2000 + granule), false);
        }
        print
    }

    fn ranked(prints: &[Footprint]) -> Vec<(usize, usize)> {
        let pairs = rank(prints).into_iter();
        pairs.map(|pair| (pair.first, pair.second)).collect()
    }

    #[test]
    fn those_come_first_who_meet_most() {
        let prints = [print(&[1, 2], &[]), print(&[], &[1]), print(&[3], &[1, 2])];
        // The second and the third only read what they share.
        assert_eq!(ranked(&prints), [(0, 2)]);
        let prints = [print(&[1, 2], &[]), print(&[5], &[1]), print(&[], &[5])];
        assert_eq!(ranked(&prints), [(0, 1), (1, 2)]);
    }

    #[test]
    fn a_pair_that_brings_nothing_new_is_left_out() {
        let prints = [print(&[1], &[]), print(&[], &[1]), print(&[], &[1])];
        assert_eq!(ranked(&prints), [(0, 1)]);
    }

    /// The ranking counts again only what may come next; it must be what counting all again and again gives.
    #[test]
    fn the_ranking_takes_the_best_each_time() {
        let mut random = raddle_stdx::Prng::new(8);
        for _ in 0..50 {
            let prints: Vec<Footprint> = (0..8)
                .map(|_| {
                    let mut any = || (0..4).map(|_| random.below(12)).collect::<Vec<_>>();
                    let (writes, reads) = (any(), any());
                    print(&writes, &reads)
                })
                .collect();
            let mut left: Vec<Meeting> = Vec::new();
            for second in 0..prints.len() {
                for first in 0..second {
                    let sites = common(&prints[first], &prints[second], &|_| true);
                    left.push((first, second, sites));
                }
            }
            let mut expected = Vec::new();
            let mut seen = BTreeSet::new();
            let all = left.clone();
            loop {
                let new = |sites: &BTreeSet<(Site, Site)>| sites.difference(&seen).count();
                let counts = left.iter().zip(0..);
                let best = counts
                    .map(|((_, _, sites), at)| (new(sites), Reverse(at)))
                    .max();
                let Some((1.., Reverse(at))) = best else {
                    break;
                };
                let (first, second, sites) = left.remove(at);
                expected.push((first, second));
                seen.extend(sites);
            }
            let ranked = greedily(all).into_iter();
            let ranked: Vec<_> = ranked.map(|pair| (pair.first, pair.second)).collect();
            assert_eq!(ranked, expected);
        }
    }

    #[test]
    fn what_all_touch_says_nothing() {
        let prints: Vec<Footprint> = (0..6).map(|n| print(&[99], &[n / 2])).collect();
        assert_eq!(ranked(&prints), []);
        let prints: Vec<Footprint> = (0..6).map(|n| print(&[99, n / 2], &[])).collect();
        assert_eq!(ranked(&prints), [(0, 1), (2, 3), (4, 5)]);
    }
}
