//! Which allocation an address belongs to: the same address is another object after it was freed and handed out again.

use std::collections::BTreeMap;

use raddle_world::{ContextId, Site};
use rustc_hash::FxHashMap;

/// A block of memory that was handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Allocation {
    pub addr: u64,
    pub size: u64,
    /// Who asked for it, and where.
    pub context: ContextId,
    pub site: Site,
    /// Number among the allocations of this context at this site, from 1; 0 if it is older than the run. With both it
    /// names the block, also in another schedule in which the context does the same.
    pub ordinal: u64,
    /// Number among all allocations of the run, from 1; 0 if it is older.
    pub generation: u64,
    /// Who has freed it, and where.
    pub freed: Option<(ContextId, Site)>,
}

/// An address as a part of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Within<'a> {
    pub allocation: &'a Allocation,
    pub offset: u64,
}

impl Within<'_> {
    /// `block(queue.c:12)+16`, with the place where it was allocated.
    pub fn name(&self, place: &str) -> String {
        let state = match self.allocation.freed {
            Some(_) => "freed block",
            None => "block",
        };
        match self.offset {
            0 => format!("{state}({place})"),
            offset => format!("{state}({place})+{offset}"),
        }
    }
}

/// The blocks of one run. Those that were freed are remembered until their memory is handed out again.
#[derive(Debug, Clone, Default)]
pub struct Allocations {
    by_addr: BTreeMap<u64, Allocation>,
    ordinals: FxHashMap<(ContextId, Site), u64>,
    generation: u64,
}

impl Allocations {
    pub fn allocate(&mut self, context: ContextId, site: Site, addr: u64, size: u64) {
        self.generation += 1;
        let ordinal = self.ordinals.entry((context, site)).or_default();
        *ordinal += 1;
        let allocation = Allocation {
            addr,
            size,
            context,
            site,
            ordinal: *ordinal,
            generation: self.generation,
            freed: None,
        };
        let end = addr.saturating_add(size.max(1));
        while let Some(old) = self.before(end).filter(|old| old.end() > addr) {
            let old = old.addr;
            self.by_addr.remove(&old);
        }
        self.by_addr.insert(addr, allocation);
    }

    /// A block is older than the run.
    pub fn existed(&mut self, addr: u64, size: u64) {
        let allocation = Allocation {
            addr,
            size,
            context: ContextId(0),
            site: Site::NOWHERE,
            ordinal: 0,
            generation: 0,
            freed: None,
        };
        self.by_addr.insert(addr, allocation);
    }

    pub fn free(&mut self, context: ContextId, site: Site, addr: u64) {
        if let Some(allocation) = self.by_addr.get_mut(&addr) {
            allocation.freed.get_or_insert((context, site));
        }
    }

    pub fn at(&self, addr: u64) -> Option<Within<'_>> {
        let allocation = self.before(addr.checked_add(1)?)?;
        let offset = addr - allocation.addr;
        (addr < allocation.end()).then_some(Within { allocation, offset })
    }

    /// The last block that begins below an address.
    fn before(&self, addr: u64) -> Option<&Allocation> {
        Some(self.by_addr.range(..addr).next_back()?.1)
    }
}

impl Allocation {
    /// Behind its last byte; even an empty block has an address of its own.
    fn end(&self) -> u64 {
        self.addr.saturating_add(self.size.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: ContextId = ContextId(1);

    #[test]
    fn an_address_that_is_handed_out_again_is_another_block() {
        let mut blocks = Allocations::default();
        blocks.allocate(WHO, Site::first(10), 0x100, 32);
        blocks.free(WHO, Site::first(11), 0x100);
        let old = *blocks.at(0x110).unwrap().allocation;
        assert_eq!((old.ordinal, old.generation), (1, 1));
        assert_eq!(old.freed, Some((WHO, Site::first(11))));
        blocks.allocate(WHO, Site::first(10), 0x100, 32);
        let new = blocks.at(0x110).unwrap();
        assert_eq!((new.allocation.ordinal, new.allocation.generation), (2, 2));
        assert_eq!((new.offset, new.allocation.freed), (16, None));
        assert_eq!(new.name("q.c:3"), "block(q.c:3)+16");
        assert_eq!(blocks.at(0x100).unwrap().name("q.c:3"), "block(q.c:3)");
    }

    #[test]
    fn a_block_that_is_older_than_the_run_counts_until_its_memory_is_handed_out_again() {
        let mut blocks = Allocations::default();
        blocks.existed(0x100, 32);
        let old = *blocks.at(0x110).unwrap().allocation;
        assert_eq!((old.ordinal, old.generation), (0, 0));
        blocks.free(WHO, Site::first(11), 0x100);
        blocks.allocate(WHO, Site::first(10), 0x100, 32);
        let new = blocks.at(0x110).unwrap().allocation;
        assert_eq!((new.ordinal, new.generation), (1, 1));
    }

    #[test]
    fn whatever_overlaps_a_new_block_is_gone() {
        let mut blocks = Allocations::default();
        for addr in [0x100, 0x120, 0x140] {
            blocks.allocate(WHO, Site::first(10), addr, 32);
        }
        blocks.allocate(WHO, Site::first(20), 0x110, 0x20);
        let site = |addr| blocks.at(addr).map(|within| within.allocation.site.pc());
        assert_eq!(site(0x100), None);
        assert_eq!(site(0x12F), Some(20));
        assert_eq!(site(0x130), None);
        assert_eq!(site(0x140), Some(10));
        assert_eq!(blocks.by_addr.len(), 2);
    }

    #[test]
    fn the_ends_of_memory_are_no_trouble() {
        let mut blocks = Allocations::default();
        blocks.allocate(WHO, Site::first(10), u64::MAX - 3, 100);
        assert!(blocks.at(u64::MAX - 1).is_some());
        assert!(blocks.at(u64::MAX).is_none());
        blocks.allocate(WHO, Site::first(10), 0, 0);
        assert_eq!(blocks.at(0).unwrap().offset, 0);
    }
}
