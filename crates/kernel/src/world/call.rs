//! The agent's calls of the machine.

use std::sync::Arc;

use raddle_stdx::width::to_usize;
use raddle_x86::Reg;

use super::{GuestInfo, Input, KernelWorld, Phase, RunEnd, Started};
use crate::guest::Call;
use crate::program::{RESULTS_MAX, decode_results};

/// Text of one call at most.
const TEXT_MAX: u64 = 64 << 10;

/// What the caller of the machine has to do about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answered {
    /// The processor goes on.
    GoesOn,
    /// It waits: for input, or at the start line.
    Waits,
    /// A thread came to its end.
    ThreadEnded,
    /// The run is over.
    Over,
}

impl KernelWorld {
    /// Answers the call that a processor has just made.
    pub(super) fn answer(&mut self, cpu: usize) -> Answered {
        let registers = self.machine.cpu(cpu);
        let number = registers.reg(Reg::Rbx);
        let (first, second) = (registers.reg(Reg::Rcx), registers.reg(Reg::Rdx));
        self.machine.cpu_mut(cpu).set_reg(Reg::Rax, 0);
        let Some(call) = Call::from_number(number) else {
            return Answered::GoesOn;
        };
        match call {
            Call::Info => {
                let text = self.text(cpu, first, second);
                let mut info = (*self.state.info).clone();
                add_info(&mut info, &text);
                self.state.info = Arc::new(info);
            }
            Call::Log => {
                let text = self.text(cpu, first, second);
                self.state.console.agent_line(&text);
            }
            Call::Input => {
                self.state.input = Some(Input {
                    cpu,
                    buffer: first,
                    size: second,
                });
                return Answered::Waits;
            }
            Call::Threads => self.state.threads = first,
            Call::Start => {
                let started = Started {
                    cpu,
                    progress: second,
                };
                self.state.started.insert(first, started);
                return Answered::Waits;
            }
            Call::End => {
                self.state.ended.insert(first);
                if let Some(started) = self.state.started.get(&first) {
                    self.state.is_through[started.cpu] = true;
                }
                self.tell_call(cpu, to_usize(first), None);
                return Answered::ThreadEnded;
            }
            Call::Result => {
                let mut bytes = vec![0; to_usize(second.min(16 * RESULTS_MAX as u64))];
                if self.machine.read_virtual(cpu, first, &mut bytes) {
                    self.state.results = decode_results(&bytes);
                }
                self.read_buffers(cpu);
            }
            Call::Finish => {
                self.finish(RunEnd::Finished { status: first });
                return Answered::Over;
            }
            Call::Fatal => {
                let text = self.text(cpu, first, second);
                self.finish(RunEnd::Fatal(text));
                return Answered::Over;
            }
            Call::Failed => {
                let text = self.text(cpu, first, second);
                self.state.failed_checks.push(text);
            }
        }
        Answered::GoesOn
    }

    pub(super) fn finish(&mut self, end: RunEnd) {
        self.state.phase = Phase::Done;
        // After a panic the kernel tries one way after the other to restart the machine.
        let end = match end {
            RunEnd::Unsupported(_) if self.state.console.tells_panic() => RunEnd::Crashed,
            end => end,
        };
        self.state.end.get_or_insert(end);
    }

    fn text(&mut self, cpu: usize, addr: u64, length: u64) -> String {
        let mut bytes = vec![0; to_usize(length.min(TEXT_MAX))];
        if self.machine.read_virtual(cpu, addr, &mut bytes) {
            String::from_utf8_lossy(&bytes).into_owned()
        } else {
            "(a text that is not in memory)".to_owned()
        }
    }
}

fn add_info(info: &mut GuestInfo, text: &str) {
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("release", rest)) => rest.clone_into(&mut info.release),
            Some(("version", rest)) => rest.clone_into(&mut info.version),
            Some(("online", rest)) => rest.clone_into(&mut info.online),
            Some(("fixed", rest)) => info.fixed_threads.push(rest.to_owned()),
            Some(("module", rest)) => {
                if let Some((name, addr)) = rest.split_once(" 0x")
                    && let Ok(addr) = u64::from_str_radix(addr.trim(), 16)
                {
                    info.modules.insert(name.to_owned(), addr);
                }
            }
            _ => {}
        }
    }
}
