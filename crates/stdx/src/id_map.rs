//! A map from small numbers: an array, for ids that are given out one after the other and looked up all the time.

use std::marker::PhantomData;
use std::ops::Index;

use crate::width::to_usize;

/// A name that is a small number.
pub trait Id: Copy {
    fn number(self) -> u32;
    fn from_number(number: u32) -> Self;
}

/// Values by id. Order and contents are those of a `BTreeMap`; a look-up is an array access. The memory it takes, and the
/// time of a clone, grow with the distance from the smallest id to the largest.
#[derive(Debug, Clone)]
pub struct IdMap<K, V> {
    /// The id of the first slot.
    first: u32,
    slots: Vec<Option<Box<V>>>,
    len: usize,
    keys: PhantomData<K>,
}

impl<K, V> Default for IdMap<K, V> {
    fn default() -> Self {
        Self {
            first: 0,
            slots: Vec::new(),
            len: 0,
            keys: PhantomData,
        }
    }
}

impl<K: Id, V> IdMap<K, V> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.slots.get(self.index(*key)?)?.as_deref()
    }

    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let index = self.index(*key)?;
        self.slots.get_mut(index)?.as_deref_mut()
    }

    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Adds a value; gives the one that it replaces.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let number = key.number();
        if self.slots.is_empty() {
            self.first = number;
        } else if let Some(missing) = self.first.checked_sub(number) {
            let missing = to_usize(u64::from(missing));
            self.slots
                .splice(0..0, std::iter::repeat_with(|| None).take(missing));
            self.first = number;
        }
        let index = to_usize(u64::from(number - self.first));
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        let before = self.slots[index].replace(Box::new(value));
        self.len += usize::from(before.is_none());
        before.map(|value| *value)
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        let index = self.index(*key)?;
        let removed = self.slots.get_mut(index)?.take()?;
        self.len -= 1;
        Some(*removed)
    }

    /// The ids in use, ascending.
    pub fn keys(&self) -> impl Iterator<Item = K> {
        (self.first..)
            .zip(&self.slots)
            .filter(|(_, slot)| slot.is_some())
            .map(|(number, _)| K::from_number(number))
    }

    /// The values, by ascending id.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.slots.iter().filter_map(Option::as_deref)
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.slots.iter_mut().filter_map(Option::as_deref_mut)
    }

    /// The slot of an id; none for those before the first slot.
    fn index(&self, key: K) -> Option<usize> {
        let distance = key.number().checked_sub(self.first)?;
        Some(to_usize(u64::from(distance)))
    }
}

impl<K: Id, V> Index<&K> for IdMap<K, V> {
    type Output = V;

    fn index(&self, key: &K) -> &V {
        self.get(key).expect("the id is in use")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Prng;

    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Number(u32);

    impl Id for Number {
        fn number(self) -> u32 {
            self.0
        }

        fn from_number(number: u32) -> Self {
            Self(number)
        }
    }

    #[test]
    fn it_behaves_as_an_ordered_map() {
        let mut prng = Prng::new(7);
        let (mut map, mut model) = (IdMap::default(), BTreeMap::new());
        for value in 0..2000_u32 {
            let key = Number(1000 + u32::try_from(prng.below(40)).unwrap());
            if prng.chance(1, 2) {
                assert_eq!(map.insert(key, value), model.insert(key, value));
            } else {
                assert_eq!(map.remove(&key), model.remove(&key));
            }
            assert_eq!(map.get(&key), model.get(&key));
            assert_eq!(map.len(), model.len());
            assert_eq!(map.is_empty(), model.is_empty());
            assert!(map.keys().eq(model.keys().copied()));
            assert!(map.values().eq(model.values()));
        }
    }
}
