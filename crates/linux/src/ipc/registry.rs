//! Objects by identifier, and how `shmget`, `semget` and `msgget` find or make them.

use std::collections::BTreeMap;

use super::permission::{Asked, Permission};
use crate::credentials::Credentials;
use crate::errno::Errno;

/// Flags of the `get` calls and of operations.
pub(crate) mod flags {
    pub(crate) const CREATE: u32 = 0o1000;
    pub(crate) const EXCLUSIVE: u32 = 0o2000;
    pub(crate) const NO_WAIT: u32 = 0o4000;
}

/// An object that asks for itself begin with.
const PRIVATE: i32 = 0;
/// Most objects of a kind.
const OBJECTS_MAX: usize = 32_000;

/// What all kinds have.
pub(crate) trait Object {
    fn permission(&self) -> &Permission;
    fn permission_mut(&mut self) -> &mut Permission;
    /// No key leads to it any more.
    fn is_hidden(&self) -> bool {
        false
    }
}

/// The objects of one kind. Identifiers count up and are not used again.
#[derive(Debug, Clone)]
pub(crate) struct Registry<T> {
    objects: BTreeMap<i32, T>,
    next: i32,
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            next: 0,
        }
    }
}

impl<T: Object> Registry<T> {
    /// The object of a key, or a new one: `fits` says whether one that is there is what the caller expects.
    pub(crate) fn find(
        &self,
        who: &Credentials,
        key: i32,
        wanted: u32,
        fits: impl Fn(&T) -> bool,
    ) -> Result<Option<i32>, Errno> {
        let known = self
            .objects
            .iter()
            .find(|(_, object)| object.permission().key == key && !object.is_hidden())
            .filter(|_| key != PRIVATE);
        let Some((id, object)) = known else {
            if key != PRIVATE && wanted & flags::CREATE == 0 {
                return Err(Errno::ENOENT);
            }
            if self.objects.len() >= OBJECTS_MAX {
                return Err(Errno::ENOSPC);
            }
            return Ok(None);
        };
        let both = flags::CREATE | flags::EXCLUSIVE;
        if wanted & both == both {
            return Err(Errno::EEXIST);
        }
        if !fits(object) {
            return Err(Errno::EINVAL);
        }
        object.permission().check(who, Asked::Flags(wanted))?;
        Ok(Some(*id))
    }

    pub(crate) fn insert(&mut self, object: T) -> i32 {
        let id = self.next;
        self.next += 1;
        self.objects.insert(id, object);
        id
    }

    pub(crate) fn get(&self, id: i32) -> Result<&T, Errno> {
        self.objects.get(&id).ok_or(Errno::EINVAL)
    }

    pub(crate) fn get_mut(&mut self, id: i32) -> Result<&mut T, Errno> {
        self.objects.get_mut(&id).ok_or(Errno::EINVAL)
    }

    pub(crate) fn remove(&mut self, id: i32) -> Option<T> {
        self.objects.remove(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (i32, &T)> {
        self.objects.iter().map(|(id, object)| (*id, object))
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The highest identifier in use; 0 if there is none.
    pub(crate) fn highest(&self) -> i32 {
        self.objects.keys().next_back().copied().unwrap_or(0)
    }
}
