//! A world for tests: each context is a list of operations on a few shared cells.

use std::sync::Arc;

use raddle_stdx::width::{to_u64, to_usize};
use raddle_world::{
    ContextId, ContextTable, Duration, Event, Liveness, Location, PassPoints, Passage, Pending,
    PendingKind, Rehearse, Site, Snapshot, Standstill, Stop, Until, WaitReason, World,
};

/// One operation; each takes one step and is a decision point of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Do {
    /// Nothing.
    Work,
    /// Reads the cell into the context's register.
    Load(usize),
    /// Writes the register plus one to the cell.
    StoreNext(usize),
    /// Sets the cell to one.
    Set(usize),
    /// Counts the cell up if it has this value.
    Advance(usize, u64),
    /// Loops until the cell is not zero.
    SpinOn(usize),
    /// The same, and asks for others to be run.
    YieldOn(usize),
    /// Looks at the cell until it is not zero, but at most so many times. The looks are counted in memory.
    Poll(usize, u64),
    /// Takes the lock, waiting for it if need be.
    Lock(usize),
    Unlock(usize),
    /// Ends the world with this status if the cells are exactly these.
    FailIf([u64; 2]),
}

/// The world.
#[derive(Debug, Clone)]
pub(crate) struct Toy {
    table: ContextTable,
    programs: Vec<Vec<Do>>,
    at: Vec<usize>,
    registers: Vec<u64>,
    /// Looks of each context at a cell that was zero.
    pub(crate) looks: Vec<u64>,
    /// Times that a context was tried out.
    pub(crate) rehearsals: u64,
    pub(crate) cells: [u64; 2],
    owners: [Option<ContextId>; 2],
    saved: Option<Box<Toy>>,
    /// Operations other than those on locks are flagged points, and may be passed.
    pub(crate) passes: bool,
    pub(crate) has_points: bool,
    /// All contexts execute the same code: operations with equal numbers have one place.
    pub(crate) is_one_program: bool,
}

impl Toy {
    pub(crate) fn new(programs: Vec<Vec<Do>>) -> Self {
        let mut table = ContextTable::default();
        for _ in &programs {
            table.create(None, Arc::from("toy"));
        }
        Self {
            table,
            at: vec![0; programs.len()],
            registers: vec![0; programs.len()],
            looks: vec![0; programs.len()],
            rehearsals: 0,
            programs,
            cells: [0; 2],
            owners: [None; 2],
            saved: None,
            passes: false,
            has_points: false,
            is_one_program: false,
        }
    }

    /// Equal for worlds that go on in the same way.
    pub(crate) fn key(&self) -> Vec<u64> {
        let blocked = self
            .table
            .iter()
            .map(|(_, context)| match context.liveness() {
                Liveness::Runnable => 0,
                Liveness::Blocked(_) => 1,
                Liveness::Done => 2,
            });
        let owners = self
            .owners
            .iter()
            .map(|owner| owner.map_or(u64::MAX, |id| u64::from(id.0)));
        let memory = self.registers.iter().chain(&self.looks).chain(&self.cells);
        let places = self.at.iter().map(|at| to_u64(*at));
        blocked
            .chain(owners)
            .chain(places)
            .chain(memory.copied())
            .collect()
    }

    /// Does one operation; says why to stop.
    fn step(&mut self, who: ContextId) -> Stop {
        let index = who.0 as usize;
        let Some(operation) = self.programs[index].get(self.at[index]).copied() else {
            self.table.set_liveness(who, Liveness::Done);
            let is_over = self.table.runnable().is_empty()
                && self
                    .table
                    .iter()
                    .all(|(_, c)| *c.liveness() == Liveness::Done);
            return if is_over {
                Stop::WorldDone { status: 0 }
            } else {
                Stop::Done
            };
        };
        if let Do::Lock(lock) = operation {
            if self.owners[lock].is_some() {
                let reason = WaitReason::Futex { addr: 0 };
                self.table.set_liveness(who, Liveness::Blocked(reason));
                return Stop::Blocked;
            }
            self.owners[lock] = Some(who);
        }
        self.table.get_mut(who).steps += 1;
        let at_loop = Stop::Point {
            site: Site::first(1),
        };
        match operation {
            Do::SpinOn(cell) if self.cells[cell] == 0 => return at_loop,
            Do::YieldOn(cell) if self.cells[cell] == 0 => return Stop::Yielded,
            Do::Poll(cell, times) if self.cells[cell] == 0 && self.looks[index] < times => {
                self.looks[index] += 1;
                return at_loop;
            }
            _ => {}
        }
        self.at[index] += 1;
        match operation {
            Do::Load(cell) => self.registers[index] = self.cells[cell],
            Do::StoreNext(cell) => self.cells[cell] = self.registers[index] + 1,
            Do::Set(cell) => self.cells[cell] = 1,
            Do::Advance(cell, from) if self.cells[cell] == from => self.cells[cell] += 1,
            Do::FailIf(cells) if self.cells == cells => return Stop::WorldDone { status: 256 },
            Do::Unlock(lock) => {
                self.owners[lock] = None;
                self.wake();
            }
            _ => {}
        }
        let pending = self.pending(who);
        let is_sync = matches!(operation, Do::Lock(_) | Do::Unlock(_))
            || matches!(pending.kind, PendingKind::Sync { .. });
        if self.has_points && !is_sync && self.at[index] < self.programs[index].len() {
            return Stop::Point { site: pending.site };
        }
        Stop::Sync
    }

    fn wake(&mut self) {
        for id in 0..u32::try_from(self.programs.len()).expect("few") {
            let id = ContextId(id);
            if matches!(self.table.get(id).liveness(), Liveness::Blocked(_)) {
                self.table.set_liveness(id, Liveness::Runnable);
            }
        }
    }
}

impl World for Toy {
    fn contexts(&self) -> &ContextTable {
        &self.table
    }

    fn pending(&mut self, who: ContextId) -> Pending {
        let index = who.0 as usize;
        let at = self.at[index];
        let access = |cell: usize, reads: bool| PendingKind::Access {
            addr: to_u64(cell) * 8,
            location: Some(Location::shared(1, u16::try_from(cell * 8).expect("few"))),
            size: 8,
            reads,
            writes: !reads,
            atomic: false,
        };
        let kind = match self.programs[index].get(at).copied() {
            Some(Do::Load(cell) | Do::SpinOn(cell) | Do::YieldOn(cell) | Do::Poll(cell, _)) => {
                access(cell, true)
            }
            Some(Do::StoreNext(cell) | Do::Set(cell) | Do::Advance(cell, _)) => access(cell, false),
            Some(Do::Lock(lock) | Do::Unlock(lock)) => PendingKind::Sync {
                object: u64::try_from(lock).expect("few"),
            },
            _ => PendingKind::Local,
        };
        let site = self.site(who);
        Pending { site, kind }
    }

    /// Every operation has a place of its own.
    fn site(&self, who: ContextId) -> Site {
        let at = self.at[who.0 as usize];
        let program = if self.is_one_program { 0 } else { who.0 };
        Site::first(1 + (u64::from(program) << 32 | to_u64(at)))
    }

    fn run(&mut self, who: ContextId, until: Until) -> Stop {
        if until.steps_max() == 0 {
            return Stop::Steps;
        }
        self.step(who)
    }

    fn advance_time(&mut self) -> bool {
        false
    }

    fn take_events(&mut self) -> Vec<Event> {
        Vec::new()
    }

    fn recycle_events(&mut self, _: Vec<Event>) {}

    fn until_deadline(&self) -> Option<Duration> {
        None
    }

    fn is_entering_call(&self, _: ContextId) -> bool {
        false
    }

    fn passing(&mut self) -> Option<&mut dyn PassPoints> {
        Some(self)
    }

    fn rehearsing(&mut self) -> Option<&mut dyn Rehearse> {
        Some(self)
    }

    fn snapshot(&mut self) -> Snapshot {
        self.saved = Some(Box::new(self.clone()));
        Snapshot(0)
    }

    fn restore(&mut self, _: Snapshot) {
        let saved = self.saved.take().expect("a snapshot was taken");
        *self = (*saved).clone();
        self.saved = Some(saved);
    }

    fn register_digest(&self, who: ContextId) -> u64 {
        let at = u64::try_from(self.at[who.0 as usize]).expect("few");
        let place = if self.has_points { at << 32 } else { 0 };
        self.registers[who.0 as usize] + 1 + place
    }

    fn state_digest(&mut self) -> u64 {
        self.cells[0]
    }
}

impl Rehearse for Toy {
    fn rehearse(&mut self, who: ContextId, _: u64) -> Option<Standstill> {
        self.rehearsals += 1;
        let index = who.0 as usize;
        match self.programs[index].get(self.at[index]).copied() {
            Some(Do::SpinOn(cell) | Do::YieldOn(cell)) => Some(Standstill {
                words: vec![(to_u64(cell), 0)],
                is_felt: false,
            }),
            _ => None,
        }
    }

    fn stands_still(&mut self, _: ContextId, standstill: &Standstill) -> bool {
        let mut words = standstill.words.iter();
        words.all(|(cell, value)| self.cells[to_usize(*cell)] == *value)
    }

    fn goes_round_for_ever(&mut self, who: ContextId) -> bool {
        let index = who.0 as usize;
        match self.programs[index].get(self.at[index]) {
            Some(Do::SpinOn(cell) | Do::YieldOn(cell)) => self.cells[*cell] == 0,
            _ => false,
        }
    }
}

impl PassPoints for Toy {
    fn run_passing(&mut self, who: ContextId, until: Until, passage: Passage<'_>) -> (Stop, u64) {
        let Passage { points, never } = passage;
        let end = self.table.get(who).steps + until.steps_max();
        let mut passed = 0;
        loop {
            let left = end - self.table.get(who).steps;
            let stop = self.run(who, Until::Steps(left));
            let is_passed = matches!(stop, Stop::Point { site } if !never.contains(&site))
                && self.passes
                && passed < points
                && self.table.get(who).steps < end;
            if !is_passed {
                return (stop, passed);
            }
            passed += 1;
        }
    }
}
