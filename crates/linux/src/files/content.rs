//! The bytes of a regular file: overlay pages in guest frames above the pages of a host file.

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_mem::{FrameId, Frames, PAGE_SIZE};
use raddle_stdx::width::{to_u64, to_usize};

use super::host::{HostFileId, HostFiles};
use crate::errno::Errno;

const PAGE: u64 = PAGE_SIZE as u64;
const LEAF: u64 = 512;
const LEAF_ENTRIES: usize = 512;

/// Which frame holds which page. Leaves are shared between clones until one is changed.
#[derive(Debug, Clone, Default)]
struct PageMap {
    /// Frame numbers; zero means none.
    leaves: Arc<BTreeMap<u64, Arc<[u32; LEAF_ENTRIES]>>>,
}

impl PageMap {
    fn get(&self, page: u64) -> Option<FrameId> {
        let number = self.leaves.get(&(page / LEAF))?[to_usize(page % LEAF)];
        (number != 0).then_some(FrameId(number))
    }

    fn set(&mut self, page: u64, frame: Option<FrameId>) {
        let leaves = Arc::make_mut(&mut self.leaves);
        let leaf = leaves
            .entry(page / LEAF)
            .or_insert_with(|| Arc::new([0; LEAF_ENTRIES]));
        Arc::make_mut(leaf)[to_usize(page % LEAF)] = frame.map_or(0, |frame| frame.0);
    }

    /// The pages that have a frame, from page `from` on, in order.
    fn from(&self, from: u64) -> impl Iterator<Item = (u64, FrameId)> {
        self.leaves
            .range(from / LEAF..)
            .flat_map(|(number, leaf)| (number * LEAF..).zip(leaf.iter().copied()))
            .filter(move |(page, frame)| *page >= from && *frame != 0)
            .map(|(page, frame)| (page, FrameId(frame)))
    }
}

/// What shines through where the overlay has no page.
#[derive(Debug, Clone, Copy)]
struct Lower {
    file: HostFileId,
    /// Bytes still visible. Invariant: the host size, or a multiple of the page size.
    size: u64,
}

/// Content of one regular file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    size: u64,
    pages: PageMap,
    lower: Option<Lower>,
    /// A process mapped it shared: frames keep their place even when the file shrinks, so that the mapping and
    /// the file stay one.
    is_mapped_shared: bool,
}

impl Content {
    /// An unchanged host file.
    pub(crate) fn of_host(file: HostFileId, size: u64) -> Self {
        Self {
            size,
            lower: Some(Lower { file, size }),
            ..Self::default()
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Number of 512-byte blocks in use.
    pub(crate) fn blocks(&self) -> u64 {
        let lower = self
            .lower
            .map_or(0, |lower| lower.size.min(self.size).div_ceil(PAGE));
        let own = to_u64(
            self.pages
                .from(0)
                .filter(|(page, _)| *page >= lower)
                .count(),
        );
        (lower + own) * (PAGE / 512)
    }

    /// The host file that shines through.
    pub(crate) fn host_file(&self) -> Option<HostFileId> {
        self.lower.map(|lower| lower.file)
    }

    pub(crate) fn set_mapped_shared(&mut self) {
        self.is_mapped_shared = true;
    }

    /// Whether anything differs from the host file. Pages of our own may say the same as the host's: those that were
    /// mapped shared and only read.
    pub(crate) fn is_changed(
        &self,
        frames: &mut Frames,
        host: &mut HostFiles,
    ) -> Result<bool, Errno> {
        if self.lower.is_none_or(|lower| lower.size != self.size) {
            return Ok(true);
        }
        for (page, own) in self.pages.from(0) {
            let Some(file) = self.lower_has(page) else {
                return Ok(true);
            };
            let given = host.page(frames, file, page)?;
            if frames.bytes(own) != frames.bytes(given) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn lower_has(&self, page: u64) -> Option<HostFileId> {
        self.lower
            .filter(|lower| page * PAGE < lower.size)
            .map(|lower| lower.file)
    }

    /// The frame of a page, or none for a hole.
    fn page(
        &self,
        frames: &mut Frames,
        host: &mut HostFiles,
        page: u64,
    ) -> Result<Option<FrameId>, Errno> {
        if let Some(frame) = self.pages.get(page) {
            return Ok(Some(frame));
        }
        match self.lower_has(page) {
            Some(file) => host.page(frames, file, page).map(Some),
            None => Ok(None),
        }
    }

    /// The frame of a page, made ours so that it may be written.
    fn own_page(
        &mut self,
        frames: &mut Frames,
        host: &mut HostFiles,
        page: u64,
    ) -> Result<FrameId, Errno> {
        if let Some(frame) = self.pages.get(page) {
            return Ok(frame);
        }
        let frame = match self.lower_has(page) {
            Some(file) => {
                let source = host.page(frames, file, page)?;
                frames.duplicate(source)
            }
            None => frames.alloc(),
        }
        .map_err(|_| Errno::ENOSPC)?;
        self.pages.set(page, Some(frame));
        Ok(frame)
    }

    /// The frame that a mapping of this page shows; the caller gets a reference of its own.
    pub(crate) fn page_for_mapping(
        &mut self,
        frames: &mut Frames,
        host: &mut HostFiles,
        page: u64,
    ) -> Result<FrameId, Errno> {
        if page >= self.size.div_ceil(PAGE) {
            return Err(Errno::EIO);
        }
        let frame = match self.page(frames, host, page)? {
            Some(frame) if !self.is_mapped_shared || !frames.is_pinned(frame) => frame,
            _ => self.own_page(frames, host, page)?,
        };
        frames.retain(frame);
        Ok(frame)
    }

    /// Copies from the file; fewer bytes than asked for at its end.
    pub(crate) fn read(
        &self,
        frames: &mut Frames,
        host: &mut HostFiles,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, Errno> {
        let available = to_usize(self.size.saturating_sub(offset)).min(into.len());
        let mut done = 0;
        while done < available {
            let at = offset + to_u64(done);
            let within = to_usize(at % PAGE);
            let count = (PAGE_SIZE - within).min(available - done);
            let target = &mut into[done..done + count];
            match self.page(frames, host, at / PAGE)? {
                Some(frame) => {
                    target.copy_from_slice(&frames.bytes(frame)[within..within + count]);
                }
                None => target.fill(0),
            }
            done += count;
        }
        Ok(available)
    }

    /// Writes all bytes, growing the file as needed.
    pub(crate) fn write(
        &mut self,
        frames: &mut Frames,
        host: &mut HostFiles,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + to_u64(done);
            let within = to_usize(at % PAGE);
            let count = (PAGE_SIZE - within).min(bytes.len() - done);
            let frame = self.own_page(frames, host, at / PAGE)?;
            frames.write(frame, within, &bytes[done..done + count]);
            done += count;
            self.size = self.size.max(at + to_u64(count));
        }
        Ok(())
    }

    /// Sets the size; what is cut off reads as zero if the file grows again.
    pub(crate) fn truncate(
        &mut self,
        frames: &mut Frames,
        host: &mut HostFiles,
        size: u64,
    ) -> Result<(), Errno> {
        if size < self.size {
            self.zero(frames, host, size, self.size.next_multiple_of(PAGE))?;
            if let Some(lower) = &mut self.lower {
                lower.size = lower.size.min(size.next_multiple_of(PAGE));
                if lower.size == 0 {
                    self.lower = None;
                }
            }
        }
        self.size = size;
        Ok(())
    }

    /// Makes `start..end` read as zero; whole pages become holes where possible.
    pub(crate) fn zero(
        &mut self,
        frames: &mut Frames,
        host: &mut HostFiles,
        start: u64,
        end: u64,
    ) -> Result<(), Errno> {
        let (first, last) = (start.div_ceil(PAGE), end / PAGE);
        let edges = if first > last {
            vec![(start, end)]
        } else {
            vec![(start, first * PAGE), (last * PAGE, end)]
        };
        for (from, to) in edges {
            let page = from / PAGE;
            if from < to && (self.pages.get(page).is_some() || self.lower_has(page).is_some()) {
                let frame = self.own_page(frames, host, page)?;
                let zeros = [0; PAGE_SIZE];
                frames.write(frame, to_usize(from % PAGE), &zeros[..to_usize(to - from)]);
            }
        }
        self.drop_whole_pages(frames, first, last, end >= self.size)
    }

    fn drop_whole_pages(
        &mut self,
        frames: &mut Frames,
        first: u64,
        last: u64,
        is_at_end: bool,
    ) -> Result<(), Errno> {
        let own: Vec<(u64, FrameId)> = self
            .pages
            .from(first)
            .take_while(|(page, _)| *page < last.max(first))
            .collect();
        for (page, frame) in own {
            if self.is_mapped_shared {
                frames.write(frame, 0, &[0; PAGE_SIZE]);
            } else {
                self.pages.set(page, None);
                frames.release(frame);
            }
        }
        let lower_end = self.lower.map_or(0, |lower| lower.size.div_ceil(PAGE));
        // A hole above host pages must hide them; at the end of the file the host file is cut off instead.
        if is_at_end && let Some(lower) = &mut self.lower {
            lower.size = lower.size.min(first * PAGE);
            return Ok(());
        }
        for page in first..last.min(lower_end) {
            if self.pages.get(page).is_none() {
                let frame = frames.alloc().map_err(|_| Errno::ENOSPC)?;
                self.pages.set(page, Some(frame));
            }
        }
        Ok(())
    }

    /// The first offset at or after `offset` that is data (or a hole); the end of the file counts as a hole.
    pub(crate) fn seek(&self, offset: u64, data: bool) -> Option<u64> {
        if offset >= self.size {
            return None;
        }
        let mut at = offset;
        while at < self.size {
            let page = at / PAGE;
            let is_data = self.pages.get(page).is_some() || self.lower_has(page).is_some();
            if is_data == data {
                return Some(at);
            }
            at = match self.pages.from(page).next() {
                // Jump over a long hole at once.
                Some((next, _)) if !is_data && next > page => next * PAGE,
                None if !is_data => self.size,
                _ => (page + 1) * PAGE,
            };
        }
        (!data).then_some(self.size)
    }

    /// Gives every frame back.
    pub(crate) fn clear(&mut self, frames: &mut Frames) {
        for (_, frame) in self.pages.from(0) {
            frames.release(frame);
        }
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        frames: Frames,
        host: HostFiles,
        content: Content,
    }

    impl Fixture {
        fn new(content: &[u8]) -> Self {
            let mut frames = Frames::new(8 << 20).unwrap();
            let mut host = HostFiles::default();
            let mut pinned = Content::default();
            if !content.is_empty() {
                let file = host.add_fixed(&mut frames, content).unwrap();
                pinned = Content::of_host(file, to_u64(content.len()));
            }
            Self {
                frames,
                host,
                content: pinned,
            }
        }

        fn all(&mut self) -> Vec<u8> {
            let mut bytes = vec![0xEE; to_usize(self.content.size())];
            let got = self
                .content
                .read(&mut self.frames, &mut self.host, 0, &mut bytes)
                .unwrap();
            assert_eq!(got, bytes.len());
            bytes
        }

        fn write(&mut self, offset: u64, bytes: &[u8]) {
            self.content
                .write(&mut self.frames, &mut self.host, offset, bytes)
                .unwrap();
        }

        fn truncate(&mut self, size: u64) {
            self.content
                .truncate(&mut self.frames, &mut self.host, size)
                .unwrap();
        }
    }

    #[test]
    fn it_behaves_like_a_vector_of_bytes() {
        let base: Vec<u8> = (0..20_000_u32).map(|n| n.to_le_bytes()[0] | 1).collect();
        for start in [&base[..], &base[..4096], &[][..]] {
            let mut fixture = Fixture::new(start);
            let mut model = start.to_vec();
            let mut random = raddle_stdx::Prng::new(7);
            for round in 0..300 {
                let offset = random.below(24_000);
                let len = random.below(6000);
                match random.below(3) {
                    0 => {
                        let bytes = vec![u8::try_from(round % 250 + 1).unwrap(); to_usize(len)];
                        fixture.write(offset, &bytes);
                        let end = to_usize(offset + len);
                        if len > 0 && model.len() < end {
                            model.resize(end, 0);
                        }
                        if len > 0 {
                            model[to_usize(offset)..end].copy_from_slice(&bytes);
                        }
                    }
                    1 => {
                        fixture.truncate(offset);
                        model.resize(to_usize(offset), 0);
                    }
                    _ => {
                        let end = (offset + len).min(to_u64(model.len()));
                        if offset < end {
                            fixture
                                .content
                                .zero(&mut fixture.frames, &mut fixture.host, offset, end)
                                .unwrap();
                            model[to_usize(offset)..to_usize(end)].fill(0);
                        }
                    }
                }
                assert!(fixture.all() == model, "round {round}");
            }
            fixture.content.clear(&mut fixture.frames);
            assert_eq!(fixture.frames.in_use(), 0);
        }
    }

    #[test]
    fn the_host_page_is_never_written() {
        let mut fixture = Fixture::new(b"host content");
        fixture.write(0, b"HOST");
        assert_eq!(fixture.all(), b"HOST content");
        fixture.truncate(0);
        fixture.truncate(12);
        assert_eq!(fixture.all(), [0; 12]);
        let Fixture {
            frames,
            host,
            content,
        } = &mut fixture;
        assert_eq!(content.is_changed(frames, host), Ok(true));
    }

    #[test]
    fn holes_and_data_are_found() {
        let mut fixture = Fixture::new(&[]);
        fixture.write(3 * PAGE, b"x");
        fixture.truncate(10 * PAGE);
        let content = &fixture.content;
        assert_eq!(content.seek(0, true), Some(3 * PAGE));
        assert_eq!(content.seek(0, false), Some(0));
        assert_eq!(content.seek(3 * PAGE + 5, false), Some(4 * PAGE));
        assert_eq!(content.seek(4 * PAGE, true), None);
        assert_eq!(content.seek(10 * PAGE, false), None);
        assert_eq!(content.blocks(), 8);
    }

    #[test]
    fn a_shared_mapping_and_the_file_stay_one() {
        let mut fixture = Fixture::new(b"abc");
        fixture.content.set_mapped_shared();
        let frame = fixture
            .content
            .page_for_mapping(&mut fixture.frames, &mut fixture.host, 0)
            .unwrap();
        assert!(!fixture.frames.is_pinned(frame));
        fixture.frames.write(frame, 1, b"X");
        assert_eq!(fixture.all(), b"aXc");
        fixture.truncate(0);
        fixture.truncate(3);
        fixture.write(0, b"q");
        assert_eq!(fixture.frames.bytes(frame)[0], b'q');
        assert_eq!(
            fixture
                .content
                .page_for_mapping(&mut fixture.frames, &mut fixture.host, 1),
            Err(Errno::EIO)
        );
    }
}
