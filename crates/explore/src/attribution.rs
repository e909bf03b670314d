//! Whose a memory access is: what the C library does to the program's memory counts where the program called it.
//!
//! ```text
//!   memcpy(copy, shared, n)   ──▶  reads and writes of the call instruction, which can become a decision point
//!   pthread_mutex_lock(&m)    ──▶  nothing: a known function, other events say what it means
//!   printf("hello")           ──▶  nothing: only memory of the library itself
//! ```
//!
//! The program's memory is the data of its own modules and the heap blocks that its own code asked for.
//!
//! Functions that look for the end of a string read whole vectors, beyond that end and into what lies behind it.
//! Such reads are not exact: good enough for a decision point, not for a report.

use std::ops::{Deref, Range};
use std::sync::Arc;

use raddle_linux::LinuxWorld;
use raddle_stdx::width::to_usize;
use raddle_symbols::{Import, SymbolSpace};
use raddle_world::{Access, ContextId, Event, EventKind, Inspect as _, LockedKind, Site};

use crate::managed::{self, Managed};
use crate::stack::{is_library_file, is_loader_file};

/// Where code and data of the program and of libraries lie.
#[derive(Debug, Clone, Default)]
pub(crate) struct Territory {
    /// Code and data of libraries that are not explored.
    libraries: Vec<Range<u64>>,
    /// Those of the loader, which binds functions in the program's data.
    loader: Vec<Range<u64>>,
    /// Those of everybody else.
    own: Vec<Range<u64>>,
    /// Functions that read exactly what they were asked to, whatever the width of their accesses.
    exact: Vec<Range<u64>>,
    /// Stubs through which libraries are called; the first time they push what the loader needs.
    stubs: Vec<Range<u64>>,
    /// The machines of languages that have one.
    pub(crate) managed: Managed,
}

impl Territory {
    pub(crate) fn new(world: &mut LinuxWorld) -> Self {
        let symbols = world.symbols(ContextId(0)).unwrap_or_default();
        let mut territory = Self {
            managed: Managed::new(&symbols),
            ..Self::default()
        };
        let machines = managed::library_ranges(&symbols);
        for (range, mapping) in symbols.mappings() {
            if is_loader_file(&mapping.name) {
                territory.loader.push(range.clone());
            }
            if is_library_file(&mapping.name) || machines.contains(&range) {
                territory.libraries.push(range);
            } else {
                territory.own.push(range);
            }
        }
        for mapping in symbols.modules() {
            let stubs = mapping.module.stub_ranges().into_iter();
            let at_run_time = |stub: Range<u64>| {
                mapping.bias.wrapping_add(stub.start)..mapping.bias.wrapping_add(stub.end)
            };
            territory.stubs.extend(stubs.map(at_run_time));
            let is_exact = |import: &&Import| EXACT.iter().any(|name| import.name.contains(name));
            let imports = mapping.module.imports().iter().filter(is_exact);
            let slots = imports.map(|import| mapping.bias.wrapping_add(import.slot.0));
            let functions = slots.filter_map(|slot| function_in_slot(world, &symbols, slot));
            territory.exact.extend(functions);
        }
        territory
    }

    /// Whether an instruction belongs to a library that is not explored.
    pub(crate) fn is_library(&self, pc: u64) -> bool {
        contains(&self.libraries, pc)
    }

    fn owner(&self, pc: u64) -> Owner {
        if contains(&self.loader, pc) {
            Owner::Loader
        } else if contains(&self.libraries, pc) {
            Owner::Library
        } else if contains(&self.stubs, pc) {
            Owner::Stub
        } else {
            Owner::Program
        }
    }

    /// Whether an address is that of code or a variable of the program, not of its heap or a stack.
    pub(crate) fn is_own_data(&self, addr: u64) -> bool {
        contains(&self.own, addr)
    }

    /// Whether memory belongs to the program.
    pub(crate) fn is_own_memory(&self, world: &LinuxWorld, who: ContextId, addr: u64) -> bool {
        let is_own_block = || {
            let allocator = world.allocated_by(who, addr)?;
            Some(!self.is_library(allocator))
        };
        self.is_own_data(addr) || is_own_block().unwrap_or(false)
    }
}

/// Functions that exist in variants for different processors; which one is used only the loader's slots tell. What a
/// resolver is called depends on the symbols that are there: `memcpy`, `__new_memcpy_ifunc`.
const EXACT: [&str; 3] = ["memcpy", "memmove", "mempcpy"];

/// The code of the function that the loader has stored in a slot.
fn function_in_slot(
    world: &mut LinuxWorld,
    symbols: &SymbolSpace,
    slot: u64,
) -> Option<Range<u64>> {
    let entry = world.read_word(ContextId(0), slot)?;
    let mapping = symbols.mapping_at(entry)?;
    let frames = mapping.module.call_frames();
    let code = frames.function_around(mapping.link(entry))?;
    Some(mapping.bias.wrapping_add(code.start)..mapping.bias.wrapping_add(code.end))
}

/// To whom code belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Program,
    Stub,
    Library,
    Loader,
}

fn contains(ranges: &[Range<u64>], addr: u64) -> bool {
    ranges.iter().any(|range| range.contains(&addr))
}

/// Follows the contexts of one run in and out of libraries.
#[derive(Debug)]
pub(crate) struct Attribution {
    territory: Arc<Territory>,
    contexts: Vec<Outside>,
    /// Accesses that count of one library call.
    accesses_max: u64,
    /// Owners of instructions that were asked for lately.
    owners: Box<[(u64, Owner); OWNERS]>,
}

/// Instructions whose owner is remembered.
const OWNERS: usize = 256;

/// An event of the program.
#[derive(Debug)]
pub(crate) enum Own<'e> {
    /// As it happened.
    Itself(&'e Event),
    /// An access that a library made, as one of the calling instruction.
    InCall {
        event: Box<Event>,
        /// Whether the program asked for all of the bytes.
        is_exact: bool,
        /// Steps of the context when it executed the calling instruction.
        called: u64,
    },
}

impl Own<'_> {
    pub(crate) fn is_in_call(&self) -> bool {
        matches!(self, Self::InCall { .. })
    }

    /// The same, as if all of a call happened at the calling instruction.
    pub(crate) fn at_call(mut self) -> Self {
        if let Self::InCall { event, called, .. } = &mut self {
            event.step = *called;
        }
        self
    }

    /// Whether the program asked for all of it.
    pub(crate) fn is_exact(&self) -> bool {
        !matches!(
            self,
            Self::InCall {
                is_exact: false,
                ..
            }
        )
    }
}

impl Deref for Own<'_> {
    type Target = Event;

    fn deref(&self) -> &Event {
        match self {
            Self::Itself(event) => event,
            Self::InCall { event, .. } => event,
        }
    }
}

/// Where a context left the program's code.
#[derive(Debug, Clone, Copy, Default)]
struct Outside {
    /// The last instruction of the program that wrote: a call writes its return address. Nowhere if none did yet.
    call: Site,
    /// Steps of the context when that was executed.
    step: u64,
    /// It has entered a known function since.
    is_known: bool,
    /// Accesses of the library since.
    accesses: u64,
}

/// Accesses that count of one library call: a large copy would hide everything else behind its cost.
const ACCESSES_MAX: u64 = 512;

impl Attribution {
    pub(crate) fn new(territory: &Arc<Territory>) -> Self {
        Self {
            territory: Arc::clone(territory),
            contexts: Vec::new(),
            accesses_max: ACCESSES_MAX,
            owners: Box::new([(0, Owner::Program); OWNERS]),
        }
    }

    /// Whatever a library call does counts, at any cost.
    pub(crate) fn without_limit(self) -> Self {
        Self {
            accesses_max: u64::MAX,
            ..self
        }
    }

    /// An event as the program's own; none if it is a library's business. A library's locked instructions stay
    /// what they are: they order.
    pub(crate) fn own<'e>(&mut self, world: &LinuxWorld, event: &'e Event) -> Option<Own<'e>> {
        let access = match &event.kind {
            EventKind::Access(access) => access,
            EventKind::KnownCall => {
                self.outside(event.context).is_known = true;
                return None;
            }
            _ => return Some(Own::Itself(event)),
        };
        let owner = self.owner(event.pc());
        if matches!(owner, Owner::Program | Owner::Stub) {
            let outside = self.outside(event.context);
            outside.is_known = false;
            outside.accesses = 0;
            if access.how.writes() && owner == Owner::Program {
                outside.call = event.site;
                outside.step = event.step;
            }
            return Some(Own::Itself(event));
        }
        if access.how.is_atomic() {
            return Some(Own::Itself(event));
        }
        if owner == Owner::Loader {
            return None;
        }
        let (site, called) = self.caller(world, event, access)?;
        let is_exact =
            access.how.writes() || access.size <= 8 || contains(&self.territory.exact, event.pc());
        let event = Box::new(Event {
            site,
            ..event.clone()
        });
        Some(Own::InCall {
            event,
            is_exact,
            called,
        })
    }

    /// The same without the locked instructions of libraries, which are no steps of the program.
    pub(crate) fn step<'e>(&mut self, world: &LinuxWorld, event: &'e Event) -> Option<Own<'e>> {
        let own = self.own(world, event)?;
        let is_access = matches!(own.kind, EventKind::Access(_));
        (!is_access || !self.territory.is_library(own.pc())).then_some(own)
    }

    /// What a locked instruction of the program does. The locks that libraries have inside are their own business.
    pub(crate) fn locked(&self, world: &mut LinuxWorld, event: &Event, site: Site) -> LockedKind {
        if self.territory.is_library(site.pc()) {
            return LockedKind::Unknown;
        }
        world.locked_kind(event.context, site)
    }

    /// The instruction of the program that a library's access belongs to, and when it was executed.
    fn caller(
        &mut self,
        world: &LinuxWorld,
        event: &Event,
        access: &Access,
    ) -> Option<(Site, u64)> {
        let outside = *self.outside(event.context);
        let is_hidden = outside.is_known
            || outside.call == Site::NOWHERE
            || outside.accesses >= self.accesses_max;
        let is_own =
            |territory: &Territory| territory.is_own_memory(world, event.context, access.addr);
        if is_hidden || !is_own(&self.territory) {
            return None;
        }
        self.outside(event.context).accesses += 1;
        Some((outside.call, outside.step))
    }

    fn owner(&mut self, pc: u64) -> Owner {
        let slot = &mut self.owners[to_usize(pc ^ pc >> 8) % OWNERS];
        if slot.0 != pc {
            *slot = (pc, self.territory.owner(pc));
        }
        slot.1
    }

    fn outside(&mut self, who: ContextId) -> &mut Outside {
        let index = who.0 as usize;
        if self.contexts.len() <= index {
            self.contexts.resize(index + 1, Outside::default());
        }
        &mut self.contexts[index]
    }
}
