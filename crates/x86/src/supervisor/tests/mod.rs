//! Small guests with their own page tables, descriptor tables and handlers.
//!
//! ```text
//!   0x1000 GDT    0x2000 IDT    0x3000 TSS    0x4000 top table, 0x5000, 0x6000, 0x7000 (first 2 MiB, 4 KiB pages)
//!   0x8000 table of the second 2 MiB          0x1_0000 code     0x2_0000 kernel stack top    0x3_0000 data
//!   user mode may touch 0x20_0000 (code), 0x20_1000 (data); 0x20_2000 is not mapped; 0x20_3000 is read-only
//! ```

mod guests;
mod machines;

use raddle_mem::{FrameId, Frames};

use super::*;
use crate::cpu::{Cpu, Reg};
use crate::cpuid::CpuidResult;
use crate::flags::rflags;
use crate::system::{DescriptorTable, SystemState};

const PAGES: u64 = 1024;
const GDT: u64 = 0x1000;
const IDT: u64 = 0x2000;
const TSS: u64 = 0x3000;
const ROOT: u64 = 0x4000;
const LOW_TABLE: u64 = 0x7000;
const USER_TABLE: u64 = 0x8000;
const CODE: u64 = 0x1_0000;
const STACK: u64 = 0x2_0000;
const DATA: u64 = 0x3_0000;
const USER_CODE: u64 = 0x20_0000;
const USER_DATA: u64 = 0x20_1000;
/// A page that is not memory.
const DEVICE: u64 = 0xFEE0_0000;
/// Where it is mapped.
const DEVICE_AT: u64 = 0x10_0000;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 2;
const USER: u64 = 4;

/// Remembers what was asked of it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Recorder {
    accesses: Vec<(usize, u64, String)>,
}

impl Recorder {
    fn note(&mut self, at: DeviceAccess, what: String) {
        self.accesses.push((at.cpu, at.tsc, what));
    }
}

impl Devices for Recorder {
    fn port_in(&mut self, at: DeviceAccess, port: u16, bytes: u8) -> u32 {
        self.note(at, format!("in {port:x} {bytes}"));
        0x5A
    }

    fn port_out(&mut self, at: DeviceAccess, port: u16, value: u32, bytes: u8) {
        self.note(at, format!("out {port:x} {value:x} {bytes}"));
    }

    fn mmio_read(&mut self, at: DeviceAccess, addr: u64, bytes: u8) -> u64 {
        self.note(at, format!("load {addr:x} {bytes}"));
        0x1234_5678
    }

    fn mmio_write(&mut self, at: DeviceAccess, addr: u64, value: u64, bytes: u8) {
        self.note(at, format!("store {addr:x} {value:x} {bytes}"));
    }

    fn read_msr(&mut self, at: DeviceAccess, number: u32) -> Option<u64> {
        self.note(at, format!("rdmsr {number:x}"));
        (number == 0x123).then_some(7)
    }

    fn write_msr(&mut self, at: DeviceAccess, number: u32, value: u64) -> bool {
        self.note(at, format!("wrmsr {number:x} {value:x}"));
        true
    }

    fn cpuid(&mut self, at: DeviceAccess, leaf: u32, subleaf: u32) -> CpuidResult {
        self.note(at, format!("cpuid {leaf:x} {subleaf:x}"));
        CpuidResult::default()
    }
}

struct Guest {
    frames: Frames,
    engine: SystemEngine,
    devices: Recorder,
    cpus: Vec<Cpu>,
    tsc: u64,
}

impl Guest {
    /// Kernel code at `CODE`; one processor per entry of `code`, each at its own entry.
    fn new(code: &[&[u8]]) -> Self {
        let mut frames = Frames::new((PAGES + 16) * 4096).unwrap();
        for page in 1..=PAGES {
            assert_eq!(u64::from(frames.alloc().unwrap().0), page);
        }
        let mut guest = Self {
            frames,
            engine: SystemEngine::new(code.len(), PAGES),
            devices: Recorder::default(),
            cpus: Vec::new(),
            tsc: 0,
        };
        guest.lay_out_tables();
        for (number, code) in code.iter().enumerate() {
            let entry = CODE + 0x1000 * number as u64;
            guest.put(entry, code);
            let gdt = DescriptorTable {
                base: GDT,
                limit: 0x3F,
            };
            let mut cpu = Cpu::default();
            *cpu.system = SystemState::kernel_entry(ROOT, gdt, 0x08, 0x10);
            cpu.system.idtr = DescriptorTable {
                base: IDT,
                limit: 0xFFF,
            };
            cpu.system.tr.base = TSS;
            cpu.system.tr.limit = 0x67;
            cpu.system.cr0 |= crate::system::cr0::WP;
            cpu.system.efer |= efer_bits();
            cpu.system_flags = rflags::FIXED;
            cpu.rip = entry;
            cpu.set_reg(Reg::Rsp, STACK - 0x1000 * number as u64);
            guest.cpus.push(cpu);
        }
        guest
    }

    fn lay_out_tables(&mut self) {
        // Kernel code and data, user data and code (in the order SYSRET wants), 64 bits.
        for (index, descriptor) in [
            0,
            0x00AF_9B00_0000_FFFF_u64,
            0x00CF_9300_0000_FFFF,
            0,
            0x00CF_F300_0000_FFFF,
            0x00AF_FB00_0000_FFFF,
        ]
        .into_iter()
        .enumerate()
        {
            self.put_word(GDT + 8 * index as u64, descriptor);
        }
        self.put_word(TSS + 4, STACK);
        let all = PRESENT | WRITABLE | USER;
        self.put_word(ROOT, 0x5000 | all);
        self.put_word(0x5000, 0x6000 | all);
        self.put_word(0x6000, LOW_TABLE | all);
        self.put_word(0x6008, USER_TABLE | all);
        for page in 0..512 {
            self.put_word(LOW_TABLE + 8 * page, page << 12 | PRESENT | WRITABLE);
        }
        self.map(DEVICE_AT, DEVICE, PRESENT | WRITABLE);
        self.map(USER_CODE, 0x10_0000, all);
        self.map(USER_DATA, 0x10_1000, all);
        self.map(USER_CODE + 0x3000, 0x10_3000, PRESENT | USER);
    }

    fn map(&mut self, addr: u64, physical: u64, bits: u64) {
        let table = if addr < USER_CODE {
            LOW_TABLE
        } else {
            USER_TABLE
        };
        self.put_word(table + 8 * (addr >> 12 & 511), physical | bits);
    }

    fn gate(&mut self, vector: u64, offset: u64) {
        let low = (offset & 0xFFFF) | 0x8 << 16 | 0xEE << 40 | (offset >> 16 & 0xFFFF) << 48;
        self.put_word(IDT + 16 * vector, low);
        self.put_word(IDT + 16 * vector + 8, offset >> 32);
    }

    fn put(&mut self, physical: u64, bytes: &[u8]) {
        for (at, byte) in (physical..).zip(bytes) {
            let frame = FrameId(u32::try_from(at / 4096 + 1).unwrap());
            self.frames
                .write(frame, usize::try_from(at % 4096).unwrap(), &[*byte]);
        }
    }

    fn put_word(&mut self, physical: u64, word: u64) {
        self.put(physical, &word.to_le_bytes());
    }

    fn word(&self, physical: u64) -> u64 {
        let frame = FrameId(u32::try_from(physical / 4096 + 1).unwrap());
        let offset = usize::try_from(physical % 4096).unwrap();
        let bytes = &self.frames.bytes(frame)[offset..offset + 8];
        u64::from_le_bytes(bytes.try_into().unwrap())
    }

    fn slice(&self, steps: u64) -> SystemSlice {
        SystemSlice {
            steps,
            tsc: self.tsc,
            skip_point: false,
            pass_points: 0,
            wants_window: false,
            stop_at_pause: false,
            interrupt_frame: None,
        }
    }

    fn run(&mut self, cpu: usize, steps: u64) -> SystemOutcome {
        let slice = self.slice(steps);
        self.run_slice(cpu, slice)
    }

    fn run_slice(&mut self, cpu: usize, slice: SystemSlice) -> SystemOutcome {
        let outcome = self.engine.run(
            cpu,
            &mut self.cpus[cpu],
            &mut self.frames,
            &mut self.devices,
            slice,
        );
        self.tsc += outcome.steps;
        outcome
    }

    fn reg(&self, cpu: usize, reg: Reg) -> u64 {
        self.cpus[cpu].reg(reg)
    }
}

fn efer_bits() -> u64 {
    crate::system::efer::SCE | crate::system::efer::NXE
}
