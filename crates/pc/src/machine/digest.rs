//! One number for everything a guest could see.

use raddle_mem::FrameId;
use raddle_stdx::Digest;
use raddle_x86::Cpu;

use super::Machine;

impl Machine {
    /// Digest of registers, RAM and time. Reads all of RAM.
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest.word(self.now);
        for core in &self.cores {
            digest_cpu(&mut digest, &core.cpu);
            digest.word(core.steps);
            digest.word(core.power as u64);
        }
        for page in 1..=self.ram_pages {
            let Ok(frame) = u32::try_from(page) else {
                break;
            };
            let bytes = self.frames.bytes(FrameId(frame));
            if bytes.iter().any(|byte| *byte != 0) {
                digest.word(page);
                digest.bytes(bytes);
            }
        }
        digest.value()
    }

    /// Digest of a processor's general registers, flags and instruction pointer.
    pub fn register_digest(&self, cpu: usize) -> u64 {
        let cpu = &self.cores[cpu].cpu;
        let mut digest = Digest::default();
        for register in cpu.general() {
            digest.word(*register);
        }
        digest.word(cpu.rip);
        digest.word(cpu.rflags());
        digest.value()
    }
}

fn digest_cpu(digest: &mut Digest, cpu: &Cpu) {
    for register in cpu.general() {
        digest.word(*register);
    }
    let system = &cpu.system;
    for word in [
        cpu.rip,
        cpu.rflags(),
        cpu.fs_base(),
        cpu.gs_base(),
        u64::from(system.cpl),
        system.cr0,
        system.cr2,
        system.cr3,
        system.cr4,
        system.efer,
        system.kernel_gs_base,
        u64::from(system.interrupt_shadow),
    ] {
        digest.word(word);
    }
    for xmm in &cpu.xmm {
        digest.bytes(xmm);
    }
    digest.word(u64::from(cpu.fx.mxcsr));
    for st in &cpu.fx.st {
        digest.bytes(st);
    }
}
