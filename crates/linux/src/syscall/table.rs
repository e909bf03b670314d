//! The calls that we serve: data, from which dispatch and the reference page are made.

use raddle_calls::number;

use crate::call::{Call, SysResult};
use crate::syscall::{
    attr, dir, event, fd, futex, identity, memory, message, message_queue, misc, open, poll,
    posix_queue, process, refused, rw, sched, semaphore, shared_memory, signal, socket, stat,
    thread, time, transfer,
};

/// How far a call is supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// As on Linux.
    Full,
    /// Some arguments are refused or have no effect; the note says which.
    Partial,
    /// Accepted, has no effect in this world.
    Ignored,
    /// Always fails with a proper error that programs know to handle.
    Refused,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) number: u32,
    pub(crate) level: Support,
    pub(crate) note: &'static str,
    pub(crate) handler: fn(&mut Call<'_>) -> SysResult,
}

impl Entry {
    pub(super) const fn full(name: &str, handler: fn(&mut Call<'_>) -> SysResult) -> Self {
        Self {
            number: number(name),
            level: Support::Full,
            note: "",
            handler,
        }
    }

    pub(super) const fn partial(
        name: &str,
        handler: fn(&mut Call<'_>) -> SysResult,
        note: &'static str,
    ) -> Self {
        Self {
            number: number(name),
            level: Support::Partial,
            note,
            handler,
        }
    }

    pub(super) const fn ignored(
        name: &str,
        handler: fn(&mut Call<'_>) -> SysResult,
        note: &'static str,
    ) -> Self {
        Self {
            number: number(name),
            level: Support::Ignored,
            note,
            handler,
        }
    }

    pub(super) const fn refused(
        name: &str,
        handler: fn(&mut Call<'_>) -> SysResult,
        note: &'static str,
    ) -> Self {
        Self {
            number: number(name),
            level: Support::Refused,
            note,
            handler,
        }
    }
}

/// All families.
const FAMILIES: &[&[Entry]] = &[
    attr::ENTRIES,
    dir::ENTRIES,
    event::ENTRIES,
    fd::ENTRIES,
    message::ENTRIES,
    open::ENTRIES,
    poll::ENTRIES,
    rw::ENTRIES,
    socket::ENTRIES,
    stat::ENTRIES,
    transfer::ENTRIES,
    futex::ENTRIES,
    identity::ENTRIES,
    memory::ENTRIES,
    message_queue::ENTRIES,
    posix_queue::ENTRIES,
    semaphore::ENTRIES,
    shared_memory::ENTRIES,
    misc::ENTRIES,
    process::ENTRIES,
    refused::ENTRIES,
    sched::ENTRIES,
    signal::ENTRIES,
    thread::ENTRIES,
    time::ENTRIES,
];

const SLOTS: usize = 512;

/// By number, made at compile time; two rows for one number do not compile.
static BY_NUMBER: [Option<&Entry>; SLOTS] = index();

const fn index() -> [Option<&'static Entry>; SLOTS] {
    let mut slots: [Option<&Entry>; SLOTS] = [None; SLOTS];
    let mut family = 0;
    while family < FAMILIES.len() {
        let mut row = 0;
        while row < FAMILIES[family].len() {
            let entry = &FAMILIES[family][row];
            let slot = entry.number as usize;
            assert!(slots[slot].is_none(), "a call has one row");
            slots[slot] = Some(entry);
            row += 1;
        }
        family += 1;
    }
    slots
}

/// The row of a call, if we support it at all.
pub(crate) fn lookup(number: u32) -> Option<&'static Entry> {
    BY_NUMBER.get(number as usize).copied().flatten()
}

/// What documentation says about one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyscallInfo {
    pub number: u32,
    pub name: &'static str,
    /// Absent if the call ends the run with an error.
    pub support: Option<Support>,
    pub note: &'static str,
}

/// Every call of Linux with its level of support, by number.
pub fn syscall_table() -> Vec<SyscallInfo> {
    raddle_calls::all()
        .map(|call| {
            let entry = lookup(call.number);
            SyscallInfo {
                number: call.number,
                name: call.name,
                support: entry.map(|entry| entry.level),
                note: entry.map_or("", |entry| entry.note),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_name_and_partial_rows_say_why() {
        for info in syscall_table() {
            let needs_note = matches!(
                info.support,
                Some(Support::Partial | Support::Ignored | Support::Refused)
            );
            assert_eq!(needs_note, !info.note.is_empty(), "{}", info.name);
        }
    }

    #[test]
    fn numbers_beyond_the_table_are_not_served() {
        assert!(lookup(u32::MAX).is_none());
    }
}
