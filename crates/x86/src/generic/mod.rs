//! placeholder
use crate::cpu::Cpu;
use crate::exit::Fault;
use crate::stub::StubCache;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessKind {
    Read,
    Write,
    UpdateRead { atomic: bool },
    UpdateWrite { atomic: bool },
}

pub(crate) trait SystemBus {}

pub(crate) trait Bus {
    fn read(&mut self, addr: u64, into: &mut [u8], kind: AccessKind) -> Result<(), Fault>;
    fn write(&mut self, addr: u64, bytes: &[u8], kind: AccessKind) -> Result<(), Fault>;
    fn tsc(&mut self) -> u64;
    fn system(&mut self) -> Option<&mut dyn SystemBus>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    Jump,
    Repeat,
    Syscall,
    Interrupt(u8),
    Halt,
    Unsupported,
}

pub(crate) fn step(
    _cpu: &mut Cpu,
    _instruction: &iced_x86::Instruction,
    _stubs: &mut StubCache,
    _bus: &mut impl Bus,
) -> Result<Flow, Fault> {
    Ok(Flow::Unsupported)
}
