//! Decoded blocks, found by address, dropped when their bytes change.
//!
//! Blocks are grouped by the digest of the executable mappings ([`raddle_mem::AddressSpace::code_layout`]): two
//! processes with the same code at the same places share them, and inside a group a link between blocks needs
//! no check. A block that is no longer true stays allocated (others may link to it), but all its ops become
//! `stale`, which sends the run back to the loop; when there is a new block for the place, the old one leads to it.

use std::collections::BTreeSet;

use iced_x86::Instruction;
use raddle_mem::{FrameId, Frames, PAGE_BITS};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::engine::Observe;
use crate::fast;
use crate::lower;
use crate::native::{Target, Template, Translator};
use crate::op::Op;

/// Entries of a jump cache; a power of two.
pub(crate) const JUMP_ENTRIES: usize = 16384;
/// Ops (64 bytes each) after which everything is forgotten and decoded again.
const OPS_MAX: usize = 4 << 20;
/// Ops of blocks that are no longer true, below which nothing is forgotten for their sake.
const SCATTERED_MIN: usize = 8 << 10;
/// Blocks that get successors before links to them are put right, at least; and one in how many blocks, because all are
/// looked at.
const SUCCESSORS_MIN: usize = 32;
const SUCCESSORS_SHARE: usize = 16;

/// One remembered target of an indirect jump or return.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct JumpEntry {
    pub(crate) pc: u64,
    pub(crate) op: *const Op,
    pub(crate) steps: i64,
    /// Where machine code goes on.
    pub(crate) code: u64,
}

/// An entry that no address finds: it has one that another entry serves.
fn no_jump(index: usize) -> JumpEntry {
    JumpEntry {
        pc: u64::from(index == 0),
        op: std::ptr::null(),
        steps: 0,
        code: 0,
    }
}

fn no_jumps() -> Box<[JumpEntry]> {
    (0..JUMP_ENTRIES).map(no_jump).collect()
}

/// The jump cache entry that serves `pc`.
#[inline(always)]
pub(crate) fn jump_index(pc: u64) -> usize {
    raddle_stdx::width::to_usize(pc ^ (pc >> 12)) % JUMP_ENTRIES
}

/// A freshly lowered block.
#[derive(Debug)]
pub(crate) struct NewBlock {
    pub(crate) pc: u64,
    /// Address behind the last instruction.
    pub(crate) end: u64,
    pub(crate) ops: Box<[Op]>,
    /// What the first ops mean; the others are left to their handlers.
    pub(crate) templates: Vec<Template>,
    /// What generic ops point to.
    pub(crate) instructions: Box<[Instruction]>,
    pub(crate) steps: u8,
    /// The block was cut at this many steps so that a slice can end there.
    pub(crate) limit: Option<u8>,
    pub(crate) frames: [Option<FrameId>; 2],
}

#[derive(Debug)]
struct Block {
    group: GroupKey,
    pc: u64,
    /// Address behind the last instruction.
    end: u64,
    limit: Option<u8>,
    is_stale: bool,
    ops: Box<[Op]>,
    entry: Option<Target>,
    _instructions: Box<[Instruction]>,
}

impl Block {
    /// A run that comes here is sent back to the loop; gives the number of ops.
    fn make_stale(&mut self, translator: &mut Translator) -> usize {
        self.is_stale = true;
        for op in &mut self.ops {
            op.handler = fast::stale;
        }
        if let Some(entry) = self.entry {
            translator.retire(entry);
        }
        self.ops.len()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct GroupKey {
    pub(crate) layout: u64,
    pub(crate) observe: Observe,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) op: *const Op,
    pub(crate) steps: i64,
    /// Where machine code of other blocks comes in, if there is machine code.
    pub(crate) entry: Option<Target>,
}

impl Found {
    /// The steps, as ops have them.
    fn short_steps(self) -> u8 {
        u8::try_from(self.steps).expect("blocks are short")
    }
}

#[derive(Debug)]
struct Group {
    jumps: Box<[JumpEntry]>,
    blocks: FxHashMap<(u64, Option<u8>), Found>,
    /// Numbers of whole blocks that are no longer true, by their address.
    outdated: FxHashMap<u64, Vec<usize>>,
}

/// All decoded code of one engine.
#[derive(Debug, Default)]
pub(crate) struct CodeCache {
    groups: Vec<Group>,
    group_of: FxHashMap<GroupKey, usize>,
    /// The group that was asked for last.
    recent: Option<(GroupKey, usize)>,
    blocks: Vec<Block>,
    by_frame: FxHashMap<FrameId, Vec<usize>>,
    points: BTreeSet<u64>,
    /// Blocks by the page they begin on, for changes of points.
    by_page: FxHashMap<u64, Vec<usize>>,
    /// Of a paged machine: the code pages of each group.
    pages: FxHashMap<PageKey, CodePage>,
    /// Of a paged machine: the code pages whose translation rests on a page table.
    by_table: FxHashMap<FrameId, FxHashSet<PageKey>>,
    /// Code pages whose translation may have changed.
    unproven: Vec<PageKey>,
    ops: usize,
    /// Those of them that belong to blocks that are no longer true.
    stale_ops: usize,
    /// By the first ops of blocks that got a successor since links were last put right: the successor.
    successors: FxHashMap<*const Op, Found>,
    translator: Translator,
}

/// A code page of a paged machine: group and virtual page number.
pub(crate) type PageKey = (GroupKey, u64);

/// Where the code page is, and the blocks with bytes on it.
#[derive(Debug)]
struct CodePage {
    frame: FrameId,
    blocks: Vec<usize>,
}

impl CodeCache {
    /// Called before a run, when no op is being executed.
    pub(crate) fn prepare(&mut self, frames: &mut Frames) {
        self.drop_stale(frames);
        // Live code that lies among dead code costs misses of the host's caches, but so does making it again: what
        // programs that each run starts anew leave behind is much, and the kernel's code beside it is the same.
        let is_scattered = self.stale_ops > SCATTERED_MIN.max(self.ops / 4 * 3);
        if self.ops > OPS_MAX || is_scattered || self.translator.is_full() {
            self.clear();
        }
        let share = self.blocks.len() / SUCCESSORS_SHARE;
        if self.successors.len() >= SUCCESSORS_MIN.max(share) {
            self.relink();
        }
    }

    /// Lets links that lead to blocks with successors lead to the successors.
    fn relink(&mut self) {
        for block in self.blocks.iter_mut().filter(|block| !block.is_stale) {
            let end = block.ops.len() - 1 - lower::UNLINKED_OPS;
            let [end, not_taken, taken] = &mut block.ops[end..] else {
                continue;
            };
            if let Some(found) = last_successor(&self.successors, end.next) {
                (end.next, end.next_steps) = (found.op, found.short_steps());
                self.translator.link(taken, found.entry);
            }
            if let Some(found) = last_successor(&self.successors, end.alt) {
                (end.alt, end.alt_steps) = (found.op, found.short_steps());
                self.translator.link(not_taken, found.entry);
            }
        }
        self.successors.clear();
    }

    /// Lets the exits of a block that lead to `pc` lead straight to the block that was found there: `end` is its last
    /// op, the others are those behind.
    pub(crate) fn link(
        &mut self,
        end: &mut Op,
        [not_taken, taken]: [&Op; lower::UNLINKED_OPS],
        pc: u64,
        found: Found,
    ) {
        if taken.meta.pc() == pc {
            (end.next, end.next_steps) = (found.op, found.short_steps());
            self.translator.link(taken, found.entry);
        }
        if not_taken.meta.pc() == pc {
            (end.alt, end.alt_steps) = (found.op, found.short_steps());
            self.translator.link(not_taken, found.entry);
        }
    }

    /// The jump cache of a group.
    pub(crate) fn jumps(&mut self, key: GroupKey) -> *const JumpEntry {
        self.group(key).jumps.as_ptr()
    }

    fn group(&mut self, key: GroupKey) -> &mut Group {
        let index = match self.recent {
            Some((recent, index)) if recent == key => index,
            _ => self.look_up_group(key),
        };
        &mut self.groups[index]
    }

    fn look_up_group(&mut self, key: GroupKey) -> usize {
        let groups = &mut self.groups;
        let index = *self.group_of.entry(key).or_insert_with(|| {
            groups.push(Group {
                jumps: no_jumps(),
                blocks: FxHashMap::default(),
                outdated: FxHashMap::default(),
            });
            groups.len() - 1
        });
        self.recent = Some((key, index));
        index
    }

    pub(crate) fn find(&mut self, key: GroupKey, pc: u64, limit: Option<u8>) -> Option<Found> {
        if limit.is_some() {
            return self.group(key).blocks.get(&(pc, limit)).copied();
        }
        let jump = self.group(key).jumps[jump_index(pc)];
        if jump.pc == pc {
            return Some(Found {
                op: jump.op,
                steps: jump.steps,
                entry: self.translator.entry_of_jump(jump.code),
            });
        }
        let found = self.group(key).blocks.get(&(pc, None)).copied()?;
        self.remember(key, pc, found);
        Some(found)
    }

    /// Puts a block into the jump cache.
    fn remember(&mut self, key: GroupKey, pc: u64, found: Found) {
        let code = self.translator.way_from_jump(found.entry);
        self.group(key).jumps[jump_index(pc)] = JumpEntry {
            pc,
            op: found.op,
            steps: found.steps,
            code,
        };
    }

    pub(crate) fn insert(&mut self, key: GroupKey, mut block: NewBlock) -> Found {
        let entry = self
            .translator
            .translate(&mut block.ops, &block.templates, key.observe);
        let found = Found {
            op: block.ops.as_ptr(),
            steps: i64::from(block.steps),
            entry,
        };
        let number = self.blocks.len();
        for frame in block.frames.into_iter().flatten() {
            self.by_frame.entry(frame).or_default().push(number);
        }
        let page = block.pc >> PAGE_BITS;
        self.by_page.entry(page).or_default().push(number);
        let pages = 1 + u64::from(block.frames[1].is_some());
        for page in page..page + pages {
            if let Some(page) = self.pages.get_mut(&(key, page)) {
                page.blocks.push(number);
            }
        }
        self.ops += block.ops.len();
        self.group(key)
            .blocks
            .insert((block.pc, block.limit), found);
        if block.limit.is_none() {
            self.remember(key, block.pc, found);
            self.replace_outdated(key, block.pc, found);
        }
        self.blocks.push(Block {
            group: key,
            pc: block.pc,
            end: block.end,
            limit: block.limit,
            is_stale: false,
            ops: block.ops,
            entry,
            _instructions: block.instructions,
        });
        found
    }

    /// Lets blocks that are no longer true lead to the one that is.
    fn replace_outdated(&mut self, key: GroupKey, pc: u64, found: Found) {
        let index = self.look_up_group(key);
        let outdated = self.groups[index].outdated.remove(&pc);
        for number in outdated.into_iter().flatten() {
            let first = &mut self.blocks[number].ops[0];
            (first.next, first.next_steps) = (found.op, found.short_steps());
            first.handler = fast::forward;
            self.successors.insert(std::ptr::from_ref(first), found);
        }
    }

    /// Makes every block of changed frames stale.
    pub(crate) fn drop_stale(&mut self, frames: &mut Frames) {
        if !frames.has_stale_code() {
            return;
        }
        for frame in frames.take_stale_code() {
            for number in self.by_frame.remove(&frame).unwrap_or_default() {
                self.make_stale(number);
            }
            self.unproven
                .extend(self.by_table.remove(&frame).unwrap_or_default());
        }
    }

    /// The frame of a known code page.
    pub(crate) fn code_page(&self, page: PageKey) -> Option<FrameId> {
        self.pages.get(&page).map(|page| page.frame)
    }

    /// Notes where a code page is and which page tables say so.
    pub(crate) fn add_code_page(
        &mut self,
        page: PageKey,
        frame: FrameId,
        tables: impl Iterator<Item = FrameId>,
    ) {
        self.pages.entry(page).or_insert(CodePage {
            frame,
            blocks: Vec::new(),
        });
        for table in tables {
            self.by_table.entry(table).or_default().insert(page);
        }
    }

    /// Forgets a code page: what was there is not there any more.
    pub(crate) fn drop_code_page(&mut self, page: PageKey) {
        for number in self
            .pages
            .remove(&page)
            .map_or_else(Vec::new, |page| page.blocks)
        {
            self.make_stale(number);
        }
    }

    /// Code pages to be looked up again, since the last call.
    pub(crate) fn take_unproven(&mut self) -> Vec<PageKey> {
        std::mem::take(&mut self.unproven)
    }

    /// Forgets everything but the flagged program counters. Must not be called while an op is executed.
    pub(crate) fn clear(&mut self) {
        let points = std::mem::take(&mut self.points);
        *self = Self {
            points,
            ..Self::default()
        };
    }

    fn make_stale(&mut self, number: usize) {
        let block = &mut self.blocks[number];
        if block.is_stale {
            return;
        }
        self.stale_ops += block.make_stale(&mut self.translator);
        let (key, pc, limit, first) = (block.group, block.pc, block.limit, block.ops.as_ptr());
        let Some(index) = self.group_of.get(&key) else {
            return;
        };
        let group = &mut self.groups[*index];
        // It may have been replaced already.
        if group
            .blocks
            .get(&(pc, limit))
            .is_some_and(|found| found.op == first)
        {
            group.blocks.remove(&(pc, limit));
        }
        let index = jump_index(pc);
        let entry = &mut group.jumps[index];
        if entry.op == first {
            *entry = no_jump(index);
        }
        if limit.is_none() {
            group.outdated.entry(pc).or_default().push(number);
        }
    }

    /// Makes every block of a layout stale: its executable mappings changed under a running block.
    pub(crate) fn retire(&mut self, layout: u64) {
        for block in self
            .blocks
            .iter_mut()
            .filter(|block| block.group.layout == layout && !block.is_stale)
        {
            self.stale_ops += block.make_stale(&mut self.translator);
        }
        for (_, index) in self.group_of.iter().filter(|(key, _)| key.layout == layout) {
            let group = &mut self.groups[*index];
            group.jumps = no_jumps();
            group.blocks.clear();
            group.outdated.clear();
        }
    }

    /// The flagged program counters.
    pub(crate) fn points(&self) -> &BTreeSet<u64> {
        &self.points
    }

    /// Changes the set of flagged program counters.
    pub(crate) fn set_point(&mut self, pc: u64, flagged: bool) {
        let changed = if flagged {
            self.points.insert(pc)
        } else {
            self.points.remove(&pc)
        };
        if changed {
            self.forget_around(pc);
        }
    }

    /// Replaces the set of flagged program counters.
    pub(crate) fn replace_points(&mut self, points: BTreeSet<u64>) {
        let changed: Vec<u64> = self.points.symmetric_difference(&points).copied().collect();
        self.points = points;
        for pc in changed {
            self.forget_around(pc);
        }
    }

    /// Makes the blocks with an instruction at `pc` stale, so that they are lowered anew.
    fn forget_around(&mut self, pc: u64) {
        let numbers: Vec<usize> = self
            .by_page
            .get(&(pc >> PAGE_BITS))
            .map_or(&[][..], Vec::as_slice)
            .iter()
            .copied()
            .filter(|number| (self.blocks[*number].pc..self.blocks[*number].end).contains(&pc))
            .collect();
        for number in numbers {
            self.make_stale(number);
        }
    }
}

/// The block to which one leads that has successors: a successor may have got one itself.
fn last_successor(successors: &FxHashMap<*const Op, Found>, from: *const Op) -> Option<Found> {
    let mut last = *successors.get(&from)?;
    while let Some(next) = successors.get(&last.op) {
        last = *next;
    }
    Some(last)
}
