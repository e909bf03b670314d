//! Which signal an exception of the processor becomes.

use raddle_x86::{Cpu, Vector};

use crate::signal::{SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP, SigInfo, code};

/// The signal for an exception that is not a page fault.
pub(crate) fn exception_signal(vector: Vector, cpu: &Cpu) -> SigInfo {
    let at = cpu.rip;
    match vector {
        Vector::Divide => SigInfo::fault(SIGFPE, code::FPE_INTDIV, at),
        Vector::Debug => SigInfo::fault(SIGTRAP, code::TRAP_TRACE, at),
        Vector::Breakpoint => SigInfo::kernel(SIGTRAP),
        Vector::InvalidOpcode => SigInfo::fault(SIGILL, code::ILL_ILLOPN, at),
        Vector::X87 => {
            let pending = cpu.fx.fsw & !cpu.fx.fcw;
            SigInfo::fault(SIGFPE, float_code(pending), at)
        }
        Vector::Simd => {
            // The masks of MXCSR lie seven bits above its flags.
            let mxcsr = cpu.fx.mxcsr;
            let pending = raddle_stdx::width::low_u16(u64::from(mxcsr & !(mxcsr >> 7)));
            SigInfo::fault(SIGFPE, float_code(pending), at)
        }
        Vector::AlignmentCheck => SigInfo::fault(SIGBUS, code::BUS_ADRALN, 0),
        _ => SigInfo::kernel(SIGSEGV),
    }
}

/// The code for the first pending exception in the order in which Linux looks at them.
fn float_code(pending: u16) -> i32 {
    if pending & 0x01 != 0 {
        code::FPE_FLTINV
    } else if pending & 0x04 != 0 {
        code::FPE_FLTDIV
    } else if pending & 0x08 != 0 {
        code::FPE_FLTOVF
    } else if pending & 0x12 != 0 {
        code::FPE_FLTUND
    } else if pending & 0x20 != 0 {
        code::FPE_FLTRES
    } else {
        0
    }
}
