//! What a world says of its threads in words.

use raddle_world::{Context, Liveness};

use super::LinuxWorld;
use crate::signal::signal_name;

impl LinuxWorld {
    /// One line per live thread: who it is and what it waits for.
    pub fn describe_waits(&self) -> Vec<String> {
        let threads = self.kernel.state.threads.values();
        threads
            .map(|thread| {
                let context = self.kernel.state.contexts.get(thread.context);
                format!(
                    "thread {} of process {}, {context}, pc {:#x}: {}",
                    thread.tid.0,
                    thread.process.0,
                    thread.cpu.rip,
                    describe(context, thread.is_stopped)
                )
            })
            .collect()
    }
}

fn describe(context: &Context, is_stopped: bool) -> String {
    use raddle_world::WaitReason as Reason;
    match &context.liveness {
        _ if is_stopped => "stopped by a signal until SIGCONT".into(),
        Liveness::Runnable => "can run".into(),
        Liveness::Done => "has ended".into(),
        Liveness::Blocked(reason) => match reason {
            Reason::Futex { addr } => format!("waits for the futex at {addr:#x}"),
            Reason::Io { descriptors } if descriptors.len() == 1 => {
                format!("waits for descriptor {}", descriptors[0])
            }
            Reason::Io { descriptors } => format!("waits for descriptors {descriptors:?}"),
            Reason::Child => "waits for a child process".into(),
            Reason::Sleep => "sleeps".into(),
            Reason::Signal => "waits for a signal".into(),
            Reason::Vfork => "waits for the child of its vfork".into(),
            Reason::FileLock => "waits for a file lock".into(),
            Reason::Interrupt => "waits for an interrupt".into(),
        },
    }
}

/// `exit status 3` or `killed by SIGSEGV`, from a wait status.
pub fn describe_status(status: i32) -> String {
    if status & 0x7F == 0 {
        format!("exit status {}", status >> 8 & 0xFF)
    } else {
        format!("killed by {}", signal_name((status & 0x7F).cast_unsigned()))
    }
}
