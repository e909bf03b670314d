//! Virtual time: a function of the steps made and of the jumps taken, never of the host's clock.

/// Nanoseconds since the world began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct VirtualTime(pub u64);

/// Nanoseconds between two times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(pub u64);

impl VirtualTime {
    /// The time `duration` later; the far end of time if that is beyond it.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.0))
    }

    /// How long it is until `later`; nothing if that is past.
    #[must_use]
    pub fn until(self, later: Self) -> Duration {
        Duration(later.0.saturating_sub(self.0))
    }
}
