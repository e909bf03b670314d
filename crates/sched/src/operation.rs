//! The next operation of a context: what it touches and what it conflicts with.

use raddle_world::{Pending, PendingKind};

/// What an operation touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Touch {
    /// Memory or synchronisation object; the two never have equal names.
    pub(crate) object: u64,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

impl Touch {
    /// Whether the order of the two can matter.
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        self.object == other.object && (self.writes || other.writes)
    }
}

/// What the next operation touches; none if it concerns no other context.
pub(crate) fn touch(next: &Pending) -> Option<Touch> {
    match next.kind {
        PendingKind::Local => None,
        PendingKind::Access {
            location,
            reads,
            writes,
            ..
        } => Some(Touch {
            object: location?.granule().number(),
            reads,
            writes,
        }),
        // Calls of the system may concern each other; which ones is the world's secret.
        PendingKind::Syscall { .. } => Some(Touch {
            object: u64::MAX,
            reads: true,
            writes: true,
        }),
        PendingKind::Sync { object } => Some(Touch {
            object: object | 1 << 63,
            reads: true,
            writes: true,
        }),
    }
}

/// Whether the order of two operations can matter.
pub(crate) fn conflict(a: &Pending, b: &Pending) -> bool {
    match (touch(a), touch(b)) {
        (Some(a), Some(b)) => a.conflicts(&b),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use raddle_world::{Location, Site};

    use super::*;

    fn access(offset: u16, writes: bool) -> Pending {
        Pending {
            site: Site::NOWHERE,
            kind: PendingKind::Access {
                addr: 0,
                location: Some(Location::shared(1, offset)),
                size: 4,
                reads: !writes,
                writes,
                atomic: false,
            },
        }
    }

    #[test]
    fn conflicts_need_one_place_and_one_writer() {
        assert!(conflict(&access(0, true), &access(4, false)));
        assert!(!conflict(&access(0, false), &access(4, false)));
        assert!(!conflict(&access(0, true), &access(8, true)));
        let sync = |object| Pending {
            site: Site::NOWHERE,
            kind: PendingKind::Sync { object },
        };
        assert!(conflict(&sync(7), &sync(7)));
        assert!(!conflict(&sync(7), &sync(8)));
    }
}
