//! Trying out how a context would go on, and what that tells: whether it waits in a loop for another context.

use std::collections::BTreeSet;

use crate::context::ContextId;

/// Bytes of a word.
const WORD: u64 = 8;
/// Words that a loop reads at most. They are looked at again whenever a context stops.
const WORDS_MAX: usize = 1024;

/// The ability to try out how a context would go on.
pub trait Rehearse {
    /// Lets a context go on alone, for at most so many steps, until it is where it is now with the registers of now, and
    /// takes everything back. Gives what it read on the way if it has changed nothing: then it does the same for ever,
    /// unless something else changes what it reads. A context that asks anything of the system or of a device gives
    /// nothing.
    fn rehearse(&mut self, who: ContextId, steps_max: u64) -> Option<Standstill>;
    /// Whether the context would still read the same, and nothing waits to interrupt it.
    fn stands_still(&mut self, who: ContextId, standstill: &Standstill) -> bool;
    /// Whether the context goes round for ever unless another one writes: it comes back to where it is now, nothing that
    /// others could see is changed on the way, not even for a moment, and neither clocks nor timers matter to it. It is
    /// followed instruction by instruction, which takes time. A world that cannot know says no.
    fn goes_round_for_ever(&mut self, _who: ContextId) -> bool {
        false
    }
}

/// What a context reads in a loop that changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standstill {
    /// Aligned words of eight bytes: where they are, as their world names them, and what they hold.
    pub words: Vec<(u64, u64)>,
    /// It changes memory on the way, other than its stack, and changes it back: it may take a lock and give it up. Then
    /// it matters to others where in the loop it stops.
    pub is_felt: bool,
}

/// The words that a rehearsal reads, where its world can name them.
#[derive(Debug, Clone, Default)]
pub struct WordsRead {
    words: BTreeSet<u64>,
    /// See [`Standstill::is_felt`].
    pub is_felt: bool,
}

impl WordsRead {
    /// Some bytes were read.
    pub fn note(&mut self, at: u64, bytes: u64) {
        let last = at.wrapping_add(bytes.saturating_sub(1)) & !(WORD - 1);
        let mut word = at & !(WORD - 1);
        while self.words.len() <= WORDS_MAX {
            self.words.insert(word);
            if word == last {
                break;
            }
            word = word.wrapping_add(WORD);
        }
    }

    /// With what they hold now. None if there are too many, if one cannot be read, or if nothing was read: then nothing
    /// could ever end the loop.
    pub fn standstill(self, read: impl Fn(u64) -> Option<u64>) -> Option<Standstill> {
        if self.words.is_empty() || self.words.len() > WORDS_MAX {
            return None;
        }
        let words = self.words.into_iter().map(|at| Some((at, read(at)?)));
        Some(Standstill {
            words: words.collect::<Option<_>>()?,
            is_felt: self.is_felt,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_aligned_and_counted_once() {
        let mut words = WordsRead::default();
        words.note(0x1004, 4);
        words.note(0x1006, 4);
        words.note(0x2000, 0);
        let standstill = words.standstill(|at| Some(at / 8));
        let expected = [0x1000, 0x1008, 0x2000].map(|at| (at, at / 8));
        assert_eq!(standstill.map(|still| still.words), Some(expected.into()));
    }

    #[test]
    fn a_loop_that_reads_nothing_or_too_much_is_not_known_to_stand_still() {
        assert_eq!(WordsRead::default().standstill(Some), None);
        let mut words = WordsRead::default();
        words.note(0, 8 * 1024);
        assert!(words.clone().standstill(Some).is_some());
        assert_eq!(words.clone().standstill(|at| (at != 8).then_some(0)), None);
        words.note(8 * 1024, 1);
        assert_eq!(words.standstill(Some), None);
    }
}
