//! The page table of an address space: cheap to clone, because leaves are shared until one is changed.

use std::sync::Arc;

use raddle_stdx::width::{to_u64, to_usize};
use rustc_hash::FxHashMap;

use crate::addr::PageNo;
use crate::frames::FrameId;
use crate::vma::Perm;

/// What is mapped at a page now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pte {
    pub frame: FrameId,
    pub perm: Perm,
    /// A write must first make a private copy.
    pub copy_on_write: bool,
    /// Accesses must not take the fast path: addresses of this page are watched.
    pub watched: bool,
}

const LEAF_BITS: u32 = 9;
const LEAF_ENTRIES: usize = 1 << LEAF_BITS;

type Leaf = [Option<Pte>; LEAF_ENTRIES];

#[derive(Debug, Clone, Default)]
pub(crate) struct PageTable {
    leaves: FxHashMap<u64, Arc<Leaf>>,
}

impl PageTable {
    pub(crate) fn get(&self, page: PageNo) -> Option<Pte> {
        self.leaves.get(&(page.0 >> LEAF_BITS))?[slot(page)]
    }

    /// Sets or clears an entry and gives the old one.
    pub(crate) fn set(&mut self, page: PageNo, pte: Option<Pte>) -> Option<Pte> {
        let number = page.0 >> LEAF_BITS;
        if pte.is_none() && !self.leaves.contains_key(&number) {
            return None;
        }
        let leaf = self
            .leaves
            .entry(number)
            .or_insert_with(|| Arc::new([None; LEAF_ENTRIES]));
        std::mem::replace(&mut Arc::make_mut(leaf)[slot(page)], pte)
    }

    /// The mapped pages of `start..end`, in order.
    pub(crate) fn range(&self, start: PageNo, end: PageNo) -> Vec<(PageNo, Pte)> {
        let mut numbers: Vec<u64> = self
            .leaves
            .keys()
            .copied()
            .filter(|number| {
                let first = number << LEAF_BITS;
                first < end.0 && first + (1 << LEAF_BITS) > start.0
            })
            .collect();
        numbers.sort_unstable();
        let mut found = Vec::new();
        for number in numbers {
            let first = number << LEAF_BITS;
            let inside = start.0.saturating_sub(first)..(end.0 - first).min(to_u64(LEAF_ENTRIES));
            let entries = &self.leaves[&number][to_usize(inside.start)..to_usize(inside.end)];
            for (page, entry) in (first + inside.start..).zip(entries) {
                found.extend(entry.map(|pte| (PageNo(page), pte)));
            }
        }
        found
    }
}

fn slot(page: PageNo) -> usize {
    to_usize(page.0) & (LEAF_ENTRIES - 1)
}
