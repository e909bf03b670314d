//! Trying out how a processor would go on, without interrupts.

use raddle_mem::{FrameId, GuestAddr, PAGE_SIZE};
use raddle_stdx::width::to_u64;
use raddle_x86::{Cpu, LogKind, Observe, Reg, SystemExit, SystemSlice};

use super::{Machine, Power};

/// Bytes of a stack of Linux.
const STACK_SIZE: u64 = 1 << 14;

/// What an attempt showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rehearsed {
    /// The processor does not come back with nothing changed, as far as it was seen.
    GoesOn,
    ComesRound {
        /// It changes memory on the way, other than its stack, and changes it back.
        is_felt: bool,
    },
}

impl Machine {
    /// Lets a processor go on for at most so many steps until its registers are what they are now, at a flagged point or
    /// PAUSE, and takes everything back. Says whether it comes there and has changed nothing. `reads` is told what it
    /// reads: physical address and size.
    pub fn rehearse(
        &mut self,
        cpu: usize,
        steps_max: u64,
        reads: &mut dyn FnMut(u64, u64),
    ) -> Rehearsed {
        if self.cores[cpu].power != Power::Running {
            return Rehearsed::GoesOn;
        }
        let observe = self.engine.observe();
        let mut registers = self.cores[cpu].cpu.clone();
        let bus = self.bus.clone();
        let attempt = self.frames.try_out();
        self.engine.set_observe(Observe::Addr);
        let rehearsed = self.come_round(cpu, &mut registers, steps_max, reads);
        self.engine.clear_log();
        self.engine.set_observe(observe);
        self.bus = bus;
        let has_changed = self.frames.take_back(attempt);
        if has_changed {
            Rehearsed::GoesOn
        } else {
            rehearsed
        }
    }

    /// Runs until the registers are what they were, if that happens.
    fn come_round(
        &mut self,
        number: usize,
        cpu: &mut Cpu,
        steps_max: u64,
        reads: &mut dyn FnMut(u64, u64),
    ) -> Rehearsed {
        let begin = cpu.clone();
        let mut is_felt = false;
        let mut made = 0;
        while made < steps_max {
            let slice = SystemSlice {
                steps: steps_max - made,
                tsc: self.now + made,
                skip_point: true,
                pass_points: 0,
                wants_window: false,
                stop_at_pause: true,
                interrupt_frame: None,
            };
            let Self {
                engine,
                frames,
                bus,
                ..
            } = self;
            let outcome = engine.run(number, cpu, frames, bus, slice);
            made += outcome.steps;
            let mut is_known = true;
            engine.log().for_each(|record| {
                if record.kind == LogKind::Write {
                    return;
                }
                let page = record.addr & !(to_u64(PAGE_SIZE) - 1);
                let offset = to_u64(GuestAddr(record.addr).page_offset());
                match engine.physical(cpu, frames, page) {
                    Some(page) => reads(page + offset, u64::from(record.size)),
                    None => is_known = false,
                }
            });
            engine.clear_log();
            let goes_on = matches!(
                outcome.exit,
                SystemExit::Point(_) | SystemExit::Pause | SystemExit::LogFull
            );
            if !goes_on || !is_known {
                return Rehearsed::GoesOn;
            }
            if *cpu == begin {
                return Rehearsed::ComesRound { is_felt };
            }
            is_felt |= self.has_changed_shared(cpu);
        }
        Rehearsed::GoesOn
    }

    /// Whether memory is not what it was when the attempt began, except for the kernel's stack.
    fn has_changed_shared(&mut self, cpu: &Cpu) -> bool {
        let stack = cpu.reg(Reg::Rsp) & !(STACK_SIZE - 1);
        let pages = (0..STACK_SIZE).step_by(PAGE_SIZE);
        let own: Vec<FrameId> = pages
            .filter_map(|page| {
                let physical = self.engine.physical(cpu, &mut self.frames, stack + page)?;
                self.frame(physical)
            })
            .collect();
        let mut changed = self.frames.changed();
        changed.any(|frame| !own.contains(&frame))
    }
}
