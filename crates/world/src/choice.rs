//! The one source of everything that is not determined by program and input.

use raddle_stdx::Prng;

/// A question that a world asks; the answer decides the run and is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Random bytes for the guest, eight at a time.
    Random,
    /// Which of `count` waiters a wake-up takes.
    WakeOrder { count: u32 },
    /// How many of `available` bytes a read or write transfers, at least one.
    TransferSize { available: u64 },
    /// How long the next slice of the plain scheduler is.
    Quantum { steps_max: u64 },
}

/// Answers choices.
pub trait ChoiceSource: std::fmt::Debug {
    /// The answer; for a choice among `n` it is below `n`.
    fn choose(&mut self, choice: Choice) -> u64;
    /// A copy that answers the same from here on.
    fn boxed_clone(&self) -> Box<dyn ChoiceSource>;
}

impl Clone for Box<dyn ChoiceSource> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}

/// Answers from a seed: random bytes and slice lengths are drawn, waiters are woken in the order of their
/// arrival, transfers are whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeededChoices {
    random: Prng,
    quanta: Prng,
}

impl SeededChoices {
    pub fn new(seed: u64) -> Self {
        Self {
            random: Prng::new(Prng::derive_seed(seed, 0)),
            quanta: Prng::new(Prng::derive_seed(seed, 1)),
        }
    }
}

impl ChoiceSource for SeededChoices {
    fn choose(&mut self, choice: Choice) -> u64 {
        match choice {
            Choice::Random => self.random.next_u64(),
            Choice::WakeOrder { .. } => 0,
            Choice::TransferSize { available } => available,
            Choice::Quantum { steps_max } => 1 + self.quanta.below(steps_max),
        }
    }

    fn boxed_clone(&self) -> Box<dyn ChoiceSource> {
        Box::new(self.clone())
    }
}
