//! /proc and /sys: made up, never read from the host (proc(5)).

mod fixed;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::core;
use super::inode::{Directory, Inode, InodeId, Name, Node, Source, Timestamp};
use super::state::{State, number_of_path};
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::process::Pid;
use crate::thread::Tid;

pub(crate) use fixed::populate;
pub(crate) use text::{link_target, open_path, text, write};

/// A directory whose entries depend on what runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcDir {
    Root,
    Process(Pid),
    Tasks(Pid),
    Task(Pid, Tid),
    Descriptors(Pid),
    DescriptorInfos(Pid),
}

/// A file whose text depends on what runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcFile {
    /// Of the whole world.
    World(WorldFile),
    /// Of a process or thread.
    Of(Pid, Tid, TaskFile),
    DescriptorInfo(Pid, i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorldFile {
    Stat,
    Uptime,
    LoadAverage,
    Memory,
    Locks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskFile {
    Auxv,
    Cgroup,
    CommandLine,
    Comm,
    Environ,
    Io,
    Limits,
    LoginUid,
    Maps,
    MountInfo,
    Mounts,
    OomScore,
    OomScoreAdj,
    Personality,
    Smaps,
    Stat,
    Statm,
    Status,
    Wchan,
}

const TASK_FILES: &[(&[u8], TaskFile, u32)] = &[
    (b"auxv", TaskFile::Auxv, 0o400),
    (b"cgroup", TaskFile::Cgroup, 0o444),
    (b"cmdline", TaskFile::CommandLine, 0o444),
    (b"comm", TaskFile::Comm, 0o644),
    (b"environ", TaskFile::Environ, 0o400),
    (b"io", TaskFile::Io, 0o400),
    (b"limits", TaskFile::Limits, 0o444),
    (b"loginuid", TaskFile::LoginUid, 0o644),
    (b"maps", TaskFile::Maps, 0o444),
    (b"mountinfo", TaskFile::MountInfo, 0o444),
    (b"mounts", TaskFile::Mounts, 0o444),
    (b"oom_score", TaskFile::OomScore, 0o444),
    (b"oom_score_adj", TaskFile::OomScoreAdj, 0o644),
    (b"personality", TaskFile::Personality, 0o400),
    (b"smaps", TaskFile::Smaps, 0o444),
    (b"stat", TaskFile::Stat, 0o444),
    (b"statm", TaskFile::Statm, 0o444),
    (b"status", TaskFile::Status, 0o444),
    (b"wchan", TaskFile::Wchan, 0o444),
];

const WORLD_FILES: &[(&[u8], WorldFile)] = &[
    (b"loadavg", WorldFile::LoadAverage),
    (b"locks", WorldFile::Locks),
    (b"meminfo", WorldFile::Memory),
    (b"stat", WorldFile::Stat),
    (b"uptime", WorldFile::Uptime),
];

/// A symbolic link of /proc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcLink {
    /// `/proc/self`.
    Process,
    /// `/proc/thread-self`.
    Thread,
    Program(Pid),
    WorkingDirectory(Pid),
    RootDirectory(Pid),
    Descriptor(Pid, i32),
}

/// Where a link of /proc leads.
#[derive(Debug, Clone)]
pub(crate) enum Followed {
    Path(Vec<u8>),
    /// Straight to an inode, which may have no path; with the path to show.
    Inode(InodeId, Name),
}

/// Follows a link of /proc for a thread.
pub(crate) fn follow(kernel: &mut Kernel, tid: Tid, link: ProcLink) -> Result<Followed, Errno> {
    check_link(kernel, tid, link)?;
    match link {
        ProcLink::Process | ProcLink::Thread | ProcLink::Program(_) => {
            Ok(Followed::Path(link_target(kernel, tid, link)?))
        }
        ProcLink::RootDirectory(_) => Ok(Followed::Inode(
            kernel.state.files.root,
            Name::from(&b"/"[..]),
        )),
        ProcLink::WorkingDirectory(pid) => {
            let process = kernel.state.processes.get(&pid).ok_or(Errno::ENOENT)?;
            let files = &kernel.state.files;
            let cwd = files.contexts.get(process.fs.0).ok_or(Errno::ENOENT)?.cwd;
            Ok(Followed::Inode(cwd, Name::from(files.directory_path(cwd))))
        }
        ProcLink::Descriptor(pid, fd) => {
            let open = descriptor(kernel, pid, fd).ok_or(Errno::ENOENT)?;
            let file = kernel.state.files.open_file(open);
            Ok(Followed::Inode(file.inode, file.path.clone()))
        }
    }
}

/// Where links of another process lead is for those who may inspect it.
pub(super) fn check_link(kernel: &Kernel, tid: Tid, link: ProcLink) -> Result<(), Errno> {
    match subject(&Node::ProcLink(link)) {
        Some(pid) if !kernel.may_inspect(tid, pid) => Err(Errno::EACCES),
        _ => Ok(()),
    }
}

fn descriptor(kernel: &Kernel, pid: Pid, fd: i32) -> Option<super::open::OpenId> {
    let process = kernel.state.processes.get(&pid)?;
    let table = kernel.state.files.tables.get(process.fds.0)?;
    Some(table.get(fd).ok()?.open)
}

/// The pipe or socket behind a descriptor; none for files and for what the program was given to print to.
pub(crate) fn channel(kernel: &Kernel, pid: Pid, fd: i32) -> Option<String> {
    let open = descriptor(kernel, pid, fd)?;
    let inode = kernel.state.files.open_file(open).inode;
    let node = &kernel.state.files.inode(inode).node;
    let is_channel = matches!(node, Node::Pipe(_) | Node::Socket(_));
    is_channel.then(|| String::from_utf8_lossy(&open_path(kernel, open)).into_owned())
}

/// The inode of an entry of a directory of /proc, if it exists now.
pub(crate) fn lookup(
    kernel: &mut Kernel,
    tid: Tid,
    directory: InodeId,
    proc: ProcDir,
    name: &[u8],
) -> Option<InodeId> {
    let (mode, node) = node(kernel, tid, directory, proc, name)?;
    let owner = owner(kernel, &node);
    let files = &mut kernel.state.files;
    let number = number_of_path(&files.path_in(directory, name));
    if let Some(known) = files.by_number.get(&number).copied() {
        let inode = files.inode_mut(known);
        (inode.uid, inode.gid) = owner;
        return Some(known);
    }
    let is_directory = node.is_directory();
    let mut inode = Inode::new(number, mode, Timestamp::EPOCH, node).owned_by(owner);
    if is_directory {
        inode.links = 2;
    }
    Some(files.add_inode(inode))
}

/// What tells of a process belongs to its effective user, unless it hides its memory.
fn owner(kernel: &Kernel, node: &Node) -> (u32, u32) {
    let Some(pid) = subject(node) else {
        return (0, 0);
    };
    let is_open = kernel
        .state
        .processes
        .get(&pid)
        .is_some_and(|process| process.is_dumpable);
    match kernel.process_credentials(pid) {
        Some(who) if is_open => (who.users.effective, who.groups.effective),
        _ => (0, 0),
    }
}

/// The process that a node of /proc tells of.
fn subject(node: &Node) -> Option<Pid> {
    let of_directory = |proc: &ProcDir| match *proc {
        ProcDir::Root => None,
        ProcDir::Process(pid)
        | ProcDir::Tasks(pid)
        | ProcDir::Task(pid, _)
        | ProcDir::Descriptors(pid)
        | ProcDir::DescriptorInfos(pid) => Some(pid),
    };
    match node {
        Node::Directory(directory) => match &directory.source {
            Source::Proc(proc) => of_directory(proc),
            _ => None,
        },
        Node::Proc(ProcFile::Of(pid, ..) | ProcFile::DescriptorInfo(pid, _))
        | Node::ProcLink(ProcLink::Program(pid))
        | Node::ProcLink(ProcLink::WorkingDirectory(pid))
        | Node::ProcLink(ProcLink::RootDirectory(pid))
        | Node::ProcLink(ProcLink::Descriptor(pid, _)) => Some(*pid),
        _ => None,
    }
}

fn node(
    kernel: &Kernel,
    tid: Tid,
    directory: InodeId,
    proc: ProcDir,
    name: &[u8],
) -> Option<(u32, Node)> {
    let sub = |proc| {
        let node = Node::Directory(Directory {
            parent: directory,
            name: Name::from(name),
            entries: BTreeMap::new(),
            source: Source::Proc(proc),
        });
        let mode = match proc {
            ProcDir::Descriptors(_) | ProcDir::DescriptorInfos(_) => 0o500,
            _ => 0o555,
        };
        Some((mode, node))
    };
    let link = |link| Some((0o777, Node::ProcLink(link)));
    match proc {
        ProcDir::Root => match name {
            b"self" => link(ProcLink::Process),
            b"thread-self" => link(ProcLink::Thread),
            _ => match WORLD_FILES.iter().find(|(known, _)| *known == name) {
                Some((_, file)) => Some((0o444, Node::Proc(ProcFile::World(*file)))),
                None => sub(ProcDir::Process(existing(kernel, number(name)?)?)),
            },
        },
        ProcDir::Process(pid) => match name {
            b"task" => sub(ProcDir::Tasks(pid)),
            _ => task_entry(pid, Tid(pid.0), name, sub, link),
        },
        ProcDir::Tasks(pid) => {
            let wanted = number(name)?;
            let facts = core::facts(kernel, pid)?;
            facts
                .threads
                .contains(&wanted)
                .then(|| sub(ProcDir::Task(pid, Tid(wanted))))?
        }
        ProcDir::Task(pid, task) => task_entry(pid, task, name, sub, link),
        ProcDir::Descriptors(pid) => {
            let fd = i32::try_from(number(name)?).ok()?;
            descriptor(kernel, pid, fd)?;
            link(ProcLink::Descriptor(pid, fd)).map(|(_, node)| (0o700, node))
        }
        ProcDir::DescriptorInfos(pid) => {
            let fd = i32::try_from(number(name)?).ok()?;
            descriptor(kernel, pid, fd)?;
            Some((0o444, Node::Proc(ProcFile::DescriptorInfo(pid, fd))))
        }
    }
    .filter(|_| kernel.state.threads.contains_key(&tid))
}

fn task_entry(
    pid: Pid,
    tid: Tid,
    name: &[u8],
    sub: impl Fn(ProcDir) -> Option<(u32, Node)>,
    link: impl Fn(ProcLink) -> Option<(u32, Node)>,
) -> Option<(u32, Node)> {
    match name {
        b"fd" => sub(ProcDir::Descriptors(pid)),
        b"fdinfo" => sub(ProcDir::DescriptorInfos(pid)),
        b"exe" => link(ProcLink::Program(pid)),
        b"cwd" => link(ProcLink::WorkingDirectory(pid)),
        b"root" => link(ProcLink::RootDirectory(pid)),
        _ => {
            let (_, file, mode) = TASK_FILES.iter().find(|(known, _, _)| *known == name)?;
            Some((*mode, Node::Proc(ProcFile::Of(pid, tid, *file))))
        }
    }
}

fn number(name: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(name).ok()?;
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// The process with this id, or the process of the thread with this id.
fn existing(kernel: &Kernel, id: u32) -> Option<Pid> {
    if kernel.state.processes.contains_key(&Pid(id)) {
        return Some(Pid(id));
    }
    kernel
        .state
        .threads
        .get(&Tid(id))
        .map(|thread| thread.process)
}

/// The names in a directory of /proc that depend on what runs.
pub(crate) fn names(kernel: &Kernel, _tid: Tid, proc: ProcDir) -> Vec<Name> {
    let of = |name: &[u8]| Name::from(name);
    let numbered = |number: u32| Name::from(number.to_string().into_bytes());
    match proc {
        ProcDir::Root => WORLD_FILES
            .iter()
            .map(|(name, _)| of(name))
            .chain([of(b"self"), of(b"thread-self")])
            .chain(kernel.state.processes.keys().map(|pid| numbered(pid.0)))
            .collect(),
        ProcDir::Process(_) | ProcDir::Task(..) => TASK_FILES
            .iter()
            .map(|(name, _, _)| of(name))
            .chain([&b"fd"[..], b"fdinfo", b"exe", b"cwd", b"root"].map(of))
            .chain(matches!(proc, ProcDir::Process(_)).then(|| of(b"task")))
            .collect(),
        ProcDir::Tasks(pid) => core::facts(kernel, pid)
            .map(|facts| facts.threads.into_iter().map(numbered).collect())
            .unwrap_or_default(),
        ProcDir::Descriptors(pid) | ProcDir::DescriptorInfos(pid) => {
            let Some(process) = kernel.state.processes.get(&pid) else {
                return Vec::new();
            };
            let table = kernel.state.files.tables.get(process.fds.0);
            table
                .map(|table| {
                    table
                        .iter()
                        .map(|(fd, _)| Name::from(fd.to_string().into_bytes()))
                        .collect()
                })
                .unwrap_or_default()
        }
    }
}

/// Puts the dynamic directory /proc in place.
pub(crate) fn mount(state: &mut State) -> InodeId {
    let proc = state.fixed_directory_with(state.root, b"proc", Source::Proc(ProcDir::Root));
    state.set_fixed_mode(proc, 0o555);
    state.fixed_node(
        proc,
        b"mounts",
        0o777,
        Node::Symlink(Arc::from(&b"self/mounts"[..])),
    );
    proc
}
