//! Steps by lines, in both directions, through calls or over them.
//!
//! A line is left when the same frame comes to a statement of another line, or when it returns. A frame is known by its
//! canonical address, which stays while it lives: so recursive calls are told apart, and what other threads do in
//! between does not matter.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use raddle_sched::travel::{Direction, Halted, Hit, Rerun, Stops};
use raddle_symbols::SymbolSpace;
use raddle_world::{ContextId, Inspect};

use crate::debugger::{Debugger, SymbolsOf, is_asked_for};
use crate::scene::{Scene, StackFrame};

/// Whether a step ends where a hit is.
type Accept<'a, W> = dyn FnMut(&mut W, &Hit, &SymbolsOf<W>) -> bool + 'a;

/// Instructions of one line that are followed one by one, to see whether it calls.
const INSTRUCTIONS_MAX: usize = 2_000;

/// A statement: where its code begins, and its file and line.
type Statement = (u64, (Arc<str>, u32));

/// The code of the function around an address, as far as one description of its frames goes.
pub(crate) fn function_around(symbols: &SymbolSpace, pc: u64) -> Option<Range<u64>> {
    let mapping = symbols.mapping_at(pc)?;
    let at = mapping.link(pc);
    let code = mapping.module.call_frames().function_around(at)?;
    Some(code.start.wrapping_add(mapping.bias)..code.end.wrapping_add(mapping.bias))
}

/// Where the statements of some code begin.
pub(crate) fn statements(symbols: &SymbolSpace, code: Range<u64>) -> Vec<Statement> {
    let Some(mapping) = symbols.mapping_at(code.start) else {
        return Vec::new();
    };
    let Some(debug) = mapping.module.debug_info() else {
        return Vec::new();
    };
    let range = mapping.link(code.start)..mapping.link(code.end);
    let found = debug.statements(range).into_iter();
    found
        .map(|(at, line)| (at.0.wrapping_add(mapping.bias), (line.file, line.line)))
        .collect()
}

/// Where a thread stands before it makes a step.
struct Standing {
    symbols: SymbolSpace,
    frames: Vec<StackFrame>,
    pc: u64,
    /// The canonical address of its frame.
    cfa: u64,
    line: Option<(Arc<str>, u32)>,
    /// The statements of its function.
    statements: Vec<Statement>,
    entry: u64,
}

impl Standing {
    /// Where the function will return to.
    fn return_pc(&self) -> Option<u64> {
        let caller = self
            .frames
            .iter()
            .find(|frame| frame.frame != self.frames[0].frame)?;
        caller.frame.registers.pc()
    }

    fn line_of(&self, pc: u64) -> Option<&(Arc<str>, u32)> {
        let found = self.statements.iter().find(|(at, _)| *at == pc);
        found.map(|(_, line)| line)
    }
}

/// What became of a function that was called.
enum Entered {
    /// The run stands in it, or at a stop of the user's.
    Body(Halted),
    /// It has no lines and has returned.
    Passed,
}

impl<R: Rerun> Debugger<R> {
    fn standing(&mut self, who: ContextId) -> Option<Standing> {
        let mut scene = self.scene(who);
        let pc = scene.world.cpu(who)?.rip;
        let frames = scene.frames(2);
        let symbols = scene.symbols;
        let cfa = frames.first()?.frame.cfa?;
        let code = function_around(&symbols, pc)?;
        Some(Standing {
            line: symbols
                .symbolise(pc)
                .and_then(|place| place.line)
                .map(|line| (line.file, line.line)),
            statements: statements(&symbols, code.clone()),
            entry: code.start,
            symbols,
            frames,
            pc,
            cfa,
        })
    }

    /// The next line of this frame, or the caller, without a stop in what it calls.
    pub fn next(&mut self, who: ContextId) -> Halted {
        let Some(from) = self.standing(who) else {
            return self.travel.step(who, Direction::Forward);
        };
        let back = from.return_pc();
        let starts = from.statements.iter().map(|(at, _)| *at);
        let ends = starts.chain(back).collect();
        let halted = self.step_to(Direction::Forward, ends, &mut |world, hit, symbols| {
            if !is_of(hit, who) {
                return false;
            }
            let pc = world.cpu(who).map_or(0, |cpu| cpu.rip);
            if Some(pc) == back && stack_pointer(world, who) >= Some(from.cfa) {
                return true;
            }
            let line = from.line_of(pc);
            let is_other = line.is_some() && line != from.line.as_ref();
            is_other && frame_address(world, symbols, who) == Some(from.cfa)
        });
        halted.unwrap_or_else(|| self.travel.arrive(None, Direction::Forward))
    }

    /// The next line, also of a function that is called and has lines.
    pub fn step_in(&mut self, who: ContextId) -> Halted {
        let Some(from) = self.standing(who).filter(|from| from.line.is_some()) else {
            return self.travel.step(who, Direction::Forward);
        };
        for _ in 0..INSTRUCTIONS_MAX {
            let stack = stack_pointer(self.travel.world(), who);
            let halted = self.travel.step(who, Direction::Forward);
            let pc = self.travel.world().cpu(who).map(|cpu| cpu.rip);
            let (Halted::Stepped(_), Some(pc)) = (halted, pc) else {
                return halted;
            };
            if self.is_in_frame(who, &from) {
                let line = from.line_of(pc);
                if line.is_some() && line != from.line.as_ref() {
                    return halted;
                }
                continue;
            }
            let called = stack.map(|stack| stack.wrapping_sub(8));
            if called != stack_pointer(self.travel.world(), who) {
                // It has returned.
                return halted;
            }
            match self.enter(who, &from, pc) {
                Entered::Body(halted) => return halted,
                Entered::Passed => {}
            }
        }
        self.next(who)
    }

    /// A function was called: goes to its first statement, or over it if it has none.
    fn enter(&mut self, who: ContextId, from: &Standing, pc: u64) -> Entered {
        let code = function_around(&from.symbols, pc).filter(|code| code.start == pc);
        let found = code.map(|code| statements(&from.symbols, code));
        let first = found.and_then(|found| found.get(1).map(|(at, _)| *at));
        let stack = stack_pointer(self.travel.world(), who);
        let end = first.or_else(|| {
            let bytes = self.scene(who).read(stack?, 8);
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        });
        let ends = end.into_iter().collect();
        let halted = self.step_to(Direction::Forward, ends, &mut |world, hit, _| {
            is_of(hit, who) && (first.is_some() || stack_pointer(world, who) > stack)
        });
        match halted {
            Some(Halted::Stepped(_)) if first.is_none() => Entered::Passed,
            Some(halted) => Entered::Body(halted),
            None => Entered::Body(self.travel.arrive(None, Direction::Forward)),
        }
    }

    /// The caller, right behind the call.
    pub fn step_out(&mut self, who: ContextId) -> Halted {
        let from = self.standing(who);
        let target = from.as_ref().and_then(Standing::return_pc);
        let (Some(from), Some(target)) = (from, target) else {
            return self.proceed(Direction::Forward);
        };
        let ends = [target].into();
        let halted = self.step_to(Direction::Forward, ends, &mut |world, hit, _| {
            is_of(hit, who) && stack_pointer(world, who) >= Some(from.cfa)
        });
        halted.unwrap_or_else(|| self.travel.arrive(None, Direction::Forward))
    }

    /// The beginning of the line before, in this frame or in the caller.
    pub fn step_back(&mut self, who: ContextId) -> Halted {
        let Some(from) = self.standing(who).filter(|from| from.line.is_some()) else {
            return self.travel.step(who, Direction::Backward);
        };
        // At its first instruction the function was called at this very moment.
        if from.pc == from.entry {
            return self.travel.step(who, Direction::Backward);
        }
        let is_at_start = from.line_of(from.pc).is_some();
        let ends = from.statements.iter().map(|(at, _)| *at).collect();
        let mut before: Option<(Arc<str>, u32)> = None;
        let origin = self.travel.now();
        let halted = self.step_to(Direction::Backward, ends, &mut |world, hit, symbols| {
            if !is_of(hit, who) || frame_address(world, symbols, who) != Some(from.cfa) {
                return false;
            }
            let pc = world.cpu(who).map_or(0, |cpu| cpu.rip);
            let line = from.line_of(pc).cloned();
            let enters = line != before;
            before.clone_from(&line);
            enters && (!is_at_start || line != from.line)
        });
        if let Some(halted) = halted {
            return halted;
        }
        self.travel.go_to(origin);
        self.reverse_out(who, from.cfa, from.entry)
    }

    /// The call of the present function, in its caller.
    fn reverse_out(&mut self, who: ContextId, cfa: u64, entry: u64) -> Halted {
        let ends = [entry].into();
        let halted = self.step_to(Direction::Backward, ends, &mut |world, hit, _| {
            is_of(hit, who) && stack_pointer(world, who) == Some(cfa.wrapping_sub(8))
        });
        match halted {
            Some(Halted::Stepped(_)) => self.travel.step(who, Direction::Backward),
            Some(halted) => halted,
            None => self.travel.arrive(None, Direction::Backward),
        }
    }

    /// The moment before the present function was called.
    pub fn reverse_finish(&mut self, who: ContextId) -> Halted {
        match self.standing(who) {
            Some(from) => {
                // At its first instruction the function was entered at this very moment.
                if from.pc == from.entry {
                    return self.travel.step(who, Direction::Backward);
                }
                self.reverse_out(who, from.cfa, from.entry)
            }
            None => self.travel.step(who, Direction::Backward),
        }
    }

    fn is_in_frame(&mut self, who: ContextId, from: &Standing) -> bool {
        let symbols = &self.symbols;
        frame_address(self.travel.world_mut(), symbols, who) == Some(from.cfa)
    }

    /// Looks for where a step ends, or for a stop that the user has asked for on the way, and goes there; to the end of
    /// the run in that direction if there is neither.
    fn step_to(
        &mut self,
        direction: Direction,
        ends: BTreeSet<u64>,
        accept: &mut Accept<'_, R::World>,
    ) -> Option<Halted> {
        let (symbols, breakpoints) = (&self.symbols, &self.breakpoints);
        let wanted = breakpoints.iter().flat_map(|one| &one.at).copied();
        let stops = Stops {
            breakpoints: wanted.chain(ends.iter().copied()).collect(),
            watched: self.watched.iter().copied().collect(),
        };
        // The last stop of the user's that was met.
        let mut met = None;
        let found = self.travel.find(direction, &stops, &mut |world, hit| {
            if is_asked_for(breakpoints, symbols, world, hit) {
                met = Some(*hit);
                return true;
            }
            let is_end = world
                .cpu(thread_of(hit))
                .is_some_and(|cpu| ends.contains(&cpu.rip));
            is_end && accept(world, hit, symbols)
        });
        let hit = found?;
        let halted = self.travel.arrive(Some(hit), direction);
        Some(match halted {
            Halted::Breakpoint(who) if met != Some(hit) => Halted::Stepped(who),
            halted => halted,
        })
    }
}

fn thread_of(hit: &Hit) -> ContextId {
    match hit.why {
        Halted::Breakpoint(who) | Halted::Watch { context: who, .. } | Halted::Stepped(who) => who,
        Halted::Begin | Halted::End => ContextId(0),
    }
}

fn is_of(hit: &Hit, who: ContextId) -> bool {
    hit.why == Halted::Breakpoint(who)
}

fn stack_pointer<W: Inspect>(world: &W, who: ContextId) -> Option<u64> {
    Some(world.cpu(who)?.reg(raddle_x86::Reg::Rsp))
}

/// The canonical address of a thread's innermost frame.
fn frame_address<W: Inspect>(world: &mut W, symbols: &SymbolsOf<W>, who: ContextId) -> Option<u64> {
    let known = symbols(world, who)?;
    let mut scene = Scene::new(world, who, known);
    scene.frames(1).first()?.frame.cfa
}
