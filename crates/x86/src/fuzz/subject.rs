//! The machine under test.

use iced_x86::{Decoder, DecoderOptions, Instruction};
use raddle_mem::{Access, GuestAddr, PageFault};

use super::case::{Case, CaseResult, Ending};
use super::layout::{DATA, DATA_BYTES, WINDOW_BYTES, WINDOWS};
use crate::cpu::Cpu;
use crate::exit::{Fault, MemoryFault};
use crate::generic::{AccessKind, Bus, Flow, SystemBus, step};
use crate::log::Record;
use crate::op::LogKind;
use crate::stub::StubCache;

/// More steps than any case needs, with all iterations.
const STEPS_MAX: usize = 1000;

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
    /// The code that was decoded last, and its instructions.
    decoded: (u64, Vec<u8>, Vec<Instruction>),
}

/// The two data pages, and what was done to them.
#[derive(Debug)]
struct Data {
    bytes: Box<[u8; DATA_BYTES]>,
    /// Accesses of the case, if they are wanted.
    records: Option<Vec<Record>>,
    /// Step and instruction that the next access belongs to.
    step: u64,
    pc: u64,
}

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

impl Data {
    /// A step that faults has had no access.
    fn forget_step(&mut self) {
        let step = self.step;
        if let Some(records) = &mut self.records {
            records.retain(|record| record.step != step);
        }
    }

    /// Notes an access as the engine's log would show it.
    fn record(&mut self, addr: u64, bytes: &[u8], kind: AccessKind) {
        let Some(records) = &mut self.records else {
            return;
        };
        let kind = match kind {
            AccessKind::Read => LogKind::Read,
            AccessKind::Write => LogKind::Write,
            AccessKind::UpdateRead { atomic: false } => LogKind::Update,
            AccessKind::UpdateRead { atomic: true } => LogKind::AtomicUpdate,
            AccessKind::UpdateWrite { .. } | AccessKind::Probe => return,
        };
        let mut word = [0; 8];
        let count = bytes.len().min(8);
        word[..count].copy_from_slice(&bytes[..count]);
        records.push(Record {
            step: self.step,
            pc: self.pc,
            addr,
            size: u16::try_from(bytes.len().next_power_of_two()).unwrap_or(u16::MAX),
            kind,
            value: Some(u64::from_le_bytes(word)),
        });
    }
}

impl Bus for Data {
    fn read(&mut self, addr: u64, into: &mut [u8], kind: AccessKind) -> Result<(), Fault> {
        let access = match kind {
            AccessKind::Read => Access::Read,
            _ => Access::Write,
        };
        let range = self.range(addr, into.len(), access)?;
        into.copy_from_slice(&self.bytes[range]);
        self.record(addr, into, kind);
        Ok(())
    }

    fn write(&mut self, addr: u64, bytes: &[u8], kind: AccessKind) -> Result<(), Fault> {
        let range = self.range(addr, bytes.len(), Access::Write)?;
        self.bytes[range].copy_from_slice(bytes);
        self.record(addr, bytes, kind);
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
            data: Data {
                bytes: Box::new([0; DATA_BYTES]),
                records: None,
                step: 0,
                pc: 0,
            },
            decoded: (0, Vec::new(), Vec::new()),
        }
    }
}

impl Interpreter {
    fn decode(&mut self, case: &Case) {
        if self.decoded.0 != case.entry || self.decoded.1 != case.code {
            let decoder = Decoder::with_ip(64, &case.code, case.entry, DecoderOptions::NONE);
            self.decoded = (case.entry, case.code.clone(), decoder.into_iter().collect());
        }
    }

    /// Steps until control leaves the code.
    fn run(&mut self) -> Ending {
        for step_number in 0..STEPS_MAX {
            let instructions = &self.decoded.2;
            let rip = self.cpu.rip;
            let Ok(index) = instructions.binary_search_by_key(&rip, Instruction::ip) else {
                return Ending::At(rip);
            };
            let insn = &instructions[index];
            self.data.step = step_number as u64;
            self.data.pc = rip;
            match step(&mut self.cpu, insn, &mut self.stubs, &mut self.data) {
                Ok(Flow::Repeat | Flow::Jump) => {}
                Ok(Flow::Next) => self.cpu.rip = insn.next_ip(),
                Ok(_) => return Ending::Unsupported,
                Err(fault) => {
                    self.data.forget_step();
                    return ending_of(fault);
                }
            }
        }
        Ending::Unsupported
    }

    /// Notes the accesses of each case from now on.
    pub(super) fn keep_records(&mut self) {
        self.data.records = Some(Vec::new());
    }

    /// The accesses of the last case.
    pub(super) fn records(&self) -> &[Record] {
        self.data.records.as_deref().unwrap_or_default()
    }
}

impl Subject for Interpreter {
    fn execute(&mut self, case: &Case, result: &mut CaseResult) {
        self.decode(case);
        for (offset, window) in WINDOWS.iter().zip(case.memory.iter()) {
            self.data.bytes[*offset..][..WINDOW_BYTES].copy_from_slice(window);
        }
        case.load(&mut self.cpu);
        if let Some(records) = &mut self.data.records {
            records.clear();
        }
        result.ending = self.run();
        result.store(&self.cpu, case.uses_vectors);
        for (offset, window) in WINDOWS.iter().zip(result.memory.iter_mut()) {
            window.copy_from_slice(&self.data.bytes[*offset..][..WINDOW_BYTES]);
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
