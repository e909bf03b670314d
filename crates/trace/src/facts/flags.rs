//! Flags that contexts wait for in a loop: the context that leaves the loop comes after the one that set the flag.
//!
//! A context that loads the same location by the same instruction again, and sees another value than the last time,
//! has waited for it. Needs values. What is used as a lock is no flag.

use raddle_world::{Access, ContextId, Site};

/// The last load of each context from a location that synchronises.
#[derive(Debug, Default)]
pub(super) struct Flags {
    last: Vec<Option<Load>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Load {
    site: Site,
    addr: u64,
    value: u64,
}

impl Flags {
    /// A context loads from a location that synchronises: whether it has waited for what it sees.
    pub(super) fn ends_wait(&mut self, who: ContextId, site: Site, access: &Access) -> bool {
        let Some(value) = access.value else {
            return false;
        };
        let index = who.0 as usize;
        if self.last.len() <= index {
            self.last.resize(index + 1, None);
        }
        let addr = access.addr;
        let now = Load { site, addr, value };
        let before = self.last[index].replace(now);
        let is_again = |before: Load| (before.site, before.addr) == (site, addr);
        before.is_some_and(|before| is_again(before) && before.value != value)
    }
}
