//! What one instruction does: where it goes, which registers and memory it touches, what is special about it.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess,
    UsedMemory,
};
use raddle_stdx::width::as_i64;
use raddle_symbols::LinkAddr;

use crate::register::{Register, RegisterSet};

/// A decoded instruction as plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    pub address: LinkAddr,
    pub len: u8,
    pub flow: Flow,
    pub special: Option<Special>,
    /// What it does to memory in one indivisible step: LOCK forms and XCHG with memory.
    pub atomic: Option<Atomic>,
    pub accesses: Vec<Access>,
    /// Whether its result is its operand, at most in another width.
    pub is_copy: bool,
    /// The address that a LEA or a memory operand relative to the instruction pointer names.
    pub fixed_operand: Option<LinkAddr>,
    pub reads: RegisterSet,
    /// Registers whose old value is gone afterwards.
    pub writes: RegisterSet,
    /// Registers of which a part or, depending on a condition, nothing is written.
    pub partial_writes: RegisterSet,
}

/// Where control goes after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Next,
    Jump(LinkAddr),
    Branch(LinkAddr),
    IndirectJump,
    Call(LinkAddr),
    IndirectCall,
    Return,
    /// SYSCALL, SYSENTER and INT with a number: control comes back.
    Syscall,
    /// UD2, HLT, INT3 and the like: control does not come back.
    Stop,
    /// The bytes are no instruction.
    Invalid,
}

/// Instructions that schedulers and detectors treat in their own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// A hint that this is a waiting loop.
    Pause,
    /// MFENCE, LFENCE, SFENCE and serialising instructions.
    Fence,
    /// Waits for an interrupt.
    Halt,
    /// RDTSC, RDTSCP, RDRAND, RDSEED: the result is not a function of the program's state.
    Nondeterministic,
    /// A string instruction with a repeat prefix: one access per iteration.
    Repeat,
}

/// Indivisible operations on memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Atomic {
    /// XCHG.
    Exchange,
    /// CMPXCHG, CMPXCHG8B, CMPXCHG16B.
    CompareExchange,
    /// BTS, BTR, BTC.
    BitTest,
    /// ADD, XADD, OR and the other arithmetic forms.
    Update,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    Read,
    Write,
    ReadWrite,
}

impl AccessKind {
    pub fn reads(self) -> bool {
        self != Self::Write
    }

    pub fn writes(self) -> bool {
        self != Self::Read
    }
}

/// A memory operand, explicit or implied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    pub kind: AccessKind,
    pub bytes: u32,
    pub base: Option<Register>,
    pub index: Option<Register>,
    pub scale: u32,
    pub displacement: i64,
    /// FS or GS: thread-local data on Linux.
    pub is_thread_local: bool,
}

impl Access {
    /// The address itself, if no register takes part in it.
    pub fn fixed_address(&self) -> Option<LinkAddr> {
        let is_fixed = self.base.is_none() && self.index.is_none() && !self.is_thread_local;
        is_fixed.then(|| LinkAddr(self.displacement.cast_unsigned()))
    }

    /// The registers that take part in the address.
    pub fn address_registers(&self) -> RegisterSet {
        self.base.into_iter().chain(self.index).collect()
    }

    /// Whether both name the same bytes when their registers hold the same values.
    pub fn is_same_place(&self, other: &Self) -> bool {
        (
            self.base,
            self.index,
            self.displacement,
            self.is_thread_local,
        ) == (
            other.base,
            other.index,
            other.displacement,
            other.is_thread_local,
        ) && (self.index.is_none() || self.scale == other.scale)
    }
}

impl Instruction {
    /// The address of the instruction after this one.
    pub fn next(&self) -> LinkAddr {
        self.address.plus(self.len.into())
    }

    pub fn reads_memory(&self) -> bool {
        self.accesses.iter().any(|access| access.kind.reads())
    }

    pub fn writes_memory(&self) -> bool {
        self.accesses.iter().any(|access| access.kind.writes())
    }

    pub fn is_atomic(&self) -> bool {
        self.atomic.is_some()
    }

    pub fn is_call(&self) -> bool {
        matches!(self.flow, Flow::Call(_) | Flow::IndirectCall)
    }

    /// Whether it may be followed by something else than the next instruction.
    pub fn ends_block(&self) -> bool {
        matches!(
            self.flow,
            Flow::Jump(_)
                | Flow::Branch(_)
                | Flow::IndirectJump
                | Flow::Return
                | Flow::Stop
                | Flow::Invalid
        )
    }
}

/// Decodes instructions one by one; keeps the tables that the decoder needs.
#[derive(Debug)]
pub struct Disassembler {
    facts: InstructionInfoFactory,
}

impl Default for Disassembler {
    fn default() -> Self {
        Self::new()
    }
}

impl Disassembler {
    pub fn new() -> Self {
        Self {
            facts: InstructionInfoFactory::new(),
        }
    }

    /// The instruction at the start of `bytes`; of no bytes, an invalid one of length zero.
    pub fn decode(&mut self, address: LinkAddr, bytes: &[u8]) -> Instruction {
        let mut decoder = Decoder::with_ip(64, bytes, address.0, DecoderOptions::NONE);
        let raw = decoder.decode();
        let mut instruction = Instruction {
            address,
            len: u8::try_from(raw.len()).unwrap_or(u8::MAX),
            flow: flow(&raw),
            special: special(&raw),
            atomic: None,
            accesses: Vec::new(),
            is_copy: is_copy(&raw),
            fixed_operand: raw
                .is_ip_rel_memory_operand()
                .then(|| LinkAddr(raw.ip_rel_memory_address())),
            reads: RegisterSet::EMPTY,
            writes: RegisterSet::EMPTY,
            partial_writes: RegisterSet::EMPTY,
        };
        if instruction.flow == Flow::Invalid {
            return instruction;
        }
        let info = self.facts.info(&raw);
        instruction.accesses = info.used_memory().iter().filter_map(access).collect();
        for used in info.used_registers() {
            if let Some(register) = Register::of(used.register()) {
                // Writing 8 or 16 bits keeps the rest; writing 32 bits clears it, which the decoder reports as 64.
                let is_part = used.register().is_gpr() && used.register().size() < 4;
                instruction.note_register(register, used.access(), is_part);
            }
        }
        instruction.note_flags(&raw);
        let is_update = |access: &Access| access.kind == AccessKind::ReadWrite;
        if instruction.accesses.iter().any(is_update) {
            instruction.atomic = atomic(&raw);
        }
        instruction
    }
}

impl Instruction {
    fn note_register(&mut self, register: Register, access: OpAccess, is_part: bool) {
        let one = RegisterSet::one(register);
        match access {
            OpAccess::Read | OpAccess::CondRead => self.reads = self.reads.union(one),
            OpAccess::Write | OpAccess::ReadWrite => {
                if access == OpAccess::ReadWrite {
                    self.reads = self.reads.union(one);
                }
                if is_part {
                    self.partial_writes = self.partial_writes.union(one);
                } else {
                    self.writes = self.writes.union(one);
                }
            }
            OpAccess::CondWrite => self.partial_writes = self.partial_writes.union(one),
            OpAccess::ReadCondWrite => {
                self.reads = self.reads.union(one);
                self.partial_writes = self.partial_writes.union(one);
            }
            OpAccess::None | OpAccess::NoMemAccess => {}
        }
    }

    fn note_flags(&mut self, raw: &iced_x86::Instruction) {
        let flags = RegisterSet::one(Register::FLAGS);
        if raw.rflags_read() != 0 {
            self.reads = self.reads.union(flags);
        }
        if raw.rflags_modified() != 0 {
            self.writes = self.writes.union(flags);
        }
    }
}

fn flow(raw: &iced_x86::Instruction) -> Flow {
    if raw.is_invalid() {
        return Flow::Invalid;
    }
    let target = || LinkAddr(raw.near_branch_target());
    match raw.flow_control() {
        FlowControl::Next => match raw.mnemonic() {
            Mnemonic::Syscall | Mnemonic::Sysenter => Flow::Syscall,
            Mnemonic::Hlt => Flow::Stop,
            _ => Flow::Next,
        },
        FlowControl::UnconditionalBranch => Flow::Jump(target()),
        FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
            match raw.near_branch_target() {
                0 => Flow::Next,
                _ => Flow::Branch(target()),
            }
        }
        FlowControl::IndirectBranch => Flow::IndirectJump,
        FlowControl::Return => Flow::Return,
        FlowControl::Call if raw.mnemonic() == Mnemonic::Call => Flow::Call(target()),
        // The decoder counts SYSCALL as a call.
        FlowControl::Call => Flow::Syscall,
        FlowControl::IndirectCall => Flow::IndirectCall,
        FlowControl::Interrupt if raw.code() == Code::Int_imm8 => Flow::Syscall,
        FlowControl::Interrupt | FlowControl::Exception => Flow::Stop,
    }
}

fn is_copy(raw: &iced_x86::Instruction) -> bool {
    matches!(
        raw.mnemonic(),
        Mnemonic::Mov
            | Mnemonic::Movzx
            | Mnemonic::Movsx
            | Mnemonic::Movsxd
            | Mnemonic::Cbw
            | Mnemonic::Cwde
            | Mnemonic::Cdqe
    )
}

fn atomic(raw: &iced_x86::Instruction) -> Option<Atomic> {
    match raw.mnemonic() {
        Mnemonic::Xchg => Some(Atomic::Exchange),
        _ if !raw.has_lock_prefix() => None,
        Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b => {
            Some(Atomic::CompareExchange)
        }
        Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc => Some(Atomic::BitTest),
        _ => Some(Atomic::Update),
    }
}

fn special(raw: &iced_x86::Instruction) -> Option<Special> {
    match raw.mnemonic() {
        Mnemonic::Pause | Mnemonic::Tpause | Mnemonic::Umwait => Some(Special::Pause),
        Mnemonic::Mfence | Mnemonic::Lfence | Mnemonic::Sfence | Mnemonic::Serialize => {
            Some(Special::Fence)
        }
        Mnemonic::Hlt => Some(Special::Halt),
        Mnemonic::Rdtsc | Mnemonic::Rdtscp | Mnemonic::Rdrand | Mnemonic::Rdseed => {
            Some(Special::Nondeterministic)
        }
        _ if raw.is_string_instruction() && (raw.has_rep_prefix() || raw.has_repne_prefix()) => {
            Some(Special::Repeat)
        }
        _ => None,
    }
}

fn access(used: &UsedMemory) -> Option<Access> {
    let kind = match used.access() {
        OpAccess::Read | OpAccess::CondRead => AccessKind::Read,
        OpAccess::Write | OpAccess::CondWrite => AccessKind::Write,
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => AccessKind::ReadWrite,
        OpAccess::None | OpAccess::NoMemAccess => return None,
    };
    let segment = used.segment();
    Some(Access {
        kind,
        bytes: u32::try_from(used.memory_size().size()).unwrap_or(0),
        base: Register::of(used.base()),
        index: Register::of(used.index()),
        scale: used.scale(),
        displacement: as_i64(used.displacement()),
        is_thread_local: segment == iced_x86::Register::FS || segment == iced_x86::Register::GS,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> Instruction {
        Disassembler::new().decode(LinkAddr(0x1000), bytes)
    }

    fn names(set: RegisterSet) -> Vec<String> {
        set.iter().map(|register| register.to_string()).collect()
    }

    #[test]
    fn control_flow_is_told_apart() {
        let cases: &[(&[u8], Flow)] = &[
            (&[0x90], Flow::Next),
            (&[0xEB, 0x0E], Flow::Jump(LinkAddr(0x1010))),
            (&[0x74, 0x0E], Flow::Branch(LinkAddr(0x1010))),
            (&[0xE2, 0xFE], Flow::Branch(LinkAddr(0x1000))),
            (&[0xFF, 0xE0], Flow::IndirectJump),
            (&[0xE8, 0x0B, 0, 0, 0], Flow::Call(LinkAddr(0x1010))),
            (&[0xFF, 0xD0], Flow::IndirectCall),
            (&[0xC3], Flow::Return),
            (&[0x0F, 0x05], Flow::Syscall),
            (&[0xCD, 0x80], Flow::Syscall),
            (&[0xCC], Flow::Stop),
            (&[0x0F, 0x0B], Flow::Stop),
            (&[0xF4], Flow::Stop),
            (&[0x06], Flow::Invalid),
            (&[0xE8, 0], Flow::Invalid),
            (&[], Flow::Invalid),
        ];
        for (bytes, flow) in cases {
            assert_eq!(decode(bytes).flow, *flow, "{bytes:02x?}");
        }
    }

    #[test]
    fn atomic_instructions_are_those_with_lock_or_exchange() {
        // lock cmpxchg [rdi], ecx
        let exchange = decode(&[0xF0, 0x0F, 0xB1, 0x0F]);
        assert!(exchange.is_atomic() && exchange.reads_memory() && exchange.writes_memory());
        assert!(exchange.reads.contains(Register::RAX) && exchange.reads.contains(Register::RCX));
        let cases: &[(&[u8], Option<Atomic>)] = &[
            (&[0xF0, 0x0F, 0xB1, 0x0F], Some(Atomic::CompareExchange)),
            (
                &[0xF0, 0x48, 0x0F, 0xC7, 0x0F],
                Some(Atomic::CompareExchange),
            ), // lock cmpxchg16b [rdi]
            (&[0x87, 0x07], Some(Atomic::Exchange)), // xchg [rdi], eax
            (&[0xF0, 0x0F, 0xBA, 0x2F, 0x00], Some(Atomic::BitTest)), // lock bts [rdi], 0
            (&[0xF0, 0x0F, 0xC1, 0x07], Some(Atomic::Update)), // lock xadd [rdi], eax
            (&[0xF0, 0xFF, 0x07], Some(Atomic::Update)), // lock inc [rdi]
            (&[0x87, 0xD1], None),                   // xchg ecx, edx
            (&[0x0F, 0xB1, 0x0F], None),             // cmpxchg [rdi], ecx
            (&[0xFF, 0x07], None),                   // inc [rdi]
        ];
        for (bytes, atomic) in cases {
            assert_eq!(decode(bytes).atomic, *atomic, "{bytes:02x?}");
        }
    }

    #[test]
    fn memory_operands_say_their_parts() {
        // mov eax, [rip+0x10]
        let fixed = decode(&[0x8B, 0x05, 0x10, 0, 0, 0]);
        assert_eq!(fixed.accesses[0].fixed_address(), Some(LinkAddr(0x1016)));
        assert_eq!(
            (fixed.accesses[0].kind, fixed.accesses[0].bytes),
            (AccessKind::Read, 4)
        );
        // mov [rbp+rcx*4-8], rdx
        let frame = decode(&[0x48, 0x89, 0x54, 0x8D, 0xF8]).accesses[0];
        assert_eq!(
            (frame.kind, frame.bytes, frame.scale, frame.displacement),
            (AccessKind::Write, 8, 4, -8)
        );
        assert_eq!(
            (frame.base, frame.index),
            (Some(Register::RBP), Some(Register::RCX))
        );
        // mov rax, fs:[0x28]
        let local = decode(&[0x64, 0x48, 0x8B, 0x04, 0x25, 0x28, 0, 0, 0]).accesses[0];
        assert!(local.is_thread_local && local.fixed_address().is_none());
        // lea rax, [rdi+8]
        assert_eq!(decode(&[0x48, 0x8D, 0x47, 0x08]).accesses, []);
    }

    #[test]
    fn narrow_writes_keep_the_rest_and_wide_ones_do_not() {
        // mov eax, 1; mov al, 1; xor eax, eax; cmove eax, ecx
        assert_eq!(names(decode(&[0xB8, 1, 0, 0, 0]).writes), ["rax"]);
        let narrow = decode(&[0xB0, 1]);
        assert_eq!(
            (names(narrow.writes), names(narrow.partial_writes)),
            (vec![], vec!["rax".to_owned()])
        );
        let zero = decode(&[0x31, 0xC0]);
        assert_eq!(
            (names(zero.reads), names(zero.writes)),
            (vec![], vec!["rax".to_owned(), "flags".to_owned()])
        );
        let conditional = decode(&[0x0F, 0x44, 0xC1]);
        assert_eq!(names(conditional.reads), ["rax", "rcx", "flags"]);
    }

    #[test]
    fn special_instructions_are_marked() {
        assert_eq!(decode(&[0xF3, 0x90]).special, Some(Special::Pause));
        assert_eq!(decode(&[0x0F, 0xAE, 0xF0]).special, Some(Special::Fence));
        assert_eq!(
            decode(&[0x0F, 0x31]).special,
            Some(Special::Nondeterministic)
        );
        assert_eq!(decode(&[0xF3, 0xA4]).special, Some(Special::Repeat));
        assert_eq!(decode(&[0xA4]).special, None);
        assert_eq!(decode(&[0x90]).special, None);
    }
}
