//! What fits nowhere else: uname, sysinfo, limits, usage, prctl, randomness.

use std::collections::BTreeMap;

use raddle_stdx::width::{low_u32, to_u64, to_usize};

use crate::call::{Call, SysResult, Trouble};
use crate::credentials::{Capability, Ids};
use crate::errno::Errno;
use crate::files;
use crate::process::{Pid, Usage};
use crate::signal::SIGMAX;
use crate::syscall::table::Entry;
use crate::syscall::{identity, no_such_call, not_permitted, thread};
use crate::time::{self, SECOND};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("uname", uname),
    Entry::full("getrlimit", getrlimit),
    Entry::partial(
        "getrusage",
        getrusage,
        "time, faults and switches; memory figures of the present",
    ),
    Entry::full("sysinfo", sysinfo),
    Entry::full("times", times),
    Entry::partial("syslog", syslog, "an empty log"),
    Entry::partial("personality", personality, "kept, without effect"),
    Entry::partial(
        "prctl",
        prctl,
        "names, death signal, dumpable, subreaper, no_new_privs, capabilities, secure bits; other options are EINVAL",
    ),
    Entry::partial(
        "setrlimit",
        setrlimit,
        "kept; RLIMIT_AS, RLIMIT_NOFILE and RLIMIT_FSIZE have effect",
    ),
    Entry::partial(
        "prlimit64",
        prlimit64,
        "kept; RLIMIT_AS, RLIMIT_NOFILE and RLIMIT_FSIZE have effect",
    ),
    Entry::full("getrandom", getrandom),
    Entry::refused(
        "sethostname",
        not_permitted,
        "EPERM: the host name is fixed",
    ),
    Entry::refused(
        "setdomainname",
        not_permitted,
        "EPERM: the domain name is fixed",
    ),
    Entry::refused("reboot", not_permitted, "EPERM: nothing to reboot"),
    Entry::refused("iopl", not_permitted, "EPERM: no ports"),
    Entry::refused("ioperm", not_permitted, "EPERM: no ports"),
    Entry::refused("init_module", not_permitted, "EPERM: no kernel modules"),
    Entry::refused("delete_module", not_permitted, "EPERM: no kernel modules"),
    Entry::refused("kexec_load", not_permitted, "EPERM: no other kernel"),
    Entry::refused(
        "perf_event_open",
        no_such_call,
        "ENOSYS: no performance counters",
    ),
    Entry::refused(
        "seccomp",
        seccomp,
        "EINVAL: as a kernel without seccomp filters",
    ),
    Entry::refused("bpf", not_permitted, "EPERM: no BPF"),
    Entry::refused("userfaultfd", no_such_call, "ENOSYS: no userfaultfd"),
    Entry::refused("add_key", no_such_call, "ENOSYS: no key rings"),
    Entry::refused("request_key", no_such_call, "ENOSYS: no key rings"),
    Entry::refused("keyctl", no_such_call, "ENOSYS: no key rings"),
    Entry::refused("io_uring_setup", no_such_call, "ENOSYS: no io_uring"),
    Entry::refused("io_uring_enter", no_such_call, "ENOSYS: no io_uring"),
    Entry::refused("io_uring_register", no_such_call, "ENOSYS: no io_uring"),
    Entry::refused(
        "io_setup",
        no_such_call,
        "ENOSYS: no asynchronous I/O contexts",
    ),
    Entry::refused(
        "landlock_create_ruleset",
        no_such_call,
        "ENOSYS: no Landlock",
    ),
    Entry::refused("landlock_add_rule", no_such_call, "ENOSYS: no Landlock"),
    Entry::refused(
        "landlock_restrict_self",
        no_such_call,
        "ENOSYS: no Landlock",
    ),
];

/// The name of the machine in a deterministic world.
pub(crate) const HOST_NAME: &str = "raddle";
const RELEASE: &str = "6.1.0-raddle";
const VERSION: &str = "#1 SMP Debian 6.1";

fn uname(call: &mut Call<'_>) -> SysResult {
    let mut bytes = [0; 6 * 65];
    let fields = ["Linux", HOST_NAME, RELEASE, VERSION, "x86_64", "(none)"];
    for (slot, text) in bytes.chunks_exact_mut(65).zip(fields) {
        slot[..text.len()].copy_from_slice(text.as_bytes());
    }
    call.write_bytes(call.args[0], &bytes)?;
    Ok(0)
}

fn sysinfo(call: &mut Call<'_>) -> SysResult {
    let total = call.kernel.config.memory_max;
    let used = to_u64(call.kernel.frames.in_use()) * 4096;
    let uptime = time::monotonic(call.kernel.state.now) / SECOND;
    let processes = to_u64(call.kernel.state.threads.len());
    let mut bytes = [0; 112];
    let free = total.saturating_sub(used);
    for (offset, value) in [
        (0, uptime),
        (32, total),
        (40, free),
        (80, processes & 0xFFFF),
    ] {
        bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
    }
    // mem_unit
    bytes[104..108].copy_from_slice(&1_u32.to_le_bytes());
    call.write_bytes(call.args[0], &bytes)?;
    Ok(0)
}

/// Ticks per second of times(2) and /proc.
const TICK: u64 = SECOND / 100;

fn times(call: &mut Call<'_>) -> SysResult {
    let process = call.kernel.process_of(call.tid);
    let (own, children) = (process.usage, process.children_usage);
    if call.args[0] != 0 {
        call.write_words(
            call.args[0],
            &[own.steps / TICK, 0, children.steps / TICK, 0],
        )?;
    }
    Ok(time::monotonic(call.kernel.state.now) / TICK)
}

/// A `struct rusage`.
pub(super) fn usage_bytes(usage: Usage, resident_kilobytes: u64) -> [u8; 144] {
    let mut bytes = [0; 144];
    let (seconds, nanoseconds) = time::split(usage.steps);
    let words = [
        (0, seconds.cast_unsigned()),
        (8, nanoseconds.cast_unsigned() / 1000),
        (32, resident_kilobytes),
        (64, usage.faults),
        (128, usage.voluntary_switches),
    ];
    for (offset, value) in words {
        bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

fn getrusage(call: &mut Call<'_>) -> SysResult {
    let process = call.kernel.process_of(call.tid);
    let usage = match call.int(0) {
        0 => process.usage,
        -1 => process.children_usage,
        1 => Usage {
            steps: time::read_clock(call.kernel, call.tid, time::clock::THREAD)?,
            ..process.usage
        },
        _ => return Err(Errno::EINVAL.into()),
    };
    let resident = to_u64(call.kernel.frames.in_use()) * 4;
    call.write_bytes(call.args[1], &usage_bytes(usage, resident))?;
    Ok(0)
}

pub(crate) const RLIMIT_AS: u32 = 9;
const RLIMIT_STACK: u32 = 3;
const RLIMIT_NPROC: u32 = 6;
const RLIMIT_NOFILE: u32 = 7;
const RLIMIT_MEMLOCK: u32 = 8;
const RLIMIT_SIGPENDING: u32 = 11;
pub(super) const RLIMIT_MSGQUEUE: u32 = 12;
const RLIMIT_COUNT: u32 = 16;

/// Limits of the first process; those that are missing are infinite.
pub(crate) fn default_limits() -> BTreeMap<u32, (u64, u64)> {
    BTreeMap::from([
        (RLIMIT_STACK, (crate::exec::STACK_SIZE, u64::MAX)),
        (4, (0, u64::MAX)),
        (RLIMIT_NPROC, (31_000, 31_000)),
        (RLIMIT_NOFILE, (1024, 1 << 20)),
        (RLIMIT_MEMLOCK, (8 << 20, 8 << 20)),
        (RLIMIT_SIGPENDING, (4096, 4096)),
        (RLIMIT_MSGQUEUE, (819_200, 819_200)),
        (13, (0, 0)),
        (14, (0, 0)),
    ])
}

fn get_limit(call: &Call<'_>, pid: Pid, resource: u32) -> (u64, u64) {
    call.kernel
        .process(pid)
        .limits
        .get(&resource)
        .copied()
        .unwrap_or((u64::MAX, u64::MAX))
}

fn set_limit(call: &mut Call<'_>, pid: Pid, resource: u32, at: u64) -> Result<(), Errno> {
    let [soft, hard] = call.read_words(at)?;
    if soft > hard {
        return Err(Errno::EINVAL);
    }
    if resource == RLIMIT_NOFILE && hard > 1 << 20 {
        return Err(Errno::EPERM);
    }
    if hard > get_limit(call, pid, resource).1 {
        call.kernel
            .credentials(call.tid)
            .need(Capability::SYS_RESOURCE)?;
    }
    let process = call.kernel.process_mut(pid);
    process.limits.insert(resource, (soft, hard));
    let table = process.fds;
    if resource == RLIMIT_NOFILE {
        files::set_limit(call.kernel, table, soft);
    }
    Ok(())
}

fn resource(call: &Call<'_>, index: usize) -> Result<u32, Errno> {
    let number = low_u32(call.args[index]);
    if number < RLIMIT_COUNT {
        Ok(number)
    } else {
        Err(Errno::EINVAL)
    }
}

fn getrlimit(call: &mut Call<'_>) -> SysResult {
    let resource = resource(call, 0)?;
    let pid = call.kernel.thread(call.tid).process;
    let (soft, hard) = get_limit(call, pid, resource);
    call.write_words(call.args[1], &[soft, hard])?;
    Ok(0)
}

fn setrlimit(call: &mut Call<'_>) -> SysResult {
    let resource = resource(call, 0)?;
    let pid = call.kernel.thread(call.tid).process;
    set_limit(call, pid, resource, call.args[1])?;
    Ok(0)
}

fn prlimit64(call: &mut Call<'_>) -> SysResult {
    let pid = match call.int(0) {
        0 => call.kernel.thread(call.tid).process,
        number => Pid(number.cast_unsigned()),
    };
    if !call.kernel.state.processes.contains_key(&pid) {
        return Err(Errno::ESRCH.into());
    }
    check_limits_of(call, pid)?;
    let resource = resource(call, 1)?;
    let old = get_limit(call, pid, resource);
    if call.args[2] != 0 {
        set_limit(call, pid, resource, call.args[2])?;
    }
    if call.args[3] != 0 {
        call.write_words(call.args[3], &[old.0, old.1])?;
    }
    Ok(0)
}

/// Limits of another process are for its user.
fn check_limits_of(call: &Call<'_>, pid: Pid) -> Result<(), Errno> {
    let own = call.kernel.credentials(call.tid);
    let Some(other) = call.kernel.process_credentials(pid) else {
        return Ok(());
    };
    let is_same = |other: Ids, id: u32| [other.real, other.effective, other.saved] == [id; 3];
    let is_mine = pid == call.kernel.thread(call.tid).process
        || is_same(other.users, own.users.real) && is_same(other.groups, own.groups.real);
    if is_mine {
        return Ok(());
    }
    own.need(Capability::SYS_RESOURCE)
}

fn personality(call: &mut Call<'_>) -> SysResult {
    let process = call.kernel.process_of_mut(call.tid);
    let old = process.personality;
    let wanted = low_u32(call.args[0]);
    if wanted != u32::MAX {
        process.personality = wanted;
    }
    Ok(u64::from(old))
}

fn syslog(call: &mut Call<'_>) -> SysResult {
    match call.int(0) {
        0..=10 => Ok(0),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn seccomp(_: &mut Call<'_>) -> SysResult {
    Err(Errno::EINVAL.into())
}

/// Options of prctl(2).
mod option {
    pub(super) const SET_PDEATHSIG: i32 = 1;
    pub(super) const GET_PDEATHSIG: i32 = 2;
    pub(super) const GET_DUMPABLE: i32 = 3;
    pub(super) const SET_DUMPABLE: i32 = 4;
    pub(super) const SET_NAME: i32 = 15;
    pub(super) const GET_NAME: i32 = 16;
    pub(super) const GET_SECCOMP: i32 = 21;
    pub(super) const SET_TIMERSLACK: i32 = 29;
    pub(super) const GET_TIMERSLACK: i32 = 30;
    pub(super) const SET_CHILD_SUBREAPER: i32 = 36;
    pub(super) const GET_CHILD_SUBREAPER: i32 = 37;
    pub(super) const SET_NO_NEW_PRIVS: i32 = 38;
    pub(super) const GET_NO_NEW_PRIVS: i32 = 39;
    pub(super) const SET_THP_DISABLE: i32 = 41;
    pub(super) const GET_THP_DISABLE: i32 = 42;
    /// Yama: who may trace; names of anonymous areas.
    pub(super) const SET_PTRACER: i32 = 0x5961_6D61;
    pub(super) const SET_VMA: i32 = 0x5356_4D41;
}

fn prctl(call: &mut Call<'_>) -> SysResult {
    let value = call.args[1];
    let wanted = call.int(0);
    if let Some(answer) = identity::control(call) {
        return answer;
    }
    let process = call.kernel.process_of_mut(call.tid);
    match wanted {
        option::SET_PDEATHSIG => {
            let signal = u32::try_from(value).map_err(|_| Errno::EINVAL)?;
            if signal > SIGMAX {
                return Err(Errno::EINVAL.into());
            }
            process.parent_death_signal = signal;
        }
        option::GET_PDEATHSIG => {
            let signal = process.parent_death_signal;
            call.write_bytes(value, &signal.to_le_bytes())?;
        }
        option::GET_DUMPABLE => return Ok(u64::from(process.is_dumpable)),
        option::SET_DUMPABLE => process.is_dumpable = value != 0,
        option::SET_CHILD_SUBREAPER => process.is_subreaper = value != 0,
        option::GET_CHILD_SUBREAPER => {
            let flag = u32::from(process.is_subreaper);
            call.write_bytes(value, &flag.to_le_bytes())?;
        }
        option::SET_NO_NEW_PRIVS => process.no_new_privileges = true,
        option::GET_NO_NEW_PRIVS => return Ok(u64::from(process.no_new_privileges)),
        option::GET_TIMERSLACK => return Ok(50_000),
        option::SET_NAME => set_name(call)?,
        option::GET_NAME => {
            let mut bytes = [0; 16];
            let name = call.kernel.thread(call.tid).name.as_bytes();
            bytes[..name.len()].copy_from_slice(name);
            call.write_bytes(value, &bytes)?;
        }
        option::GET_SECCOMP
        | option::SET_TIMERSLACK
        | option::SET_THP_DISABLE
        | option::GET_THP_DISABLE
        | option::SET_PTRACER
        | option::SET_VMA => {}
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(0)
}

fn set_name(call: &mut Call<'_>) -> Result<(), Errno> {
    let name = match call.kernel.read_string(call.tid, call.args[1], 15) {
        // Longer names are cut.
        Err(Errno::ENAMETOOLONG) => call.read_bytes::<15>(call.args[1])?.to_vec(),
        name => name?,
    };
    thread::set_name(call, &name);
    Ok(())
}

/// More than anybody asks for at once.
const RANDOM_MAX: u64 = 32 << 20;

fn getrandom(call: &mut Call<'_>) -> SysResult {
    if call.args[2] & !7 != 0 || call.args[2] & 6 == 6 {
        return Err(Errno::EINVAL.into());
    }
    let length = call.args[1].min(RANDOM_MAX);
    let mut bytes = vec![0; to_usize(length)];
    call.kernel.random_bytes(&mut bytes);
    call.write_bytes(call.args[0], &bytes)
        .map_err(Trouble::from)?;
    Ok(length)
}
