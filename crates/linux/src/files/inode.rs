//! Inodes: everything that a descriptor or a directory entry can stand for.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::content::Content;
use super::device::Device;
use super::epoll::Epoll;
use super::event::{EventFd, SignalFd, TimerFd};
use super::inotify::Inotify;
use super::pipe::Pipe;
use super::posix_queue::PosixQueue;
use super::procfs::{ProcDir, ProcFile, ProcLink};
use super::socket::Socket;
use crate::process::Pid;
use crate::time::EPOCH_SECONDS;

/// A file name or path: bytes without NUL.
pub(crate) type Name = Arc<[u8]>;

/// Index of an inode. Also the number of the object that sleepers wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct InodeId(pub(crate) u32);

/// A moment of the realtime clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timestamp {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

impl Timestamp {
    pub(crate) const EPOCH: Self = Self {
        seconds: EPOCH_SECONDS.cast_signed(),
        nanos: 0,
    };

    /// A host time, but never later than the world's beginning.
    pub(crate) fn clamped(seconds: i64, nanos: i64) -> Self {
        let nanos = u32::try_from(nanos).unwrap_or(0);
        Self { seconds, nanos }.min(Self::EPOCH)
    }
}

/// The four times of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) accessed: Timestamp,
    pub(crate) modified: Timestamp,
    pub(crate) changed: Timestamp,
    pub(crate) born: Timestamp,
}

impl Times {
    pub(crate) fn all(at: Timestamp) -> Self {
        Self {
            accessed: at,
            modified: at,
            changed: at,
            born: at,
        }
    }
}

/// One inode.
#[derive(Debug, Clone)]
pub(crate) struct Inode {
    /// `st_ino`, and the number of the memory object: a hash of the path where it was first seen.
    pub(crate) number: u64,
    /// Permission bits.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) times: Times,
    /// Directory entries that name it (and, for a directory, its own dot entries).
    pub(crate) links: u32,
    /// Where it was before the guest did anything, if it was; none for what the guest made.
    pub(crate) given: Option<Given>,
    /// Open files, current directories and the like that keep it alive.
    pub(crate) holders: u32,
    /// It was mapped at least once, so address spaces must be asked before it is freed.
    pub(crate) was_mapped: bool,
    /// Seals of a memfd (`F_ADD_SEALS`).
    pub(crate) seals: Option<u32>,
    /// Events so far, for edge-triggered readiness: something to read, room to write.
    pub(crate) input_events: u64,
    pub(crate) output_events: u64,
    pub(crate) node: Node,
}

/// The place and mode of an inode that the guest found: on the host, or in the fixed part of its world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    directory: InodeId,
    name: Name,
    pub(crate) mode: u32,
}

impl Given {
    pub(crate) fn is_at(&self, directory: InodeId, name: &[u8]) -> bool {
        self.directory == directory && *self.name == *name
    }
}

/// What kind of inode, with its data.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    File(Content),
    Directory(Directory),
    Symlink(Name),
    /// An anonymous pipe or a FIFO.
    Pipe(Pipe),
    Socket(Box<Socket>),
    Device(Device),
    /// A read-only file whose text never changes (parts of /proc and /sys).
    Text(Arc<str>),
    /// A file whose text is made when it is read.
    Proc(ProcFile),
    ProcLink(ProcLink),
    /// Standard output (1) or standard error (2) of the world.
    Output(i32),
    Event(EventFd),
    Timer(TimerFd),
    Signal(SignalFd),
    Epoll(Epoll),
    Inotify(Inotify),
    PosixQueue(Box<PosixQueue>),
    /// A process, by `pidfd_open`.
    Process(Pid),
    /// The name of a Unix socket in the file system.
    SocketName(Option<InodeId>),
}

/// A directory: what the overlay knows above what its source offers.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    /// The root is its own parent.
    pub(crate) parent: InodeId,
    pub(crate) name: Name,
    pub(crate) entries: BTreeMap<Name, Entry>,
    pub(crate) source: Source,
}

/// An entry that the overlay knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Present(InodeId),
    /// Deleted: hides an entry of the source.
    Gone,
}

/// Where entries come from that the overlay does not know.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Nothing,
    Host(Arc<Path>),
    Proc(ProcDir),
}

impl Node {
    /// The type bits of `st_mode`.
    pub(crate) fn type_bits(&self) -> u32 {
        match self {
            Self::File(_) | Self::Text(_) | Self::Proc(_) | Self::PosixQueue(_) => 0o100_000,
            Self::Directory(_) => 0o040_000,
            Self::Symlink(_) | Self::ProcLink(_) => 0o120_000,
            Self::Pipe(_) | Self::Output(_) => 0o010_000,
            Self::Socket(_) | Self::SocketName(_) => 0o140_000,
            Self::Device(_) => 0o020_000,
            Self::Event(_)
            | Self::Timer(_)
            | Self::Signal(_)
            | Self::Epoll(_)
            | Self::Inotify(_)
            | Self::Process(_) => 0,
        }
    }

    /// `d_type` of a directory entry.
    pub(crate) fn entry_type(&self) -> u8 {
        raddle_stdx::width::low_u8(u64::from(self.type_bits() >> 12))
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self, Self::Directory(_))
    }

    /// Whether it has an offset that can be set.
    pub(crate) fn is_seekable(&self) -> bool {
        matches!(
            self,
            Self::File(_)
                | Self::Text(_)
                | Self::Proc(_)
                | Self::PosixQueue(_)
                | Self::Directory(_)
                | Self::Device(_)
        )
    }
}

impl Inode {
    pub(crate) fn new(number: u64, mode: u32, at: Timestamp, node: Node) -> Self {
        Self {
            number,
            mode,
            uid: 0,
            gid: 0,
            times: Times::all(at),
            links: u32::from(!matches!(node, Node::Directory(_))),
            given: None,
            holders: 0,
            was_mapped: false,
            seals: None,
            input_events: 0,
            output_events: 0,
            node,
        }
    }

    /// The same, found under a name by the guest and not made by it.
    pub(crate) fn given_at(mut self, directory: InodeId, name: &[u8]) -> Self {
        self.given = Some(Given {
            directory,
            name: Name::from(name),
            mode: self.mode,
        });
        self
    }

    /// The same, owned by this user and group.
    pub(crate) fn owned_by(mut self, (uid, gid): (u32, u32)) -> Self {
        (self.uid, self.gid) = (uid, gid);
        self
    }

    /// Whether it never had a name.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.number < super::state::PATH_NUMBERS
    }

    pub(crate) fn directory(&self) -> Option<&Directory> {
        match &self.node {
            Node::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    pub(crate) fn directory_mut(&mut self) -> Option<&mut Directory> {
        match &mut self.node {
            Node::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    pub(crate) fn content(&self) -> Option<&Content> {
        match &self.node {
            Node::File(content) => Some(content),
            _ => None,
        }
    }
}
