//! The story of a run: what the contexts did to shared memory and to each other, in order, made short.

use std::collections::BTreeMap;

use raddle_detect::{Communication, assertion_message};
use raddle_linux::{LinuxWorld, Observe};
use raddle_report::finding::{Place, Step};
use raddle_sched::{Follow, drive_while};
use raddle_symbols::SymbolSpace;
use raddle_trace::facts::{InferredLocks, LockChange};
use raddle_trace::{Facts, Schedule};
use raddle_world::{Access, AccessKind, ContextId, Event, EventKind, Site};

use crate::attribution::{Attribution, Own};
use crate::history::History;
use crate::judge::Rules;
use crate::names::{label, name_of, short_file, shown};
use crate::session::Session;
use crate::stack::{self, Line, describe, excerpt, is_bookkeeping, own, own_place};

/// Steps shown at the beginning and at the end of each stretch of one context.
const HEAD: usize = 2;
const TAIL: usize = 3;
/// Steps shown at most.
const STEPS_MAX: usize = 20;

/// What happened, in order.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) steps: Vec<Step>,
    /// Variables involved, the most recent first.
    pub(crate) objects: Vec<String>,
    /// Where each context was created.
    pub(crate) creations: Vec<String>,
    /// Steps that were left out.
    pub(crate) left_out: usize,
    /// Waiting and waking.
    pub(crate) history: History,
    /// What was known at its end, or when somebody complained.
    pub(crate) facts: Facts,
    /// Who said first that something is wrong, and with which stack.
    pub(crate) complaint: Option<(ContextId, Vec<Line>)>,
}

struct Item {
    context: ContextId,
    site: Site,
    place: Place,
    action: String,
    object: Option<String>,
    locks: Vec<String>,
}

/// Runs a schedule again and tells what happened. `block` is a heap block whose life is part of the story.
pub(crate) fn tell(
    session: &mut Session,
    schedule: &Schedule,
    rules: &Rules,
    block: Option<u64>,
) -> Story {
    let (communication, locks) = observe(session, schedule, rules);
    session.restore();
    let Some(symbols) = session.world.symbols(ContextId(0)) else {
        return Story::default();
    };
    // A stop before each access shows the stack that it is made with.
    let points: Vec<Site> = communication
        .meetings(&mut |site| !session.is_library(site))
        .into_iter()
        .flatten()
        .collect();
    points
        .iter()
        .for_each(|site| session.world.add_point(*site));
    session.world.set_observe(Observe::AddrValue);
    session.world.set_tracing(true);
    let mut attribution = Attribution::new(&session.territory);
    let mut teller = Teller {
        symbols,
        block,
        items: Vec::new(),
        upcoming: BTreeMap::new(),
        facts: Facts::knowing(&locks),
        creations: Vec::new(),
        history: History::default(),
        complaint: None,
    };
    let mut follow = Follow::new(schedule);
    drive_while(
        &mut session.world,
        &mut follow,
        rules.limits,
        &mut |world, events| {
            for event in events {
                teller.note_facts(world, event, &attribution);
                let own = attribution.step(world, event);
                if let Some(own) = own.filter(Own::is_exact) {
                    teller.event(world, &own, &communication);
                }
            }
            if let Some(last) = events.last() {
                teller.look_ahead(world, last.context);
            }
        },
        &|| !session.leave.is_over(),
    );
    session.world.set_tracing(false);
    session.world.set_observe(Observe::None);
    session.remove_flags(&points);
    teller.story(&session.world)
}

/// Runs a schedule and finds out where contexts meet, and which words are locks.
pub(crate) fn observe(
    session: &mut Session,
    schedule: &Schedule,
    rules: &Rules,
) -> (Communication, InferredLocks) {
    session.restore();
    session.world.set_observe(Observe::AddrValue);
    let mut communication = Communication::default();
    let mut facts = Facts::default();
    let mut attribution = Attribution::new(&session.territory);
    let mut follow = Follow::new(schedule);
    drive_while(
        &mut session.world,
        &mut follow,
        rules.limits,
        &mut |world, events| {
            for event in events {
                facts.event_with(event, &mut |site| attribution.locked(world, event, site));
                if let Some(own) = attribution.own(world, event) {
                    communication.event(&own);
                }
            }
        },
        &|| !session.leave.is_over(),
    );
    (communication, facts.inferred_locks())
}

struct Teller {
    symbols: SymbolSpace,
    block: Option<u64>,
    items: Vec<Item>,
    /// Where a context stands before its next instruction: the instruction and the own code that led to it.
    upcoming: BTreeMap<ContextId, (u64, Option<Place>)>,
    /// What is known at the event that is being told.
    facts: Facts,
    creations: Vec<String>,
    history: History,
    complaint: Option<(ContextId, Vec<Line>)>,
}

impl Teller {
    /// What happens inside a library counts, too.
    fn note_facts(&mut self, world: &mut LinuxWorld, event: &Event, attribution: &Attribution) {
        if self.complaint.is_none() {
            let code = &mut |site| attribution.locked(world, event, site);
            self.facts.event_with(event, code);
        }
    }

    fn event(&mut self, world: &mut LinuxWorld, event: &Own<'_>, communication: &Communication) {
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
                if !communication.is_meeting(access) {
                    return;
                }
                if event.is_in_call() {
                    self.access_in_call(world, event, access);
                } else {
                    self.access(world, event, access);
                }
            }
            EventKind::Create { child } => self.creation(world, event.context, *child),
            EventKind::Free { addr } if self.block == Some(*addr) => {
                self.call(world, event, "frees", *addr);
            }
            EventKind::SyscallEnter { number, arguments } => {
                let place = self.current_place(world, event.context);
                self.history
                    .system_call(event.context, *number, arguments, place);
            }
            _ => self.synchronisation(world, event),
        }
    }

    /// Notes the stack with which a context will make its next access.
    fn look_ahead(&mut self, world: &mut LinuxWorld, who: ContextId) {
        let Some(pc) = world.registers(who).and_then(|registers| registers.pc()) else {
            return;
        };
        let lines = stack::stack(world, who);
        let place = own(&lines)
            .filter(|_| !is_bookkeeping(&lines))
            .map(|line| line.place.clone());
        self.upcoming.insert(who, (pc, place));
    }

    fn current_place(&self, world: &mut LinuxWorld, who: ContextId) -> Option<Place> {
        let lines = stack::stack(world, who);
        own(&lines).map(|line| line.place.clone())
    }

    /// The own code that made an access; none if a library did so for itself.
    fn place_of_access(&self, event: &Event) -> Option<Place> {
        match self.upcoming.get(&event.context) {
            Some((pc, place)) if *pc == event.pc() => place.clone(),
            _ => own_place(&self.symbols, event.pc()),
        }
    }

    /// A call of the C library reads or writes: the first access tells, the others follow it.
    fn access_in_call(&mut self, world: &LinuxWorld, event: &Event, access: &Access) {
        let verb = if access.how.writes() {
            "writes"
        } else {
            "reads"
        };
        let is_told = |item: &Item| {
            item.context == event.context
                && item.site == event.site
                && item.action.starts_with(verb)
        };
        if self.items.iter().rev().take(2).any(is_told) {
            return;
        }
        let Some(place) = self.place_of_access(event) else {
            return;
        };
        let name = name_of(world, &self.symbols, access.addr);
        let action = format!("{verb} {name}.. (library call)");
        let item = self.item(world, event, place, action, Some(name));
        self.items.push(item);
    }

    fn access(&mut self, world: &LinuxWorld, event: &Event, access: &Access) {
        let Some(place) = self.place_of_access(event) else {
            return;
        };
        let name = name_of(world, &self.symbols, access.addr);
        // Lazy binding of functions is the loader's business.
        if name.contains("_GLOBAL_OFFSET_TABLE_") {
            return;
        }
        let value = access
            .value
            .map_or_else(String::new, |value| shown(value, access.size));
        let (verb, relation) = match access.how {
            AccessKind::Read => ("reads", " ="),
            AccessKind::Write => ("writes", " ="),
            AccessKind::Update => ("updates", ", which was"),
            AccessKind::AtomicUpdate => ("atomically updates", ", which was"),
        };
        let action = match self.facts.lock_changes().last() {
            Some(LockChange::Obtained(_)) => format!("locks {name}"),
            Some(LockChange::GivenUp(_)) => format!("unlocks {name}"),
            _ => format!("{verb} {name}{relation} {value}"),
        };
        self.push(world, event, place, action, Some(name));
    }

    fn synchronisation(&mut self, world: &mut LinuxWorld, event: &Event) {
        let (verb, object) = match event.kind {
            EventKind::Acquire { object, .. } => ("locks", object),
            EventKind::Release { object, .. } => ("unlocks", object),
            EventKind::WaitBegin { object, .. } => ("begins to wait for", object),
            EventKind::WaitEnd { object, .. } => ("has waited for", object),
            EventKind::Notify { object, .. } => ("signals", object),
            EventKind::BarrierEnter { object } => ("arrives at barrier", object),
            _ => return,
        };
        let Some(place) = self.caller(world, event) else {
            return;
        };
        self.history
            .synchronisation(event.context, &event.kind, Some(place.clone()));
        let action = format!("{verb} {}", name_of(world, &self.symbols, object));
        self.push(world, event, place, action, None);
    }

    /// The own code that called a known function; none if a C library did so for itself.
    fn caller(&self, world: &mut LinuxWorld, event: &Event) -> Option<Place> {
        let has_returned = matches!(
            event.kind,
            EventKind::Acquire { .. } | EventKind::WaitEnd { .. }
        );
        let lines = stack::stack(world, event.context);
        let function = usize::from(!has_returned);
        if lines.get(function).is_none_or(|line| line.is_c_library) {
            return None;
        }
        // The instruction after a call may belong to another line.
        let before = own_place(&self.symbols, event.pc().wrapping_sub(1));
        match before {
            Some(place) if has_returned => Some(place),
            _ => own(&lines).map(|line| line.place.clone()),
        }
    }

    /// A call of a known function; the context stands at its entry or at its return.
    fn call(&mut self, world: &mut LinuxWorld, event: &Event, verb: &str, object: u64) {
        let Some(place) = self.current_place(world, event.context) else {
            return;
        };
        let action = format!("{verb} {}", name_of(world, &self.symbols, object));
        self.push(world, event, place, action, None);
    }

    fn creation(&mut self, world: &mut LinuxWorld, creator: ContextId, child: ContextId) {
        let place = self
            .current_place(world, creator)
            .map_or_else(|| "an unknown place".into(), |place| describe(&place));
        self.creations
            .push(format!("{} was created at {place}", label(world, child)));
    }

    fn push(
        &mut self,
        world: &LinuxWorld,
        event: &Event,
        place: Place,
        action: String,
        object: Option<String>,
    ) {
        let item = self.item(world, event, place, action, object);
        match self.items.last_mut() {
            // The same instruction again and again, as in a loop: the last time tells.
            Some(last) if last.context == item.context && last.site == item.site => *last = item,
            _ => self.items.push(item),
        }
    }

    fn item(
        &self,
        world: &LinuxWorld,
        event: &Event,
        place: Place,
        action: String,
        object: Option<String>,
    ) -> Item {
        let held = self.facts.held(event.context).iter();
        Item {
            context: event.context,
            site: event.site,
            place,
            action,
            object,
            locks: held
                .map(|section| name_of(world, &self.symbols, section.lock))
                .collect(),
        }
    }

    fn story(self, world: &LinuxWorld) -> Story {
        let mut stretches: Vec<Vec<&Item>> = Vec::new();
        for item in &self.items {
            match stretches.last_mut() {
                Some(stretch) if stretch[0].context == item.context => stretch.push(item),
                _ => stretches.push(vec![item]),
            }
        }
        let shortened: Vec<&Item> = stretches
            .iter()
            .flat_map(|stretch| shorten(stretch))
            .collect();
        let from = shortened.len().saturating_sub(STEPS_MAX);
        let chosen = &shortened[from..];
        let mut objects: Vec<String> = Vec::new();
        for item in chosen.iter().rev() {
            if let Some(object) = &item.object
                && !objects.contains(object)
            {
                objects.push(object.clone());
            }
        }
        let steps = chosen
            .iter()
            .map(|item| Step {
                context: label(world, item.context),
                action: item.action.clone(),
                excerpt: excerpt(&item.place),
                place: short_file(item.place.clone()),
                locks: item.locks.clone(),
            })
            .collect();
        Story {
            steps,
            objects,
            creations: self.creations,
            left_out: self.items.len() - chosen.len(),
            history: self.history,
            facts: self.facts,
            complaint: self.complaint,
        }
    }
}

fn shorten<'a>(stretch: &[&'a Item]) -> Vec<&'a Item> {
    if stretch.len() <= HEAD + TAIL {
        return stretch.to_vec();
    }
    let tail = &stretch[stretch.len() - TAIL..];
    stretch[..HEAD].iter().chain(tail).copied().collect()
}
