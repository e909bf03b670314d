//! Guest memory from outside: for loading, for the guest's calls, for reports.

use raddle_mem::{GuestAddr, PAGE_SIZE};

use super::Machine;

impl Machine {
    /// Writes to RAM; what lies outside it is lost.
    pub fn write_physical(&mut self, physical: u64, bytes: &[u8]) {
        let mut at = physical;
        let mut rest = bytes;
        while !rest.is_empty() {
            let offset = GuestAddr(at).page_offset();
            let count = rest.len().min(PAGE_SIZE - offset);
            if let Some(frame) = self.frame(at) {
                self.frames.write(frame, offset, &rest[..count]);
            }
            rest = &rest[count..];
            at += count as u64;
        }
    }

    /// Reads RAM; what lies outside it reads as zero.
    pub fn read_physical(&self, physical: u64, into: &mut [u8]) {
        let mut at = physical;
        let mut done = 0;
        while done < into.len() {
            let offset = GuestAddr(at).page_offset();
            let count = (into.len() - done).min(PAGE_SIZE - offset);
            let piece = &mut into[done..done + count];
            match self.frame(at) {
                Some(frame) => {
                    piece.copy_from_slice(&self.frames.bytes(frame)[offset..offset + count]);
                }
                None => piece.fill(0),
            }
            done += count;
            at += count as u64;
        }
    }

    /// The physical address that a processor's page tables give an address now.
    pub fn physical(&mut self, cpu: usize, addr: u64) -> Option<u64> {
        self.engine
            .physical(&self.cores[cpu].cpu, &mut self.frames, addr)
    }

    /// Reads memory as a processor sees it now; false if a page is missing.
    pub fn read_virtual(&mut self, cpu: usize, addr: u64, into: &mut [u8]) -> bool {
        let mut done = 0;
        while done < into.len() {
            let at = addr.wrapping_add(done as u64);
            let count = (into.len() - done).min(PAGE_SIZE - GuestAddr(at).page_offset());
            let Some(physical) = self.physical(cpu, at) else {
                return false;
            };
            self.read_physical(physical, &mut into[done..done + count]);
            done += count;
        }
        true
    }

    /// Writes memory as a processor sees it now, whatever the page's permissions; false if a page is missing.
    pub fn write_virtual(&mut self, cpu: usize, addr: u64, bytes: &[u8]) -> bool {
        let mut done = 0;
        while done < bytes.len() {
            let at = addr.wrapping_add(done as u64);
            let count = (bytes.len() - done).min(PAGE_SIZE - GuestAddr(at).page_offset());
            let Some(physical) = self.physical(cpu, at) else {
                return false;
            };
            self.write_physical(physical, &bytes[done..done + count]);
            done += count;
        }
        true
    }
}
