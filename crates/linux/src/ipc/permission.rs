//! Who may use an object of System V.

use crate::credentials::{Capability, Credentials};
use crate::errno::Errno;

/// Owner, creator and mode (`struct ipc_perm`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Permission {
    pub(crate) key: i32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    creator_uid: u32,
    creator_gid: u32,
    pub(crate) mode: u32,
}

/// What a caller wants to do with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Read,
    Write,
    ReadAndWrite,
    /// The permission bits of the flags of a `get` call, all classes together.
    Flags(u32),
}

impl Asked {
    fn bits(self) -> u32 {
        match self {
            Self::Read => 4,
            Self::Write => 2,
            Self::ReadAndWrite => 6,
            Self::Flags(flags) => (flags >> 6 | flags >> 3 | flags) & 7,
        }
    }
}

/// Bytes of `struct ipc64_perm`.
pub(crate) const ENCODED: usize = 48;

impl Permission {
    pub(crate) fn of_new(who: &Credentials, key: i32, flags: u32) -> Self {
        let (uid, gid) = (who.users.effective, who.groups.effective);
        Self {
            key,
            uid,
            gid,
            creator_uid: uid,
            creator_gid: gid,
            mode: flags & 0o777,
        }
    }

    /// EACCES unless the object may be used so.
    pub(crate) fn check(&self, who: &Credentials, asked: Asked) -> Result<(), Errno> {
        let user = who.users.effective;
        let class = if user == self.uid || user == self.creator_uid {
            self.mode >> 6
        } else if who.is_in_group(self.gid) || who.is_in_group(self.creator_gid) {
            self.mode >> 3
        } else {
            self.mode
        };
        if asked.bits() & !class & 7 == 0 || who.has(Capability::IPC_OWNER) {
            Ok(())
        } else {
            Err(Errno::EACCES)
        }
    }

    /// EPERM unless the object may be changed or removed.
    pub(crate) fn check_owner(&self, who: &Credentials) -> Result<(), Errno> {
        let user = who.users.effective;
        if user == self.uid || user == self.creator_uid {
            return Ok(());
        }
        who.need(Capability::SYS_ADMIN)
    }

    /// `struct ipc64_perm`.
    pub(crate) fn encode(&self, extra_mode: u32) -> [u8; ENCODED] {
        let words = [
            self.key.cast_unsigned(),
            self.uid,
            self.gid,
            self.creator_uid,
            self.creator_gid,
            self.mode | extra_mode,
        ];
        let mut bytes = [0; ENCODED];
        for (slot, word) in bytes.chunks_exact_mut(4).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// What IPC_SET may change, from a `struct ipc64_perm`.
    pub(crate) fn set(&mut self, bytes: &[u8; ENCODED]) {
        let word =
            |at: usize| u32::from_le_bytes(std::array::from_fn(|index| bytes[at * 4 + index]));
        self.uid = word(1);
        self.gid = word(2);
        self.mode = word(5) & 0o777;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: u32) -> Credentials {
        let mut who = Credentials::root();
        who.users.effective = id;
        who.groups.effective = id;
        who.groups.file = id;
        who.effective = 0;
        who
    }

    #[test]
    fn classes_decide_as_for_files_and_creators_count_as_owners() {
        let mut object = Permission::of_new(&user(5), 1, 0o640);
        assert_eq!(object.check(&user(5), Asked::ReadAndWrite), Ok(()));
        assert_eq!(object.check(&user(6), Asked::Read), Err(Errno::EACCES));
        assert_eq!(object.check(&Credentials::root(), Asked::Write), Ok(()));
        object.uid = 9;
        assert_eq!(object.check(&user(5), Asked::Write), Ok(()));
        assert_eq!(object.check_owner(&user(9)), Ok(()));
        assert_eq!(object.check_owner(&user(6)), Err(Errno::EPERM));
    }

    #[test]
    fn what_a_get_call_asks_for_is_the_union_of_its_classes() {
        let object = Permission::of_new(&user(5), 1, 0o400);
        assert_eq!(object.check(&user(5), Asked::Flags(0o444)), Ok(()));
        assert_eq!(
            object.check(&user(5), Asked::Flags(0o002)),
            Err(Errno::EACCES)
        );
    }
}
