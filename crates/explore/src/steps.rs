//! The story of a run: what the contexts did to shared memory and to each other, in order, made short.

use std::collections::BTreeMap;

use raddle_detect::Communication;
use raddle_linux::{Effect, LinuxWorld, Observe};
use raddle_report::finding::Step;
use raddle_sched::{Follow, drive};
use raddle_symbols::SymbolSpace;
use raddle_symbols::unwind::RSP;
use raddle_trace::Schedule;
use raddle_world::{Access, AccessKind, ContextId, Event, EventKind, World};

use crate::schedule_run::Rules;
use crate::session::Session;
use crate::stack::{excerpt, place_of};

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
}

struct Item {
    context: ContextId,
    pc: u64,
    action: String,
    object: Option<String>,
    locks: Vec<String>,
}

/// `thread 2 'name'`: the first context is thread 1.
pub(crate) fn label(world: &LinuxWorld, who: ContextId) -> String {
    let context = world.contexts().get(who);
    let first = world.contexts().get(ContextId(0));
    if context.name.is_empty() || (who.0 > 0 && context.name == first.name) {
        format!("thread {}", who.0 + 1)
    } else if who.0 == 0 {
        "thread 1 (main)".into()
    } else {
        format!("thread {} `{}`", who.0 + 1, context.name)
    }
}

/// Runs a schedule again and tells what happened.
pub(crate) fn tell(session: &mut Session, schedule: &Schedule, rules: Rules) -> Story {
    let communication = observe(session, schedule, rules);
    session.restore();
    let Some(symbols) = session.world.symbols(ContextId(0)) else {
        return Story::default();
    };
    session.world.set_observe(Observe::AddrValue);
    let libraries = session.libraries().to_vec();
    let is_library = |pc: u64| libraries.iter().any(|range| range.contains(&pc));
    let mut teller = Teller {
        symbols,
        items: Vec::new(),
        creating: BTreeMap::new(),
        creations: Vec::new(),
    };
    let mut follow = Follow::new(schedule);
    drive(
        &mut session.world,
        &mut follow,
        rules.limits,
        &mut |world, events| {
            for event in events {
                teller.event(world, event, &communication, &is_library);
            }
        },
    );
    session.world.set_observe(Observe::None);
    teller.story(&session.world)
}

fn observe(session: &mut Session, schedule: &Schedule, rules: Rules) -> Communication {
    session.restore();
    session.world.set_observe(Observe::Addr);
    let mut communication = Communication::default();
    let mut follow = Follow::new(schedule);
    drive(
        &mut session.world,
        &mut follow,
        rules.limits,
        &mut |_, events| events.iter().for_each(|event| communication.event(event)),
    );
    communication
}

struct Teller {
    symbols: SymbolSpace,
    items: Vec<Item>,
    /// Return address of the creating call that a context is in.
    creating: BTreeMap<ContextId, u64>,
    creations: Vec<String>,
}

impl Teller {
    fn event(
        &mut self,
        world: &mut LinuxWorld,
        event: &Event,
        communication: &Communication,
        is_library: &dyn Fn(u64) -> bool,
    ) {
        if let Some(call) = world.pending_call(event.context)
            && call.effect == Effect::CreateThread
        {
            self.creating.insert(event.context, call.return_pc);
        }
        match event.kind {
            EventKind::Access(access)
                if communication.is_meeting(access.location) && !is_library(event.pc) =>
            {
                self.access(world, event, &access);
            }
            _ => self.synchronisation(world, event, is_library),
        }
    }

    fn access(&mut self, world: &LinuxWorld, event: &Event, access: &Access) {
        let name = name_of(&self.symbols, access.addr);
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
        let action = format!("{verb} {name}{relation} {value}");
        self.push(world, event.context, event.pc, action, Some(name));
    }

    fn synchronisation(
        &mut self,
        world: &mut LinuxWorld,
        event: &Event,
        is_library: &dyn Fn(u64) -> bool,
    ) {
        let (verb, object) = match event.kind {
            EventKind::Acquire { object, .. } => ("locks", object),
            EventKind::Release { object, .. } => ("unlocks", object),
            EventKind::WaitBegin { object } => ("begins to wait for", object),
            EventKind::WaitEnd { object } => ("has waited for", object),
            EventKind::Notify { object, .. } => ("signals", object),
            EventKind::BarrierEnter { object } => ("arrives at barrier", object),
            EventKind::Create { child } => {
                self.creation(world, event.context, child);
                return;
            }
            _ => return,
        };
        // At the entry of a known function the return address is on top of the stack.
        let is_entry = !matches!(
            event.kind,
            EventKind::Acquire { .. } | EventKind::WaitEnd { .. }
        );
        let top = world
            .registers(event.context)
            .and_then(|registers| registers.get(RSP));
        let caller = match top {
            Some(top) if is_entry => world.read_word(event.context, top),
            _ => Some(event.pc),
        };
        let pc = caller.unwrap_or(event.pc).wrapping_sub(1);
        if is_library(pc) {
            return;
        }
        let name = name_of(&self.symbols, object);
        let action = format!("{verb} {name}");
        self.push(world, event.context, pc, action, None);
    }

    fn creation(&mut self, world: &LinuxWorld, creator: ContextId, child: ContextId) {
        let place = self
            .creating
            .get(&creator)
            .map(|pc| crate::stack::describe(&place_of(&self.symbols, pc.wrapping_sub(1))));
        let place = place.unwrap_or_else(|| "an unknown place".into());
        self.creations
            .push(format!("{} was created at {place}", label(world, child)));
    }

    fn push(
        &mut self,
        world: &LinuxWorld,
        context: ContextId,
        pc: u64,
        action: String,
        object: Option<String>,
    ) {
        let locks = world
            .held_locks(context)
            .iter()
            .map(|(lock, _)| name_of(&self.symbols, *lock))
            .collect();
        let item = Item {
            context,
            pc,
            action,
            object,
            locks,
        };
        match self.items.last_mut() {
            // The same instruction again and again, as in a loop: the last time tells.
            Some(last) if last.context == context && last.pc == pc => *last = item,
            _ => self.items.push(item),
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
            .map(|item| {
                let place = place_of(&self.symbols, item.pc);
                Step {
                    context: label(world, item.context),
                    action: item.action.clone(),
                    excerpt: excerpt(&place),
                    place: short_file(place),
                    locks: item.locks.clone(),
                }
            })
            .collect();
        Story {
            steps,
            objects,
            creations: self.creations,
            left_out: self.items.len() - chosen.len(),
        }
    }
}

/// The file's own name: the folder is noise in a column.
pub(crate) fn short_file(
    mut place: raddle_report::finding::Place,
) -> raddle_report::finding::Place {
    if let Some((_, file)) = place.file.rsplit_once('/') {
        place.file = file.to_owned();
    }
    place
}

fn shorten<'a>(stretch: &[&'a Item]) -> Vec<&'a Item> {
    if stretch.len() <= HEAD + TAIL {
        return stretch.to_vec();
    }
    let tail = &stretch[stretch.len() - TAIL..];
    stretch[..HEAD].iter().chain(tail).copied().collect()
}

/// The variable at an address, or the address itself.
pub(crate) fn name_of(symbols: &SymbolSpace, addr: u64) -> String {
    match symbols.data_at(addr) {
        Some(place) if place.rest == 0 => {
            // The first field of a pthread object is an implementation detail.
            let path = place.path.split(".__data").next().unwrap_or_default();
            format!("`{path}`")
        }
        Some(place) => format!("`{}`+{}", place.path, place.rest),
        None => format!("memory at {addr:#x}"),
    }
}

/// A value of so many bytes as people write it.
fn shown(value: u64, size: u8) -> String {
    let bits = u32::from(size.min(8)) * 8;
    let value = if bits < 64 {
        value & ((1 << bits) - 1)
    } else {
        value
    };
    let is_small_negative = bits >= 32 && value >> (bits - 8) == 0xFF;
    if is_small_negative {
        let missing = 64 - bits;
        return raddle_stdx::width::as_i64(value << missing)
            .wrapping_shr(missing)
            .to_string();
    }
    if value < 1 << 32 {
        value.to_string()
    } else {
        format!("{value:#x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_signs_and_addresses_are_hexadecimal() {
        assert_eq!(shown(0xFFFF_FFFF, 4), "-1");
        assert_eq!(shown(7, 4), "7");
        assert_eq!(shown(0xFF, 1), "255");
        assert_eq!(shown(0x5555_0000_1000, 8), "0x555500001000");
        assert_eq!(shown(u64::MAX, 8), "-1");
    }
}
