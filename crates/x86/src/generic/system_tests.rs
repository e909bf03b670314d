//! Privileged instructions on a flat supervisor memory.

use std::collections::BTreeMap;

use iced_x86::{Decoder, DecoderOptions};
use raddle_mem::{Access, GuestAddr, PageFault};

use super::interrupt::{Origin, Shutdown, deliver, raise};
use super::*;
use crate::cpu::Reg;
use crate::exit::{MemoryFault, Vector};
use crate::flags::rflags;
use crate::system::{DescriptorTable, Segment, SystemState, cr0, cr4, efer};

const GDT: u64 = 0x1000;
const IDT: u64 = 0x2000;
const TSS: u64 = 0x4000;
const SIZE: u64 = 0x2_0000;

/// Memory from zero to `SIZE`, ports and foreign registers.
struct Machine {
    bytes: Vec<u8>,
    ports: BTreeMap<u16, u32>,
    flushes: Vec<Option<u64>>,
}

impl Machine {
    fn new() -> Self {
        Self {
            bytes: vec![0; usize::try_from(SIZE).unwrap()],
            ports: BTreeMap::new(),
            flushes: Vec::new(),
        }
    }

    fn put(&mut self, addr: u64, bytes: &[u8]) {
        let start = usize::try_from(addr).unwrap();
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
    }

    fn word(&self, addr: u64) -> u64 {
        let start = usize::try_from(addr).unwrap();
        u64::from_le_bytes(self.bytes[start..start + 8].try_into().unwrap())
    }

    fn range(
        &self,
        addr: u64,
        len: usize,
        access: Access,
    ) -> Result<std::ops::Range<usize>, Fault> {
        let end = addr.wrapping_add(len as u64);
        if end > SIZE || end < addr {
            return Err(Fault::Memory(MemoryFault {
                addr: GuestAddr(addr),
                access,
                cause: PageFault::NotMapped,
            }));
        }
        let start = usize::try_from(addr).unwrap();
        Ok(start..start + len)
    }

    /// An interrupt gate to `offset` in segment 8.
    fn gate(&mut self, vector: u64, offset: u64, access: u64, stack: u64) {
        let low = (offset & 0xFFFF)
            | 0x8 << 16
            | stack << 32
            | access << 40
            | (offset >> 16 & 0xFFFF) << 48;
        self.put(IDT + 16 * vector, &low.to_le_bytes());
        self.put(IDT + 16 * vector + 8, &(offset >> 32).to_le_bytes());
    }
}

impl Bus for Machine {
    fn read(&mut self, addr: u64, into: &mut [u8], _: AccessKind) -> Result<(), Fault> {
        self.read_supervisor(addr, into)
    }

    fn write(&mut self, addr: u64, bytes: &[u8], _: AccessKind) -> Result<(), Fault> {
        self.write_supervisor(addr, bytes)
    }

    fn tsc(&mut self) -> u64 {
        1000
    }

    fn system(&mut self) -> Option<&mut dyn SystemBus> {
        Some(self)
    }
}

impl SystemBus for Machine {
    fn read_supervisor(&mut self, addr: u64, into: &mut [u8]) -> Result<(), Fault> {
        let range = self.range(addr, into.len(), Access::Read)?;
        into.copy_from_slice(&self.bytes[range]);
        Ok(())
    }

    fn write_supervisor(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Fault> {
        let range = self.range(addr, bytes.len(), Access::Write)?;
        self.bytes[range].copy_from_slice(bytes);
        Ok(())
    }

    fn port_in(&mut self, port: u16, bytes: u8) -> u32 {
        u32::from(port) << 8 | u32::from(bytes)
    }

    fn port_out(&mut self, port: u16, value: u32, _: u8) {
        self.ports.insert(port, value);
    }

    fn read_msr(&mut self, number: u32) -> Option<u64> {
        (number == 0x6E0).then_some(0x1234_5678_9ABC_DEF0)
    }

    fn write_msr(&mut self, number: u32, _: u64) -> bool {
        number == 0x6E0
    }

    fn flush_page(&mut self, addr: u64) {
        self.flushes.push(Some(addr));
    }

    fn flush_translations(&mut self, _: bool) {
        self.flushes.push(None);
    }
}

/// A 64-bit kernel with a GDT (8 code, 10h data, 18h 32-bit user code, 20h user data, 28h user code, 30h TSS).
fn kernel() -> (Cpu, Machine) {
    let mut machine = Machine::new();
    let tss = (TSS & 0xFF_FFFF) << 16 | 0x67 | 0x89 << 40;
    let descriptors = [
        0,
        0x00AF_9B00_0000_FFFF,
        0x00CF_9300_0000_FFFF,
        0x00CF_FB00_0000_FFFF,
        0x00CF_F300_0000_FFFF,
        0x00AF_FB00_0000_FFFF,
        tss,
        0,
        // 40h: 32-bit kernel code.
        0x00CF_9B00_0000_FFFF,
    ];
    for (index, descriptor) in (0..).zip(descriptors) {
        machine.put(GDT + 8 * index, &u64::to_le_bytes(descriptor));
    }
    let mut cpu = Cpu::default();
    cpu.system.cpl = 0;
    cpu.system.gdtr = DescriptorTable {
        base: GDT,
        limit: 0x47,
    };
    cpu.system.idtr = DescriptorTable {
        base: IDT,
        limit: 0xFFF,
    };
    cpu.system.tr = Segment {
        selector: 0x30,
        base: TSS,
        limit: 0x67,
        attributes: 0x8B,
    };
    let code = Segment {
        selector: 8,
        base: 0,
        limit: u32::MAX,
        attributes: 0xA09B,
    };
    cpu.system.segments[1] = code;
    cpu.system.segments[2] = Segment {
        selector: 0x10,
        attributes: 0xC093,
        ..code
    };
    cpu.set_reg(Reg::Rsp, 0x8008);
    machine.put(TSS + 4, &0x9000_u64.to_le_bytes());
    machine.put(TSS + 36, &0xA000_u64.to_le_bytes());
    (cpu, machine)
}

fn user() -> (Cpu, Machine) {
    let (mut cpu, machine) = kernel();
    cpu.system.cpl = 3;
    cpu.system.segments[1] = Segment {
        selector: 0x2B,
        base: 0,
        limit: u32::MAX,
        attributes: 0xA0FB,
    };
    cpu.system.segments[2].selector = 0x23;
    cpu.system.segments[2].attributes = 0xC0F3;
    (cpu, machine)
}

fn execute(cpu: &mut Cpu, machine: &mut Machine, code: &[u8]) -> Step {
    let bits = cpu.system.code_bits();
    let mut decoder = Decoder::with_ip(bits, code, cpu.rip, DecoderOptions::NONE);
    let instruction = decoder.decode();
    let flow = step(cpu, &instruction, &mut StubCache::default(), machine);
    if flow == Ok(Flow::Next) {
        cpu.rip = instruction.next_ip();
    }
    flow
}

#[test]
fn an_interrupt_from_user_mode_switches_to_the_stack_of_the_task() {
    let (mut cpu, mut machine) = user();
    machine.gate(0x20, 0xFFFF_FFFF_8000_0010, 0x8E, 0);
    cpu.rip = 0x40_0000;
    deliver(&mut cpu, 0x20, None, Origin::Hardware, &mut machine).unwrap();
    assert_eq!(cpu.rip, 0xFFFF_FFFF_8000_0010);
    assert_eq!(cpu.system.cpl, 0);
    assert_eq!(cpu.reg(Reg::Rsp), 0x9000 - 40);
    let frame: Vec<u64> = (0..5).map(|i| machine.word(0x9000 - 40 + 8 * i)).collect();
    assert_eq!(frame, [0x40_0000, 0x2B, 0x202, 0x8008, 0x23]);
    assert_eq!(cpu.rflags() & rflags::IF, 0);
    assert_eq!(
        cpu.system.segments[2].selector, 0,
        "the stack segment is null"
    );
    // iretq
    assert_eq!(
        execute(&mut cpu, &mut machine, &[0x48, 0xCF]),
        Ok(Flow::Jump)
    );
    assert_eq!((cpu.rip, cpu.system.cpl), (0x40_0000, 3));
    assert_eq!(cpu.reg(Reg::Rsp), 0x8008);
    assert_eq!(cpu.rflags(), 0x202);
    assert_eq!(cpu.system.segments[2].selector, 0x23);
}

#[test]
fn an_exception_in_the_kernel_aligns_the_stack_and_pushes_its_code() {
    let (mut cpu, mut machine) = kernel();
    machine.gate(14, 0x5000, 0x8E, 0);
    let fault = Fault::Memory(MemoryFault {
        addr: GuestAddr(0xDEAD_0000),
        access: Access::Write,
        cause: PageFault::Protection,
    });
    raise(&mut cpu, fault, &mut machine).unwrap();
    assert_eq!(cpu.system.cr2, 0xDEAD_0000);
    assert_eq!(cpu.reg(Reg::Rsp), 0x8000 - 48);
    assert_eq!(machine.word(0x8000 - 48), 3, "present and write");
    assert_eq!(
        machine.word(0x8000 - 16),
        0x8008,
        "the old stack pointer, not aligned"
    );
}

#[test]
fn a_gate_with_a_stack_table_entry_uses_it() {
    let (mut cpu, mut machine) = kernel();
    machine.gate(2, 0x5000, 0x8E, 1);
    deliver(&mut cpu, 2, None, Origin::Hardware, &mut machine).unwrap();
    assert_eq!(cpu.reg(Reg::Rsp), 0xA000 - 40);
}

#[test]
fn a_fault_without_handler_becomes_a_double_fault_and_then_a_shutdown() {
    let (mut cpu, mut machine) = kernel();
    machine.gate(8, 0x6000, 0x8E, 0);
    raise(&mut cpu, fault::protection(0), &mut machine).unwrap();
    assert_eq!(cpu.rip, 0x6000);
    assert_eq!(machine.word(cpu.reg(Reg::Rsp)), 0, "its error code is zero");
    let (mut cpu, mut machine) = kernel();
    assert_eq!(
        raise(&mut cpu, fault::protection(0), &mut machine),
        Err(Shutdown)
    );
}

#[test]
fn a_benign_fault_whose_delivery_faults_is_replaced() {
    let (mut cpu, mut machine) = kernel();
    machine.gate(13, 0x7000, 0x8E, 0);
    // #UD has no gate: #GP(vector 6 in the table, external).
    raise(&mut cpu, fault::undefined(), &mut machine).unwrap();
    assert_eq!(cpu.rip, 0x7000);
    assert_eq!(machine.word(cpu.reg(Reg::Rsp)), 6 << 3 | 2 | 1);
}

#[test]
fn int_checks_the_privilege_of_its_gate() {
    let (mut cpu, mut machine) = user();
    machine.gate(0x80, 0x5000, 0xEE, 0);
    machine.gate(0x81, 0x5000, 0x8E, 0);
    assert_eq!(
        execute(&mut cpu, &mut machine, &[0xCD, 0x81]),
        Err(fault::protection(0x81 << 3 | 2))
    );
    cpu.rip = 0x100;
    assert_eq!(
        execute(&mut cpu, &mut machine, &[0xCD, 0x80]),
        Ok(Flow::Jump)
    );
    assert_eq!(machine.word(cpu.reg(Reg::Rsp)), 0x102);
}

#[test]
fn syscall_and_sysret_are_inverse() {
    let (mut cpu, mut machine) = user();
    cpu.system.star = 0x001B_0008_0000_0000;
    cpu.system.lstar = 0xFFFF_FFFF_8100_0000;
    cpu.system.sfmask = rflags::IF | rflags::DF;
    cpu.rip = 0x40_0000;
    assert_eq!(
        execute(&mut cpu, &mut machine, &[0x0F, 0x05]),
        Ok(Flow::Jump)
    );
    assert_eq!((cpu.rip, cpu.system.cpl), (0xFFFF_FFFF_8100_0000, 0));
    assert_eq!(cpu.rflags() & rflags::IF, 0);
    assert_eq!(cpu.system.segments[1].selector, 8);
    assert_eq!(
        execute(&mut cpu, &mut machine, &[0x48, 0x0F, 0x07]),
        Ok(Flow::Jump)
    );
    assert_eq!((cpu.rip, cpu.system.cpl), (0x40_0002, 3));
    assert_eq!(cpu.rflags(), 0x202);
    assert_eq!(cpu.system.segments[1].selector, 0x2B);
    assert_eq!(cpu.system.segments[2].selector, 0x23);
}

#[test]
fn privileged_instructions_fault_in_user_mode() {
    let privileged: [&[u8]; 9] = [
        &[0xF4],
        &[0xFA],
        &[0xE4, 0x60],
        &[0x0F, 0x32],
        &[0x0F, 0x01, 0x10],
        &[0x0F, 0x20, 0xC0],
        &[0x0F, 0x01, 0xF8],
        &[0x0F, 0x06],
        &[0x0F, 0x09],
    ];
    for code in privileged {
        let (mut cpu, mut machine) = user();
        assert_eq!(
            execute(&mut cpu, &mut machine, code),
            Err(fault::protection(0)),
            "{code:x?}"
        );
    }
}

#[test]
fn model_specific_registers_of_the_core_and_of_others() {
    let (mut cpu, mut machine) = kernel();
    cpu.set_reg(Reg::Rcx, 0xC000_0102);
    cpu.set_reg(Reg::Rax, 0x1234);
    cpu.set_reg(Reg::Rdx, 0xFFFF_8000);
    execute(&mut cpu, &mut machine, &[0x0F, 0x30]).unwrap();
    execute(&mut cpu, &mut machine, &[0x0F, 0x01, 0xF8]).unwrap();
    assert_eq!(cpu.gs_base(), 0xFFFF_8000_0000_1234);
    cpu.set_reg(Reg::Rcx, 0x6E0);
    execute(&mut cpu, &mut machine, &[0x0F, 0x32]).unwrap();
    assert_eq!(cpu.reg(Reg::Rax), 0x9ABC_DEF0);
    assert_eq!(cpu.reg(Reg::Rdx), 0x1234_5678);
    cpu.set_reg(Reg::Rcx, 0x9999);
    assert_eq!(
        execute(&mut cpu, &mut machine, &[0x0F, 0x32]),
        Err(fault::protection(0))
    );
}

#[test]
fn ports_and_interrupt_shadow() {
    let (mut cpu, mut machine) = kernel();
    cpu.set_reg(Reg::Rdx, 0x3F8);
    cpu.set_reg(Reg::Rax, 0x1141);
    execute(&mut cpu, &mut machine, &[0xEE]).unwrap();
    assert_eq!(machine.ports[&0x3F8], 0x41);
    execute(&mut cpu, &mut machine, &[0xED]).unwrap();
    assert_eq!(cpu.reg(Reg::Rax), 0x3_F804);
    execute(&mut cpu, &mut machine, &[0xFA]).unwrap();
    assert_eq!(cpu.rflags() & rflags::IF, 0);
    execute(&mut cpu, &mut machine, &[0xFB]).unwrap();
    assert!(cpu.system.interrupt_shadow);
    assert_eq!(execute(&mut cpu, &mut machine, &[0xF4]), Ok(Flow::Halt));
    assert!(cpu.system.halted);
}

#[test]
fn task_register_and_segments_come_from_the_table() {
    let (mut cpu, mut machine) = kernel();
    cpu.set_reg(Reg::Rax, 0x30);
    // ltr ax
    execute(&mut cpu, &mut machine, &[0x0F, 0x00, 0xD8]).unwrap();
    assert_eq!(cpu.system.tr.base, TSS);
    assert_eq!(
        machine.bytes[usize::try_from(GDT + 0x35).unwrap()],
        0x8B,
        "busy"
    );
    assert_eq!(
        execute(&mut cpu, &mut machine, &[0x0F, 0x00, 0xD8]),
        Err(fault::protection(0x30)),
        "a busy task cannot be loaded again"
    );
    cpu.set_reg(Reg::Rax, 0x20 | 3);
    // mov ds, eax
    execute(&mut cpu, &mut machine, &[0x8E, 0xD8]).unwrap();
    assert_eq!(cpu.system.segments[3].attributes, 0xC0F3);
    cpu.set_reg(Reg::Rax, 0x48);
    assert_eq!(
        execute(&mut cpu, &mut machine, &[0x8E, 0xD8]),
        Err(fault::protection(0x48)),
        "beyond the limit"
    );
}

/// The way of a secondary processor: real mode, protected mode, compatibility mode, 64-bit mode.
#[test]
fn a_secondary_processor_reaches_long_mode() {
    let (kernel_cpu, mut machine) = kernel();
    let mut cpu = Cpu::default();
    *cpu.system = SystemState::startup(8);
    cpu.set_rflags(0);
    assert_eq!(
        (cpu.system.code_bits(), cpu.system.code_base()),
        (16, 0x8000)
    );
    // The operand of lgdt: limit and base.
    machine.put(0x8F00, &[0x47, 0, 0, 0x10, 0, 0]);
    // mov ax, cs; mov ds, ax; lgdt [0xf00]
    execute(&mut cpu, &mut machine, &[0x8C, 0xC8]).unwrap();
    execute(&mut cpu, &mut machine, &[0x8E, 0xD8]).unwrap();
    assert_eq!(cpu.system.segments[3].base, 0x8000);
    execute(
        &mut cpu,
        &mut machine,
        &[0x66, 0x0F, 0x01, 0x16, 0x00, 0x0F],
    )
    .unwrap();
    assert_eq!(cpu.system.gdtr, kernel_cpu.system.gdtr);
    // mov eax, cr0 with PE set; jump to 32-bit code
    cpu.set_reg(Reg::Rax, cr0::PE);
    execute(&mut cpu, &mut machine, &[0x0F, 0x22, 0xC0]).unwrap();
    let far = [0x66, 0xEA, 0x00, 0x90, 0x00, 0x00, 0x40, 0x00];
    assert_eq!(execute(&mut cpu, &mut machine, &far), Ok(Flow::Jump));
    assert_eq!((cpu.system.code_bits(), cpu.rip), (32, 0x9000));
    // mov cr4, eax with PAE; wrmsr EFER.LME; mov cr0, eax with PG
    cpu.set_reg(Reg::Rax, cr4::PAE);
    execute(&mut cpu, &mut machine, &[0x0F, 0x22, 0xE0]).unwrap();
    cpu.set_reg(Reg::Rcx, 0xC000_0080);
    cpu.set_reg(Reg::Rax, efer::LME);
    cpu.set_reg(Reg::Rdx, 0);
    execute(&mut cpu, &mut machine, &[0x0F, 0x30]).unwrap();
    cpu.set_reg(Reg::Rax, cr0::PE | cr0::PG);
    execute(&mut cpu, &mut machine, &[0x0F, 0x22, 0xC0]).unwrap();
    assert!(cpu.system.is_long_mode());
    assert_eq!(
        cpu.system.code_bits(),
        32,
        "compatibility mode until the jump"
    );
    assert!(!machine.flushes.is_empty());
    let far = [0xEA, 0x00, 0x00, 0x01, 0x00, 0x08, 0x00];
    assert_eq!(execute(&mut cpu, &mut machine, &far), Ok(Flow::Jump));
    assert_eq!((cpu.system.code_bits(), cpu.rip), (64, 0x1_0000));
}

#[test]
fn sixteen_bit_calls_and_stacks_wrap_at_their_width() {
    let mut machine = Machine::new();
    let mut cpu = Cpu::default();
    *cpu.system = SystemState::startup(1);
    cpu.set_reg(Reg::Rsp, 0xABCD_0000_0000_0000);
    cpu.rip = 0x10;
    // callw +0x20
    execute(&mut cpu, &mut machine, &[0xE8, 0x20, 0x00]).unwrap();
    assert_eq!(cpu.rip, 0x33);
    assert_eq!(cpu.reg(Reg::Rsp), 0xABCD_0000_0000_FFFE);
    assert_eq!(machine.word(0xFFFE) & 0xFFFF, 0x13);
    // retw
    execute(&mut cpu, &mut machine, &[0xC3]).unwrap();
    assert_eq!((cpu.rip, cpu.reg(Reg::Rsp)), (0x13, 0xABCD_0000_0000_0000));
}

#[test]
fn control_registers_refuse_contradictions() {
    let (mut cpu, mut machine) = kernel();
    cpu.set_reg(Reg::Rax, cr0::PG);
    assert_eq!(
        execute(&mut cpu, &mut machine, &[0x0F, 0x22, 0xC0]),
        Err(fault::protection(0)),
        "paging without protection"
    );
    cpu.set_reg(Reg::Rax, 1 << 20);
    assert_eq!(
        execute(&mut cpu, &mut machine, &[0x0F, 0x22, 0xE0]),
        Err(fault::protection(0)),
        "SMEP is not offered"
    );
    // invlpg [rax]
    execute(&mut cpu, &mut machine, &[0x0F, 0x01, 0x38]).unwrap();
    assert_eq!(machine.flushes, [Some(1 << 20)]);
}

#[test]
fn x87_is_unavailable_while_the_task_switched_flag_is_set() {
    let (mut cpu, mut machine) = kernel();
    cpu.system.cr0 |= cr0::TS;
    let expected = Err(Fault::Exception {
        vector: Vector::DeviceNotAvailable,
        error_code: 0,
    });
    assert_eq!(execute(&mut cpu, &mut machine, &[0xD9, 0xE8]), expected);
    assert_eq!(
        execute(&mut cpu, &mut machine, &[0x0F, 0x28, 0xC1]),
        expected
    );
    execute(&mut cpu, &mut machine, &[0x0F, 0x06]).unwrap();
    assert_eq!(
        execute(&mut cpu, &mut machine, &[0xD9, 0xE8]),
        Ok(Flow::Next)
    );
}
