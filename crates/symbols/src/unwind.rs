//! Call frame information: from the registers of a frame to those of its caller.
//!
//! The rules are those of DWARF 5 section 6.4 as `.eh_frame` stores them (System V ABI for x86-64, section 3.7).
//! Registers carry their DWARF numbers: 0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp, 8 to 15 r8 to r15,
//! 16 the return address.

use std::ops::Range;

use gimli::{
    CfaRule, EndianSlice, EvaluationResult, LittleEndian, Location, RegisterRule,
    UnwindSection as _, Value,
};

use crate::dwarf::{LocalPlace, Slice};
use crate::elf::{Elf, LinkAddr, SectionBytes};
use crate::flat::{Flat, Span};

/// Steps of one location expression; real ones have fewer than twenty.
const EXPRESSION_STEPS_MAX: u32 = 1000;

pub const RBP: u16 = 6;
pub const RSP: u16 = 7;
/// The column of the return address; in a [`Registers`], the program counter.
pub const RIP: u16 = 16;

/// Integer registers by DWARF number, each known or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers([Option<u64>; 17]);

/// DWARF numbers of the general registers in the order of the machine (RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI).
const DWARF_NUMBERS: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

impl Registers {
    /// Those of a processor: the general ones in the order of the machine, and the program counter.
    pub fn of_machine(general: &[u64], pc: u64) -> Self {
        let mut registers = Self::default();
        for (number, value) in DWARF_NUMBERS.into_iter().zip(general) {
            registers.set(number, Some(*value));
        }
        registers.set(RIP, Some(pc));
        registers
    }

    /// The value of a register; unknown ones and other numbers give `None`.
    pub fn get(&self, number: u16) -> Option<u64> {
        self.0.get(usize::from(number)).copied().flatten()
    }

    /// Sets or forgets a register; numbers that we do not model are ignored.
    pub fn set(&mut self, number: u16, value: Option<u64>) {
        if let Some(slot) = self.0.get_mut(usize::from(number)) {
            *slot = value;
        }
    }

    /// The program counter.
    pub fn pc(&self) -> Option<u64> {
        self.get(RIP)
    }
}

/// Reads eight bytes of the program's memory.
pub type ReadWord<'m> = &'m mut dyn FnMut(u64) -> Option<u64>;

/// A frame as its location expressions see it.
pub struct Machine<'m> {
    pub registers: Registers,
    /// The canonical frame address: the stack pointer before the call.
    pub cfa: Option<u64>,
    pub read: ReadWord<'m>,
}

impl std::fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine")
            .field("registers", &self.registers)
            .field("cfa", &self.cfa)
            .finish_non_exhaustive()
    }
}

/// One frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Its registers; the program counter is where it will go on.
    pub registers: Registers,
    /// The canonical frame address of this frame, where known.
    pub cfa: Option<u64>,
    /// Whether it was interrupted rather than calling: then the program counter is the very instruction.
    pub is_exact: bool,
}

impl Frame {
    /// The frame that is running now.
    pub fn innermost(registers: Registers) -> Self {
        Self {
            registers,
            cfa: None,
            is_exact: true,
        }
    }

    /// An address inside the instruction that the frame is executing: a call lies before its return address.
    pub fn lookup_address(&self) -> Option<u64> {
        let pc = self.registers.pc()?;
        Some(if self.is_exact {
            pc
        } else {
            pc.wrapping_sub(1)
        })
    }
}

/// What one step of unwinding gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub caller: Registers,
    /// The canonical frame address of the frame we came from.
    pub cfa: u64,
    /// Whether the frame we came from was pushed by the kernel for a signal.
    pub is_signal: bool,
}

/// The call frame information of one module, indexed by address.
#[derive(Debug)]
pub struct CallFrames {
    section: SectionBytes,
    bases: gimli::BaseAddresses,
    /// Offsets of the frame description entries in the section.
    entries: Flat<usize>,
}

type EhFrame<'a> = gimli::EhFrame<Slice<'a>>;

impl CallFrames {
    pub(crate) fn read(elf: &Elf) -> Self {
        let found = elf.section(".eh_frame").ok().flatten();
        let (address, section) = found.unwrap_or((LinkAddr(0), SectionBytes::empty()));
        let section_start = |name| {
            let found = elf.section(name).ok().flatten();
            found.map_or(0, |(address, _)| address.0)
        };
        let bases = gimli::BaseAddresses::default()
            .set_eh_frame(address.0)
            .set_text(section_start(".text"))
            .set_got(section_start(".got"));
        let mut frames = Self {
            section,
            bases,
            entries: Flat::new(Vec::new()),
        };
        frames.entries = frames.index();
        frames
    }

    /// Whether the module says how to unwind from this address.
    pub fn covers(&self, at: LinkAddr) -> bool {
        self.entries.at(at.0).is_some()
    }

    /// The link addresses of the function around an address, as far as one description goes.
    pub fn function_around(&self, at: LinkAddr) -> Option<Range<u64>> {
        let offset = gimli::EhFrameOffset(self.entries.at(at.0)?);
        let entry = self
            .eh_frame()
            .fde_from_offset(&self.bases, offset, gimli::EhFrame::cie_from_offset)
            .ok()?;
        let start = entry.initial_address();
        Some(start..start.saturating_add(entry.len()))
    }

    /// The caller's registers. `at` is the link address to look up, `bias` what was added to it at run time.
    pub fn step(&self, at: LinkAddr, bias: u64, machine: &mut Machine<'_>) -> Option<Step> {
        let eh_frame = self.eh_frame();
        let offset = gimli::EhFrameOffset(self.entries.at(at.0)?);
        let entry = eh_frame
            .fde_from_offset(&self.bases, offset, gimli::EhFrame::cie_from_offset)
            .ok()?;
        let mut context = gimli::UnwindContext::new();
        let row = entry
            .unwind_info_for_address(&eh_frame, &self.bases, &mut context, at.0)
            .ok()?;
        let encoding = entry.cie().encoding();
        let run =
            |expression: gimli::UnwindExpression<usize>, initial, machine: &mut Machine<'_>| {
                let expression = expression.get(&eh_frame).ok()?;
                evaluate_from(
                    expression,
                    encoding,
                    machine,
                    &Context::plain(bias),
                    initial,
                )
            };
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                let base = machine.registers.get(register.0)?;
                base.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(expression) => match run(*expression, None, machine)? {
                LocalPlace::Memory(value) | LocalPlace::Value(value) => value,
                LocalPlace::Register(number) => machine.registers.get(number)?,
                LocalPlace::Unknown => return None,
            },
        };
        // Callee-saved registers keep their value unless a rule says where it went; the others are lost.
        let mut caller = Registers::default();
        for number in [3, RBP, 12, 13, 14, 15] {
            caller.set(number, machine.registers.get(number));
        }
        caller.set(RSP, Some(cfa));
        for (register, rule) in row.registers() {
            let value = match rule {
                RegisterRule::SameValue => machine.registers.get(register.0),
                RegisterRule::Offset(offset) => (machine.read)(cfa.wrapping_add_signed(*offset)),
                RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(*offset)),
                RegisterRule::Register(other) => machine.registers.get(other.0),
                RegisterRule::Expression(expression) => {
                    match run(*expression, Some(cfa), machine) {
                        Some(LocalPlace::Memory(address)) => (machine.read)(address),
                        _ => None,
                    }
                }
                RegisterRule::ValExpression(expression) => {
                    match run(*expression, Some(cfa), machine) {
                        Some(LocalPlace::Memory(value) | LocalPlace::Value(value)) => Some(value),
                        _ => None,
                    }
                }
                RegisterRule::Constant(value) => Some(*value),
                _ => None,
            };
            caller.set(register.0, value);
        }
        Some(Step {
            caller,
            cfa,
            is_signal: entry.is_signal_trampoline(),
        })
    }

    fn eh_frame(&self) -> EhFrame<'_> {
        let mut section = EhFrame::from(EndianSlice::new(self.section.as_slice(), LittleEndian));
        section.set_address_size(8);
        section
    }

    fn index(&self) -> Flat<usize> {
        let eh_frame = self.eh_frame();
        let mut spans = Vec::new();
        let mut entries = eh_frame.entries(&self.bases);
        while let Ok(Some(entry)) = entries.next() {
            if let gimli::CieOrFde::Fde(partial) = entry
                && let Ok(fde) = partial.parse(gimli::EhFrame::cie_from_offset)
            {
                spans.push(Span {
                    start: fde.initial_address(),
                    end: fde.initial_address().saturating_add(fde.len()),
                    depth: 0,
                    value: fde.offset(),
                });
            }
        }
        Flat::new(spans)
    }
}

/// The caller by the chain of frame pointers, for code without call frame information.
pub(crate) fn step_by_frame_pointer(machine: &mut Machine<'_>) -> Option<Step> {
    let frame = machine.registers.get(RBP)?;
    let stack = machine.registers.get(RSP)?;
    // A frame pointer below the stack pointer or unaligned holds something else.
    if frame < stack || frame % 8 != 0 {
        return None;
    }
    let mut caller = Registers::default();
    caller.set(RBP, Some((machine.read)(frame)?));
    caller.set(RIP, Some((machine.read)(frame.wrapping_add(8))?));
    let cfa = frame.wrapping_add(16);
    caller.set(RSP, Some(cfa));
    Some(Step {
        caller,
        cfa,
        is_signal: false,
    })
}

/// What an expression may refer to beyond the machine.
pub(crate) struct Context<'c> {
    pub(crate) frame_base: Option<u64>,
    pub(crate) bias: u64,
    pub(crate) address_at: &'c dyn Fn(gimli::DebugAddrIndex) -> Option<u64>,
}

impl Context<'_> {
    fn plain(bias: u64) -> Self {
        Self {
            frame_base: None,
            bias,
            address_at: &|_| None,
        }
    }
}

/// The single place that a location expression describes.
pub(crate) fn evaluate(
    expression: gimli::Expression<Slice<'_>>,
    encoding: gimli::Encoding,
    machine: &mut Machine<'_>,
    context: &Context<'_>,
) -> Option<LocalPlace> {
    evaluate_from(expression, encoding, machine, context, None)
}

fn evaluate_from(
    expression: gimli::Expression<Slice<'_>>,
    encoding: gimli::Encoding,
    machine: &mut Machine<'_>,
    context: &Context<'_>,
    initial: Option<u64>,
) -> Option<LocalPlace> {
    let mut evaluation = expression.evaluation(encoding);
    evaluation.set_max_iterations(EXPRESSION_STEPS_MAX);
    if let Some(initial) = initial {
        evaluation.set_initial_value(initial);
    }
    let mut state = evaluation.evaluate().ok()?;
    // Each request consumes an operation, which the iteration limit counts.
    loop {
        state = match state {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let word = (machine.read)(address)?;
                let bits = u32::from(size.min(8)) * 8;
                let kept = if bits >= 64 {
                    word
                } else {
                    word & ((1 << bits) - 1)
                };
                evaluation.resume_with_memory(Value::Generic(kept)).ok()?
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = machine.registers.get(register.0)?;
                evaluation
                    .resume_with_register(Value::Generic(value))
                    .ok()?
            }
            EvaluationResult::RequiresFrameBase => evaluation
                .resume_with_frame_base(context.frame_base?)
                .ok()?,
            EvaluationResult::RequiresCallFrameCfa => {
                evaluation.resume_with_call_frame_cfa(machine.cfa?).ok()?
            }
            EvaluationResult::RequiresRelocatedAddress(address) => {
                let address = address.wrapping_add(context.bias);
                evaluation.resume_with_relocated_address(address).ok()?
            }
            EvaluationResult::RequiresIndexedAddress { index, relocate } => {
                let bias = if relocate { context.bias } else { 0 };
                let address = (context.address_at)(index)?.wrapping_add(bias);
                evaluation.resume_with_indexed_address(address).ok()?
            }
            _ => return None,
        };
    }
    let pieces = evaluation.result();
    let [piece] = pieces.as_slice() else {
        return Some(LocalPlace::Unknown);
    };
    Some(match piece.location {
        Location::Address { address } => LocalPlace::Memory(address),
        Location::Register { register } => LocalPlace::Register(register.0),
        Location::Value { value } => value
            .to_u64(u64::MAX)
            .map_or(LocalPlace::Unknown, LocalPlace::Value),
        _ => LocalPlace::Unknown,
    })
}
