//! What a world says of its threads in words.

use raddle_symbols::SymbolSpace;
use raddle_world::{Context, Liveness};

use super::LinuxWorld;
use crate::signal::signal_name;

/// Frames of a stack that are shown.
const STACK_FRAMES_MAX: usize = 16;

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

    /// As [`Self::describe_waits`], each thread with its stack below.
    pub fn describe_stacks(&mut self) -> Vec<String> {
        let waits = self.describe_waits();
        let contexts: Vec<_> = self
            .kernel
            .state
            .threads
            .values()
            .map(|thread| thread.context)
            .collect();
        waits
            .into_iter()
            .zip(contexts)
            .map(|(mut text, who)| {
                if let Some(symbols) = self.symbols(who) {
                    for pc in self.stack(who, &symbols, STACK_FRAMES_MAX) {
                        text.push_str("\n    ");
                        text.push_str(&describe_frame(&symbols, pc));
                    }
                }
                text
            })
            .collect()
    }
}

fn describe_frame(symbols: &SymbolSpace, pc: u64) -> String {
    let Some(found) = symbols.symbolise(pc) else {
        return format!("{pc:#x}");
    };
    let function = found.function.as_deref().unwrap_or("?");
    match found.line {
        Some(line) => format!("{function} at {}:{}", line.file, line.line),
        None => format!("{function} in {} ({pc:#x})", found.module),
    }
}

fn describe(context: &Context, is_stopped: bool) -> String {
    use raddle_world::WaitReason as Reason;
    match context.liveness() {
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
