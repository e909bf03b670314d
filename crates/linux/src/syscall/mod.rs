//! System calls: the table in `table.rs` is data, the handlers are in one file per family.

mod attr;
mod dir;
mod fd;
mod file_args;
mod open;
mod rw;
mod stat;
mod table;

#[cfg(test)]
mod file_tests;

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

/// Families of the file layer.
pub(crate) const FILE_FAMILIES: &[&[table::Entry]] = &[
    attr::ENTRIES,
    dir::ENTRIES,
    fd::ENTRIES,
    open::ENTRIES,
    rw::ENTRIES,
    stat::ENTRIES,
];
