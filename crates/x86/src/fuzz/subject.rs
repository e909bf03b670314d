//! The machine under test.

use iced_x86::{Decoder, DecoderOptions, Instruction};
use raddle_mem::{Access, GuestAddr, PageFault};

use super::case::{Case, CaseResult, Ending};
use super::layout::{CODE, CODE_BYTES, DATA, DATA_BYTES, WINDOW_BYTES, WINDOWS};
use crate::cpu::Cpu;
use crate::exit::{Fault, MemoryFault};
use crate::generic::{AccessKind, Bus, Flow, SystemBus, step};
use crate::stub::StubCache;

/// Iterations of a string instruction that no case needs.
const ITERATIONS_MAX: usize = 64;

/// Anything that can execute one case.
pub trait Subject {
    /// Executes the case's instruction once, with all its iterations.
    fn execute(&mut self, case: &Case, result: &mut CaseResult);
}

/// The generic interpreter.
#[derive(Debug)]
pub struct Interpreter {
    cpu: Cpu,
    stubs: StubCache,
    data: Data,
    /// The code that was decoded last, and its one or two instructions.
    decoded: ([u8; CODE_BYTES], Vec<Instruction>),
}

/// The two data pages.
#[derive(Debug)]
struct Data(Box<[u8; DATA_BYTES]>);

impl Data {
    fn range(
        &self,
        addr: u64,
        len: usize,
        access: Access,
    ) -> Result<std::ops::Range<usize>, Fault> {
        let end = DATA + DATA_BYTES as u64;
        let last = addr.wrapping_add(len as u64 - 1);
        let is_mapped = |at: u64| (DATA..end).contains(&at);
        if is_mapped(addr) && is_mapped(last) {
            let start = usize::try_from(addr - DATA).unwrap_or(0);
            return Ok(start..start + len);
        }
        let first_bad = if is_mapped(addr) { end } else { addr };
        Err(Fault::Memory(MemoryFault {
            addr: GuestAddr(first_bad),
            access,
            cause: PageFault::NotMapped,
        }))
    }
}

impl Bus for Data {
    fn read(&mut self, addr: u64, into: &mut [u8], kind: AccessKind) -> Result<(), Fault> {
        let access = match kind {
            AccessKind::Read => Access::Read,
            _ => Access::Write,
        };
        let range = self.range(addr, into.len(), access)?;
        into.copy_from_slice(&self.0[range]);
        Ok(())
    }

    fn write(&mut self, addr: u64, bytes: &[u8], _: AccessKind) -> Result<(), Fault> {
        let range = self.range(addr, bytes.len(), Access::Write)?;
        self.0[range].copy_from_slice(bytes);
        Ok(())
    }

    fn tsc(&mut self) -> u64 {
        0
    }

    fn system(&mut self) -> Option<&mut dyn SystemBus> {
        None
    }
}

impl Default for Interpreter {
    fn default() -> Self {
        Self {
            cpu: Cpu::default(),
            stubs: StubCache::default(),
            data: Data(Box::new([0; DATA_BYTES])),
            decoded: ([0; CODE_BYTES], Vec::new()),
        }
    }
}

impl Interpreter {
    fn decode(&mut self, case: &Case) {
        if self.decoded.0 != case.bytes || self.decoded.1.is_empty() {
            let decoder = Decoder::with_ip(64, case.code(), CODE, DecoderOptions::NONE);
            self.decoded = (case.bytes, decoder.into_iter().collect());
        }
    }

    /// One instruction with all its iterations.
    fn instruction(&mut self, index: usize) -> Ending {
        let insn = &self.decoded.1[index];
        for _ in 0..ITERATIONS_MAX {
            let flow = step(&mut self.cpu, insn, &mut self.stubs, &mut self.data);
            return match flow {
                Ok(Flow::Repeat) => continue,
                Ok(Flow::Next) => Ending::At(insn.next_ip()),
                Ok(Flow::Jump) => Ending::At(self.cpu.rip),
                Ok(_) => Ending::Unsupported,
                Err(fault) => ending_of(fault),
            };
        }
        Ending::Unsupported
    }
}

impl Subject for Interpreter {
    fn execute(&mut self, case: &Case, result: &mut CaseResult) {
        self.decode(case);
        for (offset, window) in WINDOWS.iter().zip(case.memory.iter()) {
            self.data.0[*offset..][..WINDOW_BYTES].copy_from_slice(window);
        }
        case.load(&mut self.cpu);
        for index in 0..self.decoded.1.len() {
            result.ending = self.instruction(index);
            if result.ending != Ending::At(self.decoded.1[index].next_ip()) {
                break;
            }
        }
        result.store(&self.cpu, case.uses_vectors);
        for (offset, window) in WINDOWS.iter().zip(result.memory.iter_mut()) {
            window.copy_from_slice(&self.data.0[*offset..][..WINDOW_BYTES]);
        }
    }
}

/// A fault as an ending.
pub(super) fn ending_of(fault: Fault) -> Ending {
    match fault {
        Fault::Memory(fault) => Ending::Fault {
            vector: 14,
            addr: fault.addr.0,
            is_write: fault.access == Access::Write,
        },
        Fault::Exception { vector, .. } => Ending::Fault {
            vector: vector as u8,
            addr: 0,
            is_write: false,
        },
    }
}
