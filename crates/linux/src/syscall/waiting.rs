//! wait4 and waitid.

use raddle_world::WaitReason;

use crate::call::{Block, Call, OnSignal, SysResult, Trouble, WaitKey};
use crate::errno::Errno;
use crate::life;
use crate::process::{Life, Pid, Process, Report};
use crate::signal::{SIGCHLD, SIGCONT, SIGINFO_SIZE, SigInfo, code};
use crate::syscall::event::process_at;
use crate::syscall::misc::usage_bytes;

/// Options of wait4 and waitid.
mod options {
    pub(super) const NOHANG: i32 = 1;
    pub(super) const STOPPED: i32 = 2;
    pub(super) const EXITED: i32 = 4;
    pub(super) const CONTINUED: i32 = 8;
    pub(super) const NOWAIT: i32 = 0x0100_0000;
    /// Linux-only: __WNOTHREAD, __WALL, __WCLONE.
    pub(super) const LINUX: i32 = 0xE000_0000_u32.cast_signed();
    pub(super) const ALL: i32 = 0x4000_0000;
    pub(super) const CLONE: i32 = 0x8000_0000_u32.cast_signed();
}

/// Which children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Selection {
    Any,
    One(Pid),
    Group(Pid),
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Exited { pid: Pid, status: i32 },
    Stopped { pid: Pid, signal: u32 },
    Continued { pid: Pid },
}

impl Found {
    fn pid(self) -> Pid {
        match self {
            Self::Exited { pid, .. } | Self::Stopped { pid, .. } | Self::Continued { pid } => pid,
        }
    }

    /// The status word of wait4.
    fn status(self) -> i32 {
        match self {
            Self::Exited { status, .. } => status,
            Self::Stopped { signal, .. } => (signal.cast_signed() << 8) | 0x7F,
            Self::Continued { .. } => 0xFFFF,
        }
    }

    fn info(self) -> SigInfo {
        match self {
            Self::Exited { pid, status } if status & 0x7F == 0 => {
                life::child_info(SIGCHLD, code::CLD_EXITED, pid, status)
            }
            Self::Exited { pid, status } => {
                life::child_info(SIGCHLD, code::CLD_KILLED, pid, status)
            }
            Self::Stopped { pid, signal } => {
                SigInfo::child(SIGCHLD, code::CLD_STOPPED, pid.0, 0, signal.cast_signed())
            }
            Self::Continued { pid } => SigInfo::child(
                SIGCHLD,
                code::CLD_CONTINUED,
                pid.0,
                0,
                SIGCONT.cast_signed(),
            ),
        }
    }
}

pub(super) fn wait4(call: &mut Call<'_>) -> SysResult {
    let wanted = call.int(2);
    let known = options::NOHANG | options::STOPPED | options::CONTINUED | options::LINUX;
    if wanted & !known != 0 {
        return Err(Errno::EINVAL.into());
    }
    let own_group = call.kernel.process_of(call.tid).group;
    let selection = match call.int(0) {
        -1 => Selection::Any,
        0 => Selection::Group(own_group),
        number if number > 0 => Selection::One(Pid(number.cast_unsigned())),
        number => Selection::Group(Pid(number.unsigned_abs())),
    };
    let Some(found) = search(call, selection, wanted | options::EXITED)? else {
        return Ok(0);
    };
    if call.args[1] != 0 {
        call.write_bytes(call.args[1], &found.status().to_le_bytes())?;
    }
    if call.args[3] != 0 {
        let usage = call.kernel.process(found.pid()).usage;
        call.write_bytes(call.args[3], &usage_bytes(usage, 0))?;
    }
    consume(call, found);
    Ok(u64::from(found.pid().0))
}

pub(super) fn waitid(call: &mut Call<'_>) -> SysResult {
    let wanted = call.int(3);
    let kinds = options::EXITED | options::STOPPED | options::CONTINUED;
    if wanted & kinds == 0
        || wanted & !(kinds | options::NOHANG | options::NOWAIT | options::LINUX) != 0
    {
        return Err(Errno::EINVAL.into());
    }
    let id = Pid(raddle_stdx::width::low_u32(call.args[1]));
    let selection = match call.int(0) {
        0 => Selection::Any,
        1 => Selection::One(id),
        2 if id.0 == 0 => Selection::Group(call.kernel.process_of(call.tid).group),
        2 => Selection::Group(id),
        3 => Selection::One(process_at(call, 1)?),
        _ => return Err(Errno::EINVAL.into()),
    };
    let found = search(call, selection, wanted)?;
    if call.args[2] != 0 {
        let bytes = found.map_or([0; SIGINFO_SIZE], |found| found.info().to_bytes());
        // Linux writes only the fields, not the whole 128 bytes.
        call.write_bytes(call.args[2], &bytes[..48])?;
    }
    let Some(found) = found else {
        return Ok(0);
    };
    if call.args[4] != 0 {
        let usage = call.kernel.process(found.pid()).usage;
        call.write_bytes(call.args[4], &usage_bytes(usage, 0))?;
    }
    if wanted & options::NOWAIT == 0 {
        consume(call, found);
    }
    Ok(0)
}

/// Looks for a child that has something to report; blocks if there is none yet; `None` for WNOHANG.
fn search(
    call: &mut Call<'_>,
    selection: Selection,
    wanted: i32,
) -> Result<Option<Found>, Trouble> {
    let own = call.kernel.thread(call.tid).process;
    let mut has_child = false;
    let children = call.kernel.state.processes.values().filter(|process| {
        process.parent == own && is_selected(process, selection) && is_kind(process, wanted)
    });
    for child in children {
        has_child = true;
        if let Some(found) = report(child, wanted) {
            return Ok(Some(found));
        }
    }
    if !has_child {
        return Err(Errno::ECHILD.into());
    }
    if wanted & options::NOHANG != 0 {
        return Ok(None);
    }
    Err(Trouble::Block(Block {
        reason: WaitReason::Child,
        keys: vec![WaitKey::ChildOf(own.0)],
        deadline: None,
        on_signal: OnSignal::Restart,
    }))
}

fn is_selected(process: &Process, selection: Selection) -> bool {
    match selection {
        Selection::Any => true,
        Selection::One(pid) => process.pid == pid,
        Selection::Group(group) => process.group == group,
    }
}

/// Children that do not send SIGCHLD are only seen with __WALL or __WCLONE.
fn is_kind(process: &Process, wanted: i32) -> bool {
    wanted & options::ALL != 0 || (process.exit_signal != SIGCHLD) == (wanted & options::CLONE != 0)
}

fn report(child: &Process, wanted: i32) -> Option<Found> {
    let pid = child.pid;
    if let Life::Zombie(status) = child.life {
        return (wanted & options::EXITED != 0).then_some(Found::Exited { pid, status });
    }
    match child.unreported {
        Some(Report::Stopped(signal)) if wanted & options::STOPPED != 0 => {
            Some(Found::Stopped { pid, signal })
        }
        Some(Report::Continued) if wanted & options::CONTINUED != 0 => {
            Some(Found::Continued { pid })
        }
        _ => None,
    }
}

/// The report has been taken: it does not come again, and a zombie goes.
fn consume(call: &mut Call<'_>, found: Found) {
    let pid = found.pid();
    if !matches!(found, Found::Exited { .. }) {
        call.kernel.process_mut(pid).unreported = None;
        return;
    }
    let Some(child) = call.kernel.state.processes.remove(&pid) else {
        return;
    };
    let process = call.kernel.process_of_mut(call.tid);
    process.children_usage.add(child.usage);
    process.children_usage.add(child.children_usage);
}
