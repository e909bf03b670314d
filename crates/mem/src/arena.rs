//! The reserved host memory that holds all frames.
//!
//! JUSTIFICATION: frames must keep their host address for the life of the arena, because the software TLB of
//! the interpreter caches host pointers; a growing `Vec` would move them, and boxing each page would cost an
//! allocation per frame. One lazily committed reservation gives both for free.
#![expect(
    unsafe_code,
    reason = "reserves and addresses raw host memory; the safe API checks every index"
)]

use crate::addr::PAGE_SIZE;

/// A fixed reservation of zeroed pages. Host memory is committed on first touch.
#[derive(Debug)]
pub(crate) struct Arena {
    base: *mut u8,
    pages: usize,
}

impl Arena {
    /// Reserves room for `pages` pages.
    pub(crate) fn reserve(pages: usize) -> std::io::Result<Self> {
        let bytes = pages * PAGE_SIZE;
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Self {
            base: base.cast(),
            pages,
        })
    }

    /// The host address of a page. Valid as long as the arena lives.
    pub(crate) fn pointer(&self, index: usize) -> *mut u8 {
        assert!(index < self.pages, "frame {index} is outside the arena");
        // SAFETY: the index was checked, so the result stays inside the reservation.
        unsafe { self.base.add(index * PAGE_SIZE) }
    }

    pub(crate) fn page(&self, index: usize) -> &[u8; PAGE_SIZE] {
        // SAFETY: `pointer` checked the index; the page is initialised (zeroed by the kernel) and `&self`
        // excludes writers that go through `page_mut`. Interpreter stores through cached pointers happen only
        // while the arena is mutably borrowed by the running engine.
        unsafe { &*self.pointer(index).cast() }
    }

    pub(crate) fn page_mut(&mut self, index: usize) -> &mut [u8; PAGE_SIZE] {
        // SAFETY: as in `page`, and `&mut self` makes the access exclusive.
        unsafe { &mut *self.pointer(index).cast() }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `reserve` with exactly this address and length.
        let result = unsafe { libc::munmap(self.base.cast(), self.pages * PAGE_SIZE) };
        debug_assert_eq!(result, 0, "unmapping our own reservation cannot fail");
    }
}
