//! inotify for changes that the guest itself makes (inotify(7)). Host files underneath never change.

use std::collections::{BTreeMap, VecDeque};

use super::flags::POLLIN;
use super::inode::{InodeId, Name, Node};
use super::io::{Buffer, IoError};
use super::ready;
use crate::errno::Errno;
use crate::kernel::Kernel;

pub(crate) const IN_ACCESS: u32 = 0x1;
pub(crate) const IN_MODIFY: u32 = 0x2;
pub(crate) const IN_ATTRIB: u32 = 0x4;
pub(crate) const IN_CLOSE_WRITE: u32 = 0x8;
pub(crate) const IN_CLOSE_NOWRITE: u32 = 0x10;
pub(crate) const IN_OPEN: u32 = 0x20;
pub(crate) const IN_MOVED_FROM: u32 = 0x40;
pub(crate) const IN_MOVED_TO: u32 = 0x80;
pub(crate) const IN_CREATE: u32 = 0x100;
pub(crate) const IN_DELETE: u32 = 0x200;
pub(crate) const IN_DELETE_SELF: u32 = 0x400;
pub(crate) const IN_MOVE_SELF: u32 = 0x800;
const IN_Q_OVERFLOW: u32 = 0x4000;
const IN_IGNORED: u32 = 0x8000;
pub(crate) const IN_ONLYDIR: u32 = 0x0100_0000;
pub(crate) const IN_DONT_FOLLOW: u32 = 0x0200_0000;
pub(crate) const IN_MASK_CREATE: u32 = 0x1000_0000;
pub(crate) const IN_MASK_ADD: u32 = 0x2000_0000;
pub(crate) const IN_ISDIR: u32 = 0x4000_0000;
const IN_ONESHOT: u32 = 0x8000_0000;
const ALL_EVENTS: u32 = 0xFFF;
const QUEUE_MAX: usize = 16384;

/// One inotify instance.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inotify {
    watches: BTreeMap<i32, Watch>,
    last: i32,
    queue: VecDeque<Event>,
}

#[derive(Debug, Clone, Copy)]
struct Watch {
    inode: InodeId,
    mask: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Event {
    watch: i32,
    mask: u32,
    cookie: u32,
    name: Name,
}

impl Event {
    /// The name is padded with NULs to a multiple of the record's size.
    fn encode(&self) -> Vec<u8> {
        let padded = if self.name.is_empty() {
            0
        } else {
            (self.name.len() + 1).next_multiple_of(16)
        };
        let mut bytes = Vec::with_capacity(16 + padded);
        bytes.extend_from_slice(&self.watch.to_le_bytes());
        bytes.extend_from_slice(&self.mask.to_le_bytes());
        bytes.extend_from_slice(&self.cookie.to_le_bytes());
        let len = u32::try_from(padded).expect("names are short");
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(&self.name);
        bytes.resize(16 + padded, 0);
        bytes
    }
}

impl Inotify {
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes that a read of everything would give.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.queue.iter().map(|event| event.encode().len()).sum()
    }

    /// Watches an inode; the same watch is changed if there is one.
    pub(crate) fn watch(&mut self, inode: InodeId, mask: u32) -> Result<i32, Errno> {
        let known = self
            .watches
            .iter_mut()
            .find(|(_, watch)| watch.inode == inode);
        if let Some((number, watch)) = known {
            if mask & IN_MASK_CREATE != 0 {
                return Err(Errno::EEXIST);
            }
            if mask & IN_MASK_ADD != 0 {
                watch.mask |= mask;
            } else {
                watch.mask = mask;
            }
            return Ok(*number);
        }
        self.last += 1;
        self.watches.insert(self.last, Watch { inode, mask });
        Ok(self.last)
    }

    /// Ends a watch.
    pub(crate) fn unwatch(&mut self, number: i32) -> Result<(), Errno> {
        self.watches.remove(&number).ok_or(Errno::EINVAL)?;
        self.push(Event {
            watch: number,
            mask: IN_IGNORED,
            cookie: 0,
            name: Name::from(&b""[..]),
        });
        Ok(())
    }

    fn push(&mut self, event: Event) {
        if self.queue.back() == Some(&event) {
            return;
        }
        match self.queue.len() {
            count if count < QUEUE_MAX => self.queue.push_back(event),
            QUEUE_MAX => self.queue.push_back(Event {
                watch: -1,
                mask: IN_Q_OVERFLOW,
                cookie: 0,
                name: Name::from(&b""[..]),
            }),
            _ => {}
        }
    }

    /// Queues the event for every watch of `inode` that asked for it; true if one did.
    fn offer(&mut self, inode: InodeId, mask: u32, name: &[u8], cookie: u32) -> bool {
        let wanted: Vec<(i32, u32)> = self
            .watches
            .iter()
            .filter(|(_, watch)| watch.inode == inode && watch.mask & mask & ALL_EVENTS != 0)
            .map(|(number, watch)| (*number, watch.mask))
            .collect();
        for (number, watch_mask) in &wanted {
            self.push(Event {
                watch: *number,
                mask,
                cookie,
                name: Name::from(name),
            });
            if watch_mask & IN_ONESHOT != 0 {
                let removed = self.unwatch(*number);
                debug_assert!(removed.is_ok(), "the watch was just found");
            }
        }
        !wanted.is_empty()
    }
}

fn each(kernel: &mut Kernel, mut action: impl FnMut(&mut Inotify) -> bool) {
    for id in kernel.state.files.watchers.clone() {
        let queued = match &mut kernel.state.files.inode_mut(id).node {
            Node::Inotify(inotify) => action(inotify),
            _ => false,
        };
        if queued {
            ready::notify(kernel, id, POLLIN);
        }
    }
}

/// Something happened to the entry `name` of a directory.
pub(crate) fn report(kernel: &mut Kernel, directory: InodeId, mask: u32, name: &[u8], cookie: u32) {
    each(kernel, |inotify| {
        inotify.offer(directory, mask, name, cookie)
    });
}

/// Something happened to an inode: tells its own watchers and those of the directories that name it.
pub(crate) fn report_self(kernel: &mut Kernel, id: InodeId, mask: u32) {
    if kernel.state.files.watchers.is_empty() {
        return;
    }
    let is_directory = kernel.state.files.inode(id).node.is_directory();
    let mask = if is_directory { mask | IN_ISDIR } else { mask };
    each(kernel, |inotify| inotify.offer(id, mask, b"", 0));
    if mask & (IN_MOVE_SELF | IN_DELETE_SELF) == 0 {
        for (directory, name) in named_in_watched(kernel, id) {
            report(kernel, directory, mask, &name, 0);
        }
    }
}

/// The watched directories that hold a name of this inode.
fn named_in_watched(kernel: &Kernel, id: InodeId) -> Vec<(InodeId, Name)> {
    let files = &kernel.state.files;
    let mut watched: Vec<InodeId> = files
        .watchers
        .iter()
        .filter_map(|watcher| match &files.inode(*watcher).node {
            Node::Inotify(inotify) => Some(inotify),
            _ => None,
        })
        .flat_map(|inotify| inotify.watches.values().map(|watch| watch.inode))
        .collect();
    watched.sort();
    watched.dedup();
    let mut found = Vec::new();
    for directory in watched {
        let Some(entries) = files
            .inodes
            .get(directory.0)
            .and_then(|inode| inode.directory())
        else {
            continue;
        };
        for (name, entry) in &entries.entries {
            if *entry == super::inode::Entry::Present(id) {
                found.push((directory, name.clone()));
            }
        }
    }
    found
}

/// The last name of an inode is gone.
pub(crate) fn report_deleted(kernel: &mut Kernel, id: InodeId) {
    each(kernel, |inotify| inotify.offer(id, IN_DELETE_SELF, b"", 0));
    forget_inode(kernel, id);
}

/// Ends the watches of an inode that is about to be freed.
pub(crate) fn forget_inode(kernel: &mut Kernel, id: InodeId) {
    each(kernel, |inotify| {
        let gone: Vec<i32> = inotify
            .watches
            .iter()
            .filter(|(_, watch)| watch.inode == id)
            .map(|(number, _)| *number)
            .collect();
        gone.into_iter()
            .filter(|number| inotify.unwatch(*number).is_ok())
            .count()
            > 0
    });
}

/// Reads whole events.
pub(crate) fn read(
    kernel: &mut Kernel,
    id: InodeId,
    buffer: &mut Buffer,
    max: usize,
) -> Result<usize, IoError> {
    let Node::Inotify(inotify) = &kernel.state.files.inode(id).node else {
        return Err(Errno::EINVAL.into());
    };
    if inotify.queue.is_empty() {
        return Err(IoError::WouldBlock);
    }
    let mut bytes = Vec::new();
    let mut count = 0;
    for event in &inotify.queue {
        let encoded = event.encode();
        if bytes.len() + encoded.len() > max {
            break;
        }
        bytes.extend(encoded);
        count += 1;
    }
    if count == 0 {
        return Err(Errno::EINVAL.into());
    }
    buffer.put(kernel, 0, &bytes)?;
    if let Node::Inotify(inotify) = &mut kernel.state.files.inode_mut(id).node {
        inotify.queue.drain(..count);
    }
    Ok(bytes.len())
}
