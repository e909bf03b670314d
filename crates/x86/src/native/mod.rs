//! Blocks as machine code of the host: what the specialised handlers do, without going from op to op.
//!
//! Translated code is called as a handler is and takes its arguments in the same registers; guest registers, flags,
//! TLB and log stay in memory where handlers have them. So each op of a block can be entered by itself, and can be
//! left to its handler where something unusual happens:
//!
//! ```text
//!   ops      handler ──►  code                                       when the TLB misses
//!   [0] mov     ───────►  load, ask the TLB ────────────────────────► rsi = &ops[0]; jmp mov's handler
//!   [1] add     ───────►  add                                           └► goes on with ops[1].handler
//!   [2] divsd   ───────►  the code of its stub ─────────────────────► the same where MXCSR is not the host's
//!   [3] div     div       rsi = &ops[3]; jmp [ops[3].handler]
//!   [4] jne     ───────►  test, jne ─► the next block's code, or [5] if it is not known yet
//! ```
//! In front of the first op is the place where the code of other blocks comes in: it takes the block's steps from the
//! budget. Handlers go from block to block by ops, and have done that themselves.
//!
//! A block that is no longer true gets `stale` for all its handlers, and its front leads there: only slow paths, which
//! are handlers, can make it so while it runs. Programs see no difference, and neither do step counts and logs.
#![expect(
    unsafe_code,
    reason = "machine code made at run time is called as a handler"
)]

mod code;
mod emit;
mod routines;
mod template;

use crate::engine::Observe;
use crate::executable::{ExecutableArea, Part};
use crate::fast;
use crate::lower;
use crate::op::{Handler, Op};
pub(crate) use code::Target;
use code::{ALWAYS, Code};
use emit::{CHARGE_BYTES, Emitted, Emitter};
use routines::{Routines, address_of};
pub(crate) use template::{Product, Template};

/// What the distances of handlers in [`Op::original`] are measured from.
const BASE: Handler = fast::stale;

/// In `disp` of the ops behind a block's last: no machine code jumps there.
const NO_JUMP: u64 = 0;

/// Makes machine code of blocks.
#[derive(Debug, Default)]
pub(crate) struct Translator {
    place: Option<CodeArea>,
    /// No such memory could be had: everything is interpreted.
    is_missing: bool,
    is_full: bool,
}

/// Where code is put, and what is there already.
#[derive(Debug)]
struct CodeArea {
    area: ExecutableArea,
    routines: Routines,
}

impl CodeArea {
    fn new() -> Option<Self> {
        let mut area = ExecutableArea::new()?;
        let mut code = Code::at(target(area.end(Part::Hot)));
        let routines = Routines::new(&mut code, BASE);
        area.add(Part::Hot, &code.bytes)?;
        Some(Self { area, routines })
    }

    /// The code of a block; where each op begins, or nothing if it is left to its handler.
    fn add(&mut self, ops: &[Op], templates: &[Template], records: bool) -> Option<Emitted> {
        let hot = target(self.area.end(Part::Hot));
        let cold = target(self.area.end(Part::Cold));
        let emitted = Emitter::new(ops, records, &self.routines, hot, cold).emit(templates);
        self.area.add(Part::Hot, &emitted.code)?;
        self.area.add(Part::Cold, &emitted.cold)?;
        Some(emitted)
    }
}

impl Translator {
    /// Replaces the handlers of ops by machine code and gives where that of other blocks may come in. The ops must stay
    /// where they are.
    pub(crate) fn translate(
        &mut self,
        ops: &mut [Op],
        templates: &[Template],
        observe: Observe,
    ) -> Option<Target> {
        if self.is_missing || observe == Observe::AddrValue || !measure(ops) {
            return None;
        }
        if self.place.is_none() {
            self.place = CodeArea::new();
            self.is_missing = self.place.is_none();
        }
        let place = self.place.as_mut()?;
        let entry = target(place.area.end(Part::Hot));
        let Some(emitted) = place.add(ops, templates, observe == Observe::Addr) else {
            self.is_full = true;
            return None;
        };
        for (op, entry) in ops.iter_mut().zip(emitted.entries) {
            if let Some(Target(entry)) = entry {
                let entry = pointer(Target(entry));
                // SAFETY: the code at this address is a handler, made by `Emitter`, and lives as long as the blocks
                // of the cache that this translator belongs to.
                op.handler = unsafe { std::mem::transmute::<*const u8, Handler>(entry) };
            }
        }
        let exits = [emitted.exits.not_taken, emitted.exits.taken];
        let first = ops.len() - lower::UNLINKED_OPS;
        for (op, exit) in ops[first..].iter_mut().zip(exits) {
            op.disp = exit.map_or(NO_JUMP, |Target(place)| place);
        }
        Some(entry)
    }

    /// Lets the jump that led to an `unlinked` op lead to a block's code.
    pub(crate) fn link(&mut self, unlinked: &Op, entry: Option<Target>) {
        if let (Some(place), Some(entry)) = (&mut self.place, entry)
            && unlinked.disp != NO_JUMP
        {
            let at = Target(unlinked.disp);
            place.area.patch(pointer(at), &code::distance(at, entry));
        }
    }

    /// Lets runs that come to a block's code go to the handler of its first op.
    pub(crate) fn retire(&mut self, entry: Target) {
        if let Some(place) = &mut self.place {
            let jump = pointer(entry).wrapping_add(CHARGE_BYTES);
            place.area.patch(jump, &ALWAYS);
        }
    }

    /// Where machine code that has found the block in the jump cache goes: its code, or a routine if it has none.
    pub(crate) fn way_from_jump(&self, entry: Option<Target>) -> u64 {
        entry.or(self.by_jump()).map_or(0, |Target(place)| place)
    }

    /// What [`Self::way_from_jump`] was given.
    pub(crate) fn entry_of_jump(&self, way: u64) -> Option<Target> {
        let Target(routine) = self.by_jump()?;
        (way != routine && way != 0).then_some(Target(way))
    }

    fn by_jump(&self) -> Option<Target> {
        self.place.as_ref().map(|place| place.routines.by_jump)
    }

    /// Whether there was no room for the last block.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }
}

/// Notes where the handlers of ops are; false if one is too far away.
fn measure(ops: &mut [Op]) -> bool {
    let base = address_of(BASE);
    ops.iter_mut().all(|op| {
        let distance = address_of(op.handler).wrapping_sub(base).cast_signed();
        i32::try_from(distance).is_ok_and(|distance| {
            op.original = distance;
            true
        })
    })
}

fn pointer(Target(place): Target) -> *const u8 {
    std::ptr::with_exposed_provenance(raddle_stdx::width::to_usize(place))
}

fn target(place: *const u8) -> Target {
    Target(place.expose_provenance() as u64)
}
