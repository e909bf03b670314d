//! The explored part of a run: a scheduler decides which processor goes on.

use raddle_pc::machine::{Bounds, MachineStop};
use raddle_stdx::width::{low_u16, low_u32, to_u64};
use raddle_world::{
    ContextId, ContextTable, Event, EventKind, Location, Pending, PendingKind, Snapshot, Stop,
    Until, World,
};
use raddle_x86::{LogKind, Observe};

use super::call::Answered;
use super::phases::unsupported;
use super::{KernelWorld, Phase, RunEnd, Switch, context_of};

/// First address of the kernel's half.
const KERNEL_HALF: u64 = 1 << 63;

impl KernelWorld {
    /// Watches memory accesses of the kernel from the next run on.
    pub fn set_observe(&mut self, observes: bool) {
        self.observes = observes;
        let mode = if observes {
            Observe::Addr
        } else {
            Observe::None
        };
        self.machine.engine_mut().set_observe(mode);
        self.machine.engine_mut().clear_log();
    }

    /// Flags exactly these instructions of the kernel.
    pub fn set_points(&mut self, points: &[u64]) {
        self.machine
            .engine_mut()
            .set_points(points.iter().copied().collect());
    }

    fn drain_accesses(&mut self, cpu: usize, first_step: u64) {
        if !self.observes {
            return;
        }
        let records: Vec<_> = self
            .machine
            .engine_mut()
            .log()
            .records()
            .filter(|record| record.pc >= KERNEL_HALF && record.addr >= KERNEL_HALF)
            .collect();
        self.machine.engine_mut().clear_log();
        let mut known = (u64::MAX, 0);
        for record in records {
            let page = record.addr >> 12;
            if known.0 != page {
                let Some(physical) = self.machine.physical(cpu, record.addr) else {
                    continue;
                };
                known = (page, physical >> 12);
            }
            let location = Location {
                frame: low_u32(known.1),
                offset: low_u16(record.addr & 0xFFF),
            };
            let (addr, value) = (record.addr, record.value);
            let size = u8::try_from(record.size).unwrap_or(u8::MAX);
            let kind = match record.kind {
                LogKind::Read | LogKind::Block => EventKind::Read {
                    addr,
                    location,
                    size,
                    value,
                },
                LogKind::Write => EventKind::Write {
                    addr,
                    location,
                    size,
                    value,
                },
                LogKind::Update | LogKind::AtomicUpdate => EventKind::Update {
                    addr,
                    location,
                    size,
                    value,
                    atomic: record.kind == LogKind::AtomicUpdate,
                },
            };
            self.events.push(Event {
                context: context_of(cpu),
                step: first_step + record.step,
                pc: record.pc,
                kind,
            });
        }
    }

    /// What a stop of the machine means; none if the processor just goes on.
    fn explored_stop(&mut self, cpu: usize, stop: MachineStop) -> Option<Stop> {
        self.state.at_point[cpu] = None;
        match stop {
            MachineStop::Steps => Some(Stop::Steps),
            MachineStop::Idle => Some(Stop::Blocked),
            MachineStop::Pause => Some(Stop::Yielded),
            MachineStop::Point(pc) => {
                self.state.at_point[cpu] = Some(pc.0);
                Some(Stop::Point { pc: pc.0 })
            }
            MachineStop::LogFull => None,
            MachineStop::Hypercall => match self.answer(cpu) {
                Answered::GoesOn | Answered::Waits => None,
                Answered::ThreadEnded if to_u64(self.state.ended.len()) >= self.state.threads => {
                    self.run_checks();
                    Some(self.done())
                }
                Answered::ThreadEnded => Some(Stop::Sync),
                Answered::Over => Some(self.done()),
            },
            MachineStop::Reset | MachineStop::Shutdown => {
                self.finish(RunEnd::Reset);
                Some(self.done())
            }
            MachineStop::Unsupported { rip, bytes } => {
                let text = unsupported(rip, &bytes);
                self.finish(RunEnd::Unsupported(text.clone()));
                Some(Stop::Unsupported(text))
            }
        }
    }

    /// The stop of a run that is over; the status is not what counts, [`KernelWorld::end`] is.
    fn done(&self) -> Stop {
        match &self.state.end {
            Some(RunEnd::Unsupported(text)) => Stop::Unsupported(text.clone()),
            _ => Stop::WorldDone { status: 0 },
        }
    }

    /// Adds a switch to the digest of the run; how a stretch was cut into slices does not matter.
    fn note_switch(&mut self, to: usize) {
        let from = std::mem::replace(&mut self.state.running, to);
        if from != to {
            let steps = self.machine.steps(from);
            self.state.run_digest.word(to_u64(from));
            self.state.run_digest.word(steps);
            if self.notes_switches {
                let switch = Switch {
                    from,
                    to,
                    pc: self.machine.cpu(from).rip,
                    steps,
                    progress: self.progress(),
                };
                self.state.switches.push(switch);
            }
        }
    }

    /// Ends the run if the kernel has died or the time is over.
    fn is_over(&mut self) -> bool {
        if self.state.phase == Phase::Done {
            return true;
        }
        if self.state.console.has_test_output() && self.state.console.tells_death() {
            self.finish(RunEnd::Crashed);
            return true;
        }
        if self.machine.now() - self.state.test_began > self.time_max {
            self.finish(RunEnd::Stuck);
            return true;
        }
        false
    }
}

impl World for KernelWorld {
    fn contexts(&self) -> &ContextTable {
        &self.state.contexts
    }

    fn pending(&mut self, who: ContextId) -> Pending {
        Pending {
            pc: self.machine.cpu(who.0 as usize).rip,
            kind: PendingKind::Local,
        }
    }

    fn run(&mut self, who: ContextId, until: Until) -> Stop {
        let cpu = who.0 as usize;
        let mut left = until.steps_max();
        self.note_switch(cpu);
        let stop = loop {
            if self.is_over() {
                break self.done();
            }
            let first_step = self.machine.steps(cpu);
            let at_point = self.state.at_point[cpu];
            let ran = self.machine.run(
                cpu,
                Bounds {
                    steps: left,
                    stop_at_pause: true,
                    skip_point: at_point == Some(self.machine.cpu(cpu).rip),
                },
            );
            left -= ran.steps;
            self.drain_accesses(cpu, first_step);
            self.drain_console();
            if let Some(stop) = self.explored_stop(cpu, ran.stop) {
                break stop;
            }
        };
        if self.state.phase == Phase::Test && self.is_over() {
            self.refresh_liveness();
            return self.done();
        }
        self.refresh_liveness();
        stop
    }

    fn advance_time(&mut self) -> bool {
        let jumped = self.machine.skip_to_timer();
        self.refresh_liveness();
        jumped && self.machine.now() - self.state.test_began <= self.time_max
    }

    fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn snapshot(&mut self) -> Snapshot {
        let moment = self.machine.snapshot();
        self.saved.push((moment, self.state.clone()));
        Snapshot(self.saved.len() - 1)
    }

    fn restore(&mut self, to: Snapshot) {
        self.saved.truncate(to.0 + 1);
        let (moment, state) = &self.saved[to.0];
        self.machine.restore(*moment);
        self.state.clone_from(state);
        self.events.clear();
    }

    fn register_digest(&self, who: ContextId) -> u64 {
        self.machine.register_digest(who.0 as usize)
    }

    fn state_digest(&mut self) -> u64 {
        self.machine.digest()
    }
}
