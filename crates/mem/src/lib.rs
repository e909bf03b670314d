//! Guest memory: page frames with an undo log, and address spaces that map pages to frames.
//!
//! The crate knows neither instructions nor system calls. Reading order: `addr` (names for addresses),
//! [`Frames`] (the arena and its snapshots), [`AddressSpace`] (mappings, copy on write, guard pages).
//!
//! ```text
//!   AddressSpace ──page table──▶ FrameId ──▶ Frames: | frame 1 | frame 2 | …        … | pinned |
//!    vmas: what should be there                        grows up, undone by restore ▲    ▲ grows down,
//!    ptes: what is there now                                                            never undone
//! ```

mod addr;
mod arena;
mod forbidden;
mod frames;
mod space;
mod table;
mod vma;

pub use addr::{GuestAddr, PAGE_BITS, PAGE_SIZE, PageNo};
pub use frames::{FrameId, Frames, OutOfFrames, SnapshotDepth};
pub use space::{Access, AddressSpace, PageFault, Translation};
pub use table::Pte;
pub use vma::{Backing, ObjectId, Perm, Vma};
