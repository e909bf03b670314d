//! What gdb asks for, answered from a recorded run.

use std::convert::Infallible;

use gdbstub::common::{Signal, Tid};
use gdbstub::stub::MultiThreadStopReason;
use gdbstub::target::ext::auxv::{Auxv, AuxvOps};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadResume, MultiThreadResumeOps, MultiThreadSchedulerLocking,
    MultiThreadSchedulerLockingOps, MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::base::reverse_exec::{
    ReplayLogPosition, ReverseCont, ReverseContOps, ReverseStep, ReverseStepOps,
};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps,
    SwBreakpoint, SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::libraries::{LibrariesSvr4, LibrariesSvr4Ops};
use gdbstub::target::ext::section_offsets::{Offsets, SectionOffsets, SectionOffsetsOps};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult};
use raddle_sched::travel::{Direction, Halted, Rerun, Travel, Watched};
use raddle_stdx::width::{low_u32, to_u64, to_usize};
use raddle_world::{ContextId, Inspect as _, Loaded};

use super::libraries;
use super::registers::{Wire, X86_64};

/// What gdb wants next.
#[derive(Debug, Clone, Copy)]
enum Wish {
    Proceed(Direction),
    Step(ContextId, Direction),
}

/// A recorded run in conversation with gdb.
#[derive(Debug)]
pub(super) struct Session<R> {
    travel: Travel<R>,
    /// The program that is debugged, if a system has loaded one.
    loaded: Option<Loaded>,
    /// Its libraries, in the form that gdb wants.
    libraries: Option<String>,
    wish: Wish,
}

impl<R: Rerun> Session<R> {
    pub(super) fn new(mut travel: Travel<R>) -> Self {
        let world = travel.world_mut();
        let loaded = world.loaded();
        let libraries = loaded.as_ref();
        let libraries = libraries.and_then(|loaded| libraries::listed(world, loaded));
        Self {
            loaded,
            libraries,
            travel,
            wish: Wish::Proceed(Direction::Forward),
        }
    }

    /// Words for a thread that does not live now.
    fn label_of_absent(&self, who: ContextId) -> String {
        let mut all = self.travel.all_threads().iter();
        let label = all.find(|(id, _)| *id == who).map(|(_, label)| label);
        let label = label.map_or("", String::as_str);
        if self.travel.has_begun(who) {
            format!("{label}, ended")
        } else {
            format!("{label}, not begun")
        }
    }

    /// Does what gdb asked for and says where that ended.
    pub(super) fn go(&mut self) -> MultiThreadStopReason<u64> {
        let halted = match self.wish {
            Wish::Proceed(direction) => self.travel.proceed(direction),
            Wish::Step(who, direction) => self.travel.step(who, direction),
        };
        let current = tid(self.travel.current());
        match halted {
            Halted::Breakpoint(who) => MultiThreadStopReason::SwBreak(tid(who)),
            Halted::Watch { context, watched } => MultiThreadStopReason::Watch {
                tid: tid(context),
                kind: kind(watched),
                addr: watched.addr,
            },
            Halted::Stepped(who) => MultiThreadStopReason::SignalWithThread {
                tid: tid(who),
                signal: Signal::SIGTRAP,
            },
            Halted::Begin => MultiThreadStopReason::ReplayLog {
                tid: Some(current),
                pos: ReplayLogPosition::Begin,
            },
            Halted::End => MultiThreadStopReason::ReplayLog {
                tid: Some(current),
                pos: ReplayLogPosition::End,
            },
        }
    }
}

/// gdb counts threads from one.
fn tid(who: ContextId) -> Tid {
    Tid::MIN.saturating_add(to_usize(u64::from(who.0)))
}

fn context(tid: Tid) -> ContextId {
    ContextId(low_u32(to_u64(tid.get() - 1)))
}

fn kind(watched: Watched) -> WatchKind {
    match (watched.reads, watched.writes) {
        (true, true) => WatchKind::ReadWrite,
        (true, false) => WatchKind::Read,
        _ => WatchKind::Write,
    }
}

impl<R: Rerun> Target for Session<R> {
    type Arch = X86_64;
    type Error = Infallible;

    fn base_ops(&mut self) -> BaseOps<'_, Self::Arch, Self::Error> {
        BaseOps::MultiThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_section_offsets(&mut self) -> Option<SectionOffsetsOps<'_, Self>> {
        self.loaded.is_some().then_some(self)
    }

    fn support_libraries_svr4(&mut self) -> Option<LibrariesSvr4Ops<'_, Self>> {
        self.libraries.is_some().then_some(self)
    }

    fn support_auxv(&mut self) -> Option<AuxvOps<'_, Self>> {
        self.loaded.is_some().then_some(self)
    }
}

impl<R: Rerun> MultiThreadBase for Session<R> {
    fn read_registers(&mut self, registers: &mut Wire, tid: Tid) -> TargetResult<(), Self> {
        let who = context(tid);
        let cpu = self.travel.world().cpu(who);
        *registers = Wire(cpu.filter(|_| self.travel.is_live(who)).cloned());
        Ok(())
    }

    fn write_registers(&mut self, _: &Wire, _: Tid) -> TargetResult<(), Self> {
        Err(TargetError::NonFatal)
    }

    fn read_addrs(&mut self, start: u64, data: &mut [u8], tid: Tid) -> TargetResult<usize, Self> {
        match self
            .travel
            .world_mut()
            .read_bytes(context(tid), start, data)
        {
            0 => Err(TargetError::NonFatal),
            count => Ok(count),
        }
    }

    fn write_addrs(&mut self, _: u64, _: &[u8], _: Tid) -> TargetResult<(), Self> {
        Err(TargetError::NonFatal)
    }

    fn list_active_threads(&mut self, register: &mut dyn FnMut(Tid)) -> Result<(), Self::Error> {
        // The first one is what gdb selects when it connects. Threads that have not begun, or have ended, are listed, too:
        // gdb would give them other numbers each time they come back.
        let current = self.travel.current();
        register(tid(current));
        for (who, _) in self.travel.all_threads() {
            if *who != current {
                register(tid(*who));
            }
        }
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl<R: Rerun> ThreadExtraInfo for Session<R> {
    fn thread_extra_info(&self, tid: Tid, buffer: &mut [u8]) -> Result<usize, Self::Error> {
        let who = context(tid);
        let live = self.travel.threads();
        let label = live.into_iter().find(|(id, _)| *id == who);
        let text = label.map_or_else(|| self.label_of_absent(who), |(_, label)| label);
        let text = text.as_bytes();
        let count = text.len().min(buffer.len());
        buffer[..count].copy_from_slice(&text[..count]);
        Ok(count)
    }
}

impl<R: Rerun> MultiThreadResume for Session<R> {
    fn resume(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> Result<(), Self::Error> {
        self.wish = Wish::Proceed(Direction::Forward);
        Ok(())
    }

    /// The recording says who runs; all go on together.
    fn set_resume_action_continue(&mut self, _: Tid, _: Option<Signal>) -> Result<(), Self::Error> {
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }

    fn support_reverse_step(&mut self) -> Option<ReverseStepOps<'_, Tid, Self>> {
        Some(self)
    }

    fn support_reverse_cont(&mut self) -> Option<ReverseContOps<'_, Tid, Self>> {
        Some(self)
    }
}

/// gdb asks for it to step over a breakpoint. A recording cannot hold the others back, and need not: its
/// breakpoints are not in memory, so that no thread can miss one.
impl<R: Rerun> MultiThreadSchedulerLocking for Session<R> {
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl<R: Rerun> MultiThreadSingleStep for Session<R> {
    fn set_resume_action_step(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), Self::Error> {
        self.wish = Wish::Step(context(tid), Direction::Forward);
        Ok(())
    }
}

impl<R: Rerun> ReverseStep<Tid> for Session<R> {
    fn reverse_step(&mut self, tid: Tid) -> Result<(), Self::Error> {
        self.wish = Wish::Step(context(tid), Direction::Backward);
        Ok(())
    }
}

impl<R: Rerun> ReverseCont<Tid> for Session<R> {
    fn reverse_cont(&mut self) -> Result<(), Self::Error> {
        self.wish = Wish::Proceed(Direction::Backward);
        Ok(())
    }
}

impl<R: Rerun> Breakpoints for Session<R> {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl<R: Rerun> SwBreakpoint for Session<R> {
    fn add_sw_breakpoint(&mut self, addr: u64, _: usize) -> TargetResult<bool, Self> {
        self.travel.set_breakpoint(addr, true);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, addr: u64, _: usize) -> TargetResult<bool, Self> {
        self.travel.set_breakpoint(addr, false);
        Ok(true)
    }
}

impl<R: Rerun> HwBreakpoint for Session<R> {
    fn add_hw_breakpoint(&mut self, addr: u64, _: usize) -> TargetResult<bool, Self> {
        self.travel.set_breakpoint(addr, true);
        Ok(true)
    }

    fn remove_hw_breakpoint(&mut self, addr: u64, _: usize) -> TargetResult<bool, Self> {
        self.travel.set_breakpoint(addr, false);
        Ok(true)
    }
}

fn watched(addr: u64, len: u64, kind: WatchKind) -> Watched {
    Watched {
        addr,
        len,
        reads: kind != WatchKind::Write,
        writes: kind != WatchKind::Read,
    }
}

impl<R: Rerun> HwWatchpoint for Session<R> {
    fn add_hw_watchpoint(
        &mut self,
        addr: u64,
        len: u64,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        self.travel.set_watched(watched(addr, len, kind), true);
        Ok(true)
    }

    fn remove_hw_watchpoint(
        &mut self,
        addr: u64,
        len: u64,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        self.travel.set_watched(watched(addr, len, kind), false);
        Ok(true)
    }
}

impl<R: Rerun> SectionOffsets for Session<R> {
    fn get_section_offsets(&mut self) -> Result<Offsets<u64>, Self::Error> {
        Ok(Offsets::Segments {
            text_seg: self.loaded.as_ref().map_or(0, |loaded| loaded.at),
            data_seg: None,
        })
    }
}

impl<R: Rerun> Auxv for Session<R> {
    fn get_auxv(&self, offset: u64, length: usize, buffer: &mut [u8]) -> TargetResult<usize, Self> {
        let all = self.loaded.as_ref().map_or(&[][..], |loaded| &loaded.auxv);
        Ok(libraries::piece(all, offset, length, buffer))
    }
}

impl<R: Rerun> LibrariesSvr4 for Session<R> {
    fn get_libraries_svr4(
        &self,
        offset: u64,
        length: usize,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        let all = self.libraries.as_deref().unwrap_or_default().as_bytes();
        Ok(libraries::piece(all, offset, length, buffer))
    }
}
