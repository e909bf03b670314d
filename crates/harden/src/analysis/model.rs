//! A function as the analysis sees it: numbered instructions in numbered blocks, each with its effect on a region.

use std::collections::{BTreeMap, BTreeSet};

/// Index into [`Function::insts`]; instructions of a block are consecutive.
pub type InstId = usize;
/// Index into [`Function::blocks`]; block 0 is the entry.
pub type BlockId = usize;

/// A value that an instruction uses; constants and globals are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operand {
    Inst(InstId),
    Arg(usize),
}

/// A lock that is a global variable, by number in the module.
pub type LockId = u32;

/// The cell of a write whose place in the slot is not known.
pub const WHOLE_SLOT: usize = usize::MAX;

/// What an instruction means for the idempotency of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Computes; may be repeated at will.
    None,
    /// Reads memory that another thread may write.
    SharedRead,
    /// Ends every region: writes that others may see, output, release, unknown calls.
    Destroy,
    /// Takes something that the failing edge can give back.
    Acquire(Acquire),
    /// Writes a known cell of a stack slot that only this activation can reach.
    SlotWrite {
        slot: usize,
        cell: usize,
    },
    SlotRead {
        slot: usize,
    },
    /// The slot's lifetime begins: its earlier contents do not matter.
    SlotBegin {
        slot: usize,
    },
    SlotEnd {
        slot: usize,
    },
    /// Writes memory that the call `alloc` of this function returned.
    FreshWrite {
        alloc: InstId,
    },
    /// Writes memory that others may know of; a log can put back what was there, given its [`Shelter`].
    LoggedWrite {
        shelter: usize,
    },
    /// Gives back what an acquisition took.
    Release,
    /// Calls a function of another object, which that object may promise to be harmless.
    PromisedCall,
    /// Calls a function of the program that writes into the log whatever must be undone of it.
    LoggedCall,
}

/// Under which condition no other thread can have seen a write that is taken back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shelter {
    /// Under none: the user vouches for it.
    Anywhere,
    /// One of these locks was taken since the point: every access to the object holds all of them.
    Locks(BTreeSet<LockId>),
}

/// What is taken or given back, as far as two instructions can be seen to mean the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Object {
    /// Equal only for the same computation from the same values.
    pub name: u64,
    /// The instructions that make those values: executed again, they may make others.
    pub made_of: BTreeSet<InstId>,
}

/// What a call leaves in the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallLog {
    pub callee: usize,
    /// At most so many entries.
    pub entries: usize,
    pub takes_lock: bool,
    /// Locks that it is sure to have taken when it returns.
    pub takes: BTreeSet<LockId>,
    /// Locks of which one each must have been taken before the call and since the point.
    pub needs: BTreeSet<BTreeSet<LockId>>,
    /// It writes what only the user vouches for.
    pub writes_anywhere: bool,
}

/// A lock or unlock operation, for the question which locks are held where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockUse {
    /// Equal for operations on the same lock, as far as the code says so.
    pub name: u64,
    /// The name means the same lock in every function.
    pub is_global: bool,
    /// The lock, if it is a global variable that only code in sight can reach.
    pub id: Option<LockId>,
    pub how: LockHow,
}

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockHow {
    Takes,
    /// Takes it for reading: others may hold it, too.
    Shares,
    /// Takes it or not.
    Tries,
    Releases,
}

/// What is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acquire {
    Lock,
    Memory,
}

/// One instruction.
#[derive(Debug, Clone)]
pub struct Inst {
    pub effect: Effect,
    pub operands: Vec<Operand>,
    pub shape: Shape,
}

/// What the analysis must know of an instruction beside its effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    Plain,
    Phi,
    /// A terminator that chooses; its operands are the condition.
    Choice,
    /// A direct call that may be turned into one with a landing pad; per parameter, the value passed.
    Call {
        callee: usize,
        passed: Vec<Option<Operand>>,
    },
}

/// A straight line of instructions `first..end`; the last one is the terminator.
#[derive(Debug, Clone, Default)]
pub struct Block {
    pub first: InstId,
    pub end: InstId,
    /// First instruction that is neither a phi nor, in the entry, a static stack slot.
    pub body: InstId,
    pub succs: Vec<BlockId>,
    pub preds: Vec<BlockId>,
}

/// A function body.
#[derive(Debug, Clone, Default)]
pub struct Function {
    pub insts: Vec<Inst>,
    pub blocks: Vec<Block>,
    /// Block of each instruction.
    pub block_of: Vec<BlockId>,
    /// Blocks at whose end control goes back to the caller, also by an exception.
    pub returns: BTreeSet<BlockId>,
    pub lock_uses: BTreeMap<InstId, LockUse>,
    /// Of acquisitions and releases.
    pub objects: BTreeMap<InstId, Object>,
    /// Named by [`Effect::LoggedWrite`].
    pub shelters: Vec<Shelter>,
    /// Slots that are small enough to be saved as a whole.
    pub small_slots: BTreeSet<usize>,
    /// Log entries of each write that may be logged.
    pub log_entries: BTreeMap<InstId, usize>,
    /// Of each [`Effect::LoggedCall`].
    pub logged_calls: BTreeMap<InstId, CallLog>,
    /// Direct calls of functions of the module, whatever their effect.
    pub calls: BTreeMap<InstId, usize>,
    /// Calls of functions that are neither in the module nor known to call nothing of it.
    pub unknown_calls: BTreeSet<InstId>,
}

impl Function {
    /// The terminator of a block.
    pub fn terminator(&self, block: BlockId) -> InstId {
        self.blocks[block].end - 1
    }

    /// Whether an instruction is sure to have taken one of these locks when it has been passed.
    pub fn takes_one_of(&self, inst: InstId, locks: &BTreeSet<LockId>) -> bool {
        if let Some(using) = self.lock_uses.get(&inst) {
            return using.how == LockHow::Takes && using.id.is_some_and(|id| locks.contains(&id));
        }
        self.logged_calls
            .get(&inst)
            .is_some_and(|log| !log.takes.is_disjoint(locks))
    }

    /// Whether an instruction takes a lock or not, without waiting.
    pub fn tries(&self, inst: InstId) -> bool {
        self.lock_uses
            .get(&inst)
            .is_some_and(|using| using.how == LockHow::Tries)
    }

    /// Blocks from which control may still go back to the caller.
    pub fn returning(&self) -> BTreeSet<BlockId> {
        let mut found = BTreeSet::new();
        let mut work: Vec<BlockId> = self.returns.iter().copied().collect();
        while let Some(block) = work.pop() {
            if found.insert(block) {
                work.extend(&self.blocks[block].preds);
            }
        }
        found
    }

    /// Whether control may come back to a block, so that one call runs it more than once.
    pub fn is_in_cycle(&self, block: BlockId) -> bool {
        let mut seen = vec![false; self.blocks.len()];
        let mut work = self.blocks[block].succs.clone();
        while let Some(at) = work.pop() {
            if at == block {
                return true;
            }
            if !std::mem::replace(&mut seen[at], true) {
                work.extend(&self.blocks[at].succs);
            }
        }
        false
    }

    /// Fills in predecessors and `block_of`; call once after the blocks are there.
    pub fn link(&mut self) {
        self.block_of = vec![0; self.insts.len()];
        for block in 0..self.blocks.len() {
            let (first, end) = (self.blocks[block].first, self.blocks[block].end);
            self.block_of[first..end].fill(block);
            for succ in self.blocks[block].succs.clone() {
                if !self.blocks[succ].preds.contains(&block) {
                    self.blocks[succ].preds.push(block);
                }
            }
        }
    }
}

/// Kinds of failure, in the order of the paper's tables.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum SiteKind {
    Assertion,
    Dereference,
    Output,
    Deadlock,
    Oracle,
}

/// A place where a failure may become visible.
#[derive(Debug, Clone)]
pub struct Site {
    pub kind: SiteKind,
    /// The region ends right before this instruction.
    pub at: InstId,
    /// Values whose change could avoid the failure; for assertions the controlling branches are added. For deadlocks,
    /// acquisitions that hold nothing when the site is reached.
    pub critical: Vec<Operand>,
    /// Edges, from block to block, after which it does not fail.
    pub safe_edges: BTreeSet<(BlockId, BlockId)>,
}
