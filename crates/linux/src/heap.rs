//! The allocator watch: which blocks are allocated, which were freed, and who touches what it must not.
//!
//! Known functions of the C library tell when blocks come and go; freed bytes are forbidden in the address space
//! until they are handed out again, so that the first wrong access is caught where it happens. Memory is reused
//! as the program's own allocator likes: an access to a block that was already handed out again looks right.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use raddle_world::ContextId;

/// How closely the heap is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeapWatch {
    /// Wrong frees and touched freed blocks end the run.
    pub is_on: bool,
    /// So do accesses to the few bytes between a block and the next (glibc's allocator only).
    pub red_zones: bool,
    /// Keep whole stacks of allocations and frees, not just the calling instruction.
    pub stacks: bool,
}

/// Who did something to a block, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub context: ContextId,
    /// Return addresses, innermost first.
    pub stack: Arc<[u64]>,
}

/// A block of the heap and its life so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub addr: u64,
    pub size: u64,
    pub allocated: Origin,
    pub freed: Option<Origin>,
}

impl Block {
    pub(crate) fn range(&self) -> Range<u64> {
        self.addr..self.addr.saturating_add(self.size)
    }

    /// What lies between the bytes that were asked for and the next block: padding and the size field of glibc.
    fn red_zone(&self) -> Range<u64> {
        let chunk = (self.size.saturating_add(8 + 15) & !15).max(32);
        let end = self.addr.saturating_add(chunk);
        self.range().end..end.max(self.range().end)
    }
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapErrorKind {
    /// Freed memory is touched.
    UseAfterFree { writes: bool },
    /// A block is freed that was freed before.
    DoubleFree,
    /// Something is freed that is no block.
    InvalidFree,
    /// Memory just behind a block is touched.
    Overflow { writes: bool },
}

/// A wrong access to, or a wrong free of, heap memory. The run ends before it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapError {
    pub kind: HeapErrorKind,
    pub context: ContextId,
    /// The wrong instruction, or the one after the wrong call.
    pub pc: u64,
    pub addr: u64,
    pub block: Option<Block>,
}

/// The blocks of one address space. Cloned for every schedule: what was there at the snapshot is shared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heap {
    base: Arc<BTreeMap<u64, Block>>,
    /// What changed since; `None` for a block of the base that is gone.
    changes: BTreeMap<u64, Option<Block>>,
    /// Blocks freed since the snapshot and not handed out again, by address.
    freed: BTreeMap<u64, Block>,
}

impl Heap {
    fn live(&self, addr: u64) -> Option<&Block> {
        match self.changes.get(&addr) {
            Some(change) => change.as_ref(),
            None => self.base.get(&addr),
        }
    }

    pub(crate) fn insert(&mut self, block: Block) {
        let range = block.range();
        // Blocks that lay there before are history.
        let stale: Vec<u64> = self
            .freed
            .range(..range.end)
            .rev()
            .take_while(|(_, old)| old.range().end > range.start)
            .map(|(addr, _)| *addr)
            .collect();
        for addr in stale {
            self.freed.remove(&addr);
        }
        self.changes.insert(block.addr, Some(block));
    }

    /// Takes a live block away, without calling it freed yet.
    pub(crate) fn remove(&mut self, addr: u64) -> Option<Block> {
        let block = self.live(addr)?.clone();
        if self.base.contains_key(&addr) {
            self.changes.insert(addr, None);
        } else {
            self.changes.remove(&addr);
        }
        Some(block)
    }

    pub(crate) fn is_live(&self, addr: u64) -> bool {
        self.live(addr).is_some()
    }

    /// Whether a live block has bytes in a range.
    pub(crate) fn has_live_in(&self, range: Range<u64>) -> bool {
        let overlaps = |block: &Block| block.range().end > range.start;
        let mut changed = self.changes.range(..range.end).rev();
        let changed = changed.find_map(|(_, change)| change.as_ref());
        let mut old = self.base.range(..range.end).rev();
        let old = old.find(|(addr, _)| !self.changes.contains_key(addr));
        changed.is_some_and(overlaps) || old.is_some_and(|(_, block)| overlaps(block))
    }

    pub(crate) fn note_freed(&mut self, block: Block) {
        self.freed.insert(block.addr, block);
    }

    pub(crate) fn freed_at(&self, addr: u64) -> Option<&Block> {
        let (_, block) = self.freed.range(..=addr).next_back()?;
        (addr < block.range().end.max(block.addr + 1)).then_some(block)
    }

    /// The block that contains an address.
    pub(crate) fn block_at(&self, addr: u64) -> Option<&Block> {
        let newest = self.changes.range(..=addr).next_back();
        let newest = newest.and_then(|(_, change)| change.as_ref());
        let old = self.base.range(..=addr).next_back();
        let old = old.filter(|(start, _)| !self.changes.contains_key(start));
        let holds = |block: &&Block| block.range().contains(&addr);
        newest
            .filter(holds)
            .or_else(|| old.map(|(_, block)| block).filter(holds))
            .or_else(|| self.freed_at(addr))
    }

    /// The live block in whose red zone an address lies.
    fn overflowed(&self, addr: u64) -> Option<&Block> {
        let newest = self.changes.range(..=addr).rev();
        let newest = newest.filter_map(|(_, change)| change.as_ref());
        let old = self.base.range(..=addr).rev().map(|(_, block)| block);
        let holds = |block: &&Block| block.red_zone().contains(&addr);
        newest.take(1).chain(old.take(1)).find(holds)
    }

    /// The moment schedules start from: what is known now is shared by all of them.
    pub(crate) fn freeze(&mut self) {
        let base = Arc::make_mut(&mut self.base);
        for (addr, change) in std::mem::take(&mut self.changes) {
            match change {
                Some(block) => {
                    base.insert(addr, block);
                }
                None => {
                    base.remove(&addr);
                }
            }
        }
        self.freed.clear();
    }

    /// The blocks that were there at the snapshot and still are.
    pub(crate) fn unchanged(&self) -> impl Iterator<Item = &Block> {
        let base = self.base.values();
        base.filter(|block| !self.changes.contains_key(&block.addr))
    }

    /// Explains a forbidden access.
    pub(crate) fn error_at(&self, addr: u64, writes: bool) -> (HeapErrorKind, Option<Block>) {
        if let Some(block) = self.freed_at(addr) {
            return (HeapErrorKind::UseAfterFree { writes }, Some(block.clone()));
        }
        let block = self.overflowed(addr).cloned();
        (HeapErrorKind::Overflow { writes }, block)
    }

    pub(crate) fn forbidden_around(block: &Block) -> Range<u64> {
        block.red_zone()
    }

    pub(crate) fn bytes_of(block: &Block) -> Range<u64> {
        block.range()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(addr: u64, size: u64) -> Block {
        Block {
            addr,
            size,
            allocated: Origin {
                context: ContextId(0),
                stack: Arc::from([]),
            },
            freed: None,
        }
    }

    #[test]
    fn blocks_live_are_freed_and_come_back() {
        let mut heap = Heap::default();
        heap.insert(block(0x100, 24));
        heap.freeze();
        assert!(heap.is_live(0x100));
        let gone = heap.remove(0x100).unwrap();
        heap.note_freed(gone);
        assert!(!heap.is_live(0x100));
        assert!(!heap.has_live_in(0x100..0x140));
        let (kind, _) = heap.error_at(0x110, true);
        assert_eq!(kind, HeapErrorKind::UseAfterFree { writes: true });
        heap.insert(block(0x100, 8));
        assert!(heap.freed_at(0x100).is_none());
        assert!(heap.is_live(0x100));
        assert!(heap.has_live_in(0xC0..0x140));
        assert!(!heap.has_live_in(0x108..0x140));
    }

    #[test]
    fn red_zones_reach_to_the_next_block() {
        assert_eq!(block(0x100, 24).red_zone(), 0x118..0x120);
        assert_eq!(block(0x100, 1).red_zone(), 0x101..0x120);
        let mut heap = Heap::default();
        heap.insert(block(0x100, 24));
        let (kind, found) = heap.error_at(0x118, false);
        assert_eq!(kind, HeapErrorKind::Overflow { writes: false });
        assert_eq!(found.unwrap().addr, 0x100);
    }
}
