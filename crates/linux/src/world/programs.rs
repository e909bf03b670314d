//! The programs that a run has started.

use super::LinuxWorld;

impl LinuxWorld {
    /// Whether another program than the first one was executed so far.
    pub fn has_executed_others(&self) -> bool {
        self.kernel.state.images.count() > 1
    }
}
