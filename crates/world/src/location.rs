//! Where in memory something is, under a name that is the same for every context that can reach it.

/// A byte of memory: stable under shared mappings, fork and kernel aliases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    pub page: PageKey,
    /// Offset in the page.
    pub offset: u16,
}

/// A page of memory. After a fork a frame may be in two address spaces until one of them writes; what is private is a
/// different page in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageKey {
    /// The address space whose own page it is; [`PageKey::SHARED`] if all who map the frame mean the same memory.
    space: u32,
    frame: u32,
}

/// Eight aligned bytes: the unit in which accesses are compared. Neighbours in a page have neighbouring numbers, all
/// below 2^62, so that other objects can be named in the same 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Granule(u64);

/// Bytes of a granule.
pub const GRANULE_BYTES: u8 = 8;

const OFFSET_BITS: u32 = 12;
const GRANULE_BITS: u32 = 3;
/// Bits of a frame number, and of what comes before it in the number of a granule.
const FRAME_BITS: u32 = u32::BITS;
const IN_PAGE_BITS: u32 = OFFSET_BITS - GRANULE_BITS;
/// Address spaces that can be told apart.
const SPACES_MAX: u32 = 1 << (62 - FRAME_BITS - IN_PAGE_BITS);

impl PageKey {
    const SHARED: u32 = 0;

    /// A page that is the same memory for everyone who maps it.
    #[inline]
    pub const fn shared(frame: u32) -> Self {
        Self {
            space: Self::SHARED,
            frame,
        }
    }

    /// A page that one address space has for itself. Address spaces are numbered from 1.
    #[inline]
    pub const fn private(space: u32, frame: u32) -> Self {
        assert!(
            space != Self::SHARED && space < SPACES_MAX,
            "an address space has a number of its own"
        );
        Self { space, frame }
    }

    /// The same as two numbers, to be written down: the address space, or zero, and the frame.
    pub const fn numbers(self) -> [u32; 2] {
        [self.space, self.frame]
    }

    /// The page with these two numbers; none if there cannot be such an address space.
    pub const fn from_numbers([space, frame]: [u32; 2]) -> Option<Self> {
        if space < SPACES_MAX {
            Some(Self { space, frame })
        } else {
            None
        }
    }
}

impl Location {
    #[inline]
    pub const fn new(page: PageKey, offset: u16) -> Self {
        Self { page, offset }
    }

    /// A byte of a page that is the same memory for everyone who maps it.
    #[inline]
    pub const fn shared(frame: u32, offset: u16) -> Self {
        Self::new(PageKey::shared(frame), offset)
    }

    /// The granule in which it lies.
    #[inline]
    pub fn granule(self) -> Granule {
        let PageKey { space, frame } = self.page;
        let page = u64::from(space) << FRAME_BITS | u64::from(frame);
        Granule(page << IN_PAGE_BITS | u64::from(self.offset >> GRANULE_BITS))
    }

    /// The granules of so many bytes from here on, up to the end of the page.
    pub fn granules(self, bytes: u64) -> impl Iterator<Item = Granule> {
        let Granule(first) = self.granule();
        let Granule(last) = Self::new(self.page, (1 << OFFSET_BITS) - 1).granule();
        let wanted = bytes.saturating_sub(1) >> GRANULE_BITS;
        (first..=last.min(first + wanted)).map(Granule)
    }
}

impl Granule {
    /// The first of all.
    pub const FIRST: Self = Self(0);

    /// Its number, where granules and other objects are named together.
    #[inline]
    pub fn number(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_spaces_share_a_granule_of_private_memory() {
        // With the number of the space laid over that of the frame, these would be one page.
        let one = Location::new(PageKey::private(3, 7), 16);
        for space in [1, 259, 3 + (1 << 8), SPACES_MAX - 1] {
            let other = Location::new(PageKey::private(space, 7), 16);
            assert_ne!(one.granule(), other.granule(), "{space}");
        }
        assert_ne!(one.granule(), Location::shared(7, 16).granule());
        assert_ne!(one.granule(), Location::shared(7 | 3 << 24, 16).granule());
    }

    #[test]
    fn granules_are_below_the_bits_that_other_objects_use() {
        let last = Location::new(PageKey::private(SPACES_MAX - 1, u32::MAX), 0xFFF);
        assert_eq!(last.granule().number(), (1 << 62) - 1);
    }

    #[test]
    fn a_range_of_granules_ends_with_its_page() {
        let granules = |offset, bytes| Location::shared(1, offset).granules(bytes).count();
        assert_eq!(granules(0, 0), 1);
        assert_eq!((granules(0, 8), granules(0, 9)), (1, 2));
        assert_eq!(granules(0xFF0, 1 << 20), 2);
    }
}
