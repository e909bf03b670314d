//! Memory for stubs: executable, and writable only while a stub is being added.

use std::ptr;

/// Room for about a million stubs; pages are only used when filled.
const BYTES: usize = 64 << 20;
const PAGE: usize = 4096;

#[derive(Debug)]
pub(super) struct Area {
    base: *mut u8,
    used: usize,
}

// SAFETY: the mapping belongs to this value alone and is changed only through `&mut self`.
unsafe impl Send for Area {}
// SAFETY: as above; shared use only executes code.
unsafe impl Sync for Area {}

impl Area {
    pub(super) fn new() -> Option<Self> {
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing of ours.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_EXEC,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        (base != libc::MAP_FAILED).then(|| Self {
            base: base.cast(),
            used: 0,
        })
    }

    /// Copies a stub in and gives its entry point; none when full.
    pub(super) fn add(
        &mut self,
        code: &[u8],
    ) -> Option<unsafe extern "C" fn(*mut u8, *mut u8) -> u64> {
        let start = self.used;
        let end = start + code.len();
        if end > BYTES {
            return None;
        }
        let first_page = start / PAGE * PAGE;
        let length = end.next_multiple_of(PAGE) - first_page;
        self.protect(first_page, length, libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: start..end is inside the mapping and writable now; nobody executes it meanwhile.
        let entry = unsafe {
            let entry = self.base.add(start);
            ptr::copy_nonoverlapping(code.as_ptr(), entry, code.len());
            entry
        };
        self.protect(first_page, length, libc::PROT_READ | libc::PROT_EXEC)?;
        self.used = end.next_multiple_of(16);
        // SAFETY: the bytes are a complete function with this signature, made by `assemble`.
        Some(unsafe {
            std::mem::transmute::<*mut u8, unsafe extern "C" fn(*mut u8, *mut u8) -> u64>(entry)
        })
    }

    fn protect(&self, offset: usize, length: usize, protection: i32) -> Option<()> {
        // SAFETY: the range is inside our own mapping.
        let result = unsafe { libc::mprotect(self.base.add(offset).cast(), length, protection) };
        (result == 0).then_some(())
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours; stubs are only called through a live cache.
        unsafe { libc::munmap(self.base.cast(), BYTES) };
    }
}
