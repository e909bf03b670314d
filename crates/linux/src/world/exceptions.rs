//! Exceptions of threads: page faults, traps, instructions that are not implemented.

use raddle_mem::{Access, PageFault};
use raddle_world::{Stop, Unsupported};
use raddle_x86::{MemoryFault, Reg};

use super::{Flow, LinuxWorld};
use crate::errno::Errno;
use crate::signal::{SIGBUS, SIGSEGV, SigInfo, code};
use crate::thread::{Activity, ExceptionInfo, Tid};

impl LinuxWorld {
    pub(super) fn unsupported_instruction(&self, tid: Tid, bytes: &[u8]) -> Unsupported {
        let thread = self.kernel.thread(tid);
        let pc = thread.cpu.rip;
        Unsupported::Instruction {
            thread: thread.called(tid),
            pc,
            place: self.kernel.describe_place(tid, pc),
            bytes: bytes.to_vec(),
        }
    }

    pub(super) fn software_interrupt(&mut self, tid: Tid, vector: u8) -> Flow {
        match vector {
            3 => {
                let info = SigInfo::kernel(crate::signal::SIGTRAP);
                let exception = ExceptionInfo {
                    vector: 3,
                    ..ExceptionInfo::default()
                };
                self.kernel.force_signal(tid, info, exception);
                Flow::On
            }
            0x80 => Flow::Stop(Stop::Unsupported(Box::new(Unsupported::Call32 {
                thread: tid.0,
                number: self.kernel.thread(tid).cpu.reg(Reg::Rax),
            }))),
            _ => {
                // INT n is two bytes; the exception stands before it.
                self.kernel.thread_mut(tid).cpu.rip -= 2;
                self.general_protection(tid);
                Flow::On
            }
        }
    }

    pub(super) fn general_protection(&mut self, tid: Tid) {
        let exception = ExceptionInfo {
            vector: 13,
            ..ExceptionInfo::default()
        };
        self.kernel
            .force_signal(tid, SigInfo::kernel(SIGSEGV), exception);
    }

    pub(super) fn memory_fault(&mut self, tid: Tid, fault: MemoryFault) -> Flow {
        let addr = fault.addr.0;
        if fault.access == Access::Execute && self.vsyscall(tid, addr) {
            return Flow::On;
        }
        let (number, signal_code, is_present) = match fault.cause {
            PageFault::NeedsObject { .. } => {
                let space = self.kernel.process_of(tid).space;
                match self.kernel.populate(space, fault.addr, fault.cause) {
                    Ok(()) => {
                        self.statistics.pages_fetched += 1;
                        self.kernel.process_of_mut(tid).usage.faults += 1;
                        return Flow::On;
                    }
                    Err(Errno::ENOMEM) => {
                        self.kernel.out_of_memory();
                        return Flow::On;
                    }
                    Err(_) => (SIGBUS, code::BUS_ADRERR, false),
                }
            }
            PageFault::OutOfFrames => {
                self.kernel.out_of_memory();
                return Flow::On;
            }
            PageFault::Forbidden => return self.forbidden_access(tid, fault),
            PageFault::NotMapped if is_non_canonical(addr) => {
                self.general_protection(tid);
                return Flow::On;
            }
            PageFault::NotMapped => (SIGSEGV, code::SEGV_MAPERR, false),
            PageFault::Protection => (SIGSEGV, code::SEGV_ACCERR, true),
        };
        let kind = match fault.access {
            Access::Read => 0,
            Access::Write => 2,
            Access::Execute => 16,
        };
        let exception = ExceptionInfo {
            vector: 14,
            error_code: 4 | kind | u64::from(is_present),
            addr,
        };
        self.kernel
            .force_signal(tid, SigInfo::fault(number, signal_code, addr), exception);
        Flow::On
    }

    /// Calls into the fixed page of old programs: gettimeofday, time, getcpu.
    fn vsyscall(&mut self, tid: Tid, addr: u64) -> bool {
        let number = match addr {
            0xFFFF_FFFF_FF60_0000 => 96,
            0xFFFF_FFFF_FF60_0400 => 201,
            0xFFFF_FFFF_FF60_0800 => 309,
            _ => return false,
        };
        let sp = self.kernel.thread(tid).cpu.reg(Reg::Rsp);
        let Ok(back) = self.kernel.read_u64(tid, sp) else {
            return false;
        };
        let cpu = &mut self.kernel.thread_mut(tid).cpu;
        cpu.rip = back;
        cpu.set_reg(Reg::Rsp, sp.wrapping_add(8));
        cpu.set_reg(Reg::Rax, number);
        self.kernel.thread_mut(tid).activity = Activity::Entered;
        true
    }
}

/// What the hardware answers with #GP instead of #PF.
fn is_non_canonical(addr: u64) -> bool {
    (0x8000_0000_0000..0xFFFF_8000_0000_0000).contains(&addr)
}
