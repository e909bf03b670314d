//! Locks as numbers, and interned sets of them.

use rustc_hash::FxHashMap;

use super::keys::{Key, KeyParts};
use super::program::{Name, Program};
use crate::front::lex::{at, index};

/// A lock: its object and family. Bit 0: held shared; bit 1: released by the end of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Lock(u32);

impl Lock {
    /// No lock.
    pub(crate) const NONE: Lock = Lock(u32::MAX);

    const SHARED: u32 = 1;
    const SCOPED: u32 = 2;

    fn number(self) -> usize {
        at(self.0 >> 2)
    }

    pub(crate) fn is_shared(self) -> bool {
        self.0 & Self::SHARED != 0
    }

    pub(crate) fn is_scoped(self) -> bool {
        self.0 & Self::SCOPED != 0
    }

    pub(crate) fn scoped(self) -> Self {
        Self(self.0 | Self::SCOPED)
    }

    /// The same lock object, whatever the mode.
    pub(crate) fn is_same_object(self, other: Self) -> bool {
        self.0 >> 2 == other.0 >> 2
    }
}

/// A set of locks; 0 is the empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct LockSet(u32);

impl LockSet {
    pub(crate) const EMPTY: LockSet = LockSet(0);
}

/// Numbers for locks and sets.
#[derive(Debug)]
pub(crate) struct Locks {
    ids: FxHashMap<(Key, String), u32>,
    locks: Vec<(Key, u16)>,
    by_key: FxHashMap<Key, Vec<Lock>>,
    sets: Vec<Box<[Lock]>>,
    set_ids: FxHashMap<Box<[Lock]>, LockSet>,
}

impl Default for Locks {
    fn default() -> Self {
        let mut locks = Self {
            ids: FxHashMap::default(),
            locks: Vec::new(),
            by_key: FxHashMap::default(),
            sets: Vec::new(),
            set_ids: FxHashMap::default(),
        };
        locks.set(Vec::new());
        locks
    }
}

impl Locks {
    /// The lock of `family` at `key`. Families of the same name are modes of the same lock.
    pub(crate) fn lock(&mut self, program: &Program<'_>, key: Key, family: u16) -> Lock {
        let name = &program.table.family(family).name;
        let next = index(self.locks.len());
        let id = *self.ids.entry((key, name.clone())).or_insert(next);
        if id == next {
            self.locks.push((key, family));
            self.by_key.entry(key).or_default().push(Lock(id << 2));
        }
        let shared = u32::from(program.table.family(family).shared);
        Lock((id << 2) | (shared * Lock::SHARED))
    }

    /// Whether both may be the lock of one object, once named by its field and once by the object that it is the
    /// lock of: `lock_sock(&s->sk)` and `release_sock(sk)`, `inode_lock(inode)` and `up_write(&inode->i_rwsem)`.
    pub(crate) fn is_alike(&self, one: Lock, other: Lock) -> bool {
        let (a, b) = (self.key(one).parts(), self.key(other).parts());
        let (KeyParts::Field(a, a_name), KeyParts::Field(b, b_name)) = (a, b) else {
            return false;
        };
        let is_whole = a_name == Name(0) || b_name == Name(0);
        is_whole && (a == b || self.family(one) == self.family(other))
    }

    /// All locks at `key`, of whatever family.
    pub(crate) fn at_key(&self, key: Key) -> &[Lock] {
        self.by_key.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn key(&self, lock: Lock) -> Key {
        self.locks[lock.number()].0
    }

    pub(crate) fn family(&self, lock: Lock) -> u16 {
        self.locks[lock.number()].1
    }

    /// The set of `locks`.
    pub(crate) fn set(&mut self, mut locks: Vec<Lock>) -> LockSet {
        locks.sort_unstable();
        locks.dedup();
        if let Some(id) = self.set_ids.get(locks.as_slice()) {
            return *id;
        }
        let id = LockSet(index(self.sets.len()));
        self.sets.push(locks.clone().into());
        self.set_ids.insert(locks.into(), id);
        id
    }

    pub(crate) fn members(&self, set: LockSet) -> &[Lock] {
        &self.sets[at(set.0)]
    }

    pub(crate) fn union(&mut self, one: LockSet, other: LockSet) -> LockSet {
        if one == other || other == LockSet::EMPTY {
            return one;
        }
        if one == LockSet::EMPTY {
            return other;
        }
        let mut all = self.members(one).to_vec();
        all.extend_from_slice(self.members(other));
        self.set(all)
    }

    pub(crate) fn intersection(&mut self, one: LockSet, other: LockSet) -> LockSet {
        if one == other {
            return one;
        }
        if one == LockSet::EMPTY || other == LockSet::EMPTY {
            return LockSet::EMPTY;
        }
        let others = self.members(other);
        let both = self
            .members(one)
            .iter()
            .copied()
            .filter(|lock| others.contains(lock))
            .collect();
        self.set(both)
    }

    /// `from` without all of `gone`.
    pub(crate) fn difference(&mut self, from: LockSet, gone: LockSet) -> LockSet {
        if from == LockSet::EMPTY || gone == LockSet::EMPTY {
            return from;
        }
        let gone = self.members(gone);
        let rest = self
            .members(from)
            .iter()
            .copied()
            .filter(|held| !gone.iter().any(|other| other.is_same_object(*held)))
            .collect();
        self.set(rest)
    }

    /// Whether two threads that hold these locks keep each other out.
    pub(crate) fn exclude_each_other(&self, program: &Program<'_>, a: Lock, b: Lock) -> bool {
        let (family_a, family_b) = (self.family(a), self.family(b));
        let (one, other) = (
            program.table.family(family_a),
            program.table.family(family_b),
        );
        if one.rcu || one.context || other.rcu || other.context || (a.is_shared() && b.is_shared())
        {
            return false;
        }
        let is_kin = one.name == other.name
            || one.name.strip_suffix("-spin") == Some(other.name.as_str())
            || other.name.strip_suffix("-spin") == Some(one.name.as_str());
        is_kin && (self.key(a) == self.key(b) || self.is_vague(a) || self.is_vague(b))
    }

    /// The lock came through a pointer we cannot follow: it may be any lock of its family.
    pub(crate) fn is_vague(&self, lock: Lock) -> bool {
        matches!(
            self.key(lock).parts(),
            KeyParts::Unknown | KeyParts::Local(..) | KeyParts::Vague(..)
        )
    }
}
