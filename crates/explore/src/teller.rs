//! Turns the events of a run into steps.

use std::collections::BTreeMap;

use raddle_calls::Learns;
use raddle_detect::assertion_message;
use raddle_linux::{LinuxWorld, signal_name};
use raddle_report::evidence::{Held, Value};
use raddle_report::{Action, Edge, EdgeKind, Frame, Locks, Place, Step, Word};
use raddle_stdx::width::to_u64;
use raddle_trace::Facts;
use raddle_trace::facts::LockChange;
use raddle_world::{Access, AccessKind, ContextId, Event, EventKind, Fault, LockMode, Site, World};

use crate::attribution::{Attribution, Own};
use crate::history::History;
use crate::names::{code_at, contexts, name_of};
use crate::stack::{self, Line, frames};
use crate::steps::{Story, number};
use crate::weave::Weaver;
use crate::whereabouts::{Standing, Whereabouts};

/// Steps that are kept of a run, the last ones; a page that shows them all stays usable.
const STEPS_KEPT: usize = 100_000;
/// Bytes of what the program printed that are kept, the last ones.
const CONSOLE_KEPT: usize = 64 << 10;

/// A step with the instruction that made it.
#[derive(Debug)]
struct Item {
    site: Site,
    step: Step,
}

/// Sees a run, event by event.
#[derive(Debug)]
pub(crate) struct Teller {
    whereabouts: Whereabouts,
    /// A heap block whose life is part of the story.
    block: Option<u64>,
    /// It was freed, and has not been handed out again.
    is_freed: bool,
    items: Vec<Item>,
    dropped: usize,
    weaver: Weaver,
    stacks: Vec<Vec<Frame>>,
    /// Numbers of stacks by their instructions.
    stack_numbers: BTreeMap<Vec<Place>, usize>,
    /// The system call that a context is in.
    calls: BTreeMap<ContextId, (u64, Option<Standing>)>,
    /// What is known at the event that is being told.
    facts: Facts,
    /// Steps that had been made when the run began.
    steps_at_start: u64,
    /// Steps of the others when the slice that is being told was run.
    steps_of_others: u64,
    created: BTreeMap<ContextId, Place>,
    console: Vec<u8>,
    history: History,
    complaint: Option<(ContextId, Vec<Line>)>,
}

impl Teller {
    /// The world stands where the run begins.
    pub(crate) fn new(world: &mut LinuxWorld, facts: Facts, block: Option<u64>) -> Self {
        let table = world.contexts();
        let contexts: Vec<ContextId> = table.iter().map(|(id, _)| id).collect();
        let mut teller = Self {
            whereabouts: Whereabouts::default(),
            block,
            is_freed: false,
            items: Vec::new(),
            dropped: 0,
            weaver: Weaver::default(),
            stacks: Vec::new(),
            stack_numbers: BTreeMap::new(),
            calls: BTreeMap::new(),
            facts,
            steps_at_start: table.iter().map(|(_, context)| context.steps).sum(),
            steps_of_others: 0,
            created: BTreeMap::new(),
            console: Vec::new(),
            history: History::default(),
            complaint: None,
        };
        for who in contexts {
            teller.whereabouts.look_ahead(world, who);
        }
        teller
    }

    /// The events of a slice, in which one context has run, come next.
    pub(crate) fn begin_slice(&mut self, world: &LinuxWorld, events: &[Event]) {
        let runs = events.first().map(|event| event.context);
        let others = world.contexts().iter().filter(|(id, _)| Some(*id) != runs);
        self.steps_of_others = others.map(|(_, context)| context.steps).sum();
    }

    /// The events of a slice, in which this context has run, were told.
    pub(crate) fn end_slice(&mut self, world: &mut LinuxWorld, who: ContextId) {
        self.whereabouts.look_ahead(world, who);
    }

    /// What happens inside a library counts, too, and what is printed may be printed by one.
    pub(crate) fn note_facts(
        &mut self,
        world: &mut LinuxWorld,
        event: &Event,
        attribution: &Attribution,
    ) {
        if self.complaint.is_none() {
            let code = &mut |site| attribution.locked(world, event, site);
            self.facts.event_with(event, code);
        }
        if let EventKind::Output { bytes, .. } = &event.kind {
            self.console.extend_from_slice(bytes);
            let surplus = self.console.len().saturating_sub(2 * CONSOLE_KEPT);
            if surplus > 0 {
                self.console.drain(..surplus + CONSOLE_KEPT);
            }
        }
    }

    /// An access that is no step.
    pub(crate) fn pass(&mut self, access: &Access) {
        self.weaver.pass(access);
    }

    /// An event of the program.
    pub(crate) fn event(
        &mut self,
        world: &mut LinuxWorld,
        event: &Own<'_>,
        is_meeting: &dyn Fn(&Access) -> bool,
    ) {
        // What comes after a panic is clearing up.
        if self.complaint.is_some() {
            return;
        }
        match &event.kind {
            EventKind::Output {
                descriptor: 2,
                bytes,
            } if assertion_message(&String::from_utf8_lossy(bytes)).is_some() => {
                self.complaint = Some((event.context, stack::stack(world, event.context)));
            }
            EventKind::Access(access) => {
                let standing = if is_meeting(access) {
                    self.whereabouts.standing(world, event)
                } else {
                    None
                };
                let Some(standing) = standing else {
                    self.weaver.pass(access);
                    return;
                };
                if event.is_in_call() {
                    self.access_in_call(world, event, access, standing);
                } else {
                    self.access(world, event, access, standing);
                }
            }
            EventKind::Create { child } => {
                if let Some(standing) = self.whereabouts.calling(world, event) {
                    self.created.insert(*child, standing.place);
                }
                self.weaver.order(event.context, &event.kind);
            }
            EventKind::Alloc { addr, .. } if self.block == Some(*addr) => self.is_freed = false,
            // A second free is how the run ends, and is told there.
            EventKind::Free { addr } if self.block == Some(*addr) && !self.is_freed => {
                self.is_freed = true;
                if let Some(standing) = self.whereabouts.freeing(world, event, *addr) {
                    let step = self.step(world, event, Action::Free, *addr, standing);
                    self.add(event.site, step);
                }
            }
            EventKind::Fault(fault) => {
                let what = match fault {
                    Fault::SpuriousWakeUp => "is woken from its wait though nothing has changed",
                    Fault::WakeOrder => "wakes the last who waits, not the first",
                    Fault::ShortTransfer => "gets only one byte through",
                    Fault::Interrupted => "has its call interrupted by a signal (EINTR)",
                    Fault::NoMemory => "is given no memory (NULL)",
                };
                let what = what.into();
                self.by_the_system(world, event, Action::Fault { what });
            }
            EventKind::SignalEnter { number } => {
                let signal = signal_name(*number);
                self.by_the_system(world, event, Action::Handle { signal });
            }
            EventKind::SyscallEnter { number, arguments } => {
                let standing = self.whereabouts.calling(world, event);
                let place = standing.as_ref().map(|here| here.place.clone());
                self.calls.insert(event.context, (arguments[0], standing));
                self.history
                    .system_call(event.context, *number, arguments, place);
            }
            EventKind::SyscallLeave { number, result } => {
                self.transfer(world, event, *number, *result);
            }
            EventKind::Join { .. } | EventKind::BarrierLeave { .. } => {
                self.weaver.order(event.context, &event.kind);
            }
            _ => self.synchronisation(world, event),
        }
    }

    /// A call of the C library reads or writes: the first access tells, the others follow it.
    fn access_in_call(
        &mut self,
        world: &mut LinuxWorld,
        event: &Event,
        access: &Access,
        standing: Standing,
    ) {
        let action = if access.how.writes() {
            Action::Write { in_call: true }
        } else {
            Action::Read { in_call: true }
        };
        let context = number(event.context);
        let mut last = self.items.iter().enumerate().rev().take(2);
        let told = last.find(|(_, item)| {
            item.step.context == context && item.site == event.site && item.step.action == action
        });
        if let Some((index, _)) = told {
            let number = self.dropped + index;
            self.weaver.access(number, event.context, access);
            return;
        }
        let mut step = self.step(world, event, action, access.addr, standing);
        self.value(&mut step, event.context, access);
        self.add(event.site, step);
    }

    fn access(
        &mut self,
        world: &mut LinuxWorld,
        event: &Event,
        access: &Access,
        standing: Standing,
    ) {
        let action = match access.how {
            AccessKind::Read => Action::Read { in_call: false },
            AccessKind::Write => Action::Write { in_call: false },
            AccessKind::Update => Action::Update,
            AccessKind::AtomicUpdate => Action::AtomicUpdate,
        };
        // A word that is used as a lock.
        let action = match self.facts.lock_changes().last() {
            Some(LockChange::Obtained(_)) => Action::Lock,
            Some(LockChange::GivenUp(_)) => Action::Unlock,
            _ => action,
        };
        let mut step = self.step(world, event, action, access.addr, standing);
        // Lazy binding of functions is the loader's business.
        let name = step.object.as_deref().unwrap_or_default();
        if name.contains("_GLOBAL_OFFSET_TABLE_") {
            return;
        }
        let is_again = self.items.last().is_some_and(|last| {
            (last.step.context, last.site) == (step.context, event.site)
                && last.step.address == step.address
        });
        // The same instruction does the same again and again, as in a loop: the last time tells.
        if is_again && let Some(last) = self.items.pop() {
            step.repeats = last.step.repeats + 1;
            self.weaver.forget(self.dropped + self.items.len());
        }
        self.value(&mut step, event.context, access);
        self.add(event.site, step);
    }

    /// Bytes that go through a pipe or socket are how processes meet.
    fn transfer(&mut self, world: &mut LinuxWorld, event: &Event, number: u32, result: i64) {
        let entered = self.calls.remove(&event.context);
        let Some((descriptor, Some(standing))) = entered else {
            return;
        };
        let Some(row) = raddle_calls::of(number) else {
            return;
        };
        let call = row.name.to_owned();
        let action = match row.learns {
            _ if row.sends => Action::Send { call, result },
            Learns::File => Action::Receive { call, result },
            _ => return,
        };
        let Some(channel) = world.channel(event.context, descriptor) else {
            return;
        };
        let step = self.step(world, event, action, 0, standing);
        let step = Step {
            object: Some(format!("`{channel}`")),
            address: None,
            ..step
        };
        self.add(event.site, step);
    }

    /// The system does something to a context.
    fn by_the_system(&mut self, world: &mut LinuxWorld, event: &Event, action: Action) {
        let Some(standing) = self.whereabouts.calling(world, event) else {
            return;
        };
        let step = self.step(world, event, action, 0, standing);
        let step = Step {
            object: None,
            address: None,
            ..step
        };
        self.add(event.site, step);
    }

    /// What the access of the next step finds and leaves.
    fn value(&mut self, step: &mut Step, context: ContextId, access: &Access) {
        let number = self.dropped + self.items.len();
        (step.before, step.after) = self.weaver.access(number, context, access);
    }

    fn synchronisation(&mut self, world: &mut LinuxWorld, event: &Event) {
        let (action, object) = match event.kind {
            EventKind::Acquire { object, .. } => (Action::Lock, object),
            EventKind::Release { object, .. } => (Action::Unlock, object),
            EventKind::WaitBegin { object, .. } => (Action::WaitBegin, object),
            EventKind::WaitEnd { object, .. } => (Action::WaitEnd, object),
            EventKind::Notify {
                object, everyone, ..
            } => (Action::Notify { everyone }, object),
            EventKind::BarrierEnter { object } => (Action::Barrier, object),
            _ => return,
        };
        let Some(caller) = self.whereabouts.caller(world, event) else {
            return;
        };
        self.history
            .synchronisation(event.context, &event.kind, Some(caller.place.clone()));
        let step = self.step(world, event, action, object, caller);
        let number = self.dropped + self.items.len();
        self.add(event.site, step);
        self.weaver
            .synchronisation(number, event.context, &event.kind);
    }

    /// A step with what is known of every event.
    fn step(
        &mut self,
        world: &mut LinuxWorld,
        event: &Event,
        action: Action,
        object: u64,
        standing: Standing,
    ) -> Step {
        let symbols = self.whereabouts.symbols(world, event);
        let mut name = |addr| name_of(world, &symbols, event.context, addr);
        let held = self.facts.held(event.context).iter();
        let held = held.map(|section| Held {
            name: name(section.lock),
            address: Some(Word(section.lock)),
            is_shared: section.mode == LockMode::Shared,
            section: Some(section.serial),
        });
        let locks = Locks::Known(held.collect());
        let steps = self.steps_of_others + event.step;
        Step {
            object: Some(name(object)),
            address: Some(Word(object)),
            code: code_at(&symbols, event.pc()),
            via: standing.via,
            locks,
            global_step: Some(steps.saturating_sub(self.steps_at_start)),
            stack: self.stack_number(&standing.lines),
            ..Step::new(number(event.context), action, standing.place)
        }
    }

    fn stack_number(&mut self, lines: &[Line]) -> Option<usize> {
        if lines.is_empty() {
            return None;
        }
        let key: Vec<Place> = lines.iter().map(|line| line.place.clone()).collect();
        let new = self.stacks.len();
        let number = *self.stack_numbers.entry(key).or_insert(new);
        if number == new {
            self.stacks.push(frames(lines));
        }
        Some(number)
    }

    fn add(&mut self, site: Site, step: Step) {
        let context = step.context;
        self.items.push(Item { site, step });
        if self.items.len() >= 2 * STEPS_KEPT {
            self.items.drain(..STEPS_KEPT);
            self.dropped += STEPS_KEPT;
        }
        let number = self.dropped + self.items.len() - 1;
        let context = ContextId(raddle_stdx::width::low_u32(to_u64(context)));
        self.weaver.step(number, context);
    }

    /// All that was told; the world stands where the run has ended.
    pub(crate) fn story(mut self, world: &LinuxWorld) -> Story {
        let surplus = self.items.len().saturating_sub(STEPS_KEPT);
        self.items.drain(..surplus);
        let dropped = self.dropped + surplus;
        let (mut edges, results) = self.weaver.finish(dropped);
        let mut steps: Vec<Step> = self.items.into_iter().map(|item| item.step).collect();
        for (number, value) in results {
            set_result(&mut steps, number, value);
        }
        edges.extend(switches(&steps));
        edges.sort_unstable_by_key(|edge| (edge.to, edge.from, edge.kind));
        let mut contexts = contexts(world);
        for (who, place) in self.created {
            if let Some(context) = contexts.get_mut(number(who)) {
                context.created = Some(place);
            }
        }
        let surplus = self.console.len().saturating_sub(CONSOLE_KEPT);
        Story {
            steps,
            stacks: self.stacks,
            edges,
            contexts,
            console: String::from_utf8_lossy(&self.console[surplus..]).into_owned(),
            dropped: to_u64(dropped),
            history: self.history,
            facts: self.facts,
            complaint: self.complaint,
        }
    }
}

/// What an update has left.
fn set_result(steps: &mut [Step], number: usize, value: Value) {
    if let Some(step) = steps.get_mut(number) {
        step.after = Some(value);
    }
}

/// Where another context goes on.
fn switches(steps: &[Step]) -> impl Iterator<Item = Edge> {
    let pairs = steps.windows(2).enumerate();
    let pairs = pairs.filter(|(_, pair)| pair[0].context != pair[1].context);
    pairs.map(|(from, _)| Edge {
        kind: EdgeKind::Switch,
        from,
        to: from + 1,
    })
}
