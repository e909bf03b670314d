//! Reading and writing guest memory as what it means: words, strings, C structures.

use raddle_mem::{GuestAddr, PAGE_SIZE};
use raddle_stdx::width::{as_u64, to_u64};
use raddle_world::AccessKind;

use crate::call::Call;
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::serve::{self, Copied};
use crate::thread::Tid;

impl Kernel {
    pub(crate) fn read_u32(&mut self, tid: Tid, addr: u64) -> Result<u32, Errno> {
        let mut bytes = [0; 4];
        self.read_user(tid, GuestAddr(addr), &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    pub(crate) fn read_u64(&mut self, tid: Tid, addr: u64) -> Result<u64, Errno> {
        let mut bytes = [0; 8];
        self.read_user(tid, GuestAddr(addr), &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A NUL-terminated string of at most `max` bytes without its NUL; ENAMETOOLONG if it is longer.
    pub(crate) fn read_string(
        &mut self,
        tid: Tid,
        addr: u64,
        max: usize,
    ) -> Result<Vec<u8>, Errno> {
        let mut text = Vec::new();
        let mut at = GuestAddr(addr);
        loop {
            let count = (PAGE_SIZE - at.page_offset()).min(max + 1 - text.len());
            let mut chunk = vec![0; count];
            self.peek_user(tid, at, &mut chunk)?;
            if let Some(end) = chunk.iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&chunk[..end]);
                let copied = Copied {
                    from: GuestAddr(addr),
                    length: to_u64(text.len()) + 1,
                    how: AccessKind::Read,
                };
                serve::note(self, tid, copied);
                return Ok(text);
            }
            text.extend_from_slice(&chunk);
            if text.len() > max {
                return Err(Errno::ENAMETOOLONG);
            }
            at = at.offset(to_u64(count));
        }
    }
}

impl Call<'_> {
    /// Copies bytes out of the caller's memory.
    pub(crate) fn read_bytes<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Errno> {
        let mut bytes = [0; N];
        self.kernel
            .read_user(self.tid, GuestAddr(addr), &mut bytes)?;
        Ok(bytes)
    }

    /// Copies 64-bit words out of the caller's memory.
    pub(crate) fn read_words<const N: usize>(&mut self, addr: u64) -> Result<[u64; N], Errno> {
        let mut words = [0; N];
        for (index, word) in words.iter_mut().enumerate() {
            *word = self
                .kernel
                .read_u64(self.tid, addr.wrapping_add(to_u64(index) * 8))?;
        }
        Ok(words)
    }

    /// Copies bytes to the caller's memory.
    pub(crate) fn write_bytes(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.kernel.write_user(self.tid, GuestAddr(addr), bytes)
    }

    /// Copies 64-bit words to the caller's memory.
    pub(crate) fn write_words(&mut self, addr: u64, words: &[u64]) -> Result<(), Errno> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write_bytes(addr, &bytes)
    }

    /// A `struct timespec` or `timeval`, as (seconds, fraction).
    pub(crate) fn read_time(&mut self, addr: u64) -> Result<(i64, i64), Errno> {
        let [seconds, fraction] = self.read_words(addr)?;
        Ok((seconds.cast_signed(), fraction.cast_signed()))
    }

    /// Writes a `struct timespec` or `timeval`.
    pub(crate) fn write_time(
        &mut self,
        addr: u64,
        seconds: i64,
        fraction: i64,
    ) -> Result<(), Errno> {
        self.write_words(addr, &[as_u64(seconds), as_u64(fraction)])
    }
}
