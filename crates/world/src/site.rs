//! Instructions, under names that several programs in one world do not share.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A program of a world: what an `execve` put in place. Position-independent programs all load at one base, so an
/// address alone does not say whose instruction it is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct ImageId(u16);

impl ImageId {
    /// The program that a world begins with; the kernel of a PC.
    pub const FIRST: Self = Self(0);

    /// The image with this number.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    pub const fn number(self) -> u16 {
        self.0
    }
}

/// An instruction: an image and an address in it.
///
/// ```text
///   63        48 47                                      0
///   image xor s   address; s is its sign, sixteen times bit 47
/// ```
/// Canonical addresses repeat bit 47 in the sixteen bits above it, which are therefore free for the image. Sites of the
/// first image are equal to their addresses, and the sites of one image are ordered as their addresses are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Site(u64);

const ADDRESS_BITS: u32 = 48;

impl Site {
    /// Where a context stands that does not stand before an instruction: one that is blocked, or has ended.
    pub const NOWHERE: Self = Self(0);

    #[inline]
    pub const fn new(image: ImageId, pc: u64) -> Self {
        // No instruction has another address: a program that jumps to one dies there.
        Self(canonical(pc) ^ (image.0 as u64) << ADDRESS_BITS)
    }

    /// An instruction of the first image.
    #[inline]
    pub const fn first(pc: u64) -> Self {
        Self::new(ImageId::FIRST, pc)
    }

    #[inline]
    pub const fn pc(self) -> u64 {
        canonical(self.0)
    }

    #[inline]
    pub const fn image(self) -> ImageId {
        let [.., low, high] = (self.0 ^ canonical(self.0)).to_le_bytes();
        ImageId(u16::from_le_bytes([low, high]))
    }

    /// The same as one number, for digests and to be written down.
    #[inline]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The site with this number; every number is one.
    #[inline]
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }
}

/// The address with these low 48 bits.
const fn canonical(address: u64) -> u64 {
    const UNUSED: u32 = u64::BITS - ADDRESS_BITS;
    ((address << UNUSED).cast_signed() >> UNUSED).cast_unsigned()
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.image() {
            ImageId::FIRST => write!(f, "{:#x}", self.pc()),
            ImageId(image) => write!(f, "{image}:{:#x}", self.pc()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_its_image_and_its_address() {
        let addresses = [0, 0x40_1136, 0x7FFF_FFFF_F000, 0xFFFF_FFFF_8100_0000];
        for pc in addresses {
            for image in [0, 1, 0x8000, u16::MAX].map(ImageId::new) {
                let site = Site::new(image, pc);
                assert_eq!((site.image(), site.pc()), (image, pc));
            }
            assert_eq!(Site::first(pc).number(), pc);
        }
    }

    #[test]
    fn sites_of_different_images_differ_at_every_address() {
        let pc = 0x5555_5555_5136;
        assert_ne!(Site::first(pc), Site::new(ImageId::new(7), pc));
        let in_seven = |pc| Site::new(ImageId::new(7), pc);
        assert!(in_seven(pc) < in_seven(pc + 1));
    }
}
