//! epoll: level, edge and one-shot interest in open files, nested (epoll(7)).

use super::flags::{POLLERR, POLLHUP, POLLOUT};
use super::inode::{InodeId, Node};
use super::open::OpenId;
use super::ready;
use crate::call::WaitKey;
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::thread::Tid;

pub(crate) const EPOLLEXCLUSIVE: u32 = 1 << 28;
pub(crate) const EPOLLONESHOT: u32 = 1 << 30;
pub(crate) const EPOLLET: u32 = 1 << 31;

/// Depth of epolls in epolls.
const NESTING_MAX: u32 = 5;

/// What `EPOLL_CTL_*` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    Add { events: u32, data: u64 },
    Modify { events: u32, data: u64 },
    Delete,
}

/// One epoll.
#[derive(Debug, Clone, Default)]
pub(crate) struct Epoll {
    items: Vec<Item>,
    /// Where the next scan begins, so that a full result does not starve later items.
    next: usize,
}

#[derive(Debug, Clone, Copy)]
struct Item {
    fd: i32,
    open: OpenId,
    events: u32,
    data: u64,
    /// Counts of the inode's events when they were last reported.
    seen: Option<(u64, u64)>,
    /// A one-shot item that has fired.
    is_disabled: bool,
}

/// A reported event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reported {
    pub(crate) events: u32,
    pub(crate) data: u64,
}

/// Adds, changes or removes interest.
pub(crate) fn control(
    kernel: &mut Kernel,
    id: InodeId,
    fd: i32,
    open: OpenId,
    control: Control,
) -> Result<(), Errno> {
    let files = &kernel.state.files;
    let target = files.open_file(open).inode;
    if target == id {
        return Err(Errno::EINVAL);
    }
    match &files.inode(target).node {
        Node::File(_) | Node::Directory(_) | Node::Text(_) => return Err(Errno::EPERM),
        Node::Epoll(_)
            if matches!(control, Control::Add { .. }) && reaches(kernel, target, id, 0) =>
        {
            return Err(Errno::ELOOP);
        }
        _ => {}
    }
    let Node::Epoll(epoll) = &mut kernel.state.files.inode_mut(id).node else {
        return Err(Errno::EINVAL);
    };
    let position = epoll
        .items
        .iter()
        .position(|item| item.fd == fd && item.open == open);
    let fresh = |events, data| Item {
        fd,
        open,
        events,
        data,
        seen: None,
        is_disabled: false,
    };
    match (control, position) {
        (Control::Add { .. }, Some(_)) => return Err(Errno::EEXIST),
        (Control::Add { events, data }, None) => epoll.items.push(fresh(events, data)),
        (Control::Modify { .. } | Control::Delete, None) => return Err(Errno::ENOENT),
        (Control::Modify { events, data }, Some(index)) => {
            if events & EPOLLEXCLUSIVE != 0 || epoll.items[index].events & EPOLLEXCLUSIVE != 0 {
                return Err(Errno::EINVAL);
            }
            epoll.items[index] = fresh(events, data);
        }
        (Control::Delete, Some(index)) => {
            epoll.items.remove(index);
            epoll.next = 0;
        }
    }
    kernel.wake(WaitKey::Object(id.0));
    Ok(())
}

/// Whether the epoll `from` watches `to`, directly or not; too deep counts as yes.
fn reaches(kernel: &Kernel, from: InodeId, to: InodeId, depth: u32) -> bool {
    if from == to || depth >= NESTING_MAX {
        return true;
    }
    let files = &kernel.state.files;
    let Node::Epoll(epoll) = &files.inode(from).node else {
        return false;
    };
    epoll.items.iter().any(|item| {
        let inode = files.open_file(item.open).inode;
        matches!(files.inode(inode).node, Node::Epoll(_)) && reaches(kernel, inode, to, depth + 1)
    })
}

/// The events an item would report now.
fn pending(kernel: &Kernel, tid: Tid, item: &Item) -> u32 {
    if item.is_disabled {
        return 0;
    }
    let mut bits = ready::of_open(kernel, tid, item.open) & (item.events | POLLERR | POLLHUP);
    if item.events & EPOLLET != 0
        && let Some((input, output)) = item.seen
    {
        let files = &kernel.state.files;
        let inode = files.inode(files.open_file(item.open).inode);
        let has_input = inode.input_events != input && bits & !(POLLOUT | 0x300) != 0;
        let has_output = inode.output_events != output && bits & (POLLOUT | 0x300) != 0;
        if !has_input && !has_output {
            bits = 0;
        }
    }
    bits
}

/// Whether a wait would return at once.
pub(crate) fn has_ready(kernel: &Kernel, tid: Tid, id: InodeId) -> bool {
    match &kernel.state.files.inode(id).node {
        Node::Epoll(epoll) => epoll
            .items
            .iter()
            .any(|item| pending(kernel, tid, item) != 0),
        _ => false,
    }
}

/// Takes up to `max` events.
pub(crate) fn take(kernel: &mut Kernel, tid: Tid, id: InodeId, max: usize) -> Vec<Reported> {
    let Node::Epoll(epoll) = &kernel.state.files.inode(id).node else {
        return Vec::new();
    };
    let mut items = epoll.items.clone();
    let count = items.len();
    let start = if epoll.next < count { epoll.next } else { 0 };
    let mut reported = Vec::new();
    let mut next = 0;
    for step in 0..count {
        let index = (start + step) % count;
        let events = pending(kernel, tid, &items[index]);
        if events == 0 {
            continue;
        }
        if reported.len() == max {
            next = index;
            break;
        }
        let item = &mut items[index];
        reported.push(Reported {
            events,
            data: item.data,
        });
        let files = &kernel.state.files;
        let inode = files.inode(files.open_file(item.open).inode);
        item.seen = Some((inode.input_events, inode.output_events));
        item.is_disabled = item.events & EPOLLONESHOT != 0;
    }
    if !reported.is_empty()
        && let Node::Epoll(epoll) = &mut kernel.state.files.inode_mut(id).node
    {
        epoll.items = items;
        epoll.next = next;
    }
    reported
}

/// What a thread that waits for this epoll must sleep on, besides the epoll itself.
pub(crate) fn inner_keys(kernel: &Kernel, tid: Tid, id: InodeId, keys: &mut Vec<WaitKey>) {
    if let Node::Epoll(epoll) = &kernel.state.files.inode(id).node {
        for item in epoll.items.iter().filter(|item| !item.is_disabled) {
            ready::keys_of(kernel, tid, item.open, keys);
        }
    }
}

/// The descriptors an epoll watches, for reports.
pub(crate) fn descriptors(kernel: &Kernel, id: InodeId) -> Vec<i32> {
    match &kernel.state.files.inode(id).node {
        Node::Epoll(epoll) => epoll.items.iter().map(|item| item.fd).collect(),
        _ => Vec::new(),
    }
}

/// An open file ended: no epoll watches it any more.
pub(crate) fn forget_open(kernel: &mut Kernel, open: OpenId) {
    for id in kernel.state.files.epolls.clone() {
        let watches = matches!(&kernel.state.files.inode(id).node,
            Node::Epoll(epoll) if epoll.items.iter().any(|item| item.open == open));
        if watches && let Node::Epoll(epoll) = &mut kernel.state.files.inode_mut(id).node {
            epoll.items.retain(|item| item.open != open);
            epoll.next = 0;
        }
    }
}
