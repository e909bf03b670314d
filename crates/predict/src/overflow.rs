//! ConMem's Con-Overflow: two contexts race for a variable that buffers are accessed with.
//!
//! The ingredients of its Table 4.2: a variable that is an index or a boundary, and two accesses of different contexts to
//! it, one of them a write, that neither order nor a common lock keeps apart. Whether a buffer then overflows depends on
//! values that the predictor does not know beforehand, so both orders are forced and the run is judged. A value that is
//! an address itself is no index; but a pointer to a text that is copied to its end bounds the copy as a length does.

use raddle_code::Role;

use crate::access::Seen;
use crate::cell::Cell;
use crate::critical_reads::Indices;
use crate::memory_errors::is_pointer;
use crate::target::{Forced, Kind, Rank, Target, Targets};

/// What races for an index could do.
pub(crate) fn targets(cell: &Cell, indices: &mut Indices, targets: &mut Targets) {
    for (read_index, read) in cell.accesses.iter().enumerate() {
        let Some((role, steps)) = role(read, indices) else {
            continue;
        };
        for (write_index, write) in cell.accesses.iter().enumerate() {
            if !write.writes || write.context == read.context || !write.overlaps(read) {
                continue;
            }
            let is_ordered = cell.is_ordered((read_index, read), write)
                || cell.is_ordered((write_index, write), read);
            let locks: Vec<u64> = write.held.iter().map(|held| held.lock).collect();
            if is_ordered || read.holds_one_of(&locks) {
                targets.excluded += 1;
                continue;
            }
            targets.add(target((read, steps), write, role));
        }
    }
}

/// What the value of a read bounds, and how many computations away.
fn role(read: &Seen, indices: &mut Indices) -> Option<(Role, u32)> {
    if !read.reads {
        return None;
    }
    let index = indices.use_of(read.spot.site)?;
    let is_address = read.value.is_none_or(is_pointer) && read.bytes == u8::MAX;
    let is_bound = index.role == Role::Text || !is_address;
    is_bound.then_some((index.role, index.steps))
}

fn target((read, steps): (&Seen, u32), write: &Seen, role: Role) -> Target {
    Target {
        kind: Kind::Overflow(role),
        rank: Rank::Likely,
        ways: vec![
            vec![Forced::until_passed(read, write)],
            vec![Forced::until_passed(write, read)],
        ],
        sites: vec![(write.spot.site, "write"), (read.spot.site, "bounds")],
        gap: u64::from(steps),
        distance: read.number.abs_diff(write.number),
        gives: None,
    }
}
