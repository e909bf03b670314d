//! Waiting for several descriptors: poll, ppoll, select, pselect6, epoll.

use raddle_mem::GuestAddr;
use raddle_stdx::width::{low_u16, low_u32, to_u64, to_usize};
use raddle_world::{Duration, VirtualTime};

use super::file_args::{count, descriptor};
use super::table::Entry;
use crate::call::{Call, OnSignal, SysResult, WaitKey};
use crate::errno::Errno;
use crate::files::epoll::{self, Control, Epoll};
use crate::files::flags::{
    O_CLOEXEC, O_RDWR, POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLPRI, POLLRDNORM, POLLWRNORM,
};
use crate::files::inode::{InodeId, Name, Node};
use crate::files::open::{self, OpenId};
use crate::files::{ready, set_temporary_mask};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("poll", poll),
    Entry::full("select", select),
    Entry::full("epoll_create", epoll_create),
    Entry::full("epoll_wait", epoll_wait),
    Entry::full("epoll_ctl", epoll_ctl),
    Entry::full("pselect6", pselect6),
    Entry::full("ppoll", ppoll),
    Entry::full("epoll_pwait", epoll_pwait),
    Entry::full("epoll_create1", epoll_create1),
    Entry::full("epoll_pwait2", epoll_pwait2),
];

/// How long a wait may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    None,
    Until(VirtualTime),
    Endless,
}

impl Patience {
    fn nanos(call: &Call<'_>, nanos: u64) -> Self {
        if nanos == 0 {
            return Self::None;
        }
        // A retry keeps the deadline of the first attempt.
        let deadline = call
            .deadline
            .filter(|_| call.is_retry)
            .unwrap_or_else(|| call.kernel.state.now.after(Duration(nanos)));
        Self::Until(deadline)
    }

    /// From milliseconds; negative means for ever.
    fn millis(call: &Call<'_>, millis: i32) -> Self {
        match u64::try_from(millis) {
            Ok(millis) => Self::nanos(call, millis * 1_000_000),
            Err(_) => Self::Endless,
        }
    }

    /// From a `struct timespec` (or `timeval` with `unit` 1000) at `addr`; zero means for ever.
    fn at(call: &mut Call<'_>, addr: u64, unit: u64) -> Result<Self, Errno> {
        if addr == 0 {
            return Ok(Self::Endless);
        }
        let (seconds, fraction) = call.read_time(addr)?;
        let (seconds, fraction) = (
            u64::try_from(seconds).map_err(|_| Errno::EINVAL)?,
            u64::try_from(fraction).map_err(|_| Errno::EINVAL)?,
        );
        // select(2) takes more than a second of microseconds; timespecs are strict.
        if unit == 1 && fraction >= 1_000_000_000 {
            return Err(Errno::EINVAL);
        }
        let nanos = seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(fraction.saturating_mul(unit));
        Ok(Self::nanos(call, nanos))
    }

    fn is_over(self, call: &Call<'_>) -> bool {
        match self {
            Self::None => true,
            Self::Until(deadline) => deadline <= call.kernel.state.now,
            Self::Endless => false,
        }
    }

    fn deadline(self) -> Option<VirtualTime> {
        match self {
            Self::Until(deadline) => Some(deadline),
            Self::None | Self::Endless => None,
        }
    }
}

/// Puts the signal mask at `addr` in force for the rest of the call.
fn mask_at(call: &mut Call<'_>, addr: u64, size: u64) -> Result<(), Errno> {
    if addr == 0 {
        return Ok(());
    }
    if size != 8 {
        return Err(Errno::EINVAL);
    }
    let mask = call.kernel.read_u64(call.tid, addr)?;
    set_temporary_mask(call.kernel, call.tid, mask);
    Ok(())
}

fn poll(call: &mut Call<'_>) -> SysResult {
    let patience = Patience::millis(call, call.int(2));
    poll_until(call, patience)
}

fn ppoll(call: &mut Call<'_>) -> SysResult {
    let patience = Patience::at(call, call.args[2], 1)?;
    mask_at(call, call.args[3], call.args[4])?;
    poll_until(call, patience)
}

fn poll_until(call: &mut Call<'_>, patience: Patience) -> SysResult {
    const RECORD: usize = 8;
    let number = to_usize(u64::from(call.word(1)));
    let table = call.kernel.process_of(call.tid).fds;
    let limit = call.kernel.state.files.table(table).limit;
    if number > to_usize(u64::from(limit)) {
        return Err(Errno::EINVAL.into());
    }
    let mut records = vec![0; number * RECORD];
    call.kernel
        .read_user(call.tid, call.addr(0), &mut records)?;
    let (mut found, mut keys, mut waiting) = (0, Vec::new(), Vec::new());
    for record in records.chunks_mut(RECORD) {
        let fd = i32::from_le_bytes([record[0], record[1], record[2], record[3]]);
        let wanted = u32::from(u16::from_le_bytes([record[4], record[5]]));
        let bits = if fd < 0 {
            0
        } else {
            match open::lookup(call.kernel, call.tid, fd) {
                Ok(open) => {
                    ready::keys_of(call.kernel, call.tid, open, &mut keys);
                    waiting.push(fd);
                    ready::of_open(call.kernel, call.tid, open) & (wanted | POLLERR | POLLHUP)
                }
                Err(_) => POLLNVAL,
            }
        };
        found += usize::from(bits != 0);
        record[6..8].copy_from_slice(&low_u16(u64::from(bits)).to_le_bytes());
    }
    if found == 0 && !patience.is_over(call) {
        return Err(call.block(waiting, keys, patience.deadline(), OnSignal::Interrupt));
    }
    call.write_bytes(call.args[0], &records)?;
    count(found)
}

fn select(call: &mut Call<'_>) -> SysResult {
    let addr = call.args[4];
    let patience = Patience::at(call, addr, 1000)?;
    let result = select_until(call, patience)?;
    write_rest(call, addr, patience, 1000)?;
    Ok(result)
}

fn pselect6(call: &mut Call<'_>) -> SysResult {
    let addr = call.args[4];
    let patience = Patience::at(call, addr, 1)?;
    if call.args[5] != 0 {
        let [mask, size] = call.read_words(call.args[5])?;
        mask_at(call, mask, size)?;
    }
    let result = select_until(call, patience)?;
    write_rest(call, addr, patience, 1)?;
    Ok(result)
}

/// Tells how much of the timeout is left.
fn write_rest(call: &mut Call<'_>, addr: u64, patience: Patience, unit: u64) -> Result<(), Errno> {
    if let Patience::Until(deadline) = patience {
        let rest = deadline.0.saturating_sub(call.kernel.state.now.0);
        // A timeout in memory that cannot be written is not an error (select(2)).
        let written = call.write_words(addr, &[rest / 1_000_000_000, rest % 1_000_000_000 / unit]);
        if let Err(errno) = written
            && errno != Errno::EFAULT
        {
            return Err(errno);
        }
    }
    Ok(())
}

/// What each of the three sets of select means, as poll bits.
const SETS: [u32; 3] = [
    POLLIN | POLLRDNORM | POLLHUP | POLLERR,
    POLLOUT | POLLWRNORM | POLLERR,
    POLLPRI,
];

fn select_until(call: &mut Call<'_>, patience: Patience) -> SysResult {
    let number = usize::try_from(call.int(0)).map_err(|_| Errno::EINVAL)?;
    let table = call.kernel.process_of(call.tid).fds;
    let limit = call.kernel.state.files.table(table).limit;
    let number = number.min(to_usize(u64::from(limit)).max(1024));
    let bytes = number.div_ceil(64) * 8;
    let mut wanted = Vec::new();
    let places = [call.args[1], call.args[2], call.args[3]];
    for addr in places {
        let mut set = vec![0; bytes];
        if addr != 0 {
            call.kernel.read_user(call.tid, GuestAddr(addr), &mut set)?;
        }
        wanted.push(set);
    }
    let mut results = vec![vec![0; bytes]; 3];
    let (mut found, mut keys, mut waiting) = (0, Vec::new(), Vec::new());
    for index in 0..number {
        let (byte, bit) = (index / 8, 1_u8 << (index % 8));
        if wanted.iter().all(|set| set[byte] & bit == 0) {
            continue;
        }
        let fd = i32::try_from(index).map_err(|_| Errno::EINVAL)?;
        let open = open::lookup(call.kernel, call.tid, fd)?;
        ready::keys_of(call.kernel, call.tid, open, &mut keys);
        waiting.push(fd);
        let bits = ready::of_open(call.kernel, call.tid, open);
        for (set, mask) in SETS.iter().enumerate() {
            if wanted[set][byte] & bit != 0 && bits & mask != 0 {
                results[set][byte] |= bit;
                found += 1;
            }
        }
    }
    if found == 0 && !patience.is_over(call) {
        return Err(call.block(waiting, keys, patience.deadline(), OnSignal::Interrupt));
    }
    for (set, result) in results.iter().enumerate() {
        if call.args[1 + set] != 0 {
            call.write_bytes(call.args[1 + set], result)?;
        }
    }
    count(found)
}

fn epoll_create(call: &mut Call<'_>) -> SysResult {
    if call.int(0) <= 0 {
        return Err(Errno::EINVAL.into());
    }
    make_epoll(call, 0)
}

fn epoll_create1(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(0);
    if flags & !O_CLOEXEC != 0 {
        return Err(Errno::EINVAL.into());
    }
    make_epoll(call, flags)
}

fn make_epoll(call: &mut Call<'_>, flags: u32) -> SysResult {
    let inode = open::create_anonymous_inode(call.kernel, 0o600, Node::Epoll(Epoll::default()));
    call.kernel.state.files.epolls.push(inode);
    let path = Name::from(&b"anon_inode:[eventpoll]"[..]);
    let open = open::create(call.kernel, inode, O_RDWR, path);
    descriptor(open::install(
        call.kernel,
        call.tid,
        open,
        flags & O_CLOEXEC != 0,
    )?)
}

/// The epoll behind the descriptor in argument 0.
fn epoll_of(call: &Call<'_>) -> Result<(OpenId, InodeId), Errno> {
    let open = call.open_file(0)?;
    let inode = call.kernel.state.files.open_file(open).inode;
    match call.kernel.state.files.inode(inode).node {
        Node::Epoll(_) => Ok((open, inode)),
        _ => Err(Errno::EINVAL),
    }
}

fn epoll_ctl(call: &mut Call<'_>) -> SysResult {
    const ADD: u32 = 1;
    const DELETE: u32 = 2;
    const MODIFY: u32 = 3;
    let target = open::lookup(call.kernel, call.tid, call.int(2))?;
    let (_, epoll) = epoll_of(call)?;
    let operation = call.word(1);
    let control = if operation == DELETE {
        Control::Delete
    } else {
        let bytes: [u8; 12] = call.read_bytes(call.args[3])?;
        let (events, data) = bytes.split_at(4);
        let events = u32::from_le_bytes(events.try_into().map_err(|_| Errno::EFAULT)?);
        let data = u64::from_le_bytes(data.try_into().map_err(|_| Errno::EFAULT)?);
        match operation {
            ADD => Control::Add { events, data },
            MODIFY => Control::Modify { events, data },
            _ => return Err(Errno::EINVAL.into()),
        }
    };
    epoll::control(call.kernel, epoll, call.int(2), target, control)?;
    Ok(0)
}

fn epoll_wait(call: &mut Call<'_>) -> SysResult {
    let patience = Patience::millis(call, call.int(3));
    wait_for_events(call, patience)
}

fn epoll_pwait(call: &mut Call<'_>) -> SysResult {
    let patience = Patience::millis(call, call.int(3));
    mask_at(call, call.args[4], call.args[5])?;
    wait_for_events(call, patience)
}

fn epoll_pwait2(call: &mut Call<'_>) -> SysResult {
    let patience = Patience::at(call, call.args[3], 1)?;
    mask_at(call, call.args[4], call.args[5])?;
    wait_for_events(call, patience)
}

fn wait_for_events(call: &mut Call<'_>, patience: Patience) -> SysResult {
    const EVENT: u64 = 12;
    let (open, inode) = epoll_of(call)?;
    let max = usize::try_from(call.int(2))
        .ok()
        .filter(|max| *max > 0)
        .ok_or(Errno::EINVAL)?;
    // The place for the result must be good before events are taken.
    call.kernel.read_user(call.tid, call.addr(1), &mut [0; 1])?;
    let events = epoll::take(call.kernel, call.tid, inode, max);
    if events.is_empty() && !patience.is_over(call) {
        let mut keys: Vec<WaitKey> = Vec::new();
        ready::keys_of(call.kernel, call.tid, open, &mut keys);
        let mut waiting = vec![call.int(0)];
        waiting.extend(epoll::descriptors(call.kernel, inode));
        return Err(call.block(waiting, keys, patience.deadline(), OnSignal::Interrupt));
    }
    let mut bytes = Vec::with_capacity(events.len() * to_usize(EVENT));
    for event in &events {
        bytes.extend_from_slice(&low_u32(u64::from(event.events)).to_le_bytes());
        bytes.extend_from_slice(&event.data.to_le_bytes());
    }
    call.write_bytes(call.args[1], &bytes)?;
    Ok(to_u64(events.len()))
}
