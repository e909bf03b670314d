//! The texts of /proc that depend on what runs.

use std::fmt::Write;
use std::sync::Arc;

use raddle_mem::{PAGE_SIZE, Vma};
use raddle_stdx::width::to_u64;

use super::super::core::{self, Facts};
use super::super::inode::Node;
use super::super::open::OpenId;
use super::{ProcFile, ProcLink, TaskFile, WorldFile, check_link, descriptor};
use crate::credentials::{Credentials, Ids};
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::process::Pid;
use crate::thread::Tid;
use crate::time::{self, EPOCH_SECONDS};

/// Virtual nanoseconds per clock tick (USER_HZ is 100).
const TICK: u64 = 10_000_000;
const MOUNTS: &str = "/dev/root / ext4 rw,relatime 0 0\nproc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\n\
                      sysfs /sys sysfs rw,nosuid,nodev,noexec,relatime 0 0\n\
                      devtmpfs /dev devtmpfs rw,nosuid 0 0\ntmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0\n";
const MOUNT_INFO: &str = "21 1 8:1 / / rw,relatime - ext4 /dev/root rw\n\
                          22 21 0:21 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw\n\
                          23 21 0:22 / /sys rw,nosuid,nodev,noexec,relatime - sysfs sysfs rw\n\
                          24 21 0:5 / /dev rw,nosuid - devtmpfs devtmpfs rw\n\
                          25 24 0:23 / /dev/shm rw,nosuid,nodev - tmpfs tmpfs rw\n";

/// The whole text of a file as it is now.
pub(crate) fn text(kernel: &Kernel, file: ProcFile) -> Result<Vec<u8>, Errno> {
    match file {
        ProcFile::World(file) => Ok(world_text(kernel, file).into_bytes()),
        ProcFile::Of(pid, tid, file) => task_text(kernel, pid, tid, file),
        ProcFile::DescriptorInfo(pid, fd) => {
            let open = descriptor(kernel, pid, fd).ok_or(Errno::ENOENT)?;
            let file = kernel.state.files.open_file(open);
            Ok(format!(
                "pos:\t{}\nflags:\t0{:o}\nmnt_id:\t21\nino:\t{}\n",
                file.offset,
                file.flags,
                kernel.state.files.inode(file.inode).number
            )
            .into_bytes())
        }
    }
}

/// Takes a write to a file of /proc.
pub(crate) fn write(kernel: &mut Kernel, file: ProcFile, bytes: &[u8]) -> Result<(), Errno> {
    match file {
        ProcFile::Of(_, tid, TaskFile::Comm) => {
            let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
            let name = String::from_utf8_lossy(&line[..line.len().min(15)]).into_owned();
            if core::rename_thread(kernel, tid, &name) {
                Ok(())
            } else {
                Err(Errno::ESRCH)
            }
        }
        // Out-of-memory scores and login ids mean nothing here; programs that set them expect success.
        ProcFile::Of(_, _, TaskFile::OomScoreAdj | TaskFile::LoginUid) => Ok(()),
        _ => Err(Errno::EACCES),
    }
}

/// What `readlink` gives for a link of /proc.
pub(crate) fn link_target(kernel: &Kernel, tid: Tid, link: ProcLink) -> Result<Vec<u8>, Errno> {
    check_link(kernel, tid, link)?;
    Ok(match link {
        ProcLink::Process => kernel.process_of(tid).pid.0.to_string().into_bytes(),
        ProcLink::Thread => format!("{}/task/{}", kernel.process_of(tid).pid.0, tid.0).into_bytes(),
        ProcLink::Program(pid) => core::facts(kernel, pid).ok_or(Errno::ENOENT)?.exe,
        ProcLink::RootDirectory(_) => b"/".to_vec(),
        ProcLink::WorkingDirectory(pid) => {
            let process = kernel.state.processes.get(&pid).ok_or(Errno::ENOENT)?;
            let files = &kernel.state.files;
            let cwd = files.contexts.get(process.fs.0).ok_or(Errno::ENOENT)?.cwd;
            files.directory_path(cwd)
        }
        ProcLink::Descriptor(pid, fd) => {
            let open = descriptor(kernel, pid, fd).ok_or(Errno::ENOENT)?;
            open_path(kernel, open)
        }
    })
}

/// The path that /proc/self/fd shows for an open file.
pub(crate) fn open_path(kernel: &Kernel, open: OpenId) -> Vec<u8> {
    let file = kernel.state.files.open_file(open);
    let inode = kernel.state.files.inode(file.inode);
    let anonymous = |name: &str| format!("anon_inode:{name}").into_bytes();
    match &inode.node {
        Node::Pipe(_) if file.place.is_none() && !file.is_deleted => {
            format!("pipe:[{}]", inode.number).into_bytes()
        }
        Node::Output(_) => format!("pipe:[{}]", inode.number).into_bytes(),
        Node::Socket(_) => format!("socket:[{}]", inode.number).into_bytes(),
        Node::Event(_) => anonymous("[eventfd]"),
        Node::Timer(_) => anonymous("[timerfd]"),
        Node::Signal(_) => anonymous("[signalfd]"),
        Node::Epoll(_) => anonymous("[eventpoll]"),
        Node::Inotify(_) => anonymous("inotify"),
        Node::Process(_) => anonymous("[pidfd]"),
        Node::Directory(_) if inode.links > 0 => kernel.state.files.directory_path(file.inode),
        _ => {
            let mut path = match &file.place {
                Some((parent, name)) => kernel.state.files.path_in(*parent, name),
                None => file.path.to_vec(),
            };
            if file.is_deleted || inode.links == 0 {
                path.extend_from_slice(b" (deleted)");
            }
            path
        }
    }
}

fn world_text(kernel: &Kernel, file: WorldFile) -> String {
    let now = kernel.state.now.0;
    let config = &kernel.state.files.config;
    let uptime = time::monotonic(kernel.state.now);
    let (seconds, hundredths) = (uptime / 1_000_000_000, uptime / TICK % 100);
    match file {
        WorldFile::Uptime => format!("{seconds}.{hundredths:02} 0.00\n"),
        WorldFile::LoadAverage => {
            let last = kernel.state.threads.keys().last().map_or(1, |tid| tid.0);
            let count = kernel.state.threads.len();
            format!("0.00 0.00 0.00 1/{count} {last}\n")
        }
        WorldFile::Locks => String::new(),
        WorldFile::Memory => {
            let total = config.memory_bytes / 1024;
            let used = to_u64(kernel.frames.in_use()) * 4;
            let free = total.saturating_sub(used);
            format!(
                "MemTotal:       {total:8} kB\nMemFree:        {free:8} kB\nMemAvailable:   {free:8} kB\n\
                 Buffers:               0 kB\nCached:                0 kB\nSwapCached:            0 kB\n\
                 SwapTotal:             0 kB\nSwapFree:              0 kB\nShmem:                 0 kB\n\
                 HugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n"
            )
        }
        WorldFile::Stat => {
            let ticks = now / TICK;
            let mut text = format!("cpu  {ticks} 0 0 0 0 0 0 0 0 0\n");
            for cpu in 0..config.cpus.max(1) {
                let busy = if cpu == 0 { ticks } else { 0 };
                push(
                    &mut text,
                    format_args!("cpu{cpu} {busy} 0 0 0 0 0 0 0 0 0\n"),
                );
            }
            let count = kernel.state.processes.len();
            push(
                &mut text,
                format_args!(
                    "intr 0\nctxt 0\nbtime {EPOCH_SECONDS}\nprocesses {count}\nprocs_running 1\nprocs_blocked 0\n"
                ),
            );
            text
        }
    }
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let written = text.write_fmt(arguments);
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}

fn task_text(kernel: &Kernel, pid: Pid, tid: Tid, file: TaskFile) -> Result<Vec<u8>, Errno> {
    let facts = core::facts(kernel, pid).ok_or(Errno::ESRCH)?;
    let text = match file {
        TaskFile::Auxv => return Ok(facts.auxv),
        TaskFile::CommandLine => return Ok(facts.command_line),
        TaskFile::Environ => return Ok(facts.environment),
        TaskFile::Cgroup => "0::/\n".to_owned(),
        TaskFile::Comm => format!("{}\n", name_of(kernel, pid, tid)),
        TaskFile::Io => "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\n\
                         cancelled_write_bytes: 0\n"
            .to_owned(),
        TaskFile::Limits => limits(kernel, pid),
        TaskFile::LoginUid => "4294967295".to_owned(),
        TaskFile::Maps => maps(core::areas(kernel, pid), false),
        TaskFile::Smaps => maps(core::areas(kernel, pid), true),
        TaskFile::MountInfo => MOUNT_INFO.to_owned(),
        TaskFile::Mounts => MOUNTS.to_owned(),
        TaskFile::OomScore | TaskFile::OomScoreAdj => "0\n".to_owned(),
        TaskFile::Personality => "00040000\n".to_owned(),
        TaskFile::Stat => stat(kernel, pid, tid, &facts),
        TaskFile::Statm => {
            let pages = pages(kernel, pid);
            format!("{pages} {pages} 0 1 0 {pages} 0\n")
        }
        TaskFile::Status => status(kernel, pid, tid, &facts),
        TaskFile::Wchan => "0".to_owned(),
    };
    Ok(text.into_bytes())
}

fn name_of(kernel: &Kernel, pid: Pid, tid: Tid) -> String {
    kernel
        .state
        .threads
        .get(&tid)
        .or_else(|| kernel.state.threads.get(&Tid(pid.0)))
        .map_or_else(|| "?".to_owned(), |thread| thread.name.to_string())
}

fn pages(kernel: &Kernel, pid: Pid) -> u64 {
    core::areas(kernel, pid).iter().map(Vma::pages).sum()
}

fn maps(areas: &[Vma], with_sizes: bool) -> String {
    let mut text = String::new();
    for vma in areas {
        let (offset, number) = match vma.backing {
            raddle_mem::Backing::Anonymous => (0, 0),
            raddle_mem::Backing::Object { object, first_page } => {
                (first_page * to_u64(PAGE_SIZE), object.0)
            }
        };
        let flag = |set: bool, letter: char| if set { letter } else { '-' };
        let mut line = format!(
            "{:08x}-{:08x} {}{}{}{} {offset:08x} {} {number} ",
            vma.start.start().0,
            vma.end.start().0,
            flag(vma.perm.read, 'r'),
            flag(vma.perm.write, 'w'),
            flag(vma.perm.execute, 'x'),
            if vma.shared { 's' } else { 'p' },
            if number == 0 { "00:00" } else { "08:01" },
        );
        if !vma.label.is_empty() {
            // The name begins at a fixed column.
            while line.len() < 73 {
                line.push(' ');
            }
            line.push_str(&vma.label);
        }
        line.push('\n');
        text.push_str(&line);
        if with_sizes {
            let size = vma.pages() * 4;
            push(
                &mut text,
                format_args!(
                    "Size:           {size:8} kB\nRss:            {size:8} kB\nPss:            {size:8} kB\n"
                ),
            );
        }
    }
    text
}

fn limits(kernel: &Kernel, pid: Pid) -> String {
    let files = kernel
        .state
        .processes
        .get(&pid)
        .and_then(|process| kernel.state.files.tables.get(process.fds.0))
        .map_or(1024, |table| table.limit);
    let mut text = format!(
        "{:<25} {:<20} {:<20} {:<10}\n",
        "Limit", "Soft Limit", "Hard Limit", "Units"
    );
    let files = files.to_string();
    for (name, soft, hard, unit) in [
        ("Max cpu time", "unlimited", "unlimited", "seconds"),
        ("Max file size", "unlimited", "unlimited", "bytes"),
        ("Max stack size", "8388608", "unlimited", "bytes"),
        ("Max core file size", "0", "unlimited", "bytes"),
        ("Max open files", files.as_str(), "1048576", "files"),
        ("Max address space", "unlimited", "unlimited", "bytes"),
    ] {
        push(
            &mut text,
            format_args!("{name:<25} {soft:<20} {hard:<20} {unit:<10}\n"),
        );
    }
    text
}

fn stat(kernel: &Kernel, pid: Pid, tid: Tid, facts: &Facts) -> String {
    let id = if facts.threads.contains(&tid.0) {
        tid.0
    } else {
        pid.0
    };
    let pages = pages(kernel, pid);
    format!(
        "{id} ({}) {} {} {} {} 0 -1 4194304 0 0 0 0 {} 0 0 0 20 0 {} 0 {} {} {pages} 18446744073709551615 \
         0 0 {} 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
        name_of(kernel, pid, tid),
        facts.state,
        facts.parent,
        facts.group,
        facts.session,
        facts.user_ns / TICK,
        facts.threads.len(),
        facts.started_ns / TICK,
        pages * to_u64(PAGE_SIZE),
        facts.stack_start,
    )
}

fn ids_line(ids: Ids) -> String {
    format!(
        "{}\t{}\t{}\t{}",
        ids.real, ids.effective, ids.saved, ids.file
    )
}

fn status(kernel: &Kernel, pid: Pid, tid: Tid, facts: &Facts) -> String {
    let who = kernel.state.threads.get(&tid).map_or_else(
        || Arc::new(Credentials::root()),
        |thread| Arc::clone(&thread.credentials),
    );
    let no_new_privileges = kernel
        .state
        .processes
        .get(&pid)
        .is_some_and(|process| process.no_new_privileges);
    let groups: String = who.more_groups.iter().map(|id| format!("{id} ")).collect();
    let state = match facts.state {
        'S' => "S (sleeping)",
        'T' => "T (stopped)",
        'Z' => "Z (zombie)",
        _ => "R (running)",
    };
    let (umask, slots) = kernel
        .state
        .processes
        .get(&pid)
        .map_or((0o022, 0), |process| {
            let files = &kernel.state.files;
            (
                files
                    .contexts
                    .get(process.fs.0)
                    .map_or(0o022, |context| context.umask),
                files
                    .tables
                    .get(process.fds.0)
                    .map_or(0, |table| table.iter().count()),
            )
        });
    let size = pages(kernel, pid) * 4;
    let cpus = kernel.state.files.config.cpus.max(1);
    format!(
        "Name:\t{}\nUmask:\t{umask:04o}\nState:\t{state}\nTgid:\t{}\nNgid:\t0\nPid:\t{}\nPPid:\t{}\nTracerPid:\t0\n\
         Uid:\t{}\nGid:\t{}\nFDSize:\t{}\nGroups:\t{groups}\n\
         VmPeak:\t{size:8} kB\nVmSize:\t{size:8} kB\nVmLck:\t       0 kB\nVmPin:\t       0 kB\n\
         VmHWM:\t{size:8} kB\nVmRSS:\t{size:8} kB\nVmData:\t{size:8} kB\nVmStk:\t     132 kB\nVmSwap:\t       0 kB\n\
         Threads:\t{}\nSigQ:\t0/15000\nCapInh:\t{:016x}\nCapPrm:\t{:016x}\nCapEff:\t{:016x}\n\
         CapBnd:\t{:016x}\nCapAmb:\t{:016x}\nNoNewPrivs:\t{}\nSeccomp:\t0\nCpus_allowed:\t{:x}\nCpus_allowed_list:\t0-{}\n\
         Mems_allowed:\t1\nMems_allowed_list:\t0\nvoluntary_ctxt_switches:\t0\nnonvoluntary_ctxt_switches:\t0\n",
        name_of(kernel, pid, tid),
        pid.0,
        tid.0,
        facts.parent,
        ids_line(who.users),
        ids_line(who.groups),
        slots.next_multiple_of(64).max(64),
        facts.threads.len(),
        who.inheritable,
        who.permitted,
        who.effective,
        who.bounding,
        who.ambient,
        u32::from(no_new_privileges),
        (1_u64 << cpus.min(63)) - 1,
        cpus - 1,
    )
}
