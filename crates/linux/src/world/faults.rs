//! Faults that a thread may meet in the call or the known function that it is about to begin.
//!
//! What a real system would never do to a program is not offered: only pipes and stream sockets move fewer bytes than
//! asked for, and a call is interrupted only if the program has a handler for a signal that may come.

use raddle_calls::Interrupts;
use raddle_config::hooks::Effect;
use raddle_stdx::width::{low_i32, low_u32};
use raddle_world::{ContextId, EventKind, Fault, MeetFaults};
use raddle_x86::Reg;

use super::LinuxWorld;
use super::private_call::handlers;
use crate::files::inode::Node;
use crate::files::open;
use crate::futex::{self, Use};
use crate::serve::FUTEX;
use crate::syscall::futex::use_of;
use crate::thread::{Activity, Tid};

/// Registers of the first arguments of a call.
const FIRST_ARGUMENTS: [Reg; 3] = [Reg::Rdi, Reg::Rsi, Reg::Rdx];

impl MeetFaults for LinuxWorld {
    fn possible(&self, who: ContextId) -> Vec<Fault> {
        let Some(tid) = self.tid(who) else {
            return Vec::new();
        };
        let thread = self.kernel.thread(tid);
        match thread.activity {
            Activity::Entered => self.faults_of_call(tid),
            Activity::User if thread.stopped_at_point == Some(thread.cpu.rip) => {
                let fault = self.hooks.fault_at_entry(&self.kernel, tid);
                fault.into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn meet(&mut self, who: ContextId, fault: Fault) -> bool {
        let Some(tid) = self
            .tid(who)
            .filter(|_| self.possible(who).contains(&fault))
        else {
            return false;
        };
        self.kernel.emit(tid, EventKind::Fault(fault));
        if self.kernel.thread(tid).activity == Activity::Entered {
            self.kernel.thread_mut(tid).fault = Some(fault);
        } else {
            self.hooks.return_at_once(&mut self.kernel, tid);
        }
        true
    }
}

impl LinuxWorld {
    /// Makes calls of the allocator stops, so that they can fail.
    pub fn stop_at_allocations(&mut self, is_on: bool) {
        self.stops_at_allocations = is_on;
    }

    fn faults_of_call(&self, tid: Tid) -> Vec<Fault> {
        let cpu = &self.kernel.thread(tid).cpu;
        let number = low_u32(cpu.reg(Reg::Rax));
        let arguments = FIRST_ARGUMENTS.map(|reg| cpu.reg(reg));
        if number == FUTEX {
            return self.faults_of_futex(tid, arguments);
        }
        let Some(call) = raddle_calls::of(number) else {
            return Vec::new();
        };
        let mut faults = Vec::new();
        let is_of_stream = || self.is_stream(tid, low_i32(arguments[0]));
        if call.transfers && arguments[2] > 1 && is_of_stream() {
            faults.push(Fault::ShortTransfer);
        }
        let is_interruptible = match call.interrupts {
            Interrupts::Never => false,
            Interrupts::UnlessRestarted => {
                self.has_handler(tid, true) && (!call.transfers || is_of_stream())
            }
            Interrupts::Always => self.has_handler(tid, false),
        };
        if is_interruptible {
            faults.push(Fault::Interrupted);
        }
        faults
    }

    fn faults_of_futex(&self, tid: Tid, [addr, command, count]: [u64; 3]) -> Vec<Fault> {
        let inside = self.hooks.innermost(&self.kernel, tid);
        match use_of(low_i32(command)) {
            // What a known function makes of a futex that wakes for nothing is its own business.
            Some(Use::Wait) if inside.is_none() => vec![Fault::SpuriousWakeUp],
            Some(Use::Wait) => {
                let is_semaphore = inside.is_some_and(|call| call.effect == Effect::Wait);
                let is_interruptible = is_semaphore && self.has_handler(tid, true);
                Vec::from_iter(is_interruptible.then_some(Fault::Interrupted))
            }
            Some(Use::Wake) => {
                let waiters = futex::waiters(&self.kernel, tid, addr);
                Vec::from_iter((waiters > count).then_some(Fault::WakeOrder))
            }
            None => Vec::new(),
        }
    }

    /// Whether a descriptor is a pipe or a stream socket.
    fn is_stream(&self, tid: Tid, descriptor: i32) -> bool {
        let Ok(open) = open::lookup(&self.kernel, tid, descriptor) else {
            return false;
        };
        let files = &self.kernel.state.files;
        match &files.inode(files.open_file(open).inode).node {
            Node::Pipe(_) => true,
            Node::Socket(socket) => socket.is_stream(),
            _ => false,
        }
    }

    /// Whether a signal may come whose handler interrupts calls; `unrestarted` for calls that SA_RESTART restarts.
    fn has_handler(&self, tid: Tid, unrestarted: bool) -> bool {
        const SA_RESTART: u64 = 0x1000_0000;
        let process = self.kernel.process_of(tid);
        handlers(process).any(|action| !unrestarted || action.flags & SA_RESTART == 0)
    }
}
