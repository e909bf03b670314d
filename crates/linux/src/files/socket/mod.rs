//! Sockets.

use super::inode::InodeId;
use super::io::{Buffer, IoError};
use super::state::State;
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::thread::Tid;

#[derive(Debug, Clone, Default)]
pub(crate) struct Socket {}

#[derive(Debug, Clone, Default)]
pub(crate) struct Ports {}

impl Socket {
    pub(crate) fn readiness(&self, _state: &State) -> u32 {
        0
    }
}

pub(crate) fn closed(_kernel: &mut Kernel, _id: InodeId) {}

pub(crate) fn destroy(_kernel: &mut Kernel, _socket: &mut Socket) {}

pub(crate) fn read(
    _kernel: &mut Kernel,
    _tid: Tid,
    _id: InodeId,
    _buffer: &mut Buffer,
    _max: usize,
) -> Result<usize, IoError> {
    Err(Errno::ENOTCONN.into())
}

pub(crate) fn write(
    _kernel: &mut Kernel,
    _tid: Tid,
    _id: InodeId,
    _buffer: &Buffer,
    _from: usize,
) -> Result<usize, IoError> {
    Err(Errno::ENOTCONN.into())
}

impl Socket {
    pub(crate) fn readable_bytes(&self) -> usize {
        0
    }
}

pub(crate) fn receive_deadline(
    _call: &crate::call::Call<'_>,
    _open: super::open::OpenId,
) -> Option<raddle_world::VirtualTime> {
    None
}

pub(crate) fn send_deadline(
    _call: &crate::call::Call<'_>,
    _open: super::open::OpenId,
) -> Option<raddle_world::VirtualTime> {
    None
}

pub(crate) fn interface_ioctl(
    _call: &mut crate::call::Call<'_>,
    _open: super::open::OpenId,
    _request: u32,
) -> Option<crate::call::SysResult> {
    None
}
