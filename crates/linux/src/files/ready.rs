//! Readiness: which events an open file would report now, and telling sleepers that it changed.

use super::flags::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM};
use super::inode::{InodeId, Node};
use super::open::OpenId;
use super::{core, epoll};
use crate::call::WaitKey;
use crate::kernel::Kernel;
use crate::thread::Tid;

/// Notes new input (`POLLIN`) or room (`POLLOUT`) and wakes everybody who waits for the inode.
pub(crate) fn notify(kernel: &mut Kernel, id: InodeId, events: u32) {
    if let Some(inode) = kernel.state.files.inodes.get_mut(id.0) {
        if events & POLLIN != 0 {
            inode.input_events += 1;
        }
        if events & POLLOUT != 0 {
            inode.output_events += 1;
        }
    }
    kernel.wake(WaitKey::Object(id.0));
}

/// The poll bits of an open file, as seen by a thread (signalfd and pidfd depend on who asks).
pub(crate) fn of_open(kernel: &Kernel, tid: Tid, open: OpenId) -> u32 {
    let file = kernel.state.files.open_file(open);
    match &kernel.state.files.inode(file.inode).node {
        Node::Pipe(pipe) => pipe.readiness(file.flags),
        Node::Socket(socket) => socket.readiness(&kernel.state.files),
        Node::Output(descriptor) => {
            let is_closed = kernel.state.files.closed_outputs.contains(descriptor);
            POLLOUT | POLLWRNORM | if is_closed { POLLERR } else { 0 }
        }
        Node::Event(event) => event.readiness(),
        Node::Timer(timer) => timer.readiness(),
        Node::Signal(signal) => {
            if core::has_signal(kernel, tid, signal.mask) {
                POLLIN | POLLRDNORM
            } else {
                0
            }
        }
        Node::Epoll(_) => {
            if epoll::has_ready(kernel, tid, file.inode) {
                POLLIN | POLLRDNORM
            } else {
                0
            }
        }
        Node::Inotify(inotify) => {
            if inotify.is_empty() {
                0
            } else {
                POLLIN | POLLRDNORM
            }
        }
        Node::PosixQueue(queue) => queue.readiness(),
        Node::Process(pid) => match core::has_ended(kernel, *pid) {
            core::Ended::Alive => 0,
            core::Ended::Zombie => POLLIN | POLLRDNORM,
            core::Ended::Gone => POLLIN | POLLRDNORM | POLLHUP,
        },
        Node::File(_)
        | Node::Directory(_)
        | Node::Symlink(_)
        | Node::Device(_)
        | Node::Text(_)
        | Node::Proc(_)
        | Node::ProcLink(_) => POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM,
        Node::SocketName(_) => POLLERR,
    }
}

/// What a thread that waits for this open file must sleep on.
pub(crate) fn keys_of(kernel: &Kernel, tid: Tid, open: OpenId, keys: &mut Vec<WaitKey>) {
    let file = kernel.state.files.open_file(open);
    keys.push(WaitKey::Object(file.inode.0));
    match &kernel.state.files.inode(file.inode).node {
        Node::Signal(_) => keys.push(WaitKey::SignalFor(tid.0)),
        Node::Epoll(_) => epoll::inner_keys(kernel, tid, file.inode, keys),
        _ => {}
    }
}
