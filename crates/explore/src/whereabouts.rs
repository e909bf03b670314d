//! Where contexts stand when they do something, in the reader's own code.
//!
//! Events are told after the slice in which they happened, when the context stands elsewhere. So the stack of a moment is
//! noted at the end of the slice before, asked of what happened, or made from the instruction alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_linux::LinuxWorld;
use raddle_report::Place;
use raddle_symbols::SymbolSpace;
use raddle_world::{ContextId, Event, EventKind, ImageId};

use crate::names::block_at;
use crate::stack::{self, Line, inlined, is_bookkeeping, own, own_place, stack_of};

/// The own code that does something, and the stack that led to it.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) place: Place,
    pub(crate) lines: Vec<Line>,
    /// The function of a library that does it for the own code.
    pub(crate) via: Option<String>,
}

impl Standing {
    /// The innermost own code of a stack.
    fn of(lines: Vec<Line>) -> Option<Self> {
        let place = own(&lines)?.place.clone();
        let via = stack::via(&lines);
        Some(Self { place, lines, via })
    }

    /// The same where the stack is not known.
    fn at(symbols: &SymbolSpace, pc: u64) -> Option<Self> {
        let inlined = Self::of(inlined(symbols, pc)?)?;
        Some(Self {
            lines: Vec::new(),
            ..inlined
        })
    }
}

/// What is known of where contexts stand.
#[derive(Debug, Default)]
pub(crate) struct Whereabouts {
    /// The symbols of each program that takes part.
    symbols: BTreeMap<ImageId, Arc<SymbolSpace>>,
    /// Where a context stands before its next instruction: the instruction and the stack that led to it.
    upcoming: BTreeMap<ContextId, (u64, Vec<Line>)>,
    /// The last stack of a context that could be followed to own code: some functions of the C library end it.
    followed: BTreeMap<ContextId, Vec<Line>>,
}

impl Whereabouts {
    /// The symbols of the program that an event happened in. A context that has ended, or executes another program
    /// by now, has none to offer.
    pub(crate) fn symbols(&mut self, world: &mut LinuxWorld, event: &Event) -> Arc<SymbolSpace> {
        let image = event.site.image();
        if let Some(known) = self.symbols.get(&image) {
            return Arc::clone(known);
        }
        let is_current = world.image(event.context) == image;
        let symbols = world.symbols(event.context).filter(|_| is_current);
        let Some(symbols) = symbols.map(Arc::new) else {
            return Arc::default();
        };
        self.symbols.insert(image, Arc::clone(&symbols));
        symbols
    }

    /// Notes the stack with which a context will make its next access.
    pub(crate) fn look_ahead(&mut self, world: &mut LinuxWorld, who: ContextId) {
        let Some(pc) = world.registers(who).and_then(|registers| registers.pc()) else {
            return;
        };
        let lines = stack::stack(world, who);
        if own(&lines).is_some() {
            self.followed.insert(who, lines.clone());
        } else if let Some(call) = world.pending_call(who)
            && let Some(symbols) = world.symbols(who)
            && let Some(caller) = inlined(&symbols, call.return_pc.wrapping_sub(1))
        {
            self.followed.insert(who, caller);
        }
        self.upcoming.insert(who, (pc, lines));
    }

    /// The own code that made a system call. It is told after the slice in which it was made: the context stands
    /// elsewhere by then, but the slice before has ended at the call.
    pub(crate) fn calling(&mut self, world: &mut LinuxWorld, event: &Event) -> Option<Standing> {
        match self.upcoming.get(&event.context) {
            Some((pc, lines)) if *pc == event.pc() => Standing::of(lines.clone())
                .or_else(|| Standing::of(self.followed.get(&event.context)?.clone())),
            _ => Standing::of(stack::stack(world, event.context)),
        }
    }

    /// The own code that freed the block, of which the block itself knows; the context may stand elsewhere by now.
    pub(crate) fn freeing(
        &mut self,
        world: &mut LinuxWorld,
        event: &Event,
        addr: u64,
    ) -> Option<Standing> {
        let symbols = self.symbols(world, event);
        let freed = block_at(world, event.context, addr)?.freed?;
        Standing::of(stack_of(&symbols, &freed))
    }

    /// The own code that made an access; none if a library did so for itself.
    pub(crate) fn standing(&mut self, world: &mut LinuxWorld, event: &Event) -> Option<Standing> {
        if let Some((pc, lines)) = self.upcoming.get(&event.context)
            && *pc == event.pc()
        {
            return Standing::of(lines.clone()).filter(|_| !is_bookkeeping(lines));
        }
        Standing::at(&self.symbols(world, event), event.pc())
    }

    /// The own code that called a known function; none if a C library did so for itself.
    pub(crate) fn caller(&mut self, world: &mut LinuxWorld, event: &Event) -> Option<Standing> {
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
        let symbols = self.symbols(world, event);
        match own_place(&symbols, event.pc().wrapping_sub(1)) {
            Some(place) if has_returned => Some(Standing {
                place,
                lines,
                via: None,
            }),
            _ => Standing::of(lines),
        }
    }
}
