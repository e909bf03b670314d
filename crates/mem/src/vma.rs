//! Areas of an address space: what should be mapped where.

use crate::addr::PageNo;

/// Permissions of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Perm {
    pub read: bool,
    pub write: bool,
    pub execute: bool,
}

impl Perm {
    pub const NONE: Self = Self {
        read: false,
        write: false,
        execute: false,
    };
    pub const R: Self = Self {
        read: true,
        ..Self::NONE
    };
    pub const RW: Self = Self {
        read: true,
        write: true,
        execute: false,
    };
    pub const RX: Self = Self {
        read: true,
        write: false,
        execute: true,
    };
    pub const RWX: Self = Self {
        read: true,
        write: true,
        execute: true,
    };
}

/// Name of something with pages of its own (a file, a shared memory segment); the owner of the address space
/// knows what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u64);

/// Where the pages of an area come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// Zero pages, private to this address space.
    Anonymous,
    /// Pages of an object, beginning with its page `first_page`.
    Object { object: ObjectId, first_page: u64 },
}

impl Backing {
    /// The backing of the part that begins `pages` further.
    fn advanced(self, pages: u64) -> Self {
        match self {
            Self::Anonymous => Self::Anonymous,
            Self::Object { object, first_page } => Self::Object {
                object,
                first_page: first_page + pages,
            },
        }
    }
}

/// One area: consecutive pages with the same properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vma {
    pub start: PageNo,
    /// First page after the area. Invariant: `start < end`.
    pub end: PageNo,
    pub perm: Perm,
    /// Writes go to the object itself instead of to a private copy.
    pub shared: bool,
    pub backing: Backing,
    /// What `/proc/self/maps` shows at the end of the line.
    pub label: std::sync::Arc<str>,
}

impl Vma {
    pub fn pages(&self) -> u64 {
        self.end.0 - self.start.0
    }

    pub fn contains(&self, page: PageNo) -> bool {
        self.start <= page && page < self.end
    }

    /// The part of the area inside `start..end`, if any.
    pub(crate) fn clipped(&self, start: PageNo, end: PageNo) -> Option<Self> {
        let (first, last) = (self.start.max(start), self.end.min(end));
        (first < last).then(|| Self {
            start: first,
            end: last,
            backing: self.backing.advanced(first.0 - self.start.0),
            ..self.clone()
        })
    }

    /// Whether `next` could be the continuation of this area.
    pub(crate) fn joins(&self, next: &Self) -> bool {
        self.end == next.start
            && self.perm == next.perm
            && self.shared == next.shared
            && self.label == next.label
            && self.backing.advanced(self.pages()) == next.backing
    }
}
