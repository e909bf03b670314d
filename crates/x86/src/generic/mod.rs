//! The complete interpreter: any instruction of x86-64-v2, one at a time, straight from iced's decoded form.
//!
//! [`step`] is slow and plain on purpose; hot forms have fast handlers elsewhere that must agree with it.
//!
//! ```text
//!   Instruction ──class::of──▶ integer ──▶ arith, bits, data, flow, muldiv, shift, stack, string, system
//!                              vector  ──▶ vector ──▶ stub (native code)      x87, MMX ──▶ fpu ──▶ stub
//!                              absent  ──▶ #UD: the processor we present does not have it
//! ```
//!
//! Every load and store of an instruction happens before any register or flag changes, so that a fault leaves no
//! trace. Flags that the manual leaves undefined have one fixed value here:
//!
//! - AND, OR, XOR, TEST: AF is clear.
//! - MUL, IMUL: SF, ZF and PF follow the low half of the product, AF is clear.
//! - DIV, IDIV: no flag changes.
//! - Shifts by more than one: OF as if the last single-bit shift had set it; AF is clear. SHL and SHR of 8 and 16
//!   bits by more than the width: CF is clear.
//! - SHLD, SHRD of 16 bits by more than 16: the bits come from destination, source, destination again; AF is clear.
//! - BSF, BSR: SF and PF follow the source, CF, OF and AF are clear.
//! - BT and its kin: only CF changes.

mod access;
mod arith;
mod bits;
mod class;
mod control;
mod data;
pub(crate) mod fault;
mod flow;
mod fpu;
mod fpu_env;
mod interrupt;
mod muldiv;
mod operand;
mod reciprocal;
mod segment;
mod shift;
mod stack;
mod string;
mod system;
#[cfg(test)]
mod system_tests;
#[cfg(test)]
mod tests;
mod vector;

use iced_x86::{Instruction, Mnemonic};

use crate::cpu::Cpu;
use crate::exit::Fault;
use crate::stub::StubCache;
pub use access::SystemBus;
pub(crate) use access::{AccessKind, Bus};
#[cfg(not(any(test, feature = "fuzz")))]
use class::Class;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use class::{Class, is_implemented_form, of as class_of};
pub use interrupt::{Origin, Shutdown, deliver, raise};
use operand::Exec;

/// What the caller of [`step`] must do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Go on behind the instruction; RIP has not been touched.
    Next,
    /// RIP has been set.
    Jump,
    /// One iteration of a repeated string instruction is done and more remain; RIP stays.
    Repeat,
    /// SYSCALL in a user-only world: RCX, R11 and RIP are set.
    Syscall,
    /// INT n in a user-only world: RIP is behind it.
    Interrupt(u8),
    /// HLT: RIP is behind it.
    Halt,
    /// Not implemented; nothing has changed.
    Unsupported,
}

type Step = Result<Flow, Fault>;

/// Whether the instruction is one of SSE to SSE4.2 that our processor has.
pub(crate) fn is_vector(instruction: &Instruction) -> bool {
    class::of(instruction.code()) == Class::Vector
}

/// Executes one instruction, or one iteration of a repeated one.
pub(crate) fn step(
    cpu: &mut Cpu,
    instruction: &Instruction,
    stubs: &mut StubCache,
    bus: &mut impl Bus,
) -> Step {
    let mut exec = Exec {
        cpu,
        insn: instruction,
        stubs,
        bus,
    };
    match class::of(instruction.code()) {
        Class::Integer => integer(&mut exec),
        Class::Vector => vector::execute(&mut exec),
        Class::Mmx => fpu::mmx(&mut exec),
        Class::X87 => fpu::x87(&mut exec),
        Class::Absent => Err(fault::undefined()),
    }
}

/// The integer and system instructions, by family.
#[expect(clippy::too_many_lines, reason = "a flat dispatch")]
fn integer<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    use Mnemonic as M;
    match exec.insn.mnemonic() {
        M::Add | M::Or | M::Adc | M::Sbb | M::And | M::Sub | M::Xor | M::Cmp | M::Test => {
            arith::binary(exec)
        }
        M::Inc | M::Dec | M::Neg | M::Not => arith::unary(exec),
        M::Xadd => arith::xadd(exec),
        M::Cmpxchg => arith::cmpxchg(exec),
        M::Cmpxchg8b | M::Cmpxchg16b => arith::cmpxchg_wide(exec),
        M::Aaa | M::Aas | M::Daa | M::Das | M::Aam | M::Aad => Ok(Flow::Unsupported),
        M::Rol | M::Ror | M::Rcl | M::Rcr | M::Shl | M::Sal | M::Shr | M::Sar => {
            shift::single(exec)
        }
        M::Shld | M::Shrd => shift::double(exec),
        M::Mul | M::Imul => muldiv::multiply(exec),
        M::Div | M::Idiv => muldiv::divide(exec),
        M::Bt | M::Bts | M::Btr | M::Btc => bits::bit_test(exec),
        M::Bsf | M::Tzcnt | M::Bsr | M::Lzcnt => bits::scan(exec),
        M::Popcnt | M::Crc32 | M::Bswap => bits::other(exec),
        M::Mov | M::Movnti => data::mov(exec),
        M::Movzx | M::Movsx | M::Movsxd => data::extend(exec),
        M::Lea => data::lea(exec),
        M::Xchg => data::xchg(exec),
        M::Xlatb => data::xlat(exec),
        M::Cbw | M::Cwde | M::Cdqe | M::Cwd | M::Cdq | M::Cqo => data::widen_accumulator(exec),
        M::Lahf | M::Sahf | M::Clc | M::Stc | M::Cmc | M::Cld | M::Std => data::flag(exec),
        M::Push | M::Pop | M::Pushf | M::Pushfq | M::Pushfd | M::Popf | M::Popfq | M::Popfd => {
            stack::push_pop(exec)
        }
        M::Pusha | M::Pushad | M::Popa | M::Popad => stack::all_registers(exec),
        M::Enter => stack::enter(exec),
        M::Leave => stack::leave(exec),
        M::Jmp | M::Call | M::Ret => flow::branch(exec),
        M::Loop | M::Loope | M::Loopne | M::Jcxz | M::Jecxz | M::Jrcxz => flow::count_branch(exec),
        M::Int | M::Int3 | M::Int1 | M::Into | M::Syscall | M::Ud0 | M::Ud1 | M::Ud2 => {
            flow::trap(exec)
        }
        M::Movsb
        | M::Movsw
        | M::Movsd
        | M::Movsq
        | M::Stosb
        | M::Stosw
        | M::Stosd
        | M::Stosq
        | M::Lodsb
        | M::Lodsw
        | M::Lodsd
        | M::Lodsq
        | M::Scasb
        | M::Scasw
        | M::Scasd
        | M::Scasq
        | M::Cmpsb
        | M::Cmpsw
        | M::Cmpsd
        | M::Cmpsq => string::execute(exec),
        M::Insb | M::Insw | M::Insd | M::Outsb | M::Outsw | M::Outsd => string::port(exec),
        // Hints, and reserved no-operations whose later meaning our processor does not have.
        M::Nop
        | M::Pause
        | M::Endbr64
        | M::Endbr32
        | M::Rdsspd
        | M::Rdsspq
        | M::Reservednop
        | M::Cldemote
        | M::Prefetchnta
        | M::Prefetcht0
        | M::Prefetcht1
        | M::Prefetcht2
        | M::Prefetchw
        | M::Prefetch
        | M::Prefetchwt1
        | M::Prefetchit0
        | M::Prefetchit1
        | M::Lfence
        | M::Mfence
        | M::Sfence => Ok(Flow::Next),
        M::Clflush => data::flush_line(exec),
        mnemonic => {
            if flow::condition_of(exec.insn).is_some() {
                return flow::conditional(exec);
            }
            system::execute(exec, mnemonic)
        }
    }
}
