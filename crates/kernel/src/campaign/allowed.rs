//! The contexts that the user lets run during a test, so that a smaller space of schedules is explored (SKI, OSDI
//! 2014).
//!
//! A context outside of the set is chosen only when no context of the set can go on: a test that waits for an interrupt
//! would otherwise never end. How often that was necessary is counted.

use std::str::FromStr;

use raddle_sched::View;
use raddle_world::{ContextId, successor};
use serde::{Deserialize, Serialize};

use crate::world::processor_and_vector;

/// Some processors and interrupts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextSet {
    items: Vec<Item>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Item {
    /// What all processors do outside of interrupts.
    Processors,
    Processor(usize),
    /// All interrupts.
    Interrupts,
    /// One vector, of one processor or of all.
    Vector(Option<usize>, u8),
}

/// A list that names no set of contexts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoContextSet {
    #[error(
        "`{0}` is no context: it is `cpus`, `interrupts`, a processor such as `1`, a vector such as `0xfb`, or a vector \
         of one processor such as `1:0xfb`"
    )]
    Unknown(String),
    #[error("no processor is in it, so no thread of the test could run; add `cpus`")]
    NoProcessor,
}

impl FromStr for ContextSet {
    type Err = NoContextSet;

    /// `cpus,0xfb`
    fn from_str(text: &str) -> Result<Self, NoContextSet> {
        let items = text.split(',').map(|word| {
            let word = word.trim();
            item(word).ok_or_else(|| NoContextSet::Unknown(word.to_owned()))
        });
        let items: Vec<Item> = items.collect::<Result<_, _>>()?;
        let is_processor = |item: &Item| matches!(item, Item::Processors | Item::Processor(_));
        if !items.iter().any(is_processor) {
            return Err(NoContextSet::NoProcessor);
        }
        Ok(Self { items })
    }
}

fn item(word: &str) -> Option<Item> {
    let vector = |digits: &str| u8::from_str_radix(digits.strip_prefix("0x")?, 16).ok();
    match word {
        "cpus" => Some(Item::Processors),
        "interrupts" => Some(Item::Interrupts),
        _ => match word.split_once(':') {
            Some((cpu, rest)) => Some(Item::Vector(Some(cpu.parse().ok()?), vector(rest)?)),
            None if word.starts_with("0x") => Some(Item::Vector(None, vector(word)?)),
            None => word.parse().ok().map(Item::Processor),
        },
    }
}

impl ContextSet {
    /// Whether a processor, or one of its interrupts, is in the set.
    fn has(&self, cpu: usize, vector: Option<u8>) -> bool {
        self.items.iter().any(|item| match (*item, vector) {
            (Item::Processors, None) | (Item::Interrupts, Some(_)) => true,
            (Item::Processor(one), None) => one == cpu,
            (Item::Vector(at, one), Some(vector)) => {
                one == vector && at.is_none_or(|one| one == cpu)
            }
            _ => false,
        })
    }
}

/// Who of those that could run may be chosen.
#[derive(Debug)]
pub(super) struct Eligible<'a> {
    /// None if everybody may.
    allowed: Option<&'a ContextSet>,
    /// Those who could be chosen last.
    chosen_from: Vec<ContextId>,
    /// Times there was no context of the set to choose.
    pub(super) outside: u64,
}

impl<'a> Eligible<'a> {
    pub(super) fn new(allowed: Option<&'a ContextSet>) -> Self {
        Self {
            allowed,
            chosen_from: Vec::new(),
            outside: 0,
        }
    }

    /// The view without contexts outside of the set, as long as one of the set can go on.
    pub(super) fn narrow<'v>(&'v mut self, view: &View<'v>) -> View<'v> {
        let Some(allowed) = self.allowed else {
            return *view;
        };
        let is_allowed = |id: &ContextId| {
            let (cpu, vector) = processor_and_vector(view.contexts, *id);
            allowed.has(cpu, vector)
        };
        self.chosen_from.clear();
        self.chosen_from
            .extend(view.runnable.iter().copied().filter(is_allowed));
        if self.chosen_from.is_empty() {
            self.outside += 1;
            self.chosen_from.extend_from_slice(view.runnable);
        }
        let default = if self.chosen_from.contains(&view.default) {
            view.default
        } else {
            successor(&self.chosen_from, Some(view.current)).unwrap_or(view.default)
        };
        View {
            runnable: &self.chosen_from,
            default,
            ..*view
        }
    }

    /// How many of so many candidates could be chosen last.
    pub(super) fn count(&self, candidates: usize) -> usize {
        if self.allowed.is_some() {
            self.chosen_from.len()
        } else {
            candidates
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_lists_of_processors_and_vectors() {
        let set: ContextSet = "0, 0xfb,1:0xec".parse().unwrap();
        let has = [
            set.has(0, None),
            set.has(1, None),
            set.has(1, Some(0xfb)),
            set.has(1, Some(0xec)),
            set.has(0, Some(0xec)),
        ];
        assert_eq!(has, [true, false, true, true, false]);
        let all: ContextSet = "cpus,interrupts".parse().unwrap();
        assert!(all.has(3, None) && all.has(3, Some(0x20)));
    }

    #[test]
    fn lists_that_name_no_set_are_refused() {
        let parse = |text: &str| text.parse::<ContextSet>();
        for word in ["", "cpu", "0x1fb", "0:fb", "x:0xfb", "-1"] {
            let text = format!("cpus,{word}");
            assert_eq!(parse(&text), Err(NoContextSet::Unknown(word.to_owned())));
        }
        assert_eq!(parse("0xfb"), Err(NoContextSet::NoProcessor));
    }
}
