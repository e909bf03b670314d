//! Vector clocks: who has heard of what.

/// One counter per context; missing ones are zero.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VectorClock(Vec<u32>);

impl VectorClock {
    pub fn get(&self, context: usize) -> u32 {
        self.0.get(context).copied().unwrap_or(0)
    }

    /// Advances one context's own counter.
    pub fn tick(&mut self, context: usize) {
        if self.0.len() <= context {
            self.0.resize(context + 1, 0);
        }
        self.0[context] += 1;
    }

    /// Sets one counter.
    pub fn set(&mut self, context: usize, to: u32) {
        if self.0.len() <= context {
            self.0.resize(context + 1, 0);
        }
        self.0[context] = to;
    }

    /// Learns everything that `other` knows.
    pub fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn join_takes_the_later_of_each() {
        let mut a = VectorClock::default();
        let mut b = VectorClock::default();
        a.tick(0);
        a.tick(0);
        b.tick(2);
        a.join(&b);
        assert_eq!((a.get(0), a.get(1), a.get(2), a.get(9)), (2, 0, 1, 0));
    }
}
