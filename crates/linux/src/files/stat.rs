//! What `stat` and its kin tell about an inode.

use raddle_stdx::width::{as_u64, low_u32, to_u64};

use super::inode::{Inode, InodeId, Node, Source, Timestamp};
use super::state::State;

/// The disk that everything ordinary lives on.
const DEVICE_ROOT: u64 = 0x801;
const DEVICE_PROC: u64 = 0x15;
const DEVICE_PIPE: u64 = 0xD;
const DEVICE_SOCKET: u64 = 0x8;
const DEVICE_ANONYMOUS: u64 = 0xE;

const BLOCK_SIZE: u64 = 4096;

/// Attributes of an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) device: u64,
    pub(crate) number: u64,
    pub(crate) mode: u32,
    pub(crate) links: u64,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) special: u64,
    pub(crate) size: u64,
    pub(crate) blocks: u64,
    pub(crate) times: super::inode::Times,
}

/// The attributes of an inode now.
pub(crate) fn of(state: &State, id: InodeId) -> Stat {
    let inode = state.inode(id);
    let (size, blocks) = sizes(inode);
    let special = match &inode.node {
        Node::Device(device) => device.number(),
        _ => 0,
    };
    let is_anonymous = inode.is_anonymous() && inode.content().is_none();
    Stat {
        device: device(inode),
        number: inode.number,
        mode: inode.node.type_bits() | inode.mode,
        links: u64::from(inode.links.max(u32::from(is_anonymous))),
        uid: inode.uid,
        gid: inode.gid,
        special,
        size,
        blocks,
        times: inode.times,
    }
}

fn sizes(inode: &Inode) -> (u64, u64) {
    match &inode.node {
        Node::File(content) => (content.size(), content.blocks()),
        // What Linux says, whatever the status line holds.
        Node::PosixQueue(_) => (80, 0),
        Node::Directory(directory) if matches!(directory.source, Source::Proc(_)) => (0, 0),
        Node::Directory(_) => (4096, 8),
        Node::Symlink(target) => (to_u64(target.len()), 0),
        Node::ProcLink(_) => (64, 0),
        _ => (0, 0),
    }
}

fn device(inode: &Inode) -> u64 {
    match &inode.node {
        Node::Directory(directory) if matches!(directory.source, Source::Proc(_)) => DEVICE_PROC,
        Node::Text(_) | Node::Proc(_) | Node::ProcLink(_) => DEVICE_PROC,
        Node::Pipe(_) if inode.links == 0 => DEVICE_PIPE,
        Node::Output(_) => DEVICE_PIPE,
        Node::Socket(_) => DEVICE_SOCKET,
        Node::Event(_)
        | Node::Timer(_)
        | Node::Signal(_)
        | Node::Epoll(_)
        | Node::Inotify(_)
        | Node::PosixQueue(_)
        | Node::Process(_) => DEVICE_ANONYMOUS,
        _ => DEVICE_ROOT,
    }
}

impl Stat {
    /// `struct stat` of x86-64.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(144);
        for word in [self.device, self.number, self.links] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        for word in [self.mode, self.uid, self.gid, 0] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        for word in [self.special, self.size, BLOCK_SIZE, self.blocks] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        for time in [self.times.accessed, self.times.modified, self.times.changed] {
            bytes.extend_from_slice(&time.seconds.to_le_bytes());
            bytes.extend_from_slice(&u64::from(time.nanos).to_le_bytes());
        }
        bytes.resize(144, 0);
        bytes
    }

    /// `struct statx`.
    pub(crate) fn encode_extended(&self) -> Vec<u8> {
        const BASIC_AND_BIRTH: u32 = 0xFFF;
        let mut bytes = Vec::with_capacity(256);
        let push32 = |bytes: &mut Vec<u8>, word: u32| bytes.extend_from_slice(&word.to_le_bytes());
        push32(&mut bytes, BASIC_AND_BIRTH);
        push32(&mut bytes, low_u32(BLOCK_SIZE));
        bytes.extend_from_slice(&0_u64.to_le_bytes());
        for word in [low_u32(self.links), self.uid, self.gid, self.mode] {
            push32(&mut bytes, word);
        }
        for word in [self.number, self.size, self.blocks, 0] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        let times = self.times;
        for time in [times.accessed, times.born, times.changed, times.modified] {
            push_time(&mut bytes, time);
        }
        for device in [self.special, self.device] {
            push32(&mut bytes, low_u32(device >> 8));
            push32(&mut bytes, low_u32(device & 0xFF));
        }
        bytes.resize(256, 0);
        bytes
    }
}

fn push_time(bytes: &mut Vec<u8>, time: Timestamp) {
    bytes.extend_from_slice(&as_u64(time.seconds).to_le_bytes());
    bytes.extend_from_slice(&u64::from(time.nanos).to_le_bytes());
}

/// `struct statfs` for the file system of an inode.
pub(crate) fn encode_file_system(state: &State, id: InodeId) -> Vec<u8> {
    let inode = state.inode(id);
    let (magic, blocks): (u64, u64) = match device(inode) {
        DEVICE_PROC => (0x9FA0, 0),
        DEVICE_PIPE => (0x5049_5045, 0),
        DEVICE_SOCKET => (0x534F_434B, 0),
        DEVICE_ANONYMOUS => (0x0904_1934, 0),
        _ => (0xEF53, 1 << 22),
    };
    let free = blocks / 2;
    let words = [
        magic,
        BLOCK_SIZE,
        blocks,
        free,
        free,
        blocks / 4,
        free / 4,
        device(inode),
        255,
        BLOCK_SIZE,
        0x20,
    ];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(120, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::inode::{Times, Timestamp};
    use super::*;

    fn sample() -> Stat {
        let time = |seconds| Timestamp { seconds, nanos: 7 };
        Stat {
            device: 0x801,
            number: 0x1122,
            mode: 0o100_644,
            links: 3,
            uid: 1,
            gid: 2,
            special: 0,
            size: 0x5566,
            blocks: 8,
            times: Times {
                accessed: time(10),
                modified: time(20),
                changed: time(30),
                born: time(40),
            },
        }
    }

    #[test]
    fn the_layout_is_that_of_the_c_structures() {
        let word =
            |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let half =
            |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let plain = sample().encode();
        assert_eq!(plain.len(), 144);
        assert_eq!((word(&plain, 8), word(&plain, 16)), (0x1122, 3));
        assert_eq!((half(&plain, 24), half(&plain, 28)), (0o100_644, 1));
        assert_eq!((word(&plain, 48), word(&plain, 64)), (0x5566, 8));
        assert_eq!(
            (word(&plain, 72), word(&plain, 88), word(&plain, 104)),
            (10, 20, 30)
        );
        let extended = sample().encode_extended();
        assert_eq!(extended.len(), 256);
        assert_eq!(half(&extended, 0x1C), 0o100_644);
        assert_eq!(
            (word(&extended, 0x20), word(&extended, 0x28)),
            (0x1122, 0x5566)
        );
        assert_eq!((word(&extended, 0x50), word(&extended, 0x70)), (40, 20));
        assert_eq!((half(&extended, 0x88), half(&extended, 0x8C)), (8, 1));
    }
}
