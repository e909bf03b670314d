//! An index arena that is cheap to clone: slots are shared until one is changed.

use std::sync::Arc;

use raddle_stdx::width::{low_u32, to_u64};

/// Values by small numbers; a freed number is used again.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Arc<Vec<Option<Arc<T>>>>,
    free: Arc<Vec<u32>>,
}

impl<T> Clone for Slab<T> {
    fn clone(&self) -> Self {
        Self {
            slots: Arc::clone(&self.slots),
            free: Arc::clone(&self.free),
        }
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            slots: Arc::default(),
            free: Arc::default(),
        }
    }
}

impl<T: Clone> Slab<T> {
    /// Stores a value and gives its number.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let slots = Arc::make_mut(&mut self.slots);
        if let Some(index) = Arc::make_mut(&mut self.free).pop() {
            slots[index as usize] = Some(Arc::new(value));
            return index;
        }
        slots.push(Some(Arc::new(value)));
        low_u32(to_u64(slots.len() - 1))
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.get(index)?;
        Arc::make_mut(&mut self.slots)[index as usize]
            .as_mut()
            .map(Arc::make_mut)
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        self.get(index)?;
        let removed = Arc::make_mut(&mut self.slots)[index as usize].take()?;
        Arc::make_mut(&mut self.free).push(index);
        Some(Arc::unwrap_or_clone(removed))
    }

    /// All values with their numbers, in the order of the numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..)
            .zip(self.slots.iter())
            .filter_map(|(index, slot)| Some((index, slot.as_deref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_keeps_the_old_values() {
        let mut slab = Slab::default();
        let first = slab.insert(String::from("a"));
        let second = slab.insert(String::from("b"));
        let saved = slab.clone();
        slab.get_mut(first).unwrap().push('!');
        slab.remove(second);
        assert_eq!(slab.get(first).unwrap(), "a!");
        assert_eq!(slab.get(second), None);
        assert_eq!(saved.get(first).unwrap(), "a");
        assert_eq!(saved.get(second).unwrap(), "b");
        assert_eq!(slab.insert(String::from("c")), second);
        assert_eq!(slab.iter().count(), 2);
    }
}
