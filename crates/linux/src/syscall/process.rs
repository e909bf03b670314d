//! Process identity, groups, sessions, execve; wait is in `waiting`.

use raddle_world::Lacking;

use crate::call::{Call, SysResult, Trouble};
use crate::errno::Errno;
use crate::exec::{self, Request};
use crate::process::{INIT, Pid};
use crate::syscall::table::Entry;
use crate::syscall::{not_permitted, waiting};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("getpid", getpid),
    Entry::full("getppid", getppid),
    Entry::full("execve", execve),
    Entry::partial(
        "execveat",
        execveat,
        "only with an absolute path or AT_FDCWD",
    ),
    Entry::full("wait4", waiting::wait4),
    Entry::full("waitid", waiting::waitid),
    Entry::full("setpgid", setpgid),
    Entry::full("getpgrp", getpgrp),
    Entry::full("setsid", setsid),
    Entry::full("getpgid", getpgid),
    Entry::full("getsid", getsid),
    Entry::refused(
        "ptrace",
        not_permitted,
        "EPERM: a program cannot trace another one here",
    ),
    Entry::refused("unshare", not_permitted, "EPERM: there are no namespaces"),
    Entry::refused("setns", not_permitted, "EPERM: there are no namespaces"),
    Entry::refused(
        "chroot",
        not_permitted,
        "EPERM: there is one root directory",
    ),
    Entry::refused(
        "process_vm_readv",
        not_permitted,
        "EPERM: memory of other processes",
    ),
    Entry::refused(
        "process_vm_writev",
        not_permitted,
        "EPERM: memory of other processes",
    ),
    Entry::refused("kcmp", not_permitted, "EPERM: comparing kernel objects"),
];

fn getpid(call: &mut Call<'_>) -> SysResult {
    Ok(u64::from(call.kernel.thread(call.tid).process.0))
}

fn getppid(call: &mut Call<'_>) -> SysResult {
    Ok(u64::from(call.kernel.process_of(call.tid).parent.0))
}

/// Longest path or argument.
const STRING_MAX: usize = 128 << 10;
/// Most arguments or environment strings.
const STRINGS_MAX: usize = 1 << 18;

fn execve(call: &mut Call<'_>) -> SysResult {
    let [path, arguments, environment, ..] = call.args;
    run(call, path, arguments, environment)
}

fn execveat(call: &mut Call<'_>) -> SysResult {
    const CURRENT_DIRECTORY: i32 = -100;
    let [_, path, arguments, environment, flags, _] = call.args;
    let name = call.kernel.read_string(call.tid, path, 4095)?;
    if flags != 0 || (call.int(0) != CURRENT_DIRECTORY && !name.starts_with(b"/")) {
        return Err(Trouble::Unsupported(Lacking::Arguments(
            "execveat with a descriptor or flags".into(),
        )));
    }
    run(call, path, arguments, environment)
}

fn run(call: &mut Call<'_>, path: u64, arguments: u64, environment: u64) -> SysResult {
    let path = call.kernel.read_string(call.tid, path, 4095)?;
    if path.is_empty() {
        return Err(Errno::ENOENT.into());
    }
    let mut arguments = read_strings(call, arguments)?;
    if arguments.is_empty() {
        arguments.push(Vec::new());
    }
    let environment = read_strings(call, environment)?;
    let request = Request {
        path,
        arguments,
        environment,
    };
    match exec::exec(call.kernel, call.tid, request) {
        Ok(()) => Err(Trouble::NoReturn),
        Err(error) => Err(error.errno().into()),
    }
}

fn read_strings(call: &mut Call<'_>, at: u64) -> Result<Vec<Vec<u8>>, Errno> {
    let mut strings = Vec::new();
    if at == 0 {
        return Ok(strings);
    }
    for index in 0_u64.. {
        let pointer = call.kernel.read_u64(call.tid, at.wrapping_add(index * 8))?;
        if pointer == 0 {
            break;
        }
        if strings.len() == STRINGS_MAX {
            return Err(Errno::E2BIG);
        }
        let text = call
            .kernel
            .read_string(call.tid, pointer, STRING_MAX)
            .map_err(|errno| match errno {
                Errno::ENAMETOOLONG => Errno::E2BIG,
                other => other,
            })?;
        strings.push(text);
    }
    Ok(strings)
}

/// The process that an argument names; 0 is the caller's own.
fn target(call: &Call<'_>, index: usize) -> Result<Pid, Errno> {
    match call.int(index) {
        0 => Ok(call.kernel.thread(call.tid).process),
        number if number > 0 => {
            let pid = Pid(number.cast_unsigned());
            if call.kernel.state.processes.contains_key(&pid) || pid == INIT {
                Ok(pid)
            } else {
                Err(Errno::ESRCH)
            }
        }
        _ => Err(Errno::ESRCH),
    }
}

fn getpgid(call: &mut Call<'_>) -> SysResult {
    let pid = target(call, 0)?;
    Ok(u64::from(
        call.kernel
            .state
            .processes
            .get(&pid)
            .map_or(INIT.0, |process| process.group.0),
    ))
}

fn getpgrp(call: &mut Call<'_>) -> SysResult {
    Ok(u64::from(call.kernel.process_of(call.tid).group.0))
}

fn getsid(call: &mut Call<'_>) -> SysResult {
    let pid = target(call, 0)?;
    Ok(u64::from(
        call.kernel
            .state
            .processes
            .get(&pid)
            .map_or(INIT.0, |process| process.session.0),
    ))
}

fn setpgid(call: &mut Call<'_>) -> SysResult {
    let own = call.kernel.thread(call.tid).process;
    let session = call.kernel.process(own).session;
    let pid = target(call, 0)?;
    let group = match call.int(1) {
        0 => pid,
        number if number > 0 => Pid(number.cast_unsigned()),
        _ => return Err(Errno::EINVAL.into()),
    };
    let Some(process) = call.kernel.state.processes.get(&pid) else {
        return Err(Errno::ESRCH.into());
    };
    if pid != own && process.parent != own {
        return Err(Errno::ESRCH.into());
    }
    if process.session != session || process.session == pid {
        return Err(Errno::EPERM.into());
    }
    let group_exists = call
        .kernel
        .state
        .processes
        .values()
        .any(|other| other.group == group && other.session == session);
    if group != pid && !group_exists {
        return Err(Errno::EPERM.into());
    }
    call.kernel.process_mut(pid).group = group;
    Ok(0)
}

fn setsid(call: &mut Call<'_>) -> SysResult {
    let pid = call.kernel.thread(call.tid).process;
    let is_leader = call
        .kernel
        .state
        .processes
        .values()
        .any(|process| process.group == pid);
    if is_leader {
        return Err(Errno::EPERM.into());
    }
    let process = call.kernel.process_mut(pid);
    process.session = pid;
    process.group = pid;
    Ok(u64::from(pid.0))
}
