//! System calls of threads: entering, blocking, trying again, giving the result.

use raddle_stdx::width::{as_i64, low_u32};
use raddle_world::{CallMade, ContextId, EventKind, Fault, Stop, Unsupported, VirtualTime};
use raddle_x86::Reg;

use super::{Flow, LinuxWorld};
use crate::call::{Call, Trouble};
use crate::errno::Errno;
use crate::serve;
use crate::syscall::lookup;
use crate::thread::{Activity, Tid};

impl LinuxWorld {
    /// Makes the call that the thread has just asked for.
    pub(super) fn enter(&mut self, tid: Tid) -> Flow {
        let thread = self.kernel.thread_mut(tid);
        thread.activity = Activity::User;
        let cpu = &thread.cpu;
        let number = low_u32(cpu.reg(Reg::Rax));
        let mut args =
            [Reg::Rdi, Reg::Rsi, Reg::Rdx, Reg::R10, Reg::R8, Reg::R9].map(|reg| cpu.reg(reg));
        let (context, fault) = (thread.context, thread.fault.take());
        self.statistics.syscalls += 1;
        self.kernel.process_of_mut(tid).usage.syscalls += 1;
        self.digest.word(u64::from(number));
        for word in args {
            self.digest.word(word);
        }
        if self.kernel.is_tracing {
            let kind = EventKind::SyscallEnter {
                number,
                arguments: Box::new(args),
            };
            self.kernel.emit(tid, kind);
        }
        match fault {
            Some(Fault::Interrupted) => {
                return self.finish(tid, context, number, Errno::EINTR.result());
            }
            Some(Fault::SpuriousWakeUp) => return self.finish(tid, context, number, 0),
            Some(Fault::ShortTransfer) => args[2] = 1,
            Some(Fault::WakeOrder) => self.kernel.state.futexes.wakes_last(),
            Some(Fault::NoMemory) | None => {}
        }
        self.perform(tid, number, args, None, false)
    }

    /// Tries a call again that blocked before.
    pub(super) fn retry(&mut self, tid: Tid) -> Flow {
        let Some(waiting) = self.kernel.end_wait(tid) else {
            return Flow::On;
        };
        let deadline = waiting.block.deadline;
        self.perform(tid, waiting.number, waiting.args, deadline, true)
    }

    fn perform(
        &mut self,
        tid: Tid,
        number: u32,
        args: [u64; 6],
        deadline: Option<VirtualTime>,
        is_retry: bool,
    ) -> Flow {
        let context = self.kernel.thread(tid).context;
        let Some(entry) = lookup(number) else {
            return self.unknown_call(tid, number, args);
        };
        let mut call = Call {
            kernel: &mut self.kernel,
            tid,
            args,
            deadline,
            is_retry,
        };
        serve::begin(call.kernel, tid, number, &args);
        let result = (entry.handler)(&mut call);
        serve::end(&mut self.kernel, tid, &args, result.as_ref().ok());
        match result {
            Ok(value) => self.finish(tid, context, number, value),
            Err(Trouble::Errno(errno)) => self.finish(tid, context, number, errno.result()),
            Err(Trouble::NoReturn) => {
                self.digest.word(u64::MAX);
                Flow::On
            }
            Err(Trouble::Block(block)) => {
                self.kernel.sleep(tid, number, args, block);
                self.kernel.process_of_mut(tid).usage.voluntary_switches += 1;
                self.note_cycle(tid);
                if self.kernel.halt.is_some() {
                    return Flow::On;
                }
                // A signal may be waiting already: then the sleep ends at once.
                if self.kernel.state.contexts.get(context).is_runnable() {
                    Flow::On
                } else {
                    Flow::Stop(Stop::Blocked)
                }
            }
            Err(Trouble::Unsupported(lacking)) => {
                Flow::Stop(Stop::Unsupported(Box::new(Unsupported::UseOfCall {
                    call: self.call_made(tid, number, args),
                    lacking,
                    note: entry.note.into(),
                })))
            }
        }
    }

    /// Gives a call its result.
    fn finish(&mut self, tid: Tid, context: ContextId, number: u32, value: u64) -> Flow {
        self.digest.word(value);
        // A call may have ended its own thread (kill).
        let Some(thread) = self.kernel.state.threads.get_mut(&tid) else {
            return Flow::On;
        };
        if thread.context != context {
            return Flow::On;
        }
        thread.cpu.set_reg(Reg::Rax, value);
        let has_yielded = std::mem::take(&mut thread.has_yielded);
        let keeps_mask = value == Errno::EINTR.result() && self.kernel.has_deliverable_signal(tid);
        if !keeps_mask && let Some(mask) = self.kernel.thread_mut(tid).saved_mask.take() {
            self.kernel.set_mask(tid, mask);
        }
        if self.kernel.is_tracing {
            let kind = EventKind::SyscallLeave {
                number,
                result: as_i64(value),
            };
            self.kernel.emit(tid, kind);
        }
        if has_yielded {
            Flow::Stop(Stop::Yielded)
        } else {
            Flow::On
        }
    }

    fn call_made(&self, tid: Tid, number: u32, arguments: [u64; 6]) -> CallMade {
        CallMade {
            thread: self.kernel.thread(tid).called(tid),
            number,
            name: raddle_calls::name(number).into(),
            arguments,
        }
    }

    /// A call without a row: if Linux has no such call either, the guest is told so.
    fn unknown_call(&mut self, tid: Tid, number: u32, args: [u64; 6]) -> Flow {
        if raddle_calls::of(number).is_none() {
            let context = self.kernel.thread(tid).context;
            return self.finish(tid, context, number, Errno::ENOSYS.result());
        }
        let call = self.call_made(tid, number, args);
        Flow::Stop(Stop::Unsupported(Box::new(Unsupported::Call(call))))
    }
}
