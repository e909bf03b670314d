//! Who a thread is: the set*id family, supplementary groups, capabilities.

use std::sync::Arc;

use raddle_stdx::width::{low_u32, to_u64, to_usize};

use super::table::Entry;
use crate::call::{Call, SysResult};
use crate::credentials::{Capability, CapabilitySet, Credentials, Ids, Wanted, choose_ids, secure};
use crate::errno::Errno;

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("getuid", getuid),
    Entry::full("getgid", getgid),
    Entry::full("geteuid", geteuid),
    Entry::full("getegid", getegid),
    Entry::full("setuid", setuid),
    Entry::full("setgid", setgid),
    Entry::full("setreuid", setreuid),
    Entry::full("setregid", setregid),
    Entry::full("setresuid", setresuid),
    Entry::full("getresuid", getresuid),
    Entry::full("setresgid", setresgid),
    Entry::full("getresgid", getresgid),
    Entry::full("getgroups", getgroups),
    Entry::full("setgroups", setgroups),
    Entry::full("setfsuid", setfsuid),
    Entry::full("setfsgid", setfsgid),
    Entry::full("capget", capget),
    Entry::full("capset", capset),
];

/// Which of the two lists of ids.
#[derive(Clone, Copy)]
enum Which {
    Users,
    Groups,
}

fn who<'a>(call: &'a Call<'_>) -> &'a Credentials {
    call.kernel.credentials(call.tid)
}

fn ids(call: &Call<'_>, which: Which) -> Ids {
    match which {
        Which::Users => who(call).users,
        Which::Groups => who(call).groups,
    }
}

/// Whether the caller may take ids that it does not have.
fn may_take_any(call: &Call<'_>, which: Which) -> bool {
    who(call).has(match which {
        Which::Users => Capability::SETUID,
        Which::Groups => Capability::SETGID,
    })
}

fn argument(call: &Call<'_>, index: usize) -> Option<u32> {
    let id = low_u32(call.args[index]);
    (id != u32::MAX).then_some(id)
}

fn set_ids(call: &mut Call<'_>, which: Which, wanted: Wanted) -> SysResult {
    let old = ids(call, which);
    let new = choose_ids(old, wanted, may_take_any(call, which))?;
    let credentials = call.kernel.credentials_mut(call.tid);
    match which {
        Which::Users => credentials.set_users(new),
        Which::Groups => credentials.groups = new,
    }
    if new.effective != old.effective || new.file != old.file {
        become_undumpable(call);
    }
    Ok(0)
}

/// A process with another user hides its memory from the user it had before.
fn become_undumpable(call: &mut Call<'_>) {
    let process = call.kernel.process_of_mut(call.tid);
    process.is_dumpable = false;
    process.parent_death_signal = 0;
}

fn getuid(call: &mut Call<'_>) -> SysResult {
    Ok(u64::from(who(call).users.real))
}

fn geteuid(call: &mut Call<'_>) -> SysResult {
    Ok(u64::from(who(call).users.effective))
}

fn getgid(call: &mut Call<'_>) -> SysResult {
    Ok(u64::from(who(call).groups.real))
}

fn getegid(call: &mut Call<'_>) -> SysResult {
    Ok(u64::from(who(call).groups.effective))
}

/// setuid and setgid: all three with the capability, else the effective one becomes the real or saved one.
fn set_one(call: &mut Call<'_>, which: Which) -> SysResult {
    let id = argument(call, 0).ok_or(Errno::EINVAL)?;
    if may_take_any(call, which) {
        return set_ids(call, which, [Some(id); 3]);
    }
    let old = ids(call, which);
    if id != old.real && id != old.saved {
        return Err(Errno::EPERM.into());
    }
    set_ids(call, which, [None, Some(id), None])
}

fn setuid(call: &mut Call<'_>) -> SysResult {
    set_one(call, Which::Users)
}

fn setgid(call: &mut Call<'_>) -> SysResult {
    set_one(call, Which::Groups)
}

/// setreuid and setregid: the saved id follows the effective one when the real one is set, or when the effective
/// one becomes what the real one was not.
fn set_two(call: &mut Call<'_>, which: Which) -> SysResult {
    let (real, effective) = (argument(call, 0), argument(call, 1));
    let old = ids(call, which);
    let is_own = |id: u32| id == old.real || id == old.effective;
    if !may_take_any(call, which) && !real.is_none_or(is_own) {
        return Err(Errno::EPERM.into());
    }
    let follows = real.is_some() || effective.is_some_and(|id| id != old.real);
    let saved = follows.then(|| effective.unwrap_or(old.effective));
    set_ids(call, which, [real, effective, saved])
}

fn setreuid(call: &mut Call<'_>) -> SysResult {
    set_two(call, Which::Users)
}

fn setregid(call: &mut Call<'_>) -> SysResult {
    set_two(call, Which::Groups)
}

fn set_three(call: &mut Call<'_>, which: Which) -> SysResult {
    let wanted = [0, 1, 2].map(|index| argument(call, index));
    set_ids(call, which, wanted)
}

fn setresuid(call: &mut Call<'_>) -> SysResult {
    set_three(call, Which::Users)
}

fn setresgid(call: &mut Call<'_>) -> SysResult {
    set_three(call, Which::Groups)
}

fn get_three(call: &mut Call<'_>, which: Which) -> SysResult {
    let ids = ids(call, which);
    for (index, id) in [ids.real, ids.effective, ids.saved].into_iter().enumerate() {
        call.write_bytes(call.args[index], &id.to_le_bytes())?;
    }
    Ok(0)
}

fn getresuid(call: &mut Call<'_>) -> SysResult {
    get_three(call, Which::Users)
}

fn getresgid(call: &mut Call<'_>) -> SysResult {
    get_three(call, Which::Groups)
}

/// Gives the old id whether or not the new one is allowed: that is how the call reports.
fn set_file_id(call: &mut Call<'_>, which: Which) -> SysResult {
    let old = ids(call, which);
    if let Some(id) = argument(call, 0) {
        let known = [old.real, old.effective, old.saved, old.file].contains(&id);
        if known || may_take_any(call, which) {
            let credentials = call.kernel.credentials_mut(call.tid);
            match which {
                Which::Users => credentials.set_file_user(id),
                Which::Groups => credentials.groups.file = id,
            }
        }
    }
    Ok(u64::from(old.file))
}

fn setfsuid(call: &mut Call<'_>) -> SysResult {
    set_file_id(call, Which::Users)
}

fn setfsgid(call: &mut Call<'_>) -> SysResult {
    set_file_id(call, Which::Groups)
}

/// Most supplementary groups (`NGROUPS_MAX`).
const GROUPS_MAX: u64 = 65_536;

fn getgroups(call: &mut Call<'_>) -> SysResult {
    let groups = Arc::clone(&who(call).more_groups);
    let count = to_u64(groups.len());
    let room = call.int(0);
    if room == 0 {
        return Ok(count);
    }
    if u64::try_from(room).map_err(|_| Errno::EINVAL)? < count {
        return Err(Errno::EINVAL.into());
    }
    let bytes: Vec<u8> = groups.iter().flat_map(|id| id.to_le_bytes()).collect();
    call.write_bytes(call.args[1], &bytes)?;
    Ok(count)
}

fn setgroups(call: &mut Call<'_>) -> SysResult {
    who(call).need(Capability::SETGID)?;
    let count = u64::from(low_u32(call.args[0]));
    if count > GROUPS_MAX {
        return Err(Errno::EINVAL.into());
    }
    let mut bytes = vec![0; to_usize(count) * 4];
    call.kernel.read_user(call.tid, call.addr(1), &mut bytes)?;
    let mut groups: Vec<u32> = bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(std::array::from_fn(|index| word[index])))
        .collect();
    groups.sort_unstable();
    call.kernel.credentials_mut(call.tid).more_groups = groups.into();
    Ok(0)
}

/// Versions of the capability structures, and how many words they have.
fn capability_words(call: &mut Call<'_>) -> Result<usize, Errno> {
    const VERSION_1: u32 = 0x1998_0330;
    const VERSION_2: u32 = 0x2007_1026;
    const VERSION_3: u32 = 0x2008_0522;
    match call.kernel.read_u32(call.tid, call.args[0])? {
        VERSION_1 => Ok(3),
        VERSION_2 | VERSION_3 => Ok(6),
        _ => {
            call.write_bytes(call.args[0], &VERSION_3.to_le_bytes())?;
            Err(Errno::EINVAL)
        }
    }
}

fn capget(call: &mut Call<'_>) -> SysResult {
    let words = match capability_words(call) {
        // A question for the version has no place for an answer.
        Err(Errno::EINVAL) if call.args[1] == 0 => return Ok(0),
        words => words?,
    };
    let pid = call
        .kernel
        .read_u32(call.tid, call.args[0].wrapping_add(4))?;
    let tid = match pid {
        0 => call.tid,
        other => crate::thread::Tid(other),
    };
    let Some(thread) = call.kernel.state.threads.get(&tid) else {
        return Err(Errno::ESRCH.into());
    };
    let asked = &thread.credentials;
    let sets = [asked.effective, asked.permitted, asked.inheritable];
    if call.args[1] != 0 {
        // Effective, permitted, inheritable; then the same for capabilities above 31.
        let halves = sets
            .map(low_u32)
            .into_iter()
            .chain(sets.map(|set| low_u32(set >> 32)));
        let bytes: Vec<u8> = halves
            .take(words)
            .flat_map(|word| word.to_le_bytes())
            .collect();
        call.write_bytes(call.args[1], &bytes)?;
    }
    Ok(0)
}

fn capset(call: &mut Call<'_>) -> SysResult {
    let words = capability_words(call)?;
    let pid = call
        .kernel
        .read_u32(call.tid, call.args[0].wrapping_add(4))?;
    if pid != 0 && pid != call.tid.0 {
        return Err(Errno::EPERM.into());
    }
    let mut halves = [0_u32; 6];
    for (index, half) in halves[..words].iter_mut().enumerate() {
        let at = call.args[1].wrapping_add(4 * to_u64(index));
        *half = call.kernel.read_u32(call.tid, at)?;
    }
    let set = |index: usize| u64::from(halves[index]) | u64::from(halves[index + 3]) << 32;
    let [effective, permitted, inheritable]: [CapabilitySet; 3] = [0, 1, 2].map(set);
    let old = who(call);
    let is_within = |small: CapabilitySet, large: CapabilitySet| small & !large == 0;
    let may_inherit = is_within(inheritable, old.inheritable | old.bounding)
        && (old.has(Capability::SETPCAP)
            || is_within(inheritable, old.inheritable | old.permitted));
    if !may_inherit || !is_within(permitted, old.permitted) || !is_within(effective, permitted) {
        return Err(Errno::EPERM.into());
    }
    let new = call.kernel.credentials_mut(call.tid);
    (new.effective, new.permitted, new.inheritable) = (effective, permitted, inheritable);
    new.ambient &= permitted & inheritable;
    Ok(0)
}

/// The options of prctl(2) that concern capabilities; none if the option is not one of them.
pub(super) fn control(call: &mut Call<'_>) -> Option<SysResult> {
    let value = call.args[1];
    Some(match call.int(0) {
        7 => Ok(u64::from(
            who(call).secure_bits & secure::KEEP_CAPABILITIES != 0,
        )),
        8 => keep_capabilities(call, value),
        23 => read_bounding(call, value),
        24 => drop_bounding(call, value),
        27 => Ok(u64::from(who(call).secure_bits)),
        28 => set_secure_bits(call, value),
        47 => control_ambient(call, value),
        _ => return None,
    })
}

fn capability(number: u64) -> Result<Capability, Errno> {
    u32::try_from(number)
        .ok()
        .filter(|number| *number <= Capability::LAST)
        .map(Capability)
        .ok_or(Errno::EINVAL)
}

fn read_bounding(call: &Call<'_>, number: u64) -> SysResult {
    let bit = capability(number)?.bit();
    Ok(u64::from(who(call).bounding & bit != 0))
}

fn drop_bounding(call: &mut Call<'_>, number: u64) -> SysResult {
    who(call).need(Capability::SETPCAP)?;
    let bit = capability(number)?.bit();
    call.kernel.credentials_mut(call.tid).bounding &= !bit;
    Ok(0)
}

fn keep_capabilities(call: &mut Call<'_>, value: u64) -> SysResult {
    let bits = who(call).secure_bits;
    if value > 1 {
        return Err(Errno::EINVAL.into());
    }
    if bits & secure::KEEP_CAPABILITIES << 1 != 0 {
        return Err(Errno::EPERM.into());
    }
    call.kernel.credentials_mut(call.tid).secure_bits = if value == 1 {
        bits | secure::KEEP_CAPABILITIES
    } else {
        bits & !secure::KEEP_CAPABILITIES
    };
    Ok(0)
}

fn set_secure_bits(call: &mut Call<'_>, value: u64) -> SysResult {
    let new = u32::try_from(value).map_err(|_| Errno::EPERM)?;
    let old = who(call).secure_bits;
    let locked = old & secure::LOCKS;
    let changes_locked = (old ^ new) & (locked | locked >> 1) != 0;
    if changes_locked || new & !secure::KNOWN != 0 {
        return Err(Errno::EPERM.into());
    }
    who(call).need(Capability::SETPCAP)?;
    call.kernel.credentials_mut(call.tid).secure_bits = new;
    Ok(0)
}

/// `PR_CAP_AMBIENT`.
fn control_ambient(call: &mut Call<'_>, action: u64) -> SysResult {
    const IS_SET: u64 = 1;
    const RAISE: u64 = 2;
    const LOWER: u64 = 3;
    const CLEAR_ALL: u64 = 4;
    let number = call.args[2];
    if action == CLEAR_ALL {
        if number != 0 {
            return Err(Errno::EINVAL.into());
        }
        call.kernel.credentials_mut(call.tid).ambient = 0;
        return Ok(0);
    }
    let bit = capability(number)?.bit();
    let own = who(call);
    match action {
        IS_SET => return Ok(u64::from(own.ambient & bit != 0)),
        RAISE => {
            let is_usable = own.permitted & own.inheritable & bit != 0;
            if !is_usable || own.secure_bits & secure::NO_AMBIENT_RAISE != 0 {
                return Err(Errno::EPERM.into());
            }
            call.kernel.credentials_mut(call.tid).ambient |= bit;
        }
        LOWER => call.kernel.credentials_mut(call.tid).ambient &= !bit,
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(0)
}
