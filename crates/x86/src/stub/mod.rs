//! Native stubs: SSE, MMX and x87 instructions executed by the host processor itself.
//!
//! A stub is a few instructions of machine code, made once per distinct instruction with its memory operand replaced
//! by `[rsi]`:
//!
//! ```text
//!   call(rdi = Cpu, rsi = memory operand)          x87: call(rdi = 512-byte FXSAVE image, rsi = memory operand)
//!     movaps xmm3, [rdi + xmm3's place]              stmxcsr [rdi + 24]   ; fxrstor must not change it
//!     stmxcsr host; ldmxcsr [rdi + guest's]          fxrstor64 [rdi]
//!     addps xmm3, [rsi]                              fadd qword [rsi]
//!     stmxcsr [rdi + guest's]; ldmxcsr host          fxsave64 [rdi]
//!     movaps [rdi + xmm3's place], xmm3              fninit
//!     ret                                            ret
//! ```
//! Nothing of the host leaks: control words are the guest's, pointers in images are cleared, and instructions whose
//! results differ between vendors (RCPPS, RSQRTPS) never come here.
#![expect(
    unsafe_code,
    reason = "machine code made at run time must be mapped and called"
)]

mod assemble;
mod call;

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use rustc_hash::FxHashMap;

use crate::cpu::Cpu;
use crate::executable::{ExecutableArea, Part};
use crate::exit::Fault;
pub(crate) use call::{FxImage, X87Outcome};

/// Sixteen bytes for a memory operand, aligned as every SSE instruction wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C, align(16))]
pub(crate) struct OperandBuffer(pub(crate) [u8; 16]);

/// What a stub does with its memory operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryUse {
    None,
    Read,
    Write,
}

/// Whose MXCSR is in force while a stub runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Control {
    /// The stub loads the guest's and gives the host's back.
    Switched,
    /// The caller has seen to it that the control bits are right, and collects the flags later.
    AsItIs,
}

/// Elements of the destination that arithmetic may leave denormal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Elements {
    bytes: u8,
    count: u8,
}

/// One stub; valid as long as the cache it came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StubRef {
    pub(crate) entry: unsafe extern "C" fn(*mut u8, *mut u8) -> u64,
    /// Bytes of code before its result is put together and it returns.
    pub(crate) length: u8,
    pub(crate) memory: MemoryUse,
    /// Size of the memory operand.
    pub(crate) bytes: u8,
    /// What the address of the memory operand must be a multiple of, else #GP.
    pub(crate) align: u8,
    /// The stub returns RFLAGS, whose arithmetic flags are the result.
    pub(crate) sets_flags: bool,
    /// The stub runs under the guest's MXCSR.
    pub(crate) uses_mxcsr: bool,
    /// XMM registers that change, by number.
    written_xmm: u16,
    /// MMX registers that change, by number.
    written_mm: u8,
    /// The general register that changes, if any.
    written_gpr: Option<u8>,
    underflows: Option<Elements>,
}

/// All stubs made so far, and the memory they live in.
#[derive(Debug, Default)]
pub(crate) struct StubCache {
    stubs: FxHashMap<u64, Option<StubRef>>,
    area: Option<ExecutableArea>,
}

impl StubCache {
    /// The stub of an instruction, made at its first use. None if it cannot be had (no executable memory).
    pub(crate) fn get(&mut self, instruction: &Instruction) -> Option<StubRef> {
        self.get_with(instruction, Control::Switched)
    }

    /// A stub of an SSE instruction that leaves MXCSR alone: the caller must have made sure that the control
    /// bits in force are the guest's, and collects the exception flags itself.
    pub(crate) fn get_bare(&mut self, instruction: &Instruction) -> Option<StubRef> {
        let has_xmm = (0..instruction.op_count()).any(|operand| {
            instruction.op_kind(operand) == OpKind::Register
                && instruction.op_register(operand).is_xmm()
        });
        let is_special = matches!(
            instruction.mnemonic(),
            Mnemonic::Rcpps
                | Mnemonic::Rcpss
                | Mnemonic::Rsqrtps
                | Mnemonic::Rsqrtss
                | Mnemonic::Maskmovdqu
        );
        if !has_xmm || is_special || !crate::generic::is_vector(instruction) {
            return None;
        }
        self.get_with(instruction, Control::AsItIs)
            .filter(|stub| stub.written_mm == 0)
    }

    fn get_with(&mut self, instruction: &Instruction, control: Control) -> Option<StubRef> {
        let key = key(instruction) | u64::from(control == Control::AsItIs) << 63;
        if let Some(found) = self.stubs.get(&key) {
            return *found;
        }
        let made = self.make(instruction, control);
        self.stubs.insert(key, made);
        made
    }

    fn make(&mut self, instruction: &Instruction, control: Control) -> Option<StubRef> {
        let (code, template) = assemble::assemble(instruction, control)?;
        if self.area.is_none() {
            self.area = ExecutableArea::new();
        }
        let start = self.area.as_mut()?.add(Part::Hot, &code)?;
        // SAFETY: the bytes are a complete function with this signature, made by `assemble`.
        let entry = unsafe {
            std::mem::transmute::<*const u8, unsafe extern "C" fn(*mut u8, *mut u8) -> u64>(start)
        };
        Some(StubRef { entry, ..template })
    }

    /// Runs a stub of this cache on a memory operand that the caller has loaded and, afterwards, stores.
    pub(crate) fn run(
        &self,
        stub: StubRef,
        cpu: &mut Cpu,
        memory: &mut OperandBuffer,
    ) -> Result<(), Fault> {
        // SAFETY: the stub is alive while `self` is borrowed, and the buffer is as large and as aligned as any
        // operand of a stub that is not x87.
        unsafe { stub.call(cpu, memory.0.as_mut_ptr()) }
    }

    /// Runs an x87 stub of this cache on an image.
    pub(crate) fn run_x87(
        &self,
        stub: StubRef,
        image: &mut FxImage,
        memory: &mut OperandBuffer,
        rflags: u64,
    ) -> X87Outcome {
        call::run_x87(stub, image, memory, rflags)
    }
}

/// All that distinguishes one stub from another.
fn key(instruction: &Instruction) -> u64 {
    let operand = |index: u32| -> u64 {
        if index >= instruction.op_count() {
            return 0;
        }
        match instruction.op_kind(index) {
            OpKind::Register => instruction.op_register(index) as u64,
            OpKind::Memory => 0xFF,
            _ => Register::None as u64,
        }
    };
    let immediate = u64::from(instruction.immediate8());
    let has_immediate =
        (0..instruction.op_count()).any(|index| instruction.op_kind(index) == OpKind::Immediate8);
    (instruction.code() as u64)
        | operand(0) << 16
        | operand(1) << 24
        | operand(2) << 32
        | if has_immediate { immediate << 40 } else { 0 }
}
