//! All guest-visible state of the file layer, and the arenas it lives in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use raddle_stdx::Digest;

use super::inode::{Directory, Entry, Inode, InodeId, Name, Node, Source, Timestamp};
use super::lock::Locks;
use super::open::{OpenFile, OpenId};
use super::pipe::FifoWait;
use super::slab::Slab;
use super::socket::Ports;
use super::table::{FdTable, FsContext, FsId, TableId};
use super::{device, procfs};
use crate::kernel::Kernel;
use crate::thread::Tid;

/// What the file layer is told at the start.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    /// Host directory (or file) to be seen at a guest path, besides `/` at `/`.
    pub(crate) maps: Vec<(PathBuf, Vec<u8>)>,
    /// How many processors the world reports.
    pub(crate) cpus: u32,
    /// Size of guest memory, for /proc/meminfo.
    pub(crate) memory_bytes: u64,
}

/// All guest-visible state of files, pipes and sockets.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) inodes: Slab<Inode>,
    pub(crate) opens: Slab<OpenFile>,
    pub(crate) tables: Slab<FdTable>,
    pub(crate) contexts: Slab<FsContext>,
    /// Inodes by their number, which is also the number of the memory object.
    pub(crate) by_number: Arc<BTreeMap<u64, InodeId>>,
    pub(crate) root: InodeId,
    pub(crate) locks: Locks,
    pub(crate) ports: Ports,
    /// Bytes that a call which sleeps in the middle has already moved.
    pub(crate) progress: BTreeMap<Tid, u64>,
    pub(crate) fifo_waits: BTreeMap<Tid, FifoWait>,
    /// Inodes without a name or holder that some address space may still map.
    pub(crate) orphans: Vec<InodeId>,
    /// Inodes of kind epoll and inotify, which must hear of closed files and changed directories.
    pub(crate) epolls: Vec<InodeId>,
    pub(crate) watchers: Vec<InodeId>,
    pub(crate) timers: Vec<InodeId>,
    /// POSIX message queues that have a name.
    pub(crate) posix_queues: BTreeMap<Name, InodeId>,
    /// Numbers for inodes without a path.
    pub(crate) anonymous_count: u64,
    /// Cookie that joins the two halves of an inotify rename.
    pub(crate) rename_cookie: u32,
    /// Standard output and error, by descriptor, whose reader outside the world is gone.
    pub(crate) closed_outputs: BTreeSet<i32>,
    pub(crate) config: Arc<Config>,
}

impl State {
    /// The file system of a new world; nothing of the host is read yet.
    pub(crate) fn new(config: Config) -> Self {
        let root = Inode::new(
            number_of_path(b"/"),
            0o755,
            Timestamp::EPOCH,
            Node::Directory(Directory {
                parent: InodeId(0),
                name: Name::from(&b""[..]),
                entries: BTreeMap::new(),
                source: Source::Host(Arc::from(PathBuf::from("/"))),
            }),
        );
        let mut state = Self {
            inodes: Slab::default(),
            opens: Slab::default(),
            tables: Slab::default(),
            contexts: Slab::default(),
            by_number: Arc::default(),
            root: InodeId(0),
            locks: Locks::default(),
            ports: Ports::default(),
            progress: BTreeMap::new(),
            fifo_waits: BTreeMap::new(),
            orphans: Vec::new(),
            epolls: Vec::new(),
            watchers: Vec::new(),
            timers: Vec::new(),
            posix_queues: BTreeMap::new(),
            anonymous_count: 0,
            rename_cookie: 0,
            closed_outputs: BTreeSet::new(),
            config: Arc::new(config),
        };
        let root = state.add_inode(root);
        assert_eq!(root, state.root, "the root is the first inode");
        state.inode_mut(root).links = 2;
        device::populate(&mut state);
        procfs::populate(&mut state);
        state
    }

    pub(crate) fn inode(&self, id: InodeId) -> &Inode {
        self.inodes.get(id.0).expect("inode ids name live inodes")
    }

    pub(crate) fn inode_mut(&mut self, id: InodeId) -> &mut Inode {
        self.inodes
            .get_mut(id.0)
            .expect("inode ids name live inodes")
    }

    pub(crate) fn open_file(&self, id: OpenId) -> &OpenFile {
        self.opens.get(id.0).expect("open file ids are live")
    }

    pub(crate) fn open_file_mut(&mut self, id: OpenId) -> &mut OpenFile {
        self.opens.get_mut(id.0).expect("open file ids are live")
    }

    pub(crate) fn table(&self, id: TableId) -> &FdTable {
        self.tables.get(id.0).expect("table ids are live")
    }

    pub(crate) fn table_mut(&mut self, id: TableId) -> &mut FdTable {
        self.tables.get_mut(id.0).expect("table ids are live")
    }

    pub(crate) fn context(&self, id: FsId) -> &FsContext {
        self.contexts.get(id.0).expect("context ids are live")
    }

    pub(crate) fn context_mut(&mut self, id: FsId) -> &mut FsContext {
        self.contexts.get_mut(id.0).expect("context ids are live")
    }

    /// Puts an inode into the arena. If its number is taken, the next free one is used.
    pub(crate) fn add_inode(&mut self, mut inode: Inode) -> InodeId {
        while self.by_number.contains_key(&inode.number) {
            inode.number += 1;
        }
        let number = inode.number;
        let id = InodeId(self.inodes.insert(inode));
        Arc::make_mut(&mut self.by_number).insert(number, id);
        id
    }

    /// A number for an inode that has no path.
    pub(crate) fn anonymous_number(&mut self) -> u64 {
        self.anonymous_count += 1;
        0x1000 + self.anonymous_count
    }

    /// The full path of an entry of a directory.
    pub(crate) fn path_in(&self, directory: InodeId, name: &[u8]) -> Vec<u8> {
        let mut path = self.directory_path(directory);
        if !name.is_empty() {
            if path != b"/" {
                path.push(b'/');
            }
            path.extend_from_slice(name);
        }
        path
    }

    /// The full path of a directory; a deleted one keeps the path it had.
    pub(crate) fn directory_path(&self, directory: InodeId) -> Vec<u8> {
        let mut names: Vec<&Name> = Vec::new();
        let mut at = directory;
        while at != self.root {
            let Some(found) = self.inodes.get(at.0).and_then(Inode::directory) else {
                break;
            };
            names.push(&found.name);
            at = found.parent;
        }
        let mut path = Vec::new();
        for name in names.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        if path.is_empty() {
            path.push(b'/');
        }
        path
    }

    /// Makes a directory of the fixed part of the world.
    pub(crate) fn fixed_directory(&mut self, parent: InodeId, name: &[u8]) -> InodeId {
        self.fixed_directory_with(parent, name, Source::Nothing)
    }

    pub(crate) fn fixed_directory_with(
        &mut self,
        parent: InodeId,
        name: &[u8],
        source: Source,
    ) -> InodeId {
        let known = self
            .inode(parent)
            .directory()
            .and_then(|directory| directory.entries.get(name).copied());
        if let Some(Entry::Present(id)) = known
            && let Some(directory) = self.inode_mut(id).directory_mut()
        {
            if !matches!(source, Source::Nothing) {
                directory.source = source;
            }
            return id;
        }
        let node = Node::Directory(Directory {
            parent,
            name: Name::from(name),
            entries: BTreeMap::new(),
            source,
        });
        let id = self.fixed_node(parent, name, 0o755, node);
        self.inode_mut(id).links = 2;
        self.inode_mut(parent).links += 1;
        id
    }

    /// Gives a node of the fixed part of the world other permissions.
    pub(crate) fn set_fixed_mode(&mut self, id: InodeId, mode: u32) {
        let inode = self.inode_mut(id);
        inode.mode = mode;
        if let Some(given) = &mut inode.given {
            given.mode = mode;
        }
    }

    /// Makes a node of the fixed part of the world.
    pub(crate) fn fixed_node(
        &mut self,
        parent: InodeId,
        name: &[u8],
        mode: u32,
        node: Node,
    ) -> InodeId {
        let number = number_of_path(&self.path_in(parent, name));
        let id =
            self.add_inode(Inode::new(number, mode, Timestamp::EPOCH, node).given_at(parent, name));
        if let Some(directory) = self.inode_mut(parent).directory_mut() {
            directory
                .entries
                .insert(Name::from(name), Entry::Present(id));
        }
        id
    }

    /// Makes the directories above a fixed path; gives the last of them and the last name.
    pub(crate) fn fixed_parents(&mut self, path: &[u8]) -> (InodeId, Vec<u8>) {
        let mut at = self.root;
        let mut names: Vec<&[u8]> = path
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
            .collect();
        let last = names.pop().unwrap_or_default().to_vec();
        let mut lower = Some(PathBuf::from("/"));
        for name in names {
            lower = lower.map(|path| super::host::join(&path, name));
            let is_known = self.inode(at).directory().is_some_and(|directory| {
                matches!(directory.entries.get(name), Some(Entry::Present(_)))
            });
            let source = match (&lower, is_known) {
                (Some(path), false) => Source::Host(Arc::from(path.as_path())),
                _ => Source::Nothing,
            };
            at = self.fixed_directory_with(at, name, source);
            if !matches!(
                self.inode(at)
                    .directory()
                    .map(|directory| &directory.source),
                Some(Source::Host(_))
            ) {
                lower = None;
            }
        }
        (at, last)
    }

    /// Makes a text file of the fixed part of the world, with its directories.
    pub(crate) fn fixed_text(&mut self, path: &str, text: &str) {
        let (parent, name) = self.fixed_parents(path.as_bytes());
        self.fixed_node(parent, &name, 0o444, Node::Text(Arc::from(text)));
    }
}

/// Inodes that were first seen at a path have numbers from here on; anonymous ones have smaller numbers.
pub(crate) const PATH_NUMBERS: u64 = 1 << 40;

/// The number of an inode that was first seen at this path.
pub(crate) fn number_of_path(path: &[u8]) -> u64 {
    // Numbers with the high bits clear fit every program's idea of an inode number; small ones are for
    // anonymous inodes.
    (Digest::of(path) >> 16) | PATH_NUMBERS
}

impl Kernel {
    /// The realtime clock as files see it.
    pub(crate) fn file_time(&self) -> Timestamp {
        let now = self.state.now.0;
        Timestamp {
            seconds: Timestamp::EPOCH
                .seconds
                .saturating_add_unsigned(now / 1_000_000_000),
            nanos: raddle_stdx::width::low_u32(now % 1_000_000_000),
        }
    }
}
