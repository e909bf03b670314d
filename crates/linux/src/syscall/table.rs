//! The table of system calls: data, from which dispatch and the reference page are made.

use crate::call::{Call, SysResult};

/// How far a call is supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    /// As on Linux.
    Full,
    /// Some arguments are refused or have no effect; the note says which.
    Partial,
    /// Accepted, has no effect in this world.
    Ignored,
    /// Always fails with a proper error that programs know to handle.
    Refused,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) number: u32,
    pub(crate) level: Support,
    pub(crate) note: &'static str,
    pub(crate) handler: fn(&mut Call<'_>) -> SysResult,
}

impl Entry {
    const fn new(
        number: u32,
        level: Support,
        handler: fn(&mut Call<'_>) -> SysResult,
        note: &'static str,
    ) -> Self {
        Self {
            number,
            level,
            note,
            handler,
        }
    }

    pub(super) const fn full(number: u32, handler: fn(&mut Call<'_>) -> SysResult) -> Self {
        Self::new(number, Support::Full, handler, "")
    }

    pub(super) const fn partial(
        number: u32,
        handler: fn(&mut Call<'_>) -> SysResult,
        note: &'static str,
    ) -> Self {
        Self::new(number, Support::Partial, handler, note)
    }

    pub(super) const fn ignored(
        number: u32,
        handler: fn(&mut Call<'_>) -> SysResult,
        note: &'static str,
    ) -> Self {
        Self::new(number, Support::Ignored, handler, note)
    }

    pub(super) const fn refused(
        number: u32,
        handler: fn(&mut Call<'_>) -> SysResult,
        note: &'static str,
    ) -> Self {
        Self::new(number, Support::Refused, handler, note)
    }
}
