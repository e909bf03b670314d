//! Calling stubs, with the bookkeeping around them.

use super::{Elements, OperandBuffer, StubRef};
use crate::cpu::{Cpu, FxState};
use crate::exit::{Fault, Vector};
use crate::flags::Flags;

/// Exception masks, flags, flush-to-zero and the underflow bits of MXCSR (SDM vol. 1, 10.2.3).
const MASKS: u32 = 0x1F80;
const FLAGS: u32 = 0x3F;
const FLUSH_TO_ZERO: u32 = 1 << 15;
const UNDERFLOW: u32 = 1 << 4;
const PRE_COMPUTATION: u32 = 0b111;
const MASK_SHIFT: u32 = 7;

/// A whole FXSAVE image, as an x87 stub wants it.
#[derive(Debug, Clone)]
#[repr(C, align(16))]
pub(crate) struct FxImage {
    pub(crate) state: FxState,
    rest: [u8; 352],
}

impl FxImage {
    pub(crate) fn new(state: FxState) -> Self {
        Self {
            state,
            rest: [0; 352],
        }
    }
}

/// What an x87 stub says besides the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct X87Outcome {
    /// RFLAGS, if the instruction sets arithmetic flags.
    pub(crate) rflags: Option<u64>,
}

impl StubRef {
    /// Executes an instruction that is not x87; on a fault nothing but MXCSR's flags has changed.
    ///
    /// # Safety
    /// The cache this stub came from must be alive, `cpu` valid for reads and writes, and `memory` valid for reads
    /// and writes of `self.bytes` bytes at an address aligned to `self.align`.
    pub(crate) unsafe fn call(self, cpu: *mut Cpu, memory: *mut u8) -> Result<(), Fault> {
        // SAFETY: the caller promises that `cpu` is valid; the reference ends before the stub runs.
        let is_plain = !self.uses_mxcsr || unsafe { (*cpu).fx.mxcsr } & MASKS == MASKS;
        if !is_plain {
            // SAFETY: as promised by the caller.
            return unsafe { self.call_unmasked(cpu, memory) };
        }
        // SAFETY: as promised by the caller.
        unsafe { self.call_masked(cpu, memory) };
        Ok(())
    }

    /// # Safety
    /// As for `call`; besides, the guest's MXCSR must mask all exceptions if the stub uses it.
    unsafe fn call_masked(self, cpu: *mut Cpu, memory: *mut u8) {
        // SAFETY: the entry is live code that touches only `cpu` and `memory`.
        let rflags = unsafe { (self.entry)(cpu.cast(), memory) };
        if self.sets_flags {
            // SAFETY: the caller promises that `cpu` is valid.
            unsafe { (*cpu).flags = Flags::from_rflags(rflags) };
        }
        if self.written_mm != 0 {
            // SAFETY: the caller promises that `cpu` is valid.
            let st = unsafe { &mut (*cpu).fx.st };
            for (number, register) in st.iter_mut().enumerate() {
                if self.written_mm >> number & 1 != 0 {
                    register[8..10].fill(0xFF);
                }
            }
        }
    }

    /// Executes with all exceptions masked, finds out which unmasked ones happened, and undoes everything if any.
    ///
    /// Two details differ from a real processor: the precision flag after an unmasked overflow or underflow, and
    /// exceptions that only an intermediate product of DPPS or DPPD raises.
    ///
    /// # Safety
    /// As for `call`.
    unsafe fn call_unmasked(self, cpu: *mut Cpu, memory: *mut u8) -> Result<(), Fault> {
        // SAFETY: the caller promises that `cpu` is valid.
        let saved = unsafe { (*cpu).clone() };
        let guest = saved.fx.mxcsr;
        let unmasked = !(guest >> MASK_SHIFT) & FLAGS;
        let mut control = (guest | MASKS) & !FLAGS;
        if unmasked & UNDERFLOW != 0 {
            control &= !FLUSH_TO_ZERO;
        }
        // SAFETY: as promised by the caller; all exceptions are masked now.
        let cpu = unsafe {
            (*cpu).fx.mxcsr = control;
            self.call_masked(cpu, memory);
            &mut *cpu
        };
        let mut raised = cpu.fx.mxcsr & FLAGS;
        if unmasked & UNDERFLOW != 0 && self.is_result_denormal(cpu) {
            raised |= UNDERFLOW;
        }
        if raised & unmasked == 0 {
            cpu.fx.mxcsr = guest | raised;
            return Ok(());
        }
        // An unmasked exception of the operands stops the operation before the result can raise any.
        let reported = if raised & unmasked & PRE_COMPUTATION != 0 {
            raised & PRE_COMPUTATION
        } else {
            raised
        };
        *cpu = saved;
        cpu.fx.mxcsr = guest | reported;
        Err(Fault::Exception {
            vector: Vector::Simd,
            error_code: 0,
        })
    }

    /// An exact denormal result is an underflow only while that exception is unmasked.
    fn is_result_denormal(self, cpu: &Cpu) -> bool {
        let Some(Elements { bytes, count }) = self.underflows else {
            return false;
        };
        let number = self.written_xmm.trailing_zeros() as usize;
        let Some(register) = cpu.xmm.get(number) else {
            return false;
        };
        register
            .chunks(usize::from(bytes))
            .take(usize::from(count))
            .any(is_denormal)
    }
}

fn is_denormal(element: &[u8]) -> bool {
    match *element {
        [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).is_subnormal(),
        [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]).is_subnormal(),
        _ => false,
    }
}

/// Runs an x87 stub. The image's MXCSR comes back as the host's and is not to be used.
pub(super) fn run_x87(
    stub: StubRef,
    image: &mut FxImage,
    memory: &mut OperandBuffer,
    rflags: u64,
) -> X87Outcome {
    let reads_flags = stub.memory == super::MemoryUse::None;
    let argument = if reads_flags {
        // FCMOVcc takes its flags where others take their operand; TF and the like must stay off.
        std::ptr::without_provenance_mut(raddle_stdx::width::to_usize(rflags & 0x8D5 | 2))
    } else {
        memory.0.as_mut_ptr()
    };
    // SAFETY: the caller holds the cache; the image is a whole FXSAVE area and the operand buffer holds ten bytes.
    let rflags = unsafe { (stub.entry)(std::ptr::from_mut(image).cast(), argument) };
    X87Outcome {
        rflags: stub.sets_flags.then_some(rflags),
    }
}
