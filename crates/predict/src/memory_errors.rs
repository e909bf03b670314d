//! ConMem: ingredients of memory errors that some order may bring together.

use raddle_world::Section;

use crate::profile::Seen;
use crate::target::{Forced, Kind, Spot, Target};
use crate::unserializable::hold_before;

/// Smaller numbers are no pointers.
const POINTER_MIN: u64 = 4096;
/// Addresses of programs have no more bits; those of a kernel have the upper ones set.
const USER_BITS: u32 = 47;

fn is_pointer(value: u64) -> bool {
    let upper = value >> USER_BITS;
    value >= POINTER_MIN && (upper == 0 || upper == (1 << (64 - USER_BITS)) - 1)
}

/// A pointer is read and found good, and another context sets it to NULL. `before` is what the reader did there last: if
/// it wrote in the same critical section, nobody can come between.
pub fn null(read: &Seen, write: &Seen, before: Option<&Seen>) -> Option<Target> {
    let is_pointer_read = read.reads && !read.writes && read.value.is_some_and(is_pointer);
    let is_null_write = write.writes && !write.reads && write.value == Some(0);
    let is_whole = read.size == 8 && write.size == 8;
    if !is_pointer_read || !is_null_write || !is_whole {
        return None;
    }
    let is_own = |before: &&Seen| before.number < read.number && before.writes;
    if before
        .filter(is_own)
        .is_some_and(|before| before.is_excluded_with(read, write))
    {
        return None;
    }
    Some(order(Kind::Null, read, write))
}

/// A place is read that another context has to initialise first.
pub fn uninitialised(write: &Seen, read: &Seen) -> Option<Target> {
    // Only the first read of a run finds out; what the reader wrote itself is not the other's to initialise.
    (!read.writes).then(|| order(Kind::Uninitialised, write, read))
}

/// A block is used that another context frees.
pub fn dangling(used: &Seen, free: Spot, held: &[Section]) -> Target {
    let is_needed = |section: &&Section| held.iter().any(|held| held.lock == section.lock);
    let at = match used.held.iter().find(is_needed) {
        Some(section) => Spot {
            site: section.site,
            addr: section.lock,
            visit: section.serial,
        },
        None => used.spot,
    };
    Target {
        kind: Kind::Dangling,
        forced: Forced {
            held: used.context,
            at,
            until: Spot { addr: 0, ..free },
        },
        path: Vec::new(),
        sites: vec![(free.site, "free"), (used.spot.site, "use")],
        gap: 0,
        distance: 0,
    }
}

/// One is to wait until the other has passed.
fn order(kind: Kind, waits: &Seen, passes: &Seen) -> Target {
    Target {
        kind,
        forced: Forced {
            held: waits.context,
            at: hold_before(waits, passes),
            until: passes.spot,
        },
        path: Vec::new(),
        sites: vec![(passes.spot.site, "first"), (waits.spot.site, "then")],
        gap: 0,
        distance: waits.number.abs_diff(passes.number),
    }
}
