//! Trying out how a thread would go on. Only its own instructions are executed: known functions are ordinary code then,
//! and a system call ends the attempt, unless it only asks for others to be run.

use raddle_mem::GuestAddr;
use raddle_stdx::width::{low_u32, to_u64, to_usize};
use raddle_world::{ContextId, Rehearse, Standstill, WordsRead};
use raddle_x86::{Cpu, Exit, LogKind, Memory, Observe, Reg, Slice};

use super::LinuxWorld;
use crate::thread::{Activity, Tid};
use crate::time;

const SCHED_YIELD: u32 = raddle_calls::number("sched_yield");
const WORD: usize = 8;
/// Instructions of a loop that is followed one by one, at most.
const CLOSELY_MAX: u64 = 2048;
/// Instructions that read the clock: RDTSC and RDTSCP.
const READS_CLOCK: [&[u8]; 2] = [&[0x0F, 0x31], &[0x0F, 0x01, 0xF9]];
/// Bytes below the stack pointer that a function may use.
const RED_ZONE: u64 = 128;
/// Pages of a stack that the innermost functions use.
const STACK_PAGES: u64 = 4;

impl Rehearse for LinuxWorld {
    fn rehearse(&mut self, who: ContextId, steps_max: u64) -> Option<Standstill> {
        let tid = self.tid(who)?;
        let pace = Pace {
            stretch: steps_max,
            steps_max,
        };
        let words = self.try_out(tid, pace)?;
        words.standstill(|at| self.word(tid, at))
    }

    fn stands_still(&mut self, who: ContextId, standstill: &Standstill) -> bool {
        let Some(tid) = self.tid(who) else {
            return false;
        };
        let mut words = standstill.words.iter();
        !self.kernel.may_take_signal(tid)
            && words.all(|(at, value)| self.word(tid, *at) == Some(*value))
    }

    fn goes_round_for_ever(&mut self, who: ContextId) -> bool {
        let Some(tid) = self.tid(who) else {
            return false;
        };
        if self.kernel.steps_before_execution_timer(tid) < u64::MAX {
            return false;
        }
        let pace = Pace {
            stretch: 1,
            steps_max: CLOSELY_MAX,
        };
        self.try_out(tid, pace).is_some_and(|words| !words.is_felt)
    }
}

/// How a thread is tried out: for so many steps, of which so many are made without a look at what they did.
#[derive(Debug, Clone, Copy)]
struct Pace {
    stretch: u64,
    steps_max: u64,
}

impl LinuxWorld {
    /// Lets a thread go on until its registers are what they were, and takes everything back. Gives what it read on the
    /// way if memory was what it was, too.
    fn try_out(&mut self, tid: Tid, pace: Pace) -> Option<WordsRead> {
        let thread = self.kernel.thread(tid);
        let is_free = thread.activity == Activity::User && thread.torn.is_none();
        if !is_free || thread.is_stopped || self.kernel.may_take_signal(tid) {
            return None;
        }
        let mut cpu = thread.cpu.clone();
        let moment = self.kernel.frames.try_out();
        self.engine.set_observe(Observe::Addr);
        self.engine.clear_log();
        let words = self.come_round(tid, &mut cpu, pace);
        self.engine.clear_log();
        self.engine.set_observe(self.observe);
        let has_changed = self.kernel.frames.take_back(moment);
        words.filter(|_| !has_changed)
    }

    fn come_round(&mut self, tid: Tid, cpu: &mut Cpu, pace: Pace) -> Option<WordsRead> {
        let begin = cpu.clone();
        let mut words = WordsRead::default();
        let mut made = 0;
        while made < pace.steps_max {
            if pace.stretch == 1 && self.reads_clock(tid, cpu.rip) {
                return None;
            }
            let kernel = &mut self.kernel;
            let space = kernel.process_of(tid).space;
            let outcome = self.engine.run(
                cpu,
                Memory {
                    space: &mut kernel.state.spaces.get_mut(&space)?.map,
                    frames: &mut kernel.frames,
                },
                Slice {
                    steps: pace.stretch.min(pace.steps_max - made),
                    tsc: time::monotonic(kernel.state.now) + made,
                    skip_point: true,
                },
            );
            made += outcome.steps;
            self.engine.log().for_each(|record| {
                if record.kind != LogKind::Write {
                    words.note(record.addr, u64::from(record.size));
                }
            });
            self.engine.clear_log();
            match outcome.exit {
                Exit::Point(_) | Exit::LogFull | Exit::StepsDone => {}
                Exit::Syscall if low_u32(cpu.reg(Reg::Rax)) == SCHED_YIELD => {
                    cpu.set_reg(Reg::Rax, 0);
                }
                _ => return None,
            }
            if *cpu == begin {
                return Some(words);
            }
            words.is_felt |= self.has_changed_shared(tid, cpu.reg(Reg::Rsp));
        }
        None
    }

    fn reads_clock(&self, tid: Tid, rip: u64) -> bool {
        let longest = READS_CLOCK.iter().map(|opcode| opcode.len()).max();
        let code = (0..longest.unwrap_or(0)).map_while(|index| {
            let at = rip.wrapping_add(to_u64(index));
            let (word, byte) = (
                at / to_u64(WORD) * to_u64(WORD),
                to_usize(at % to_u64(WORD)),
            );
            Some(self.word(tid, word)?.to_le_bytes()[byte])
        });
        let code: Vec<u8> = code.collect();
        READS_CLOCK.iter().any(|opcode| code.starts_with(opcode))
    }

    /// Whether memory is not what it was when the attempt began, except for the pages at the top of the stack.
    fn has_changed_shared(&self, tid: Tid, stack: u64) -> bool {
        let space = self.kernel.process_of(tid).space;
        let map = &self.kernel.state.spaces[&space].map;
        let first = GuestAddr(stack.wrapping_sub(RED_ZONE)).page();
        let own: Vec<_> = (0..STACK_PAGES)
            .filter_map(|page| Some(map.pte(first.offset(page))?.frame))
            .collect();
        let mut changed = self.kernel.frames.changed();
        changed.any(|frame| !own.contains(&frame))
    }

    /// An aligned word of a thread's memory, if its page is present.
    fn word(&self, tid: Tid, at: u64) -> Option<u64> {
        let addr = GuestAddr(at);
        let space = self.kernel.process_of(tid).space;
        let pte = self.kernel.state.spaces[&space].map.pte(addr.page())?;
        let page = self.kernel.frames.bytes(pte.frame);
        let (words, _) = page.as_chunks::<WORD>();
        Some(u64::from_le_bytes(words[addr.page_offset() / WORD]))
    }
}
