//! Who a thread is: users, groups and capabilities (credentials(7), capabilities(7)).
//!
//! As in Linux they belong to a thread, not to its process; libraries keep the threads of a process alike.

use std::sync::Arc;

use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::kernel::Kernel;
use crate::process::Pid;
use crate::signal::SIGCONT;
use crate::thread::Tid;

/// Real, effective, saved and file system id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ids {
    pub(crate) real: u32,
    pub(crate) effective: u32,
    pub(crate) saved: u32,
    /// What files are checked with; follows the effective id.
    pub(crate) file: u32,
}

impl Ids {
    fn is_one_of_three(self, id: u32) -> bool {
        [self.real, self.effective, self.saved].contains(&id)
    }

    fn has_root(self) -> bool {
        self.is_one_of_three(0)
    }
}

/// One capability by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capability(pub(crate) u32);

impl Capability {
    pub(crate) const CHOWN: Self = Self(0);
    pub(crate) const DAC_OVERRIDE: Self = Self(1);
    pub(crate) const DAC_READ_SEARCH: Self = Self(2);
    pub(crate) const FOWNER: Self = Self(3);
    pub(crate) const FSETID: Self = Self(4);
    pub(crate) const KILL: Self = Self(5);
    pub(crate) const SETGID: Self = Self(6);
    pub(crate) const SETUID: Self = Self(7);
    pub(crate) const SETPCAP: Self = Self(8);
    pub(crate) const NET_BIND_SERVICE: Self = Self(10);
    pub(crate) const IPC_OWNER: Self = Self(15);
    pub(crate) const SYS_PTRACE: Self = Self(19);
    pub(crate) const SYS_ADMIN: Self = Self(21);
    pub(crate) const SYS_NICE: Self = Self(23);
    pub(crate) const SYS_RESOURCE: Self = Self(24);
    /// The highest that Linux 6.1 knows (CAP_CHECKPOINT_RESTORE).
    pub(crate) const LAST: u32 = 40;

    pub(crate) fn bit(self) -> u64 {
        1 << self.0
    }
}

/// A set of capabilities, one bit each.
pub(crate) type CapabilitySet = u64;

const EVERYTHING: CapabilitySet = (1 << (Capability::LAST + 1)) - 1;

/// What a change of the file system user id to or from 0 takes or gives: CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH,
/// FOWNER, FSETID, LINUX_IMMUTABLE, MKNOD, MAC_OVERRIDE.
const OF_FILES: CapabilitySet = 0x1F | 1 << 9 | 1 << 27 | 1 << 32;

/// Bits of `PR_SET_SECUREBITS`.
pub(crate) mod secure {
    pub(crate) const NO_ROOT: u32 = 1 << 0;
    pub(crate) const NO_SETUID_FIXUP: u32 = 1 << 2;
    pub(crate) const KEEP_CAPABILITIES: u32 = 1 << 4;
    pub(crate) const NO_AMBIENT_RAISE: u32 = 1 << 6;
    pub(crate) const KNOWN: u32 = 0xFF;
    /// Each bit has a lock above it.
    pub(crate) const LOCKS: u32 = 0xAA;
}

/// Who a thread is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) users: Ids,
    pub(crate) groups: Ids,
    /// Supplementary groups, sorted.
    pub(crate) more_groups: Arc<[u32]>,
    pub(crate) effective: CapabilitySet,
    pub(crate) permitted: CapabilitySet,
    pub(crate) inheritable: CapabilitySet,
    pub(crate) bounding: CapabilitySet,
    pub(crate) ambient: CapabilitySet,
    pub(crate) secure_bits: u32,
}

impl Credentials {
    /// The superuser with every capability.
    pub(crate) fn root() -> Self {
        Self {
            users: Ids::default(),
            groups: Ids::default(),
            more_groups: Arc::from([]),
            effective: EVERYTHING,
            permitted: EVERYTHING,
            inheritable: 0,
            bounding: EVERYTHING,
            ambient: 0,
            secure_bits: 0,
        }
    }

    pub(crate) fn has(&self, capability: Capability) -> bool {
        self.effective & capability.bit() != 0
    }

    /// EPERM without the capability.
    pub(crate) fn need(&self, capability: Capability) -> Result<(), Errno> {
        if self.has(capability) {
            Ok(())
        } else {
            Err(Errno::EPERM)
        }
    }

    /// Whether files of this group may be used with the rights of a group.
    pub(crate) fn is_in_group(&self, group: u32) -> bool {
        self.groups.file == group || self.more_groups.binary_search(&group).is_ok()
    }

    /// Whether a file is the caller's own, or the caller may act as if it were.
    pub(crate) fn owns(&self, inode: &Inode) -> bool {
        self.users.file == inode.uid || self.has(Capability::FOWNER)
    }

    /// Sets user ids and what follows from it for the capabilities.
    pub(crate) fn set_users(&mut self, new: Ids) {
        let old = std::mem::replace(&mut self.users, new);
        if self.secure_bits & secure::NO_SETUID_FIXUP != 0 {
            return;
        }
        if old.has_root() && !new.has_root() {
            if self.secure_bits & secure::KEEP_CAPABILITIES == 0 {
                self.permitted = 0;
                self.effective = 0;
            }
            self.ambient = 0;
        }
        if old.effective == 0 && new.effective != 0 {
            self.effective = 0;
        }
        if old.effective != 0 && new.effective == 0 {
            self.effective = self.permitted;
        }
    }

    /// Sets the user id for files alone.
    pub(crate) fn set_file_user(&mut self, id: u32) {
        let old = std::mem::replace(&mut self.users.file, id);
        if self.secure_bits & secure::NO_SETUID_FIXUP != 0 {
            return;
        }
        if old == 0 && id != 0 {
            self.effective &= !OF_FILES;
        }
        if old != 0 && id == 0 {
            self.effective |= self.permitted & OF_FILES;
        }
    }

    /// What execve makes of them. Files have no capabilities of their own here.
    pub(crate) fn after_exec(&self, privileges: Privileges) -> Self {
        let mut new = self.clone();
        if let Some(user) = privileges.user {
            new.users.effective = user;
        }
        if let Some(group) = privileges.group {
            new.groups.effective = group;
        }
        for ids in [&mut new.users, &mut new.groups] {
            ids.saved = ids.effective;
            ids.file = ids.effective;
        }
        if privileges.user.is_some() || privileges.group.is_some() {
            new.ambient = 0;
        }
        let is_root = new.users.real == 0 || new.users.effective == 0;
        if is_root && self.secure_bits & secure::NO_ROOT == 0 {
            new.permitted = self.inheritable | self.bounding;
            new.effective = if new.users.effective == 0 {
                new.permitted
            } else {
                new.ambient
            };
        } else {
            new.permitted = new.ambient;
            new.effective = new.ambient;
        }
        new.secure_bits &= !secure::KEEP_CAPABILITIES;
        new
    }

    /// Whether the program that execve started must not trust its environment (`AT_SECURE`).
    pub(crate) fn is_secure_exec(&self) -> bool {
        let differs = |ids: Ids| ids.real != ids.effective;
        differs(self.users) || differs(self.groups)
    }

    /// What `access` checks with: real ids, and the capabilities that go with them.
    pub(crate) fn as_real_user(&self) -> Self {
        let mut real = self.clone();
        real.users.file = self.users.real;
        real.groups.file = self.groups.real;
        if self.secure_bits & secure::NO_SETUID_FIXUP == 0 {
            real.effective = if self.users.real == 0 {
                self.permitted
            } else {
                0
            };
        }
        real
    }

    /// Whether a signal may be sent to a thread with these credentials.
    pub(crate) fn may_signal(&self, target: &Self) -> bool {
        let receivers = [target.users.real, target.users.saved];
        receivers.contains(&self.users.effective)
            || receivers.contains(&self.users.real)
            || self.has(Capability::KILL)
    }
}

/// Ids that a set-id program brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Privileges {
    pub(crate) user: Option<u32>,
    pub(crate) group: Option<u32>,
}

/// Three wanted ids; none keeps one.
pub(crate) type Wanted = [Option<u32>; 3];

/// New ids for a caller that may take any id, or only those it has.
pub(crate) fn choose_ids(old: Ids, wanted: Wanted, may_take_any: bool) -> Result<Ids, Errno> {
    let may = |id: u32| may_take_any || old.is_one_of_three(id);
    if !wanted.into_iter().flatten().all(may) {
        return Err(Errno::EPERM);
    }
    let [real, effective, saved] = wanted;
    let effective = effective.unwrap_or(old.effective);
    Ok(Ids {
        real: real.unwrap_or(old.real),
        effective,
        saved: saved.unwrap_or(old.saved),
        file: effective,
    })
}

impl Kernel {
    /// Who a thread is.
    pub(crate) fn credentials(&self, tid: Tid) -> &Credentials {
        &self.thread(tid).credentials
    }

    /// Changes who a thread is.
    pub(crate) fn credentials_mut(&mut self, tid: Tid) -> &mut Credentials {
        Arc::make_mut(&mut self.thread_mut(tid).credentials)
    }

    /// Whether a thread may send a signal to a process. SIGCONT goes everywhere within a session.
    pub(crate) fn may_signal(&self, tid: Tid, pid: Pid, number: u32) -> bool {
        let own = self.thread(tid).process;
        let Some(target) = self.process_credentials(pid) else {
            return true;
        };
        let is_same_session = || {
            let session = |pid| {
                self.state
                    .processes
                    .get(&pid)
                    .map(|process| process.session)
            };
            session(own) == session(pid)
        };
        pid == own
            || self.credentials(tid).may_signal(target)
            || (number == SIGCONT && is_same_session())
    }

    /// Whether a thread may look into a process as a debugger does (ptrace(2), "access mode checking").
    pub(crate) fn may_inspect(&self, tid: Tid, pid: Pid) -> bool {
        let own = self.credentials(tid);
        if pid == self.thread(tid).process || own.has(Capability::SYS_PTRACE) {
            return true;
        }
        let (Some(process), Some(other)) = (
            self.state.processes.get(&pid),
            self.process_credentials(pid),
        ) else {
            return false;
        };
        let all = |ids: Ids| [ids.real, ids.effective, ids.saved];
        process.is_dumpable
            && all(other.users) == [own.users.file; 3]
            && all(other.groups) == [own.groups.file; 3]
    }

    /// Who a process is: its first thread; none for one that has ended.
    pub(crate) fn process_credentials(&self, pid: Pid) -> Option<&Credentials> {
        let process = self.state.processes.get(&pid)?;
        let first = process.threads.first()?;
        Some(&self.state.threads.get(first)?.credentials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: u32) -> Ids {
        Ids {
            real: id,
            effective: id,
            saved: id,
            file: id,
        }
    }

    #[test]
    fn giving_up_user_0_gives_up_capabilities_unless_they_are_kept() {
        let mut plain = Credentials::root();
        plain.set_users(user(7));
        assert_eq!((plain.permitted, plain.effective), (0, 0));

        let mut kept = Credentials::root();
        kept.secure_bits = secure::KEEP_CAPABILITIES;
        kept.set_users(user(7));
        assert_eq!((kept.permitted, kept.effective), (EVERYTHING, 0));
    }

    #[test]
    fn the_effective_user_can_leave_0_and_come_back() {
        let mut who = Credentials::root();
        let away = choose_ids(who.users, [None, Some(7), None], true).unwrap();
        who.set_users(away);
        assert_eq!((who.effective, who.permitted), (0, EVERYTHING));
        let back = choose_ids(who.users, [None, Some(0), None], false).unwrap();
        who.set_users(back);
        assert_eq!(who.effective, EVERYTHING);
    }

    #[test]
    fn ids_that_a_caller_does_not_have_are_not_for_it() {
        let old = user(7);
        assert_eq!(
            choose_ids(old, [Some(0), None, None], false),
            Err(Errno::EPERM)
        );
        choose_ids(old, [Some(7), None, Some(7)], false).unwrap();
    }

    #[test]
    fn execve_forgets_kept_capabilities_and_obeys_set_id_programs() {
        let mut who = Credentials::root();
        who.secure_bits = secure::KEEP_CAPABILITIES;
        who.set_users(user(7));
        let plain = who.after_exec(Privileges::default());
        assert_eq!((plain.permitted, plain.secure_bits), (0, 0));
        let raised = who.after_exec(Privileges {
            user: Some(0),
            group: None,
        });
        assert_eq!(raised.effective, EVERYTHING);
        assert!(raised.is_secure_exec() && !plain.is_secure_exec());
    }

    #[test]
    fn the_user_for_files_takes_only_the_capabilities_of_files() {
        let mut who = Credentials::root();
        who.set_file_user(5);
        assert!(!who.has(Capability::DAC_OVERRIDE) && who.has(Capability::KILL));
        who.set_file_user(0);
        assert!(who.has(Capability::DAC_OVERRIDE));
    }
}
