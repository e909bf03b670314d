//! Memory for machine code: mapped twice, once to write and once to execute, so that no page is ever both.
#![expect(unsafe_code, reason = "maps memory and writes into it")]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

/// Pages are only used when filled.
const BYTES: usize = 64 << 20;
/// Where the cold part begins.
const COLD: usize = 48 << 20;

/// Code that is executed often, and code that is seldom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Hot,
    Cold,
}

#[derive(Debug)]
pub(crate) struct ExecutableArea {
    writable: *mut u8,
    executable: *const u8,
    /// The ends of the two parts.
    hot: usize,
    cold: usize,
}

// SAFETY: the mappings belong to this value alone and are changed only through `&mut self`.
unsafe impl Send for ExecutableArea {}
// SAFETY: as above; shared use only executes code.
unsafe impl Sync for ExecutableArea {}

impl ExecutableArea {
    /// None if the host gives no such memory.
    pub(crate) fn new() -> Option<Self> {
        // SAFETY: the name is a C string; the result is checked.
        let file = unsafe { libc::memfd_create(c"raddle-code".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return None;
        }
        // SAFETY: the descriptor is open and has no other owner.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        let length = i64::try_from(BYTES).ok()?;
        // SAFETY: sets the size of our own file.
        if unsafe { libc::ftruncate(file.as_raw_fd(), length) } != 0 {
            return None;
        }
        let writable = map(&file, libc::PROT_READ | libc::PROT_WRITE)?;
        let Some(executable) = map(&file, libc::PROT_READ | libc::PROT_EXEC) else {
            // SAFETY: the mapping was made just now and is not used yet.
            unsafe { libc::munmap(writable.cast(), BYTES) };
            return None;
        };
        Some(Self {
            writable,
            executable,
            hot: 0,
            cold: COLD,
        })
    }

    /// Where the next code of a part will be.
    pub(crate) fn end(&self, part: Part) -> *const u8 {
        self.executable.wrapping_add(match part {
            Part::Hot => self.hot,
            Part::Cold => self.cold,
        })
    }

    /// Copies code in and gives its place; none when full.
    pub(crate) fn add(&mut self, part: Part, code: &[u8]) -> Option<*const u8> {
        let place = self.end(part);
        let (used, limit) = match part {
            Part::Hot => (&mut self.hot, COLD),
            Part::Cold => (&mut self.cold, BYTES),
        };
        let start = *used;
        let end = start + code.len();
        if end > limit {
            return None;
        }
        // SAFETY: start..end is inside the mapping, and no run executes it yet.
        unsafe { ptr::copy_nonoverlapping(code.as_ptr(), self.writable.add(start), code.len()) };
        *used = end.next_multiple_of(16).min(limit);
        Some(place)
    }

    /// Changes code at an executable address of this area while no run executes it.
    pub(crate) fn patch(&mut self, place: *const u8, bytes: &[u8]) {
        let start = place.addr() - self.executable.addr();
        let end = start + bytes.len();
        assert!(end <= BYTES, "only code that was put there is changed");
        // SAFETY: start..end is inside the mapping.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.writable.add(start), bytes.len()) };
    }
}

fn map(file: &OwnedFd, protection: i32) -> Option<*mut u8> {
    // SAFETY: a shared mapping of our own file at an address of the kernel's choice touches nothing of ours.
    let base = unsafe {
        libc::mmap(
            ptr::null_mut(),
            BYTES,
            protection,
            libc::MAP_SHARED | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            0,
        )
    };
    (base != libc::MAP_FAILED).then_some(base.cast())
}

impl Drop for ExecutableArea {
    fn drop(&mut self) {
        // SAFETY: the mappings are ours; code is only called through the owner of this area.
        unsafe {
            libc::munmap(self.writable.cast(), BYTES);
            libc::munmap(self.executable.cast_mut().cast(), BYTES);
        }
    }
}
