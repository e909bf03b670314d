//! Names for addresses, so that no bare integer carries that meaning across a module boundary.

use std::fmt;

use raddle_stdx::width::{to_u64, to_usize};

/// log2 of the page size.
pub const PAGE_BITS: u32 = 12;
/// Bytes per page.
pub const PAGE_SIZE: usize = 1 << PAGE_BITS;

/// A virtual address of the guest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GuestAddr(pub u64);

impl GuestAddr {
    /// The page that holds this address.
    pub fn page(self) -> PageNo {
        PageNo(self.0 >> PAGE_BITS)
    }

    /// The offset inside the page.
    pub fn page_offset(self) -> usize {
        to_usize(self.0) & (PAGE_SIZE - 1)
    }

    /// The address `bytes` further, wrapping as the hardware does.
    #[must_use]
    pub fn offset(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl fmt::Debug for GuestAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for GuestAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Number of a virtual page: an address without its low twelve bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PageNo(pub u64);

impl PageNo {
    /// The first address of the page.
    pub fn start(self) -> GuestAddr {
        GuestAddr(self.0 << PAGE_BITS)
    }

    /// The page `count` pages further.
    #[must_use]
    pub fn offset(self, count: u64) -> Self {
        Self(self.0 + count)
    }

    /// How many pages `bytes` need.
    pub fn count_for(bytes: u64) -> u64 {
        bytes.div_ceil(to_u64(PAGE_SIZE))
    }
}

impl fmt::Debug for PageNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {:#x}", self.0)
    }
}
