//! From a path to an inode (path_resolution(7)).

use std::collections::VecDeque;
use std::sync::Arc;

use super::flags::{AT_FDCWD, NAME_MAX, PATH_MAX};
use super::host::{self, HostNode};
use super::inode::{Directory, Entry, Inode, InodeId, Name, Node, Source, Timestamp};
use super::pipe::Pipe;
use super::state::number_of_path;
use super::{open, permission, procfs};
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::thread::Tid;

/// Symbolic links followed in one walk.
const LINKS_MAX: u32 = 40;

/// How to walk.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WalkOptions {
    /// Follow a symbolic link in the last place.
    pub(crate) follow: bool,
    /// The caller makes, removes or renames the last name: it is not followed even before a trailing slash.
    pub(crate) for_change: bool,
    /// The caller makes a file if there is none: a name before a trailing slash is not followed.
    pub(crate) for_create: bool,
    /// `RESOLVE_NO_SYMLINKS`.
    pub(crate) no_symlinks: bool,
    /// `RESOLVE_NO_MAGICLINKS`.
    pub(crate) no_magic: bool,
    /// `RESOLVE_BENEATH`.
    pub(crate) beneath: bool,
    /// `RESOLVE_IN_ROOT`.
    pub(crate) in_root: bool,
}

impl WalkOptions {
    pub(crate) const FOLLOW: Self = Self {
        follow: true,
        ..Self::NOFOLLOW
    };
    /// For calls that change the entry itself.
    pub(crate) const CHANGE: Self = Self {
        for_change: true,
        ..Self::NOFOLLOW
    };
    pub(crate) const NOFOLLOW: Self = Self {
        follow: false,
        for_change: false,
        for_create: false,
        no_symlinks: false,
        no_magic: false,
        beneath: false,
        in_root: false,
    };
}

/// What the last component of the path was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    Name,
    Dot,
    DotDot,
    Root,
    /// A link of /proc that leads to an open file.
    Magic,
}

/// Where a path leads.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The directory that holds the last name.
    pub(crate) parent: InodeId,
    /// The last name; empty unless `last` is `Name`.
    pub(crate) name: Name,
    pub(crate) last: Last,
    /// The inode, if the name exists.
    pub(crate) inode: Option<InodeId>,
    /// The path ended with a slash.
    pub(crate) wants_directory: bool,
    /// The path of the open file that a magic link led to.
    magic_path: Option<Name>,
}

impl Target {
    pub(crate) fn existing(&self) -> Result<InodeId, Errno> {
        if self.name.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        self.inode.ok_or(Errno::ENOENT)
    }

    /// The full path, as /proc/self/fd would show it.
    pub(crate) fn path(&self, kernel: &Kernel) -> Name {
        if let Some(path) = &self.magic_path {
            return Arc::clone(path);
        }
        let files = &kernel.state.files;
        match (self.last, self.inode) {
            (Last::Name, _) | (_, None) => Name::from(files.path_in(self.parent, &self.name)),
            (_, Some(inode)) => Name::from(files.directory_path(inode)),
        }
    }
}

/// The directory a relative path begins at.
pub(crate) fn start_directory(kernel: &Kernel, tid: Tid, dirfd: i32) -> Result<InodeId, Errno> {
    if dirfd == AT_FDCWD {
        let context = kernel.process_of(tid).fs;
        return Ok(kernel.state.files.context(context).cwd);
    }
    let open = open::lookup_any(kernel, tid, dirfd)?;
    Ok(kernel.state.files.open_file(open).inode)
}

/// Resolves `path` from `dirfd`. An empty path is ENOENT.
pub(crate) fn resolve(
    kernel: &mut Kernel,
    tid: Tid,
    dirfd: i32,
    path: &[u8],
    options: WalkOptions,
) -> Result<Target, Errno> {
    if path.is_empty() {
        return Err(Errno::ENOENT);
    }
    if path.len() >= PATH_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    let is_absolute = path[0] == b'/';
    let start = if is_absolute && !options.in_root {
        if options.beneath {
            return Err(Errno::EXDEV);
        }
        kernel.state.files.root
    } else {
        start_directory(kernel, tid, dirfd)?
    };
    let floor = if options.in_root || options.beneath {
        start
    } else {
        kernel.state.files.root
    };
    Walk {
        tid,
        options,
        at: start,
        floor,
        rest: components(path),
        links: 0,
        wants_directory: path.ends_with(b"/"),
    }
    .run(kernel)
}

/// Resolves a path that must exist.
pub(crate) fn find(
    kernel: &mut Kernel,
    tid: Tid,
    dirfd: i32,
    path: &[u8],
    options: WalkOptions,
) -> Result<InodeId, Errno> {
    let target = resolve(kernel, tid, dirfd, path, options)?;
    let inode = target.existing()?;
    if target.wants_directory && !kernel.state.files.inode(inode).node.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    Ok(inode)
}

fn components(path: &[u8]) -> VecDeque<Name> {
    path.split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty())
        .map(Name::from)
        .collect()
}

struct Walk {
    tid: Tid,
    options: WalkOptions,
    at: InodeId,
    /// `..` does not lead above this directory.
    floor: InodeId,
    rest: VecDeque<Name>,
    links: u32,
    wants_directory: bool,
}

impl Walk {
    fn run(mut self, kernel: &mut Kernel) -> Result<Target, Errno> {
        let mut last = Last::Root;
        let mut magic_path = None;
        while let Some(name) = self.rest.pop_front() {
            if !kernel.state.files.inode(self.at).node.is_directory() {
                return Err(Errno::ENOTDIR);
            }
            permission::check(kernel, self.tid, self.at, permission::EXECUTE)?;
            if &*name == b"." {
                last = Last::Dot;
                continue;
            }
            if &*name == b".." {
                self.go_up(kernel)?;
                last = Last::DotDot;
                continue;
            }
            let is_last = self.rest.is_empty();
            if name.len() > NAME_MAX {
                // For the last name the caller tells, after it has looked at its other path.
                if is_last {
                    return Ok(self.target(name, None));
                }
                return Err(Errno::ENAMETOOLONG);
            }
            let Some(inode) = lookup(kernel, self.tid, self.at, &name)? else {
                if is_last {
                    return Ok(self.target(name, None));
                }
                return Err(Errno::ENOENT);
            };
            match self.link_at(kernel, inode, is_last)? {
                Some(procfs::Followed::Path(path)) => {
                    last = Last::Root;
                    self.follow(kernel, &path)?;
                }
                Some(procfs::Followed::Inode(inode, path)) => {
                    self.count_link()?;
                    if self.options.no_magic || self.options.beneath {
                        return Err(Errno::ELOOP);
                    }
                    self.at = inode;
                    last = Last::Magic;
                    magic_path = Some(path);
                }
                None if is_last => return Ok(self.target(name, Some(inode))),
                None => self.at = inode,
            }
        }
        Ok(self.arrived(kernel, last, magic_path))
    }

    /// Where the inode leads, if it is a link that is to be followed.
    fn link_at(
        &self,
        kernel: &mut Kernel,
        inode: InodeId,
        is_last: bool,
    ) -> Result<Option<procfs::Followed>, Errno> {
        let stays = self.options.for_change || self.options.for_create;
        let follows = match (is_last, self.wants_directory) {
            (false, _) => true,
            (true, true) => !stays,
            (true, false) => self.options.follow,
        };
        if !follows {
            return Ok(None);
        }
        match &kernel.state.files.inode(inode).node {
            Node::Symlink(target) => Ok(Some(procfs::Followed::Path(target.to_vec()))),
            Node::ProcLink(link) => {
                let link = *link;
                procfs::follow(kernel, self.tid, link).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The target of a path that ended with a dot, at the root, or at an open file.
    fn arrived(self, kernel: &Kernel, last: Last, magic_path: Option<Name>) -> Target {
        let files = &kernel.state.files;
        let parent = files
            .inode(self.at)
            .directory()
            .map_or(files.root, |directory| directory.parent);
        Target {
            parent,
            name: Name::from(&b""[..]),
            last,
            inode: Some(self.at),
            wants_directory: self.wants_directory || last != Last::Magic,
            magic_path: magic_path.filter(|_| last == Last::Magic),
        }
    }

    fn target(self, name: Name, inode: Option<InodeId>) -> Target {
        Target {
            parent: self.at,
            name,
            last: Last::Name,
            inode,
            wants_directory: self.wants_directory,
            magic_path: None,
        }
    }

    fn go_up(&mut self, kernel: &Kernel) -> Result<(), Errno> {
        if self.at == self.floor {
            return if self.options.beneath {
                Err(Errno::EXDEV)
            } else {
                Ok(())
            };
        }
        if let Some(directory) = kernel.state.files.inode(self.at).directory() {
            self.at = directory.parent;
        }
        Ok(())
    }

    fn count_link(&mut self) -> Result<(), Errno> {
        self.links += 1;
        if self.links > LINKS_MAX || self.options.no_symlinks {
            return Err(Errno::ELOOP);
        }
        Ok(())
    }

    fn follow(&mut self, kernel: &Kernel, target: &[u8]) -> Result<(), Errno> {
        self.count_link()?;
        if target.is_empty() {
            return Err(Errno::ENOENT);
        }
        if target[0] == b'/' {
            if self.options.beneath {
                return Err(Errno::EXDEV);
            }
            self.at = if self.options.in_root {
                self.floor
            } else {
                kernel.state.files.root
            };
        }
        if self.rest.is_empty() && target.ends_with(b"/") {
            self.wants_directory = true;
        }
        for name in components(target).into_iter().rev() {
            self.rest.push_front(name);
        }
        Ok(())
    }
}

/// The inode of an entry of a directory.
pub(crate) fn lookup(
    kernel: &mut Kernel,
    tid: Tid,
    directory: InodeId,
    name: &[u8],
) -> Result<Option<InodeId>, Errno> {
    let files = &kernel.state.files;
    let found = files.inode(directory).directory().ok_or(Errno::ENOTDIR)?;
    match found.entries.get(name) {
        Some(Entry::Present(inode)) => return Ok(Some(*inode)),
        Some(Entry::Gone) => return Ok(None),
        None => {}
    }
    match found.source.clone() {
        Source::Nothing => Ok(None),
        Source::Host(path) => lookup_host(kernel, directory, &path, name),
        Source::Proc(proc) => Ok(procfs::lookup(kernel, tid, directory, proc, name)),
    }
}

fn lookup_host(
    kernel: &mut Kernel,
    directory: InodeId,
    path: &std::path::Path,
    name: &[u8],
) -> Result<Option<InodeId>, Errno> {
    let host_path = host::join(path, name);
    let node = kernel.host.node(&host_path);
    let (links, owner) = (node.links(), node.owner());
    let Some((mode, modified, node)) = node_of_host(directory, &host_path, name, node)? else {
        return Ok(None);
    };
    let files = &mut kernel.state.files;
    let number = number_of_path(&files.path_in(directory, name));
    let mut inode = Inode::new(number, mode, modified, node)
        .owned_by(owner)
        .given_at(directory, name);
    inode.links = links;
    let inode = files.add_inode(inode);
    if let Some(parent) = files.inode_mut(directory).directory_mut() {
        parent
            .entries
            .insert(Name::from(name), Entry::Present(inode));
    }
    Ok(Some(inode))
}

type HostInode = (u32, Timestamp, Node);

/// The inode that stands for a host node.
pub(crate) fn node_of_host(
    parent: InodeId,
    host_path: &std::path::Path,
    name: &[u8],
    node: HostNode,
) -> Result<Option<HostInode>, Errno> {
    Ok(Some(match node {
        HostNode::Absent => return Ok(None),
        HostNode::Denied => return Err(Errno::EACCES),
        HostNode::Directory { mode, modified, .. } => (
            mode,
            modified,
            Node::Directory(Directory {
                parent,
                name: Name::from(name),
                entries: std::collections::BTreeMap::new(),
                source: Source::Host(Arc::from(host_path)),
            }),
        ),
        HostNode::File {
            file,
            size,
            mode,
            modified,
            ..
        } => (
            mode,
            modified,
            Node::File(super::content::Content::of_host(file, size)),
        ),
        HostNode::Fifo { mode, modified, .. } => (mode, modified, Node::Pipe(Pipe::default())),
        HostNode::Symlink { target, .. } => (0o777, Timestamp::EPOCH, Node::Symlink(target)),
    }))
}
