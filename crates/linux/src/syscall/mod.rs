//! System calls: the table in `table.rs` is data, the handlers are in one file per family.

mod attr;
mod dir;
mod event;
mod fd;
mod file_args;
pub(crate) mod futex;
mod identity;
mod memory;
mod message;
mod message_queue;
mod misc;
mod open;
mod poll;
mod posix_queue;
mod process;
mod refused;
mod rw;
mod sched;
mod semaphore;
mod shared_memory;
mod signal;
mod socket;
mod stat;
mod table;
mod thread;
mod time;
mod transfer;
mod waiting;

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod identity_tests;
#[cfg(test)]
mod socket_tests;

pub(crate) use event::make_pidfd;
pub(crate) use misc::{RLIMIT_AS, default_limits};
pub(crate) use table::lookup;
pub use table::{Support, SyscallInfo, syscall_table};

use crate::call::{Call, SysResult};
use crate::errno::Errno;

/// For calls that have no effect here.
fn succeed(_: &mut Call<'_>) -> SysResult {
    Ok(0)
}

/// For calls that a kernel may lack.
fn no_such_call(_: &mut Call<'_>) -> SysResult {
    Err(Errno::ENOSYS.into())
}

/// For calls that need privileges that a program does not have here.
fn not_permitted(_: &mut Call<'_>) -> SysResult {
    Err(Errno::EPERM.into())
}
