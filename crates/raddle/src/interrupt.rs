//! Ctrl-C: the first one asks a command to end and to report what it has, the second one ends it at once.

use std::os::unix::process::parent_id;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};

/// Exit status of a command that was interrupted: 128 + SIGINT, as shells have it.
pub(crate) const STATUS: u8 = 130;

/// Becomes true when the user or the system asks for an end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt {
    flag: Arc<AtomicBool>,
    /// The process with which this one ends.
    parent: Option<u32>,
}

impl Interrupt {
    /// Listens from now on. The second request does not come back to us: it ends the process with [`STATUS`].
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The order matters: a request is first compared with an earlier one, then noted.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                i32::from(STATUS),
                Arc::clone(&flag),
            )
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .context("cannot listen for Ctrl-C")?;
        }
        Ok(Self { flag, parent: None })
    }

    /// The end of the process that started this one is a request, too, if its number is given.
    pub(crate) fn ending_with(self, parent: Option<u32>) -> Self {
        Self { parent, ..self }
    }

    pub(crate) fn is_requested(&self) -> bool {
        let is_alone = || self.parent.is_some_and(|parent| parent_id() != parent);
        self.flag.load(Ordering::Relaxed) || is_alone()
    }
}
