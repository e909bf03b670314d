//! The character devices of the world, and the directory /dev.

use super::inode::{Name, Node};
use super::state::State;

/// A character device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Device {
    Null,
    Zero,
    Full,
    /// `/dev/random` and `/dev/urandom`.
    Random {
        minor: u32,
    },
    /// The controlling terminal, which no process here has.
    Terminal,
}

impl Device {
    /// `st_rdev`.
    pub(crate) fn number(self) -> u64 {
        let (major, minor) = match self {
            Self::Null => (1, 3),
            Self::Zero => (1, 5),
            Self::Full => (1, 7),
            Self::Random { minor } => (1, minor),
            Self::Terminal => (5, 0),
        };
        (major << 8) | u64::from(minor)
    }
}

/// Makes /dev; nothing of the host's /dev is ever seen.
pub(crate) fn populate(state: &mut State) {
    let dev = state.fixed_directory(state.root, b"dev");
    let devices: [(&[u8], Device); 6] = [
        (b"null", Device::Null),
        (b"zero", Device::Zero),
        (b"full", Device::Full),
        (b"random", Device::Random { minor: 8 }),
        (b"urandom", Device::Random { minor: 9 }),
        (b"tty", Device::Terminal),
    ];
    for (name, device) in devices {
        state.fixed_node(dev, name, 0o666, Node::Device(device));
    }
    let links: [(&[u8], &[u8]); 4] = [
        (b"stdin", b"/proc/self/fd/0"),
        (b"stdout", b"/proc/self/fd/1"),
        (b"stderr", b"/proc/self/fd/2"),
        (b"fd", b"/proc/self/fd"),
    ];
    for (name, target) in links {
        state.fixed_node(dev, name, 0o777, Node::Symlink(Name::from(target)));
    }
    let shm = state.fixed_directory(dev, b"shm");
    state.set_fixed_mode(shm, 0o1777);
    state.fixed_directory(dev, b"pts");
}
