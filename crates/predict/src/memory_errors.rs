//! ConMem: ingredients of memory errors that some order may bring together.

use crate::access::Seen;
use crate::target::{Forced, Kind, Rank, Spot, Target};

/// Smaller numbers are no pointers.
const POINTER_MIN: u64 = 4096;
/// Addresses of programs have no more bits; those of a kernel have the upper ones set.
const USER_BITS: u32 = 47;

/// Whether a value may be the address of something.
pub fn is_pointer(value: u64) -> bool {
    let upper = value >> USER_BITS;
    value >= POINTER_MIN && (upper == 0 || upper == (1 << (64 - USER_BITS)) - 1)
}

/// Whether a value is known and no pointer to anything.
pub fn is_null(value: Option<u64>) -> bool {
    value == Some(0)
}

/// A block is used that another context frees while it holds some locks.
pub fn dangling(used: &Seen, free: Spot, locks: &[u64]) -> Target {
    let section = used.held.iter().find(|held| locks.contains(&held.lock));
    let at = section.map_or(used.spot, |section| section.entry);
    Target {
        kind: Kind::Dangling,
        rank: Rank::Certain,
        ways: vec![vec![Forced {
            held: used.context,
            path: Vec::new(),
            at,
            until: free,
        }]],
        sites: vec![(free.site, "free"), (used.spot.site, "use")],
        gap: 0,
        distance: 0,
        gives: None,
    }
}
