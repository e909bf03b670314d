//! The plain order: contexts run round robin, in turns whose lengths the world's own choices give. Ordinary runs have it.
//!
//! ```text
//!   turn         1           2        3       4 ..
//!   context 0  ├───────────┤        ├───────┤
//!   context 1              ├────────┤       ├──
//!   slices     ├──┼────┼───┼────────┼──┼────┼──
//! ```
//! So an ordinary run follows from its inputs and its seed. What came from outside beside them is written down by the
//! number of the turn at whose end it came ([`Outside`]), and happens there again. How a turn is cut into slices changes
//! nothing: a debugger stops wherever it likes.

use raddle_trace::{ClosedOutput, Outside};
use raddle_world::{ContextId, Event, Stop, Until, World, successor};

use crate::driver::End;

/// Longest turn in steps, but for one.
const TURN_MAX: u64 = 100_000;
/// Time jumps in a row that wake no context: only periodic timers that no context hears are left.
const IDLE_JUMPS_MAX: u32 = 100_000;

/// What the one who hears of the events of a slice wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    GoOn,
    Stop,
    /// No process outside reads this output of the program any more: 1 or 2.
    CloseOutput(i32),
}

/// How far an ordinary run has come. A copy of it belongs to the state that the world had when it was taken.
#[derive(Debug, Clone, Default)]
pub struct Plain {
    last: Option<ContextId>,
    /// Steps that are left of the present turn; none between two turns.
    left: Option<u64>,
    turns: u64,
    steps: u64,
    outside: Outside,
    /// How many of the outputs that were closed from outside are closed by now.
    closed: usize,
}

impl Plain {
    /// A run to which the same happens from outside as to a recorded one.
    pub fn following(outside: Outside) -> Self {
        Self {
            outside,
            ..Self::default()
        }
    }

    /// Steps of all contexts so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Who ran last.
    pub fn last(&self) -> ContextId {
        self.last.unwrap_or(ContextId(0))
    }

    /// What has happened from outside.
    pub fn outside(&self) -> &Outside {
        &self.outside
    }

    /// Runs until the world ends, or so many steps were made: then the run counts as hanging. After each slice `sink`
    /// gets the events; what it wants is written down.
    pub fn run<W: World>(
        &mut self,
        world: &mut W,
        steps_max: u64,
        sink: &mut dyn FnMut(&mut W, &[Event]) -> Reaction,
    ) -> End {
        loop {
            let stop = match self.slice(world, steps_max, Until::Steps) {
                Ok((_, stop)) => stop,
                Err(end) => return end,
            };
            let events = world.take_events();
            let reaction = sink(world, &events);
            world.recycle_events(events);
            if let Reaction::CloseOutput(descriptor) = reaction {
                self.close(world, descriptor);
            }
            if let Some(end) = end_of(stop) {
                return end;
            }
            if reaction == Reaction::Stop {
                self.outside.ended = Some(self.turns);
            }
            if self.is_ended() {
                return End::Abandoned;
            }
        }
    }

    /// Runs one context on, up to so many steps of the whole run; `until` says where else it stops. Gives who ran and
    /// why it stopped, or how the run is over.
    ///
    /// # Errors
    /// The run is over, or has made these steps already.
    pub fn slice<W: World>(
        &mut self,
        world: &mut W,
        steps_max: u64,
        until: fn(u64) -> Until,
    ) -> Result<(ContextId, Stop), End> {
        let who = match (self.left, self.last) {
            (Some(_), Some(last)) => last,
            _ => self.next(world).ok_or(End::Stuck)?,
        };
        if self.steps >= steps_max {
            return Err(End::Hanging);
        }
        let left = match self.left {
            Some(left) => left,
            None => {
                self.turns += 1;
                self.last = Some(who);
                1 + turn_length(world)
            }
        };
        let before = world.contexts().get(who).steps;
        let stop = world.run(who, until(left.min(steps_max - self.steps)));
        let made = world.contexts().get(who).steps - before;
        self.steps += made;
        let left = left.saturating_sub(made);
        // A context that was stopped before its last step was over has not yet heard of signals and timers there.
        let goes_on = match stop {
            Stop::Point { .. } | Stop::Sync => true,
            Stop::Steps => left > 0,
            _ => false,
        };
        self.left = goes_on.then_some(left);
        if self.left.is_none() {
            self.hear(world);
        }
        Ok((who, stop))
    }

    /// Whether the run was ended from outside after the turn that is over now.
    pub(crate) fn is_ended(&self) -> bool {
        self.left.is_none() && self.outside.ended == Some(self.turns)
    }

    /// Lets happen what comes from outside after this turn.
    fn hear<W: World>(&mut self, world: &mut W) {
        while let Some(next) = self.outside.closed.get(self.closed)
            && next.turn <= self.turns
        {
            if let Some(turns) = world.turns() {
                turns.close_output(next.descriptor);
            }
            self.closed += 1;
        }
    }

    fn close<W: World>(&mut self, world: &mut W, descriptor: i32) {
        if let Some(turns) = world.turns() {
            turns.close_output(descriptor);
        }
        self.outside.closed.push(ClosedOutput {
            turn: self.turns,
            descriptor,
        });
        self.closed = self.outside.closed.len();
    }

    /// The runnable context that follows the last one in the order of creation; time passes until there is one.
    fn next<W: World>(&self, world: &mut W) -> Option<ContextId> {
        for _ in 0..IDLE_JUMPS_MAX {
            let next = successor(world.contexts().runnable(), self.last);
            if next.is_some() {
                return next;
            }
            if !world.advance_time() {
                return None;
            }
        }
        None
    }
}

/// How a run ended, if this stop was its end.
pub(crate) fn end_of(stop: Stop) -> Option<End> {
    match stop {
        Stop::WorldDone { status } => Some(End::Exited { status }),
        Stop::Unsupported(what) => Some(End::Unsupported(what)),
        _ => None,
    }
}

/// A world without choices of its own has turns of one length.
fn turn_length<W: World>(world: &mut W) -> u64 {
    let turns = world.turns();
    turns.map_or(TURN_MAX, |turns| turns.turn_length(TURN_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::{Do, Toy};

    /// The second context can only go on when the first has ended.
    fn toy() -> Toy {
        let first = vec![Do::Lock(0), Do::Work, Do::Work, Do::Set(0), Do::Unlock(0)];
        let second = vec![Do::Work, Do::Lock(0), Do::Unlock(0), Do::Set(1)];
        Toy::new(vec![first, second])
    }

    fn go_on(plain: &mut Plain, world: &mut Toy, steps_max: u64) -> End {
        plain.run(world, steps_max, &mut |_, _| Reaction::GoOn)
    }

    #[test]
    fn a_run_that_is_cut_anywhere_is_the_same_run() {
        let mut whole = toy();
        let mut plain = Plain::default();
        assert_eq!(
            go_on(&mut plain, &mut whole, 1000),
            End::Exited { status: 0 }
        );
        for cut in 1..plain.steps() {
            let (mut world, mut parts) = (toy(), Plain::default());
            assert_eq!(go_on(&mut parts, &mut world, cut), End::Hanging);
            assert_eq!(parts.steps(), cut);
            assert_eq!(
                go_on(&mut parts, &mut world, 1000),
                End::Exited { status: 0 }
            );
            assert_eq!(world.key(), whole.key(), "cut at {cut}");
            assert_eq!(parts.turns, plain.turns, "cut at {cut}");
        }
    }

    #[test]
    fn what_comes_from_outside_comes_again_after_the_same_turn() {
        let mut world = toy();
        let mut plain = Plain::default();
        let end = plain.run(&mut world, 1000, &mut |world, _| match world.cells[0] {
            0 => Reaction::GoOn,
            _ => Reaction::Stop,
        });
        assert_eq!(end, End::Abandoned);
        let outside = plain.outside().clone();
        assert_eq!(outside.ended, Some(1));
        let (mut again, mut following) = (toy(), Plain::following(outside));
        assert_eq!(go_on(&mut following, &mut again, 1000), End::Abandoned);
        assert_eq!(again.key(), world.key());
    }
}
