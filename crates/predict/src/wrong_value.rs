//! Which other value a read could find: one question for ConMem's Con-NULL and Con-UnInit and for all of ConSeq.
//!
//! A read `r` finds what the write `w` left. Could it find what another write `w'` leaves (ConSeq, Algorithm 1), or what
//! was there before `w` (read too early)? No, if
//! - order puts `r` before `w'`, or `w'` before `w` before `r`;
//! - `w` and `r` lie in one critical section, and `w'` needs its lock;
//! - `w'` and a later write of its context lie in one critical section, and `r` needs its lock.

use raddle_code::{Fate, SiteKind};

use crate::access::Seen;
use crate::cell::Cell;
use crate::critical_reads::{CriticalReads, Endangered};
use crate::memory_errors::{is_null, is_pointer};
use crate::target::{Forced, Kind, Rank, Target, Targets, Way};

/// Another value that a read could find.
#[derive(Debug)]
struct Alternative<'c> {
    read: &'c Seen,
    /// Who leaves it: the other write, or the write that the read comes before.
    write: &'c Seen,
    value: Option<u64>,
    ways: Vec<Way>,
    is_early: bool,
    /// What makes the value stay: its write is kept back until the usual one is over. None if order forbids that.
    lasting: Option<Forced>,
}

/// What could go wrong at a place where other values are possible.
pub(crate) fn targets(cell: &Cell, critical: &mut CriticalReads, targets: &mut Targets) {
    let accesses = || cell.accesses.iter().enumerate();
    for read in accesses().filter(|(_, seen)| seen.reads) {
        for write in accesses().filter(|(_, seen)| seen.writes && seen.overlaps(read.1)) {
            if write.1.number == read.1.number {
                continue;
            }
            let found = if read.1.from == Some(write.1.number) {
                too_early(cell, read, write)
            } else {
                another(cell, read, write)
            };
            match found {
                Some(found) if found.value.is_none() || found.value != read.1.value => {
                    judge(&found, critical, targets);
                }
                Some(_) => {}
                None => targets.excluded += 1,
            }
        }
    }
}

/// The read comes before the write whose value it finds otherwise.
fn too_early<'c>(
    cell: &Cell,
    (_, read): (usize, &'c Seen),
    (index, write): (usize, &'c Seen),
) -> Option<Alternative<'c>> {
    let is_fixed = cell.is_ordered((index, write), read) || read.context == write.context;
    // What the write itself replaces is hidden if its critical section has made that, too.
    let is_hidden = read.holds_one_of(&write.own_before);
    let is_known = write.bytes == read.bytes && !is_hidden;
    (!is_fixed).then(|| Alternative {
        read,
        write,
        value: write.overwritten.filter(|_| is_known),
        ways: vec![vec![Forced::until_passed(write, read)]],
        is_early: true,
        lasting: None,
    })
}

/// ConSeq, Algorithm 1: the read finds what another write leaves.
fn another<'c>(
    cell: &Cell,
    (read_index, read): (usize, &'c Seen),
    (index, write): (usize, &'c Seen),
) -> Option<Alternative<'c>> {
    if cell.is_ordered((read_index, read), write) {
        return None;
    }
    let usual = read.from.and_then(|number| cell.by_number(number));
    let is_before = cell.is_ordered((index, write), read);
    let comes_first = usual.is_some_and(|(_, usual)| cell.is_ordered((index, write), usual));
    let lasting = usual.filter(|(_, usual)| usual.context != write.context && !comes_first);
    let lasting = lasting.map(|(_, usual)| Forced::until_passed(write, usual));
    if usual.is_some_and(|usual| comes_first && cell.is_ordered(usual, read)) {
        return None;
    }
    let is_other = write.context != read.context;
    let is_excluded = write.holds_one_of(&read.own_before) || read.holds_one_of(&write.own_after);
    if is_other && is_excluded {
        return None;
    }
    let mut ways = Vec::new();
    if is_other && !is_before {
        ways.push(vec![Forced::until_passed(read, write)]);
    }
    let comes_before_usual = |usual: &Seen| write.number < usual.number;
    // The usual write is kept away until the read is over.
    if let Some(usual) = usual
        && usual.1.context != read.context
        && comes_before_usual(usual.1)
        && !cell.is_ordered(usual, read)
    {
        ways.push(vec![Forced::until_passed(usual.1, read)]);
    }
    // The other write is kept back until the usual one is over, and the read until the other one is.
    if let Some((_, usual)) = usual
        && let Some(lasting) = &lasting
        && is_other
        && !is_before
        && comes_before_usual(usual)
    {
        ways.push(vec![lasting.clone(), Forced::until_passed(read, write)]);
    }
    (!ways.is_empty() || lasting.is_some()).then(|| Alternative {
        read,
        write,
        value: write.written.filter(|_| write.bytes == read.bytes),
        ways,
        is_early: false,
        lasting,
    })
}

/// What another value would do.
fn judge(found: &Alternative<'_>, critical: &mut CriticalReads, targets: &mut Targets) {
    let Alternative { read, write, .. } = found;
    for site in critical.endangered(read.spot.site, found.value) {
        endanger(found, site, targets);
    }
    if found.ways.is_empty() {
        return;
    }
    let is_pointer = read.value.is_some_and(is_pointer) && read.bytes == u8::MAX;
    if is_pointer && !read.writes && is_null(found.value) && !found.is_early {
        targets.add(target(found, Kind::Null, Rank::Certain));
    }
    if found.is_early && write.is_first_use && !read.writes {
        targets.add(target(found, Kind::Uninitialised, Rank::Certain));
    }
    if found.value.is_some() && !read.writes {
        targets.add(target(found, Kind::Invariant, Rank::Doubtful));
    }
}

/// The program may come to a failure site.
fn endanger(found: &Alternative<'_>, site: Endangered, targets: &mut Targets) {
    let rank = match (site.kind, site.fate) {
        (SiteKind::Output, _) => Rank::Doubtful,
        (_, Fate::Comes) => Rank::Certain,
        _ => Rank::Likely,
    };
    let mut target = target(found, Kind::Failure(site.kind), rank);
    target.sites.push((site.at, "decides"));
    target.gap = u64::from(site.steps);
    if site.kind == SiteKind::Loop {
        // A value that another write replaces later keeps no loop going.
        let Some(lasting) = &found.lasting else {
            return;
        };
        target.ways.insert(0, vec![lasting.clone()]);
    }
    if !target.ways.is_empty() {
        targets.add(target);
    }
}

fn target(found: &Alternative<'_>, kind: Kind, rank: Rank) -> Target {
    let Alternative { read, write, .. } = found;
    let (first, then) = if found.is_early {
        (read, write)
    } else {
        (write, read)
    };
    Target {
        kind,
        rank,
        ways: found.ways.clone(),
        sites: vec![(first.spot.site, "first"), (then.spot.site, "then")],
        gap: 0,
        distance: read.number.abs_diff(write.number),
        gives: found.value.map(|value| (read.spot.site, value)),
    }
}
