//! Liveness of contexts that could run but should not: loops that cannot end without another context's write.
//!
//! A context that comes back to the same point with the same registers, or yields, is only suspected: its loop may count
//! in memory. So the world tries out how it would go on alone. If it comes round again and has changed no byte, it does
//! the same for ever, as long as what it reads stays the same: it is set aside until then. A loop that takes a lock and
//! gives it up on the way is not, since others may need the lock: it only asks for others to be run. Every other loop
//! goes on, and what starves others in it is ended by the driver's patience (SKI's H4).
//!
//! A world that judges by itself who is live is believed instead (SKI's heuristics, for comparison).
//!
//! What was tried out is remembered for as long as it is true; a suspicion that turned out wrong is raised again only
//! after twice as many turns.

use std::collections::BTreeMap;

use raddle_world::{ContextId, Rehearse, Site, Standstill, World};

/// Points of a loop without progress at most, if the world does not limit its instructions.
const MEMORY: usize = 8;
/// Instructions of a loop that yields, at most.
const YIELDING_MAX: u64 = 4096;
/// A loop may take a little longer than it did, since some of its turns are not like the others.
const TURN_FACTOR: u64 = 2;
/// Wrong suspicions at one site are raised again after so many turns at the latest.
const PATIENCE_MAX: u32 = 1 << 14;

/// One stop of the current context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Passed {
    /// Steps that the context had made.
    steps: u64,
    registers: u64,
}

/// A loop that was tried out and stands still.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Loop {
    who: ContextId,
    registers: u64,
    standstill: Standstill,
}

/// Suspicions at a site that turned out wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Wrong {
    /// Suspicions that are not followed up now, and the next time.
    ignored: u32,
    next: u32,
}

/// Where a context is suspected to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Suspicion {
    who: ContextId,
    site: Site,
    registers: u64,
    steps_max: u64,
}

/// Contexts that are set aside.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waiting {
    /// Instructions of a loop at most.
    window: Option<u64>,
    /// Stops of the current context since it was switched to, as far back as a loop can reach.
    passed: Vec<Passed>,
    /// The last loop of each context that stood still.
    loops: Vec<Loop>,
    /// Contexts that are set aside.
    aside: Vec<ContextId>,
    wrong: BTreeMap<(ContextId, Site), Wrong>,
    /// How often a context was set aside.
    pub(crate) times: u64,
    /// Whether everybody who can run goes round for ever.
    pub(crate) is_at_an_end: bool,
}

impl Waiting {
    pub(crate) fn new(window: Option<u64>) -> Self {
        Self {
            window,
            ..Self::default()
        }
    }

    /// Another context goes on, or this one has passed points that the driver did not look at.
    pub(crate) fn switch(&mut self) {
        self.passed.clear();
    }

    /// A context stands at a point, with these registers, after so many steps.
    pub(crate) fn stop(
        &mut self,
        who: ContextId,
        site: Site,
        registers: u64,
        steps: u64,
    ) -> Option<Suspicion> {
        self.forget(steps);
        let now = Passed { steps, registers };
        let before = self.passed.iter().rposition(|p| p.registers == registers);
        let turn = before.map(|before| steps - self.passed[before].steps);
        if let Some(before) = before {
            self.passed.drain(..=before);
        }
        self.passed.push(now);
        Some(Suspicion {
            who,
            site,
            registers,
            steps_max: turn? * TURN_FACTOR,
        })
    }

    /// A context asked to be run later.
    pub(crate) fn yields(&self, who: ContextId, site: Site, registers: u64) -> Suspicion {
        Suspicion {
            who,
            site,
            registers,
            steps_max: YIELDING_MAX,
        }
    }

    /// Forgets the stops that a loop which comes back now cannot have begun with.
    fn forget(&mut self, steps: u64) {
        let gone = match self.window {
            Some(window) => self
                .passed
                .partition_point(|passed| steps - passed.steps > window),
            None => self.passed.len().saturating_sub(MEMORY),
        };
        self.passed.drain(..gone);
    }

    /// Finds out whether a context waits, and sets it aside if that concerns no other context.
    pub(crate) fn look_into(
        &mut self,
        suspicion: Suspicion,
        world: Option<&mut dyn Rehearse>,
    ) -> bool {
        let Suspicion {
            who,
            site,
            registers,
            steps_max,
        } = suspicion;
        let Some(world) = world else {
            return false;
        };
        let known = self.loops.iter().find(|known| known.who == who);
        if let Some(known) = known
            && known.registers == registers
            && world.stands_still(who, &known.standstill)
        {
            self.set_aside(who, known.standstill.is_felt);
            return true;
        }
        let wrong = self.wrong.entry((who, site)).or_default();
        if wrong.ignored > 0 {
            wrong.ignored -= 1;
            return false;
        }
        let Some(standstill) = world.rehearse(who, steps_max) else {
            wrong.next = (2 * wrong.next).clamp(1, PATIENCE_MAX);
            wrong.ignored = wrong.next;
            return false;
        };
        *wrong = Wrong::default();
        let is_felt = standstill.is_felt;
        self.loops.retain(|known| known.who != who);
        self.loops.push(Loop {
            who,
            registers,
            standstill,
        });
        self.set_aside(who, is_felt);
        true
    }

    fn set_aside(&mut self, who: ContextId, is_felt: bool) {
        if !is_felt && !self.is_aside(who) {
            self.aside.push(who);
        }
        self.times += 1;
    }

    /// Contexts that would read something else now may look again.
    pub(crate) fn revive(&mut self, world: Option<&mut dyn Rehearse>) {
        if self.aside.is_empty() {
            return;
        }
        let Some(world) = world else {
            return;
        };
        let loops = &self.loops;
        self.aside.retain(|who| {
            let known = loops.iter().find(|known| known.who == *who);
            known.is_some_and(|known| world.stands_still(*who, &known.standstill))
        });
    }

    /// Leaves those out of the candidates who wait. If that leaves none, every context may look again.
    pub(crate) fn leave_out<W: World>(&mut self, world: &mut W, candidates: &mut Vec<ContextId>) {
        if let Some(judge) = world.judging() {
            candidates.retain(|id| !judge.is_waiting(*id));
            if candidates.is_empty() {
                judge.revive_all();
            }
            return;
        }
        if self.aside.is_empty() {
            return;
        }
        self.revive(world.rehearsing());
        candidates.retain(|id| !self.is_aside(*id));
        if candidates.is_empty() {
            self.revive_all();
            self.is_at_an_end |= is_standstill(world);
        }
    }

    /// A context runs, for whatever reason: it looks again.
    pub(crate) fn run(&mut self, who: ContextId) {
        self.aside.retain(|id| *id != who);
    }

    pub(crate) fn is_aside(&self, who: ContextId) -> bool {
        self.aside.contains(&who)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.aside.is_empty()
    }

    /// Everybody may look again.
    fn revive_all(&mut self) {
        self.aside.clear();
    }
}

/// Whether nothing can change any more: every context that can run goes round for ever, and no timer will wake another.
pub(crate) fn is_standstill<W: World>(world: &mut W) -> bool {
    if world.until_deadline().is_some() {
        return false;
    }
    let mut runnable = world.contexts().runnable().to_vec().into_iter();
    world
        .rehearsing()
        .is_some_and(|world| runnable.all(|who| world.goes_round_for_ever(who)))
}

#[cfg(test)]
mod tests;
