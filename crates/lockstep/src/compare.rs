//! Registers of both sides: loading ours into the host, finding differences.

use iced_x86::Instruction;
use nix::libc::{user_fpregs_struct, user_regs_struct};
use raddle_x86::{Cpu, Reg};

use crate::instruction::{undefined_conditions, undefined_flags};

/// The arithmetic flags and the direction flag; others belong to the system or to the stepping.
const COMPARED_FLAGS: u64 = 0xCD5;
/// Bits of MXCSR: all that exist.
const MXCSR: u32 = 0xFFFF;

/// General registers of the host in the order of the encoding.
fn general(registers: &user_regs_struct) -> [u64; 16] {
    [
        registers.rax,
        registers.rcx,
        registers.rdx,
        registers.rbx,
        registers.rsp,
        registers.rbp,
        registers.rsi,
        registers.rdi,
        registers.r8,
        registers.r9,
        registers.r10,
        registers.r11,
        registers.r12,
        registers.r13,
        registers.r14,
        registers.r15,
    ]
}

const NAMES: [&str; 16] = [
    "RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI", "R8", "R9", "R10", "R11", "R12", "R13",
    "R14", "R15",
];

/// Puts our registers over those of the host; segments stay its own.
pub(crate) fn load_general(cpu: &Cpu, registers: &mut user_regs_struct) {
    registers.rax = cpu.reg(Reg::Rax);
    registers.rcx = cpu.reg(Reg::Rcx);
    registers.rdx = cpu.reg(Reg::Rdx);
    registers.rbx = cpu.reg(Reg::Rbx);
    registers.rsp = cpu.reg(Reg::Rsp);
    registers.rbp = cpu.reg(Reg::Rbp);
    registers.rsi = cpu.reg(Reg::Rsi);
    registers.rdi = cpu.reg(Reg::Rdi);
    registers.r8 = cpu.reg(Reg::R8);
    registers.r9 = cpu.reg(Reg::R9);
    registers.r10 = cpu.reg(Reg::R10);
    registers.r11 = cpu.reg(Reg::R11);
    registers.r12 = cpu.reg(Reg::R12);
    registers.r13 = cpu.reg(Reg::R13);
    registers.r14 = cpu.reg(Reg::R14);
    registers.r15 = cpu.reg(Reg::R15);
    registers.rip = cpu.rip;
    registers.eflags = cpu.rflags();
    registers.fs_base = cpu.fs_base();
    registers.gs_base = cpu.gs_base();
    registers.orig_rax = u64::MAX;
}

/// Puts our vector and x87 registers over those of the host.
pub(crate) fn load_float(cpu: &Cpu, registers: &mut user_fpregs_struct) {
    registers.cwd = cpu.fx.fcw;
    registers.swd = cpu.fx.fsw;
    registers.ftw = u16::from(cpu.fx.ftw);
    registers.fop = 0;
    registers.rip = 0;
    registers.rdp = 0;
    registers.mxcsr = cpu.fx.mxcsr;
    for (target, bytes) in registers.st_space.chunks_exact_mut(4).zip(&cpu.fx.st) {
        put_words(target, bytes);
    }
    for (target, bytes) in registers.xmm_space.chunks_exact_mut(4).zip(&cpu.xmm) {
        put_words(target, bytes);
    }
}

fn put_words(target: &mut [u32], bytes: &[u8; 16]) {
    let (words, _) = bytes.as_chunks::<4>();
    for (word, bytes) in target.iter_mut().zip(words) {
        *word = u32::from_le_bytes(*bytes);
    }
}

fn words(bytes: &[u8; 16]) -> [u32; 4] {
    let mut result = [0; 4];
    put_words(&mut result, bytes);
    result
}

/// Differences after an instruction; empty if both sides agree.
pub(crate) fn differences(
    insn: &Instruction,
    cpu: &Cpu,
    registers: &user_regs_struct,
    float: &user_fpregs_struct,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |name: &str, ours: u64, host: u64| {
        if ours != host {
            found.push(format!("{name}: ours {ours:#x}, host {host:#x}"));
        }
    };
    check("RIP", cpu.rip, registers.rip);
    for ((name, ours), host) in NAMES.iter().zip(cpu.general()).zip(general(registers)) {
        check(name, *ours, host);
    }
    let flags = COMPARED_FLAGS & !undefined_flags(insn);
    check("RFLAGS", cpu.rflags() & flags, registers.eflags & flags);
    check("FS base", cpu.fs_base(), registers.fs_base);
    let mxcsr = |value: u32| u64::from(value & MXCSR);
    check("MXCSR", mxcsr(cpu.fx.mxcsr), mxcsr(float.mxcsr));
    check("FCW", u64::from(cpu.fx.fcw), u64::from(float.cwd));
    check("FTW", u64::from(cpu.fx.ftw), u64::from(float.ftw));
    let conditions = !undefined_conditions(insn);
    let fsw = |value: u16| u64::from(value & conditions);
    check("FSW", fsw(cpu.fx.fsw), fsw(float.swd));
    for (number, bytes) in cpu.xmm.iter().enumerate() {
        let host = &float.xmm_space[number * 4..number * 4 + 4];
        if words(bytes) != host {
            found.push(format!(
                "XMM{number}: ours {:08x?}, host {host:08x?}",
                words(bytes)
            ));
        }
    }
    for (number, bytes) in cpu.fx.st.iter().enumerate() {
        let host = &float.st_space[number * 4..number * 4 + 4];
        let ours = words(bytes);
        // Ten bytes count; the rest of the slot is reserved.
        let is_same = ours[..2] == host[..2] && ours[2] & 0xFFFF == host[2] & 0xFFFF;
        if !is_same {
            found.push(format!(
                "ST{number}: ours {:08x?}, host {:08x?}",
                &ours[..3],
                &host[..3]
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::decode;

    const ADD: [u8; 3] = [0x48, 0x01, 0xC8];
    /// `shl eax, cl`: OF is undefined.
    const SHL: [u8; 2] = [0xD3, 0xE0];

    fn cpu() -> Cpu {
        let mut cpu = Cpu::default();
        cpu.set_reg(Reg::R9, 77);
        cpu.xmm[3] = [9; 16];
        cpu.fx.st[1] = [4; 16];
        cpu
    }

    fn host(cpu: &Cpu) -> (user_regs_struct, user_fpregs_struct) {
        let native = crate::native::Native::start().expect("a process can be stepped");
        let mut registers = native.registers().expect("registers");
        let mut float = native.float_registers().expect("registers");
        load_general(cpu, &mut registers);
        load_float(cpu, &mut float);
        (registers, float)
    }

    #[test]
    fn what_was_loaded_is_equal() {
        let cpu = cpu();
        let (registers, float) = host(&cpu);
        let insn = decode(0, &ADD);
        assert_eq!(
            differences(&insn, &cpu, &registers, &float),
            [""; 0],
            "just loaded"
        );
    }

    #[test]
    fn each_difference_is_named() {
        let cpu = cpu();
        let (mut registers, mut float) = host(&cpu);
        registers.r9 ^= 1;
        registers.eflags ^= 1 << 11;
        float.xmm_space[13] ^= 1;
        float.st_space[4] ^= 1;
        let names = |insn: &[u8]| -> Vec<String> {
            differences(&decode(0, insn), &cpu, &registers, &float)
                .iter()
                .map(|text| text.split(':').next().unwrap_or_default().to_owned())
                .collect()
        };
        assert_eq!(names(&ADD), ["R9", "RFLAGS", "XMM3", "ST1"]);
        assert_eq!(names(&SHL), ["R9", "XMM3", "ST1"]);
    }
}
