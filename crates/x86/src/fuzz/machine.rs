//! The engine as a subject: the same cases through blocks, fast handlers and the TLB.

use raddle_mem::{AddressSpace, Backing, Frames, GuestAddr, Perm, Vma};

use super::case::{Case, CaseResult, Ending};
use super::layout::{CODE, DATA, DATA_BYTES, WINDOWS};
use super::subject::{Subject, ending_of};
use crate::cpu::Cpu;
use crate::engine::{Engine, Memory, Observe, Slice};
use crate::exit::Exit;

/// Iterations of a string instruction that no case needs.
const STEPS_MAX: usize = 64;
/// JMP to itself: what follows the instruction under test.
const PARKING: [u8; 2] = [0xEB, 0xFE];

/// An engine with the two data pages and one page of code.
#[derive(Debug)]
pub struct Machine {
    engine: Engine,
    frames: Frames,
    space: AddressSpace,
    cpu: Cpu,
    loaded: [u8; 15],
}

impl Machine {
    /// # Errors
    /// If the host refuses the memory.
    pub fn new(observe: Observe) -> std::io::Result<Self> {
        let mut frames = Frames::new(1 << 20)?;
        let mut space = AddressSpace::default();
        for (start, bytes, perm) in [
            (CODE & !0xFFF, 0x1000, Perm::RWX),
            (DATA, DATA_BYTES as u64, Perm::RW),
        ] {
            let area = Vma {
                start: GuestAddr(start).page(),
                end: GuestAddr(start + bytes).page(),
                perm,
                shared: false,
                backing: Backing::Anonymous,
                label: "".into(),
            };
            space.map(&mut frames, area);
        }
        let mut engine = Engine::default();
        engine.set_observe(observe);
        Ok(Self {
            engine,
            frames,
            space,
            cpu: Cpu::default(),
            loaded: [0; 15],
        })
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) {
        let written = self.space.write(&mut self.frames, GuestAddr(addr), bytes);
        assert_eq!(written, Ok(()), "the pages of a case are mapped");
    }

    fn run(&mut self) -> Exit {
        self.engine.clear_log();
        let memory = Memory {
            frames: &mut self.frames,
            space: &mut self.space,
        };
        let slice = Slice {
            steps: 1,
            tsc: 0,
            skip_point: false,
        };
        self.engine.run(&mut self.cpu, memory, slice).exit
    }
}

impl Subject for Machine {
    fn execute(&mut self, case: &Case, result: &mut CaseResult) {
        if self.loaded != case.bytes {
            self.loaded = case.bytes;
            self.write(CODE, case.code());
            self.write(CODE + case.len as u64, &PARKING);
        }
        for (addr, window) in case.windows() {
            self.write(addr, window);
        }
        case.load(&mut self.cpu);
        result.ending = Ending::Unsupported;
        for _ in 0..STEPS_MAX {
            result.ending = match self.run() {
                Exit::StepsDone if self.cpu.rip == CODE => continue,
                Exit::StepsDone => Ending::At(self.cpu.rip),
                Exit::Fault(fault) => ending_of(fault),
                _ => Ending::Unsupported,
            };
            break;
        }
        result.store(&self.cpu, case.uses_vectors);
        for (offset, window) in WINDOWS.iter().zip(result.memory.iter_mut()) {
            let from = GuestAddr(DATA + *offset as u64);
            let read = self.space.read(&mut self.frames, from, window);
            assert_eq!(read, Ok(()), "the pages of a case are mapped");
        }
    }
}
