//! The four operand widths as a trait, so that one handler serves all of them.

/// An operand width.
pub(crate) trait Int: Copy + Eq + Ord + std::fmt::Debug + 'static {
    const BITS: u32;
    const BYTES: usize;
    /// Zero-extended.
    fn zx(self) -> u64;
    /// Sign-extended.
    fn sx(self) -> u64;
    /// The low bits.
    fn cut(value: u64) -> Self;
}

macro_rules! int {
    ($($unsigned:ty, $signed:ty;)*) => {$(
        impl Int for $unsigned {
            const BITS: u32 = <$unsigned>::BITS;
            const BYTES: usize = size_of::<$unsigned>();

            #[inline(always)]
            fn zx(self) -> u64 {
                u64::from(self)
            }

            #[inline(always)]
            fn sx(self) -> u64 {
                i64::from(self.cast_signed()).cast_unsigned()
            }

            #[inline(always)]
            #[expect(clippy::allow_attributes, reason = "the cast below is lossless for the widest type only")]
            #[allow(clippy::cast_possible_truncation, reason = "truncation is what the name says")]
            fn cut(value: u64) -> Self {
                value as $unsigned
            }
        }
    )*};
}

int! {
    u8, i8;
    u16, i16;
    u32, i32;
    u64, i64;
}
