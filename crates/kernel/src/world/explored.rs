//! The explored part of a run: a scheduler decides which processor goes on.

use raddle_pc::machine::{Bounds, MachineStop, Power, Rehearsed};
use raddle_stdx::width::{low_u16, low_u32, to_u64};
use raddle_world::{
    ContextId, ContextTable, Duration, Event, JudgeLiveness, Location, PassPoints, Passage,
    Pending, PendingKind, Rehearse, Section, Site, Snapshot, Standstill, Stop, Until, WordsRead,
    World,
};

use super::call::Answered;
use super::heuristics::{PAUSE_LOOP, Pause};
use super::phases::unsupported;
use super::ski_liveness::SkiLiveness;
use super::{Heuristic, KernelWorld, Phase, RunEnd, Switch};

impl KernelWorld {
    /// Two pauses of a processor within so many instructions mean that it waits (SKI's h2), and so does a loop of so
    /// many instructions that makes no progress (h3).
    pub fn set_pause_window(&mut self, instructions: u64) {
        self.pause_window = instructions;
    }

    /// Whether two pauses at one place that are further apart mean it, too.
    pub fn set_long_pause_loops(&mut self, wanted: bool) {
        self.pause_loop = if wanted { PAUSE_LOOP } else { 0 };
    }

    /// Flags exactly these instructions of the kernel.
    pub fn set_points(&mut self, points: &[Site]) {
        let addresses: Vec<u64> = points.iter().map(|site| site.pc()).collect();
        self.refresh_points(Some(&addresses));
    }

    /// Names the points that are never passed.
    pub(super) fn set_interest(&mut self, points: &[Site]) {
        // Most schedulers name none, and a comparison of nothing is still a call.
        if self.interest.is_empty() && points.is_empty() {
            return;
        }
        if self.interest != points {
            self.interest.clear();
            self.interest.extend_from_slice(points);
            self.refresh_interest();
        }
    }

    /// What a stop of the machine means; none if the processor just goes on.
    fn explored_stop(&mut self, cpu: usize, stop: MachineStop) -> Option<Stop> {
        self.state.at_point[cpu] = None;
        match stop {
            MachineStop::Steps => Some(Stop::Steps),
            MachineStop::Idle => {
                self.state.has_slept |= !self.state.is_through[cpu];
                self.note_heuristic(Heuristic::Halted, cpu);
                Some(Stop::Blocked)
            }
            MachineStop::Pause => {
                let is_waiting = self.is_waiting(cpu);
                let (who, step) = (self.executing(cpu), self.machine.steps(cpu));
                let is_counted = match &mut self.ski {
                    Some(ski) => ski.pause(who, step).is_some(),
                    None => is_waiting,
                };
                if is_counted {
                    self.note_heuristic(Heuristic::Paused, cpu);
                }
                is_waiting.then_some(Stop::Yielded)
            }
            MachineStop::Point(pc) => {
                self.state.at_point[cpu] = Some(pc.0);
                let is_scheduled = self.at_sync_point(cpu, pc.0);
                (is_scheduled && !self.has_ended(cpu)).then_some(Stop::Point {
                    site: Site::first(pc.0),
                })
            }
            MachineStop::LogFull | MachineStop::Line => None,
            // News only if another context can be chosen now.
            MachineStop::Arrival => {
                (self.dispatchable() > self.state.could_dispatch).then_some(Stop::Sync)
            }
            MachineStop::Window => Some(Stop::Sync),
            MachineStop::InterruptDone => Some(Stop::Blocked),
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
                let what = unsupported(rip, &bytes);
                self.finish(RunEnd::Unsupported(what.clone()));
                Some(Stop::Unsupported(what))
            }
        }
    }

    /// Whether a processor that has just paused waits for another one.
    fn is_waiting(&mut self, cpu: usize) -> bool {
        let now = Pause {
            steps: self.machine.steps(cpu),
            pc: self.machine.cpu(cpu).rip,
        };
        let before = self.state.paused[cpu].replace(now);
        before.is_some_and(|before| now.closes_loop(before, self.pause_window, self.pause_loop))
    }

    fn note_heuristic(&mut self, which: Heuristic, cpu: usize) {
        self.heuristics.note(which, self.machine.cpu(cpu).rip);
    }

    /// The stop of a run that is over; the status is not what counts, [`KernelWorld::end`] is.
    fn done(&self) -> Stop {
        match &self.state.end {
            Some(RunEnd::Unsupported(what)) => Stop::Unsupported(what.clone()),
            _ => Stop::WorldDone { status: 0 },
        }
    }

    /// Whether the test thread of a processor is through, so that what the processor does belongs to no test.
    pub(super) fn has_ended(&self, cpu: usize) -> bool {
        !self.is_debugged && self.state.is_through[cpu]
    }

    /// Adds a switch to the digest of the run; how a stretch was cut into slices does not matter.
    fn note_switch(&mut self, to: usize) {
        let from = std::mem::replace(&mut self.state.running, to);
        if from != to {
            let steps = self.machine.steps(from);
            self.state.run_digest.word(to_u64(from));
            self.state.run_digest.word(steps);
            if self.notes_switches {
                self.push_switch(from, None);
            }
        }
    }

    fn push_switch(&mut self, from: usize, interrupt: Option<u8>) {
        let switch = Switch {
            from,
            interrupt,
            pc: self.machine.cpu(from).rip,
            is_idle: self.machine.power(from) != Power::Running,
            progress: self.progress(),
            locks: self.held_locks(from).map(locks_of),
        };
        self.state.switches.push(switch);
    }

    /// Whether a run was stopped for a debugger only, where no scheduler would have been asked.
    fn is_at_breakpoint(&self, cpu: usize) -> bool {
        self.is_debugged && self.state.at_point[cpu] == Some(self.machine.cpu(cpu).rip)
    }

    /// Nanoseconds that the test still has.
    fn time_left(&self) -> u64 {
        let passed = self.machine.now() - self.state.test_began;
        self.time_max.saturating_sub(passed)
    }

    /// An aligned word of physical memory.
    fn word(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        self.machine.read_physical(at, &mut bytes);
        u64::from_le_bytes(bytes)
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
        let cpu = self.processor(who);
        let site = self.site(who);
        let access = self.machine.next_access(cpu);
        let kind = match access {
            Some(access) if self.executing(cpu) == who => {
                let physical = self.machine.physical(cpu, access.addr);
                PendingKind::Access {
                    addr: access.addr,
                    location: physical.map(location),
                    size: access.size,
                    reads: access.reads,
                    writes: access.writes,
                    atomic: access.atomic,
                }
            }
            _ => PendingKind::Local,
        };
        Pending { site, kind }
    }

    fn run(&mut self, who: ContextId, until: Until) -> Stop {
        let passage = Passage {
            points: 0,
            never: &[],
        };
        self.run_passing(who, until, passage).0
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

    fn recycle_events(&mut self, mut events: Vec<Event>) {
        if self.events.is_empty() {
            events.clear();
            self.events = events;
        }
    }

    fn site(&self, who: ContextId) -> Site {
        Site::first(self.machine.cpu(self.processor(who)).rip)
    }

    fn register_digest(&self, who: ContextId) -> u64 {
        self.machine.register_digest(self.processor(who))
    }

    /// Schedules of kernels have no jumps of the clock: ticks come too often for each to be a choice. Where runs stop at
    /// calls, a call that sleeps while all others are held needs them.
    fn until_deadline(&self) -> Option<Duration> {
        let deadline = self.machine.bus().next_event()?;
        let wait = deadline.saturating_sub(self.machine.now());
        self.stops_at_calls().then_some(Duration(wait))
    }

    /// Calls are instructions of the kernel like any other.
    fn is_entering_call(&self, _: ContextId) -> bool {
        false
    }

    fn passing(&mut self) -> Option<&mut dyn PassPoints> {
        Some(self)
    }

    fn rehearsing(&mut self) -> Option<&mut dyn Rehearse> {
        Some(self)
    }

    fn judging(&mut self) -> Option<&mut dyn JudgeLiveness> {
        self.ski.as_ref()?;
        Some(self)
    }

    fn state_digest(&mut self) -> u64 {
        self.machine.digest()
    }
}

/// An interrupt that has its own context is another context.
impl Rehearse for KernelWorld {
    fn rehearse(&mut self, who: ContextId, steps_max: u64) -> Option<Standstill> {
        let cpu = self.processor(who);
        if self.executing(cpu) != who {
            return None;
        }
        let mut words = WordsRead::default();
        let rehearsed = self
            .machine
            .rehearse(cpu, steps_max, &mut |at, size| words.note(at, size));
        let Rehearsed::ComesRound { is_felt } = rehearsed else {
            return None;
        };
        words.is_felt = is_felt;
        words.standstill(|at| Some(self.word(at)))
    }

    fn stands_still(&mut self, who: ContextId, standstill: &Standstill) -> bool {
        let mut words = standstill.words.iter();
        let cpu = self.processor(who);
        let is_interrupted = !self.schedules_interrupts && self.machine.dispatchable(cpu).is_some();
        !is_interrupted && words.all(|(at, value)| self.word(*at) == *value)
    }
}

impl PassPoints for KernelWorld {
    fn run_passing(&mut self, who: ContextId, until: Until, passage: Passage<'_>) -> (Stop, u64) {
        let Passage { points, never } = passage;
        let cpu = self.processor(who);
        let mut left = until.steps_max();
        let mut points_left = points;
        self.set_interest(never);
        self.note_switch(cpu);
        if let Some(ski) = &mut self.ski {
            ski.goes_on(who);
        }
        if left > 0 && self.executing(cpu) != who {
            debug_assert_eq!(self.machine.dispatchable(cpu), self.vector(who));
            if self.notes_switches {
                self.push_switch(cpu, self.vector(who));
            }
            self.machine.dispatch(cpu);
        }
        let stop = loop {
            if !self.is_at_breakpoint(cpu) && self.is_over() {
                break self.done();
            }
            let steps = (self.machine.steps(cpu), self.state.contexts.get(who).steps);
            let at_point = self.state.at_point[cpu];
            // Points behind the end of a thread belong to no test.
            let has_ended = self.has_ended(cpu);
            self.state.could_dispatch = self.dispatchable();
            // The end of the time is no matter of how a run is cut into slices, and neither is the kernel's death, of which
            // whole lines tell.
            let time_left = self.time_left().saturating_add(1);
            let judged = self.ski.as_ref().map_or(u64::MAX, SkiLiveness::slice);
            let bounds = Bounds {
                steps: left.min(time_left).min(judged).min(self.look_after()),
                stop_at_pause: true,
                stop_at_line: true,
                skip_point: at_point == Some(self.machine.cpu(cpu).rip),
                pass_points: if has_ended { u64::MAX } else { points_left },
                interrupts: self.interrupt_mode(),
            };
            let ran = self.run_machine(who, cpu, bounds);
            left -= ran.steps;
            if !has_ended {
                points_left -= ran.passed;
            }
            self.state.contexts.get_mut(who).steps += ran.steps;
            self.judge_accesses(who, ran.steps);
            self.drain_accesses(who, steps);
            self.drain_console();
            if self.stops_at_calls()
                && ran.stop == MachineStop::Steps
                && left > 0
                && self.look_at_calls(cpu)
            {
                break Stop::Sync;
            }
            let has_news = self.ski.as_ref().is_some_and(SkiLiveness::has_news);
            let is_time_only = ran.stop == MachineStop::Steps && left > 0;
            if is_time_only && has_news {
                break Stop::Sync;
            }
            if let Some(stop) = self.explored_stop(cpu, ran.stop).filter(|_| !is_time_only) {
                break stop;
            }
        };
        self.look_at_calls(cpu);
        let may_be_over = self.state.phase == Phase::Test && !self.is_at_breakpoint(cpu);
        let is_over = may_be_over && self.is_over();
        self.refresh_liveness();
        let stop = if is_over { self.done() } else { stop };
        (stop, points - points_left)
    }
}

fn locks_of(sections: &[Section]) -> Vec<u64> {
    sections.iter().map(|section| section.lock).collect()
}

/// Where a physical address is: the memory of a machine is the same for all its processors.
pub(super) fn location(physical: u64) -> Location {
    Location::shared(low_u32(physical >> 12), low_u16(physical & 0xFFF))
}
