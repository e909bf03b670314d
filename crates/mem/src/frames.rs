//! Page frames with reference counts, an undo log for snapshots, and marks for pages that hold decoded code.
//!
//! `snapshot` opens an epoch. The first write to a frame in an epoch saves the old page; every change of a
//! count or of the free list is noted. `restore` plays the log backwards, so its cost is proportional to what
//! was touched since the snapshot. Snapshots nest as a stack.

use raddle_stdx::width::{low_u32, to_u64};

use crate::addr::PAGE_SIZE;
use crate::arena::Arena;

/// Index of a frame. Zero is never handed out, so that tables can use it for "none".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

impl FrameId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// The arena is full: the guest wants more memory than it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("guest memory is exhausted")]
pub struct OutOfFrames;

/// How many snapshots were on the stack when this one was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotDepth(usize);

/// Numbers of epochs that are attempts.
const ATTEMPT: u32 = 1 << 31;

#[derive(Debug, Clone, Copy, Default)]
struct Meta {
    refs: u32,
    /// The epoch in which the content was last saved (or made irrelevant).
    saved_in: u32,
    /// One bit per 64 bytes that hold decoded instructions.
    code: u64,
}

#[derive(Debug, Clone, Copy)]
enum Undo {
    /// The content of the frame is the next one (from the end) in `pages`.
    Content(FrameId),
    Refs(FrameId, u32),
    TakenFromFree(FrameId),
    PutOnFree,
    TakenFresh,
}

#[derive(Debug, Default)]
struct Epoch {
    log: Vec<Undo>,
    pages: Vec<[u8; PAGE_SIZE]>,
    /// The numbers that were current when an attempt began.
    outer: (u32, u32),
}

/// All guest memory of one world.
#[derive(Debug)]
pub struct Frames {
    arena: Arena,
    meta: Vec<Meta>,
    free: Vec<FrameId>,
    /// The next frame that was never handed out.
    fresh: usize,
    /// Frames from here on were never written: they are zero without clearing.
    clean_from: usize,
    /// Pinned frames grow down from the end of the arena to here.
    pinned_from: usize,
    epochs: Vec<Epoch>,
    /// Unique number of the current epoch; 0 while there is no snapshot.
    epoch: u32,
    epochs_begun: u32,
    attempts: u32,
    /// See [`Self::write_epoch`].
    write_epoch: u32,
    /// Frames with decoded code whose content changed since the engine last asked.
    stale_code: Vec<FrameId>,
    restored_pages: u64,
}

impl Frames {
    /// An arena of at most `bytes` bytes; host memory is used only as it is touched.
    pub fn new(bytes: u64) -> std::io::Result<Self> {
        let pages = usize::try_from(bytes / to_u64(PAGE_SIZE))
            .unwrap_or(usize::MAX)
            .clamp(16, 1 << 28);
        Ok(Self {
            arena: Arena::reserve(pages)?,
            meta: vec![Meta::default(); 1],
            free: Vec::new(),
            fresh: 1,
            clean_from: 1,
            pinned_from: pages,
            epochs: Vec::new(),
            epoch: 0,
            epochs_begun: 0,
            attempts: 0,
            write_epoch: 0,
            stale_code: Vec::new(),
            restored_pages: 0,
        })
    }

    /// A zeroed frame with one reference. An attempt gets none: page tables, which [`Self::take_back`] does not know,
    /// would keep it.
    pub fn alloc(&mut self) -> Result<FrameId, OutOfFrames> {
        if self.is_attempt() {
            return Err(OutOfFrames);
        }
        let frame = if let Some(frame) = self.free.pop() {
            self.note(Undo::TakenFromFree(frame));
            frame
        } else {
            if self.fresh >= self.pinned_from {
                return Err(OutOfFrames);
            }
            let frame = FrameId(low_u32(to_u64(self.fresh)));
            self.fresh += 1;
            if self.meta.len() < self.fresh {
                self.meta.resize(self.fresh, Meta::default());
            }
            self.note(Undo::TakenFresh);
            frame
        };
        if frame.index() < self.clean_from {
            self.discard_code(frame);
            self.arena.page_mut(frame.index()).fill(0);
        } else {
            self.clean_from = frame.index() + 1;
        }
        self.meta[frame.index()].refs = 1;
        self.meta[frame.index()].saved_in = self.epoch;
        Ok(frame)
    }

    /// A frame that snapshots do not cover, for content that is the same in every run, such as pages of host
    /// files. Its content may be set once; it is never freed.
    pub fn alloc_pinned(&mut self, content: &[u8]) -> Result<FrameId, OutOfFrames> {
        if self.pinned_from <= self.fresh + 1 {
            return Err(OutOfFrames);
        }
        self.pinned_from -= 1;
        let index = self.pinned_from;
        self.arena.page_mut(index)[..content.len()].copy_from_slice(content);
        Ok(FrameId(low_u32(to_u64(index))))
    }

    /// Whether the frame is pinned: it must never be written, only copied.
    pub fn is_pinned(&self, frame: FrameId) -> bool {
        frame.index() >= self.pinned_from
    }

    /// Adds a reference.
    pub fn retain(&mut self, frame: FrameId) {
        if self.is_pinned(frame) {
            return;
        }
        let refs = self.meta[frame.index()].refs;
        assert!(refs > 0, "a free frame has no second owner");
        self.note(Undo::Refs(frame, refs));
        self.meta[frame.index()].refs = refs + 1;
    }

    /// Drops a reference; the last one frees the frame.
    pub fn release(&mut self, frame: FrameId) {
        if self.is_pinned(frame) {
            return;
        }
        let refs = self.meta[frame.index()].refs;
        assert!(refs > 0, "a frame is released once per reference");
        self.note(Undo::Refs(frame, refs));
        self.meta[frame.index()].refs = refs - 1;
        if refs == 1 {
            // Saved now and not when it is reused: an outer snapshot may still need the content.
            self.save_once(frame);
            self.note(Undo::PutOnFree);
            self.free.push(frame);
        }
    }

    /// Number of references; pinned frames count as shared.
    pub fn refs(&self, frame: FrameId) -> u32 {
        if self.is_pinned(frame) {
            u32::MAX
        } else {
            self.meta[frame.index()].refs
        }
    }

    /// The content of a frame.
    pub fn bytes(&self, frame: FrameId) -> &[u8; PAGE_SIZE] {
        self.arena.page(frame.index())
    }

    /// Writes `bytes` at `offset`, saving the page first if a snapshot needs it.
    pub fn write(&mut self, frame: FrameId, offset: usize, bytes: &[u8]) {
        self.prepare_write(frame);
        self.note_code_write(frame, offset, bytes.len());
        self.arena.page_mut(frame.index())[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// As [`Self::write`], but decoded code stays valid: for bits that a processor sets by itself in page tables.
    pub fn write_unnoticed(&mut self, frame: FrameId, offset: usize, bytes: &[u8]) {
        self.prepare_write(frame);
        self.arena.page_mut(frame.index())[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// A new frame with the content of `frame`.
    pub fn duplicate(&mut self, frame: FrameId) -> Result<FrameId, OutOfFrames> {
        let copy = self.alloc()?;
        let content = *self.arena.page(frame.index());
        *self.arena.page_mut(copy.index()) = content;
        Ok(copy)
    }

    /// Makes the frame ready for writes through [`Self::host_pointer`] in the current epoch.
    pub fn prepare_write(&mut self, frame: FrameId) {
        assert!(
            !self.is_pinned(frame),
            "pinned frames are copied before they are written"
        );
        debug_assert!(
            self.meta[frame.index()].refs > 0,
            "a free frame is not written"
        );
        self.save_once(frame);
    }

    /// Where the frame is in host memory. Reading through it is valid as long as `self` lives; writing only
    /// after [`Self::prepare_write`] in the same epoch, and never while a reference to the content exists.
    pub fn host_pointer(&self, frame: FrameId) -> *mut u8 {
        self.arena.pointer(frame.index())
    }

    /// Opens an epoch; `restore` with the result comes back to this moment.
    pub fn snapshot(&mut self) -> SnapshotDepth {
        let depth = SnapshotDepth(self.epochs.len());
        self.epochs.push(Epoch::default());
        self.begin_epoch();
        depth
    }

    /// Undoes everything since that snapshot. The snapshot stays on the stack and can be restored again;
    /// later ones are gone.
    pub fn restore(&mut self, to: SnapshotDepth) {
        assert!(
            to.0 < self.epochs.len(),
            "the snapshot is still on the stack"
        );
        while self.epochs.len() > to.0 + 1 {
            let epoch = self.epochs.pop().expect("the length was checked");
            self.undo(epoch);
        }
        let epoch = std::mem::take(&mut self.epochs[to.0]);
        let mut spent = self.undo(epoch);
        spent.log.clear();
        spent.pages.clear();
        self.epochs[to.0] = spent;
        self.begin_epoch();
    }

    /// Forgets the newest snapshot and keeps the present state.
    pub fn discard(&mut self, newest: SnapshotDepth) {
        assert_eq!(
            newest.0 + 1,
            self.epochs.len(),
            "only the newest snapshot can be discarded"
        );
        let epoch = self.epochs.pop().expect("the length was checked");
        if let Some(outer) = self.epochs.last_mut() {
            outer.log.extend(epoch.log);
            outer.pages.extend(epoch.pages);
        }
        self.begin_epoch();
    }

    /// As [`Self::snapshot`], for an attempt that [`Self::take_back`] ends. A processor that does not run meanwhile may keep
    /// what it has cached of memory. Page tables stay as they are, so that an attempt ends where it would need a new page.
    pub fn try_out(&mut self) -> SnapshotDepth {
        let depth = SnapshotDepth(self.epochs.len());
        self.epochs.push(Epoch {
            outer: (self.epoch, self.write_epoch),
            ..Epoch::default()
        });
        self.attempts += 1;
        self.epoch = ATTEMPT | self.attempts;
        self.write_epoch = self.epoch;
        depth
    }

    /// The frames whose content is now another than when the newest snapshot was taken.
    pub fn changed(&self) -> impl Iterator<Item = FrameId> {
        let epoch = self.epochs.last();
        epoch.into_iter().flat_map(|epoch| {
            let frames = epoch.log.iter().filter_map(|entry| match *entry {
                Undo::Content(frame) => Some(frame),
                _ => None,
            });
            let with_pages = frames.zip(&epoch.pages);
            with_pages
                .filter(|(frame, page)| self.arena.page(frame.index()) != *page)
                .map(|(frame, _)| frame)
        })
    }

    /// Ends an attempt: everything is as before. Gives whether anything had changed.
    pub fn take_back(&mut self, attempt: SnapshotDepth) -> bool {
        assert_eq!(
            attempt.0 + 1,
            self.epochs.len(),
            "only the newest snapshot can be taken back"
        );
        let has_changed = self.changed().next().is_some();
        let epoch = self.epochs.pop().expect("the length was checked");
        let mut log = epoch.log.iter();
        assert!(
            log.all(|entry| matches!(entry, Undo::Content(_))),
            "an attempt changes content and nothing else"
        );
        // What was saved in the outer epoch still is.
        (self.epoch, self.write_epoch) = epoch.outer;
        self.undo(epoch);
        has_changed
    }

    /// Changes whenever cached permission to write through host pointers becomes void.
    pub fn write_epoch(&self) -> u32 {
        self.write_epoch
    }

    /// Frames handed out and not freed, without pinned ones.
    pub fn in_use(&self) -> usize {
        self.fresh - 1 - self.free.len()
    }

    /// Pages copied back by restores so far.
    pub fn restored_pages(&self) -> u64 {
        self.restored_pages
    }

    /// Notes that bytes of this frame were decoded as instructions.
    pub fn mark_code(&mut self, frame: FrameId, offset: usize, len: usize) {
        if !self.is_pinned(frame) {
            self.meta[frame.index()].code |= granules(offset, len);
        }
    }

    /// Whether any byte of the frame was decoded; writes to it must then come through [`Self::note_code_write`].
    pub fn has_code(&self, frame: FrameId) -> bool {
        !self.is_pinned(frame) && self.meta[frame.index()].code != 0
    }

    /// Must be called for a write to a frame that has code; true if decoded instructions were hit.
    pub fn note_code_write(&mut self, frame: FrameId, offset: usize, len: usize) -> bool {
        let hit = self.meta[frame.index()].code & granules(offset, len) != 0;
        if hit {
            self.discard_code(frame);
        }
        hit
    }

    /// Frames whose decoded instructions are no longer true, since the last call.
    pub fn take_stale_code(&mut self) -> Vec<FrameId> {
        std::mem::take(&mut self.stale_code)
    }

    /// Whether [`Self::take_stale_code`] would give anything.
    pub fn has_stale_code(&self) -> bool {
        !self.stale_code.is_empty()
    }

    fn is_attempt(&self) -> bool {
        self.epoch & ATTEMPT != 0
    }

    fn begin_epoch(&mut self) {
        self.epochs_begun += 1;
        assert!(
            self.epochs_begun < ATTEMPT,
            "epochs have numbers of their own"
        );
        self.write_epoch = self.epochs_begun;
        self.epoch = if self.epochs.is_empty() {
            0
        } else {
            self.epochs_begun
        };
    }

    fn note(&mut self, undo: Undo) {
        if let Some(epoch) = self.epochs.last_mut() {
            epoch.log.push(undo);
        }
    }

    fn save_once(&mut self, frame: FrameId) {
        if self.meta[frame.index()].saved_in == self.epoch {
            return;
        }
        self.meta[frame.index()].saved_in = self.epoch;
        if let Some(epoch) = self.epochs.last_mut() {
            epoch.pages.push(*self.arena.page(frame.index()));
            epoch.log.push(Undo::Content(frame));
        }
    }

    fn discard_code(&mut self, frame: FrameId) {
        if std::mem::take(&mut self.meta[frame.index()].code) != 0 {
            self.stale_code.push(frame);
        }
    }

    fn undo(&mut self, mut epoch: Epoch) -> Epoch {
        for entry in epoch.log.iter().rev() {
            match *entry {
                Undo::Content(frame) => {
                    let page = epoch.pages.pop().expect("one saved page per content entry");
                    *self.arena.page_mut(frame.index()) = page;
                    self.discard_code(frame);
                    self.restored_pages += 1;
                }
                Undo::Refs(frame, refs) => self.meta[frame.index()].refs = refs,
                Undo::TakenFromFree(frame) => {
                    self.meta[frame.index()].refs = 0;
                    self.free.push(frame);
                }
                Undo::PutOnFree => {
                    self.free
                        .pop()
                        .expect("what was put on the free list is still on top");
                }
                Undo::TakenFresh => {
                    self.fresh -= 1;
                    self.meta[self.fresh].refs = 0;
                }
            }
        }
        epoch
    }
}

/// The bits of the 64-byte pieces that `offset..offset + len` touches.
fn granules(offset: usize, len: usize) -> u64 {
    if len == 0 {
        return 0;
    }
    let (first, last) = (offset / 64, (offset + len - 1).min(PAGE_SIZE - 1) / 64);
    (u64::MAX << first) & (u64::MAX >> (63 - last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Frames {
        Frames::new(1 << 20).unwrap()
    }

    #[test]
    fn restore_brings_back_content_counts_and_free_list() {
        let mut frames = frames();
        let kept = frames.alloc().unwrap();
        let freed = frames.alloc().unwrap();
        frames.write(kept, 0, b"before");
        frames.write(freed, 9, b"old");
        let depth = frames.snapshot();
        for round in 0..3 {
            frames.write(kept, 0, b"after!");
            frames.retain(kept);
            frames.release(freed);
            let reused = frames.alloc().unwrap();
            assert_eq!(reused, freed, "round {round}");
            frames.write(reused, 9, b"new");
            frames.alloc().unwrap();
            frames.restore(depth);
            assert_eq!(&frames.bytes(kept)[..6], b"before");
            assert_eq!(&frames.bytes(freed)[9..12], b"old");
            assert_eq!((frames.refs(kept), frames.refs(freed)), (1, 1));
            assert_eq!(frames.in_use(), 2);
        }
    }

    #[test]
    fn what_is_taken_back_leaves_the_outer_snapshot_as_it_was() {
        let mut frames = frames();
        let [saved, later] = [(); 2].map(|()| frames.alloc().unwrap());
        frames.write(saved, 0, b"first");
        let outer = frames.snapshot();
        frames.write(saved, 0, b"outer");
        let changes = |frames: &mut Frames, bytes: &[u8]| {
            let before = frames.write_epoch();
            let attempt = frames.try_out();
            assert_ne!(frames.write_epoch(), before);
            frames.write(saved, 0, bytes);
            let has_changed = frames.take_back(attempt);
            assert_eq!(frames.write_epoch(), before);
            assert_eq!(&frames.bytes(saved)[..5], b"outer");
            has_changed
        };
        assert!(!changes(&mut frames, b"outer"));
        assert!(changes(&mut frames, b"inner"));
        frames.write(saved, 0, b"again");
        frames.write(later, 0, b"later");
        frames.restore(outer);
        assert_eq!(&frames.bytes(saved)[..5], b"first");
        assert_eq!(&frames.bytes(later)[..5], [0; 5]);
    }

    #[test]
    fn an_attempt_gets_no_frames() {
        let mut frames = frames();
        let freed = frames.alloc().unwrap();
        frames.release(freed);
        let attempt = frames.try_out();
        assert_eq!(frames.alloc(), Err(OutOfFrames));
        assert!(!frames.take_back(attempt));
        assert_eq!(frames.alloc(), Ok(freed));
    }

    #[test]
    fn outer_snapshot_survives_reuse_in_an_inner_one() {
        let mut frames = frames();
        let frame = frames.alloc().unwrap();
        frames.write(frame, 0, b"A");
        let outer = frames.snapshot();
        frames.release(frame);
        let inner = frames.snapshot();
        let again = frames.alloc().unwrap();
        assert_eq!(again, frame);
        frames.write(again, 0, b"B");
        frames.restore(inner);
        assert_eq!(frames.in_use(), 0);
        frames.restore(outer);
        assert_eq!(frames.bytes(frame)[0], b'A');
        assert_eq!(frames.refs(frame), 1);
    }

    #[test]
    fn discard_keeps_the_state_and_the_outer_snapshot() {
        let mut frames = frames();
        let frame = frames.alloc().unwrap();
        let outer = frames.snapshot();
        frames.write(frame, 0, b"1");
        let inner = frames.snapshot();
        frames.write(frame, 0, b"2");
        frames.discard(inner);
        assert_eq!(frames.bytes(frame)[0], b'2');
        frames.restore(outer);
        assert_eq!(frames.bytes(frame)[0], 0);
    }

    #[test]
    fn reused_frames_are_zero() {
        let mut frames = frames();
        let frame = frames.alloc().unwrap();
        frames.write(frame, 100, b"x");
        frames.release(frame);
        let again = frames.alloc().unwrap();
        assert!(frames.bytes(again).iter().all(|byte| *byte == 0));
    }

    #[test]
    fn exhaustion_is_a_value() {
        let mut frames = Frames::new(16 * 4096).unwrap();
        let mut count = 0;
        while frames.alloc().is_ok() {
            count += 1;
        }
        assert_eq!(count, 15);
        assert_eq!(frames.alloc(), Err(OutOfFrames));
        assert_eq!(frames.alloc_pinned(b""), Err(OutOfFrames));
    }

    #[test]
    fn code_writes_are_noticed_by_piece_and_by_restore() {
        let mut frames = frames();
        let frame = frames.alloc().unwrap();
        frames.mark_code(frame, 128, 10);
        let depth = frames.snapshot();
        frames.write(frame, 0, b"data beside code");
        assert!(!frames.has_stale_code());
        frames.write(frame, 130, b"x");
        assert_eq!(frames.take_stale_code(), vec![frame]);
        frames.mark_code(frame, 128, 10);
        frames.restore(depth);
        assert_eq!(frames.take_stale_code(), vec![frame]);
    }

    #[test]
    fn granule_masks_cover_exactly_the_touched_pieces() {
        assert_eq!(granules(0, 1), 1);
        assert_eq!(granules(63, 2), 3);
        assert_eq!(granules(4095, 1), 1 << 63);
        assert_eq!(granules(0, 4096), u64::MAX);
        assert_eq!(granules(5, 0), 0);
    }
}
