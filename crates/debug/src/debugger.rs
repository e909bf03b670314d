//! A recorded run as users of debuggers think of it: threads with stacks, lines, functions and variables.

use raddle_sched::travel::{Direction, Halted, Hit, Rerun, Stops, Travel, Watched};
use raddle_symbols::SymbolSpace;
use raddle_world::{ContextId, Inspect};

use crate::expression::{self, ExpressionError, Meaning};
use crate::scene::{Scene, StackFrame};

/// Brings the names of a thread's program at the present moment.
pub type SymbolsOf<W> = Box<dyn Fn(&mut W, ContextId) -> Option<SymbolSpace>>;

/// Instructions at which to stop, if a condition holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breakpoint {
    pub at: Vec<u64>,
    /// An expression; a stop without one always counts. One that cannot be evaluated counts, too, since a stop too
    /// many is noticed, and one too few is not.
    pub condition: Option<String>,
}

/// A recorded run under a debugger.
pub struct Debugger<R: Rerun> {
    pub travel: Travel<R>,
    pub(crate) symbols: SymbolsOf<R::World>,
    pub breakpoints: Vec<Breakpoint>,
    pub watched: Vec<Watched>,
}

impl<R: Rerun + std::fmt::Debug> std::fmt::Debug for Debugger<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Debugger")
            .field("travel", &self.travel)
            .field("breakpoints", &self.breakpoints)
            .field("watched", &self.watched)
            .finish_non_exhaustive()
    }
}

/// The last write to some memory before a moment.
#[derive(Debug, Clone)]
pub struct LastWrite {
    /// The moment before the instruction that writes.
    pub moment: u64,
    pub thread: ContextId,
    pub stack: Vec<StackFrame>,
    pub before: Vec<u8>,
    pub after: Vec<u8>,
}

impl<R: Rerun> Debugger<R> {
    pub fn new(travel: Travel<R>, symbols: SymbolsOf<R::World>) -> Self {
        Self {
            travel,
            symbols,
            breakpoints: Vec::new(),
            watched: Vec::new(),
        }
    }

    /// A thread at the present moment.
    pub fn scene(&mut self, who: ContextId) -> Scene<'_, R::World> {
        let world = self.travel.world_mut();
        let symbols = (self.symbols)(world, who).unwrap_or_default();
        Scene::new(world, who, symbols)
    }

    /// Goes on to the next stop that counts, or to the end of the run in that direction.
    pub fn proceed(&mut self, direction: Direction) -> Halted {
        let addresses = self.breakpoints.iter().flat_map(|one| &one.at);
        let stops = Stops {
            breakpoints: addresses.copied().collect(),
            watched: self.watched.iter().copied().collect(),
        };
        let (symbols, breakpoints) = (&self.symbols, &self.breakpoints);
        let found = self.travel.find(direction, &stops, &mut |world, hit| {
            is_asked_for(breakpoints, symbols, world, hit)
        });
        self.travel.arrive(found, direction)
    }

    /// The meaning of an expression for a frame of a thread; the innermost is number 0.
    ///
    /// # Errors
    /// If it has none.
    pub fn evaluate(
        &mut self,
        who: ContextId,
        frame: usize,
        text: &str,
    ) -> Result<(Meaning, String), ExpressionError> {
        let mut scene = self.scene(who);
        let frames = scene.frames(frame + 1);
        let meaning = expression::evaluate(&mut scene, frames.get(frame), text)?;
        let shown = meaning.show(&mut scene);
        Ok((meaning, shown))
    }

    /// Who wrote some memory last, before the present moment, which stays.
    pub fn last_write(&mut self, addr: u64, len: u64) -> Option<LastWrite> {
        let now = self.travel.now();
        let who = self.travel.current();
        let stops = Stops {
            watched: [Watched {
                addr,
                len,
                reads: false,
                writes: true,
            }]
            .into(),
            ..Stops::default()
        };
        let found = self
            .travel
            .find(Direction::Backward, &stops, &mut |_, _| true);
        let told = found.and_then(|hit| {
            let Halted::Watch { context, .. } = hit.why else {
                return None;
            };
            let length = raddle_stdx::width::to_usize(len);
            self.travel.go_to(hit.before());
            let mut scene = self.scene(context);
            let stack = scene.frames(crate::scene::FRAMES_MAX);
            let before = scene.read(addr, length);
            self.travel.go_to(hit.at);
            let after = self.scene(context).read(addr, length);
            Some(LastWrite {
                moment: hit.before(),
                thread: context,
                stack,
                before,
                after,
            })
        });
        self.travel.go_to(now);
        self.travel.look_at(who);
        told
    }

    /// Where to stop for a line of a file: once in each function that has code of it, and the line that has it.
    pub fn line(&mut self, file: &str, line: u32) -> (Vec<u64>, Option<u32>) {
        let symbols = self.scene(self.travel.current()).symbols;
        let mut by_function = std::collections::BTreeMap::new();
        for range in symbols.ranges_of_line(file, line) {
            let function = crate::steps::function_around(&symbols, range.start);
            let key = function.map_or(range.start, |function| function.start);
            let first = by_function.entry(key).or_insert(range.start);
            *first = range.start.min(*first);
        }
        let found: Vec<u64> = by_function.into_values().collect();
        let place = found.first().and_then(|at| symbols.symbolise(*at)?.line);
        (found, place.map(|place| place.line))
    }

    /// Where to stop for a function: behind what it does before its first statement.
    pub fn function(&mut self, name: &str) -> Vec<u64> {
        let symbols = self.scene(self.travel.current()).symbols;
        let ranges = symbols.ranges_of_function(name);
        let begins = |range: std::ops::Range<u64>| {
            let statements = crate::steps::statements(&symbols, range.clone());
            statements.get(1).map_or(range.start, |(at, _)| *at)
        };
        ranges.into_iter().map(begins).collect()
    }
}

/// Whether the user has asked for a stop here.
pub(crate) fn is_asked_for<W: Inspect>(
    breakpoints: &[Breakpoint],
    symbols: &SymbolsOf<W>,
    world: &mut W,
    hit: &Hit,
) -> bool {
    let Halted::Breakpoint(who) = hit.why else {
        return true;
    };
    let Some(pc) = world.cpu(who).map(|cpu| cpu.rip) else {
        return false;
    };
    let here = breakpoints.iter().filter(|one| one.at.contains(&pc));
    let conditions: Vec<&Option<String>> = here.map(|one| &one.condition).collect();
    if conditions.is_empty() {
        return false;
    }
    if conditions.iter().any(|condition| condition.is_none()) {
        return true;
    }
    let known = symbols(world, who).unwrap_or_default();
    let mut scene = Scene::new(world, who, known);
    let frames = scene.frames(1);
    let mut given = conditions.into_iter().flatten();
    given.any(|text| expression::holds(&mut scene, frames.first(), text).unwrap_or(true))
}
