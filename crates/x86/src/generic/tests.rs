//! A flat memory, a tiny program, and what it must leave behind.

use iced_x86::{Decoder, DecoderOptions};
use raddle_mem::{Access, GuestAddr, PageFault};

use super::*;
use crate::cpu::Reg;
use crate::exit::{MemoryFault, Vector};

const BASE: u64 = 0x1000;

/// Memory at `BASE`; everything else is unmapped.
struct Flat {
    bytes: Vec<u8>,
}

impl Flat {
    fn range(
        &self,
        addr: u64,
        len: usize,
        access: Access,
    ) -> Result<std::ops::Range<usize>, Fault> {
        let fault = |at: u64| {
            Fault::Memory(MemoryFault {
                addr: GuestAddr(at),
                access,
                cause: PageFault::NotMapped,
            })
        };
        let start = addr.checked_sub(BASE).ok_or_else(|| fault(addr))?;
        let start = usize::try_from(start).map_err(|_| fault(addr))?;
        let end = start + len;
        if end > self.bytes.len() {
            let first_bad = start.max(self.bytes.len());
            return Err(fault(BASE + first_bad as u64));
        }
        Ok(start..end)
    }
}

impl Bus for Flat {
    fn read(&mut self, addr: u64, into: &mut [u8], _: AccessKind) -> Result<(), Fault> {
        let range = self.range(addr, into.len(), Access::Read)?;
        into.copy_from_slice(&self.bytes[range]);
        Ok(())
    }

    fn write(&mut self, addr: u64, bytes: &[u8], _: AccessKind) -> Result<(), Fault> {
        let range = self.range(addr, bytes.len(), Access::Write)?;
        self.bytes[range].copy_from_slice(bytes);
        Ok(())
    }

    fn tsc(&mut self) -> u64 {
        7
    }

    fn system(&mut self) -> Option<&mut dyn SystemBus> {
        None
    }
}

fn run(code: &[u8], prepare: impl FnOnce(&mut Cpu)) -> (Cpu, Flat, Step) {
    let mut cpu = Cpu::default();
    let mut bus = Flat {
        bytes: (0..=255).cycle().take(8192).collect(),
    };
    prepare(&mut cpu);
    let mut stubs = StubCache::default();
    let mut decoder = Decoder::with_ip(64, code, 0x40_0000, DecoderOptions::NONE);
    let mut last = Ok(Flow::Next);
    while decoder.can_decode() {
        let instruction = decoder.decode();
        last = step(&mut cpu, &instruction, &mut stubs, &mut bus);
        if last != Ok(Flow::Next) {
            break;
        }
    }
    (cpu, bus, last)
}

#[test]
fn rep_stos_makes_one_iteration_per_step() {
    let (cpu, bus, last) = run(&[0xF3, 0xAA], |cpu| {
        cpu.set_reg(Reg::Rcx, 3);
        cpu.set_reg(Reg::Rdi, BASE);
        cpu.set_reg(Reg::Rax, 0xEE);
    });
    assert_eq!(last, Ok(Flow::Repeat));
    assert_eq!(cpu.reg(Reg::Rcx), 2);
    assert_eq!(cpu.reg(Reg::Rdi), BASE + 1);
    assert_eq!(bus.bytes[..2], [0xEE, 1]);
}

#[test]
fn a_store_fault_changes_no_register() {
    // pop qword [rsp+0x2000]
    let (cpu, _, last) = run(&[0x8F, 0x84, 0x24, 0, 0x20, 0, 0], |cpu| {
        cpu.set_reg(Reg::Rsp, BASE);
    });
    assert!(matches!(last, Err(Fault::Memory(fault)) if fault.addr == GuestAddr(BASE + 0x2008)));
    assert_eq!(cpu.reg(Reg::Rsp), BASE);
}

#[test]
fn packed_addition_runs_natively() {
    // paddd xmm9, [rax]
    let (cpu, _, last) = run(&[0x66, 0x44, 0x0F, 0xFE, 0x08], |cpu| {
        cpu.set_reg(Reg::Rax, BASE + 16);
        cpu.xmm[9] = [1; 16];
    });
    assert_eq!(last, Ok(Flow::Next));
    let expected: [u8; 16] = std::array::from_fn(|i| 17 + u8::try_from(i).unwrap());
    assert_eq!(cpu.xmm[9], expected);
}

#[test]
fn misaligned_sse_operand_is_a_protection_fault() {
    let (_, _, last) = run(&[0x66, 0x44, 0x0F, 0xFE, 0x08], |cpu| {
        cpu.set_reg(Reg::Rax, BASE + 8);
    });
    assert_eq!(last, Err(fault::protection(0)));
}

#[test]
fn x87_sum_of_two_loads() {
    // fld dword [rax]; fadd dword [rax]; fstp dword [rax+4]
    let code = [0xD9, 0x00, 0xD8, 0x00, 0xD9, 0x58, 0x04];
    let (cpu, bus, last) = run(&code, |cpu| cpu.set_reg(Reg::Rax, BASE));
    assert_eq!(last, Ok(Flow::Next));
    let at = |i: usize| f32::from_le_bytes(bus.bytes[i..i + 4].try_into().unwrap());
    assert_eq!(at(4), at(0) + at(0));
    assert_eq!(cpu.fx.ftw, 0);
}

#[test]
fn mmx_marks_all_registers_used_and_emms_frees_them() {
    // movd mm3, eax
    let (cpu, _, _) = run(&[0x0F, 0x6E, 0xD8], |cpu| cpu.set_reg(Reg::Rax, 5));
    assert_eq!(cpu.fx.ftw, 0xFF);
    assert_eq!(cpu.fx.st[3][..10], [5, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]);
    let (cpu, _, _) = run(&[0x0F, 0x6E, 0xD8, 0x0F, 0x77], |_| {});
    assert_eq!(cpu.fx.ftw, 0);
}

#[test]
fn unmasked_division_by_zero_is_raised_without_effect() {
    // divps xmm0, xmm1
    let (cpu, _, last) = run(&[0x0F, 0x5E, 0xC1], |cpu| {
        cpu.fx.mxcsr = 0x1D80;
        cpu.xmm[0] = [0x3F; 16];
    });
    assert!(matches!(
        last,
        Err(Fault::Exception {
            vector: Vector::Simd,
            ..
        })
    ));
    assert_eq!(cpu.xmm[0], [0x3F; 16]);
    assert_eq!(cpu.fx.mxcsr, 0x1D84);
}

#[test]
fn what_cpuid_does_not_offer_is_undefined() {
    let absent: [&[u8]; 6] = [
        &[0xC5, 0xF8, 0x58, 0xC1],       // vaddps
        &[0x0F, 0x38, 0xF0, 0x00],       // movbe
        &[0x0F, 0xC7, 0xF0],             // rdrand
        &[0x0F, 0x01, 0xD0],             // xgetbv
        &[0x66, 0x0F, 0x38, 0xDC, 0xC1], // aesenc
        &[0xF3, 0x48, 0x0F, 0xAE, 0xC0], // rdfsbase
    ];
    for code in absent {
        assert_eq!(run(code, |_| {}).2, Err(fault::undefined()), "{code:x?}");
    }
}

#[test]
fn tzcnt_encoding_acts_as_bsf() {
    // tzcnt eax, ecx
    let (cpu, _, _) = run(&[0xF3, 0x0F, 0xBC, 0xC1], |cpu| {
        cpu.set_reg(Reg::Rax, 0x1234);
    });
    assert_eq!(
        cpu.reg(Reg::Rax),
        0x1234,
        "a zero source leaves the destination"
    );
    assert!(cpu.flags.zero());
}

#[test]
fn syscall_in_a_user_world_saves_rip_and_flags() {
    let (cpu, _, last) = run(&[0x0F, 0x05], |_| {});
    assert_eq!(last, Ok(Flow::Syscall));
    assert_eq!(cpu.reg(Reg::Rcx), 0x40_0002);
    assert_eq!(cpu.reg(Reg::R11), 0x202);
    assert_eq!(cpu.rip, 0x40_0002);
}
