//! The engine as a subject: the same cases through blocks, fast handlers and the TLB.
//!
//! Cases run in turn in one slice and step by step, so that both whole and cut blocks are met.

use std::io;

use raddle_mem::{Access, AddressSpace, Backing, FrameId, Frames, GuestAddr, Perm, Vma};

use super::case::{Case, CaseResult, Ending};
use super::layout::{CODE, DATA, TAKEN, WINDOW_BYTES, WINDOWS};
use super::subject::{Subject, ending_of};
use crate::cpu::Cpu;
use crate::engine::{Engine, Memory, Observe, Slice};
use crate::exit::Exit;
use crate::log::Record;

const PAGE: usize = 4096;
/// Ends a case: INT3.
const STOP: u8 = 0xCC;
/// More than any case needs, with all iterations.
const STEPS: u64 = 1000;
/// Memory for code, data and nothing else.
const FRAMES_BYTES: u64 = 1 << 20;

/// An engine with the pages of a case.
#[derive(Debug)]
pub struct Machine {
    engine: Engine,
    cpu: Cpu,
    frames: Frames,
    space: AddressSpace,
    code: FrameId,
    data: [FrameId; 2],
    current: (u64, Vec<u8>),
    /// Accesses of the last case, if they are wanted; then no case runs step by step.
    records: Option<Vec<Record>>,
    /// The next case runs step by step.
    is_stepping: bool,
}

impl Machine {
    /// Maps the pages; `observe` is what the engine writes down meanwhile.
    ///
    /// # Errors
    /// If the host refuses memory.
    pub fn new(observe: Observe) -> io::Result<Self> {
        let mut frames = Frames::new(FRAMES_BYTES)?;
        let mut space = AddressSpace::default();
        let code = map(&mut frames, &mut space, CODE, 1, Perm::RX)?;
        let low = map(&mut frames, &mut space, DATA, 2, Perm::RW)?;
        let high = touch(&mut frames, &mut space, DATA + PAGE as u64, Access::Write)?;
        frames.write(code, offset_of(TAKEN), &[STOP]);
        let mut engine = Engine::default();
        engine.set_observe(observe);
        Ok(Self {
            engine,
            cpu: Cpu::default(),
            frames,
            space,
            code,
            data: [low, high],
            current: (0, Vec::new()),
            is_stepping: false,
            records: None,
        })
    }

    fn write_code(&mut self, case: &Case) {
        if self.current.0 != case.entry || self.current.1 != case.code {
            self.current = (case.entry, case.code.clone());
            self.frames
                .write(self.code, offset_of(case.entry), &case.code);
            self.frames.write(self.code, offset_of(case.end()), &[STOP]);
        }
    }
}

impl Machine {
    fn run(&mut self, steps: u64) -> Exit {
        let memory = Memory {
            frames: &mut self.frames,
            space: &mut self.space,
        };
        let slice = Slice {
            steps,
            tsc: 0,
            skip_point: false,
        };
        self.engine.run(&mut self.cpu, memory, slice).exit
    }

    /// Keeps the accesses of each case from now on.
    pub(super) fn keep_records(&mut self) {
        self.records = Some(Vec::new());
    }

    /// The accesses of the last case.
    pub(super) fn records(&self) -> &[Record] {
        self.records.as_deref().unwrap_or_default()
    }

    fn run_whole(&mut self) -> Ending {
        match self.run(STEPS) {
            Exit::SoftwareInterrupt(3) => Ending::At(self.cpu.rip - 1),
            Exit::Fault(fault) => ending_of(fault),
            _ => Ending::Unsupported,
        }
    }

    fn run_stepwise(&mut self, case: &Case) -> Ending {
        for _ in 0..STEPS {
            match self.run(1) {
                Exit::StepsDone if self.cpu.rip == case.end() || self.cpu.rip == TAKEN => {
                    return Ending::At(self.cpu.rip);
                }
                Exit::StepsDone => {}
                Exit::Fault(fault) => return ending_of(fault),
                _ => return Ending::Unsupported,
            }
        }
        Ending::Unsupported
    }
}

/// The parts of a window, page by page: frame, offset in it, range of the window.
fn pieces(
    data: [FrameId; 2],
    window: usize,
) -> impl Iterator<Item = (FrameId, usize, std::ops::Range<usize>)> {
    let start = WINDOWS[window];
    let to_page_end = PAGE - start % PAGE;
    let split = to_page_end.min(WINDOW_BYTES);
    [0..split, split..WINDOW_BYTES]
        .into_iter()
        .filter(|part| !part.is_empty())
        .map(move |part| {
            let at = start + part.start;
            (data[at / PAGE], at % PAGE, part)
        })
}

fn offset_of(addr: u64) -> usize {
    GuestAddr(addr).page_offset()
}

fn map(
    frames: &mut Frames,
    space: &mut AddressSpace,
    addr: u64,
    pages: u64,
    perm: Perm,
) -> io::Result<FrameId> {
    let start = GuestAddr(addr).page();
    let vma = Vma {
        start,
        end: start.offset(pages),
        perm,
        shared: false,
        backing: Backing::Anonymous,
        label: "".into(),
    };
    space.map(frames, vma);
    let access = if perm.write {
        Access::Write
    } else {
        Access::Execute
    };
    touch(frames, space, addr, access)
}

fn touch(
    frames: &mut Frames,
    space: &mut AddressSpace,
    addr: u64,
    access: Access,
) -> io::Result<FrameId> {
    space
        .translate(frames, GuestAddr(addr).page(), access)
        .map(|found| found.frame)
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))
}

impl Subject for Machine {
    fn execute(&mut self, case: &Case, result: &mut CaseResult) {
        self.write_code(case);
        for (index, window) in case.memory.iter().enumerate() {
            for (frame, offset, part) in pieces(self.data, index) {
                self.frames.write(frame, offset, &window[part]);
            }
        }
        case.load(&mut self.cpu);
        self.is_stepping = !self.is_stepping && self.records.is_none();
        result.ending = if self.is_stepping {
            self.run_stepwise(case)
        } else {
            self.run_whole()
        };
        if let Some(records) = &mut self.records {
            records.clear();
            self.engine.log().for_each(|record| records.push(*record));
        }
        self.engine.clear_log();
        result.store(&self.cpu, case.uses_vectors);
        for index in 0..WINDOWS.len() {
            for (frame, offset, part) in pieces(self.data, index) {
                let bytes = &self.frames.bytes(frame)[offset..offset + part.len()];
                result.memory[index][part].copy_from_slice(bytes);
            }
        }
    }
}
