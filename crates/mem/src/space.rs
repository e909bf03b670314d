//! An address space of the Linux world: areas, the pages that are present, copy on write.
//!
//! Pages appear on first touch. Zero pages and private copies are made here; a page of an object must be
//! fetched by the owner of the space ([`PageFault::NeedsObject`], then [`AddressSpace::install`]).

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use raddle_stdx::Digest;

use crate::addr::{GuestAddr, PAGE_SIZE, PageNo};
use crate::forbidden::Forbidden;
use crate::frames::{FrameId, Frames};
use crate::table::{PageTable, Pte};
use crate::vma::{Backing, ObjectId, Perm, Vma};

/// What an instruction or a system call wants to do with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
    Execute,
}

/// Why an access is not possible now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageFault {
    /// No area is there.
    NotMapped,
    /// The area does not allow it.
    Protection,
    /// The page of this object must be installed first.
    NeedsObject { object: ObjectId, page: u64 },
    /// There is no frame left.
    OutOfFrames,
    /// The bytes are mapped, but no access is allowed now ([`AddressSpace::forbid`]).
    Forbidden,
}

/// Where an accessible page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Translation {
    pub frame: FrameId,
    /// Writes are allowed now without further ado.
    pub writable: bool,
    /// The page is not watched, so the translation may be cached.
    pub cacheable: bool,
}

/// The memory map of one process.
#[derive(Debug, Clone)]
pub struct AddressSpace {
    /// Sorted, not overlapping.
    vmas: Vec<Vma>,
    table: PageTable,
    /// Unique per state of the mappings; never reused, even after a restore.
    version: u64,
    /// Digest of everything executable; equal layouts can share decoded code.
    code_layout: u64,
    /// Set once executable memory has content that is not an object's: then no other space has the same code.
    has_own_code: bool,
    forbidden: Forbidden,
    /// Whether touching forbidden bytes is a fault now.
    is_guarded: bool,
}

fn pages(range: &Range<u64>) -> impl Iterator<Item = PageNo> + use<> {
    let first = GuestAddr(range.start).page().0;
    let last = GuestAddr(range.end.saturating_sub(1)).page().0;
    (first..=last).map(PageNo)
}

/// Source of versions. Not visible to the guest: only equality with a cached value matters.
static VERSIONS: AtomicU64 = AtomicU64::new(1);

fn new_version() -> u64 {
    VERSIONS.fetch_add(1, Ordering::Relaxed)
}

impl Default for AddressSpace {
    fn default() -> Self {
        Self {
            vmas: Vec::new(),
            table: PageTable::default(),
            version: new_version(),
            code_layout: 0,
            has_own_code: false,
            forbidden: Forbidden::default(),
            is_guarded: false,
        }
    }
}

impl AddressSpace {
    /// The areas, by address.
    pub fn vmas(&self) -> &[Vma] {
        &self.vmas
    }

    /// The area that holds `page`.
    pub fn vma_at(&self, page: PageNo) -> Option<&Vma> {
        let index = self.vmas.partition_point(|vma| vma.end <= page);
        self.vmas.get(index).filter(|vma| vma.contains(page))
    }

    /// The entry of a present page, for observers.
    pub fn pte(&self, page: PageNo) -> Option<Pte> {
        self.table.get(page)
    }

    /// Every present page with its entry, by address.
    pub fn present_pages(&self) -> Vec<(PageNo, Pte)> {
        self.table.range(PageNo(0), PageNo(u64::MAX))
    }

    /// Changes whenever a cached translation may have become wrong.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Equal for two address spaces only if the same code is mapped at the same places.
    pub fn code_layout(&self) -> u64 {
        self.code_layout
    }

    /// Maps an area, replacing what was there.
    pub fn map(&mut self, frames: &mut Frames, vma: Vma) {
        assert!(vma.start < vma.end, "an area has at least one page");
        self.unmap(frames, vma.start, vma.end);
        let index = self.vmas.partition_point(|other| other.end <= vma.start);
        self.vmas.insert(index, vma);
        self.join_around(index);
        self.changed();
    }

    /// Removes whatever is mapped in `start..end`.
    pub fn unmap(&mut self, frames: &mut Frames, start: PageNo, end: PageNo) {
        let overlaps = self
            .vmas
            .iter()
            .any(|vma| vma.clipped(start, end).is_some());
        if !overlaps {
            return;
        }
        self.split_at(start);
        self.split_at(end);
        self.vmas.retain(|vma| vma.clipped(start, end).is_none());
        self.drop_pages(frames, start, end);
        self.changed();
    }

    /// Forgets the present pages of `start..end` but keeps the areas (`MADV_DONTNEED`).
    pub fn drop_pages(&mut self, frames: &mut Frames, start: PageNo, end: PageNo) {
        for (page, pte) in self.table.range(start, end) {
            self.table.set(page, None);
            frames.release(pte.frame);
        }
        if !self.forbidden.is_empty() {
            self.forbidden.remove(&(start.start().0..end.start().0));
        }
        self.version = new_version();
    }

    /// Changes permissions; false if part of the range is not mapped (the mapped part before it is changed).
    pub fn protect(&mut self, start: PageNo, end: PageNo, perm: Perm) -> bool {
        let mut covered = start;
        for vma in self.vmas.iter().filter_map(|vma| vma.clipped(start, end)) {
            if vma.start != covered {
                break;
            }
            covered = vma.end;
        }
        if covered == start {
            return start == end;
        }
        self.split_at(start);
        self.split_at(covered);
        for vma in &mut self.vmas {
            if vma.start >= start && vma.end <= covered {
                vma.perm = perm;
            }
        }
        for (page, pte) in self.table.range(start, covered) {
            self.table.set(page, Some(Pte { perm, ..pte }));
        }
        let mut index = 0;
        while index < self.vmas.len() {
            index = self.join_around(index) + 1;
        }
        self.changed();
        covered == end
    }

    /// Moves the present pages and areas of `start..end` to `target` (`mremap`). The target is unmapped first.
    pub fn relocate(&mut self, frames: &mut Frames, start: PageNo, end: PageNo, target: PageNo) {
        let target_end = PageNo(target.0 + (end.0 - start.0));
        self.unmap(frames, target, target_end);
        self.split_at(start);
        self.split_at(end);
        let moved: Vec<Vma> = self
            .vmas
            .iter()
            .filter(|vma| vma.start >= start && vma.end <= end)
            .cloned()
            .collect();
        self.vmas
            .retain(|vma| !(vma.start >= start && vma.end <= end));
        for vma in moved {
            let place = |page: PageNo| PageNo(page.0 - start.0 + target.0);
            let vma = Vma {
                start: place(vma.start),
                end: place(vma.end),
                ..vma
            };
            let index = self.vmas.partition_point(|other| other.end <= vma.start);
            self.vmas.insert(index, vma);
            self.join_around(index);
        }
        for (page, pte) in self.table.range(start, end) {
            self.table.set(page, None);
            self.table
                .set(PageNo(page.0 - start.0 + target.0), Some(pte));
        }
        self.changed();
    }

    /// Highest gap of `count` pages that ends at or below `limit` and begins at or above `floor`.
    pub fn find_gap(&self, count: u64, floor: PageNo, limit: PageNo) -> Option<PageNo> {
        let mut top = limit.0;
        for vma in self.vmas.iter().rev() {
            if vma.start.0 >= top {
                continue;
            }
            if vma.end.0 <= top && top - vma.end.0 >= count {
                break;
            }
            top = vma.start.0;
        }
        let start = top.checked_sub(count)?;
        let free = !self
            .vmas
            .iter()
            .any(|vma| vma.clipped(PageNo(start), PageNo(top)).is_some());
        (start >= floor.0 && free).then_some(PageNo(start))
    }

    /// Finds the frame for an access, filling in zero pages and private copies.
    pub fn translate(
        &mut self,
        frames: &mut Frames,
        page: PageNo,
        access: Access,
    ) -> Result<Translation, PageFault> {
        let pte = match self.table.get(page) {
            Some(pte) => pte,
            None => self.fill(frames, page, access)?,
        };
        let allowed = match access {
            Access::Read => pte.perm.read,
            Access::Write => pte.perm.write,
            Access::Execute => pte.perm.execute,
        };
        if !allowed {
            return Err(PageFault::Protection);
        }
        let pte = if access == Access::Write && pte.copy_on_write {
            self.unshare(frames, page, pte)?
        } else {
            pte
        };
        let writable = pte.perm.write && !pte.copy_on_write;
        Ok(Translation {
            frame: pte.frame,
            writable,
            cacheable: !pte.watched,
        })
    }

    /// Puts a page of an object in place; the space takes over one reference to the frame.
    pub fn install(&mut self, frames: &mut Frames, page: PageNo, frame: FrameId) {
        let vma = self
            .vma_at(page)
            .expect("pages are installed where a fault asked for them")
            .clone();
        let pte = Pte {
            frame,
            perm: vma.perm,
            copy_on_write: !vma.shared,
            watched: false,
        };
        if let Some(old) = self.table.set(page, Some(pte)) {
            frames.release(old.frame);
            self.version = new_version();
        }
    }

    /// Sends every access to this page down the slow path, or stops doing so.
    pub fn set_watched(&mut self, page: PageNo, watched: bool) {
        if let Some(pte) = self.table.get(page) {
            self.table.set(page, Some(Pte { watched, ..pte }));
            self.version = new_version();
        }
    }

    /// Forbids bytes, while the space is guarded. Their pages leave the fast path.
    pub fn forbid(&mut self, range: Range<u64>) {
        for page in pages(&range) {
            if self.table.get(page).is_some_and(|pte| !pte.watched) {
                self.set_watched(page, true);
            }
        }
        self.forbidden.insert(range);
    }

    /// Allows bytes again.
    pub fn allow(&mut self, range: &Range<u64>) {
        if self.forbidden.is_empty() {
            return;
        }
        self.forbidden.remove(range);
        for page in pages(range) {
            let bytes = page.start().0..PageNo(page.0 + 1).start().0;
            let is_watched = self.table.get(page).is_some_and(|pte| pte.watched);
            if is_watched && !self.forbidden.overlaps(&bytes) {
                self.set_watched(page, false);
            }
        }
    }

    /// Chooses whether touching forbidden bytes is a fault.
    pub fn set_guarded(&mut self, is_guarded: bool) {
        self.is_guarded = is_guarded;
    }

    /// Whether an access is a fault because some of its bytes are forbidden.
    pub fn forbids(&self, at: GuestAddr, len: u64) -> bool {
        self.is_guarded && self.forbidden.overlaps(&(at.0..at.0.saturating_add(len)))
    }

    /// The first of some bytes that is forbidden, whether or not that is a fault now.
    pub fn first_forbidden(&self, at: GuestAddr, len: u64) -> Option<GuestAddr> {
        let range = at.0..at.0.saturating_add(len);
        self.forbidden.first_in(&range).map(GuestAddr)
    }

    /// A copy for a child process: private pages are shared until one side writes.
    #[must_use]
    pub fn fork(&mut self, frames: &mut Frames) -> Self {
        let pages = self.table.range(PageNo(0), PageNo(u64::MAX));
        for (page, pte) in pages {
            let is_shared = self.vma_at(page).is_some_and(|vma| vma.shared);
            if !is_shared && !pte.copy_on_write {
                self.table.set(
                    page,
                    Some(Pte {
                        copy_on_write: true,
                        ..pte
                    }),
                );
            }
            frames.retain(pte.frame);
        }
        self.version = new_version();
        Self {
            version: new_version(),
            ..self.clone()
        }
    }

    /// Gives every frame back.
    pub fn clear(&mut self, frames: &mut Frames) {
        self.drop_pages(frames, PageNo(0), PageNo(u64::MAX));
        self.vmas.clear();
        self.changed();
    }

    /// Copies guest memory to `into`; on a fault tells at which address.
    pub fn read(
        &mut self,
        frames: &mut Frames,
        from: GuestAddr,
        into: &mut [u8],
    ) -> Result<(), (GuestAddr, PageFault)> {
        let mut done = 0;
        while done < into.len() {
            let at = from.offset(raddle_stdx::width::to_u64(done));
            let count = (PAGE_SIZE - at.page_offset()).min(into.len() - done);
            let found = self
                .translate(frames, at.page(), Access::Read)
                .map_err(|fault| (at, fault))?;
            let offset = at.page_offset();
            into[done..done + count]
                .copy_from_slice(&frames.bytes(found.frame)[offset..offset + count]);
            done += count;
        }
        Ok(())
    }

    /// Copies `bytes` to guest memory; on a fault tells at which address. Earlier pages are written then.
    pub fn write(
        &mut self,
        frames: &mut Frames,
        to: GuestAddr,
        bytes: &[u8],
    ) -> Result<(), (GuestAddr, PageFault)> {
        let mut done = 0;
        while done < bytes.len() {
            let at = to.offset(raddle_stdx::width::to_u64(done));
            let count = (PAGE_SIZE - at.page_offset()).min(bytes.len() - done);
            let found = self
                .translate(frames, at.page(), Access::Write)
                .map_err(|fault| (at, fault))?;
            frames.write(found.frame, at.page_offset(), &bytes[done..done + count]);
            done += count;
        }
        Ok(())
    }

    fn fill(
        &mut self,
        frames: &mut Frames,
        page: PageNo,
        access: Access,
    ) -> Result<Pte, PageFault> {
        let vma = self.vma_at(page).ok_or(PageFault::NotMapped)?;
        let allowed = match access {
            Access::Read => vma.perm.read,
            Access::Write => vma.perm.write,
            Access::Execute => vma.perm.execute,
        };
        if !allowed {
            return Err(PageFault::Protection);
        }
        match vma.backing {
            Backing::Object { object, first_page } => Err(PageFault::NeedsObject {
                object,
                page: first_page + (page.0 - vma.start.0),
            }),
            Backing::Anonymous => {
                let perm = vma.perm;
                let frame = frames.alloc().map_err(|_| PageFault::OutOfFrames)?;
                let pte = Pte {
                    frame,
                    perm,
                    copy_on_write: false,
                    watched: false,
                };
                self.table.set(page, Some(pte));
                Ok(pte)
            }
        }
    }

    fn unshare(&mut self, frames: &mut Frames, page: PageNo, pte: Pte) -> Result<Pte, PageFault> {
        let frame = if frames.refs(pte.frame) == 1 {
            pte.frame
        } else {
            let copy = frames
                .duplicate(pte.frame)
                .map_err(|_| PageFault::OutOfFrames)?;
            frames.release(pte.frame);
            copy
        };
        let own = Pte {
            frame,
            copy_on_write: false,
            ..pte
        };
        self.table.set(page, Some(own));
        if pte.perm.execute {
            self.has_own_code = true;
            self.changed();
        }
        self.version = new_version();
        Ok(own)
    }

    fn split_at(&mut self, page: PageNo) {
        let Some(index) = self
            .vmas
            .iter()
            .position(|vma| vma.start < page && page < vma.end)
        else {
            return;
        };
        let whole = self.vmas[index].clone();
        let pieces = [
            whole.clipped(whole.start, page),
            whole.clipped(page, whole.end),
        ];
        self.vmas
            .splice(index..=index, pieces.into_iter().flatten());
    }

    /// Joins the area with equal neighbours and gives its new index.
    fn join_around(&mut self, index: usize) -> usize {
        let mut index = index;
        while index + 1 < self.vmas.len() && self.vmas[index].joins(&self.vmas[index + 1]) {
            self.vmas[index].end = self.vmas[index + 1].end;
            self.vmas.remove(index + 1);
        }
        while index > 0 && self.vmas[index - 1].joins(&self.vmas[index]) {
            self.vmas[index - 1].end = self.vmas[index].end;
            self.vmas.remove(index);
            index -= 1;
        }
        index
    }

    /// Notes that mappings changed: a new version, and the digest of what is executable.
    fn changed(&mut self) {
        self.version = new_version();
        let mut digest = Digest::default();
        for vma in self.vmas.iter().filter(|vma| vma.perm.execute) {
            digest.word(vma.start.0);
            digest.word(vma.end.0);
            match vma.backing {
                Backing::Object { object, first_page } if !vma.shared && !vma.perm.write => {
                    digest.word(object.0);
                    digest.word(first_page);
                }
                _ => self.has_own_code = true,
            }
        }
        if self.has_own_code {
            digest.word(self.version);
        }
        self.code_layout = digest.value();
    }
}

#[cfg(test)]
mod tests;
