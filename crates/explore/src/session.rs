//! A world that stands at its snapshot point.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use raddle_campaign::focus::merged;
use raddle_campaign::{Clock, Focus, Leave};
use raddle_linux::{
    Elsewhere, HeapWatch, LinuxWorld, Mapping, Observe, Setup, StartError, Watch, describe_status,
};
use raddle_sched::{Drive, Scheduler, drive_while};
use raddle_symbols::{Module, ModuleStore};
use raddle_trace::facts::InferredLocks;
use raddle_trace::{Checks, Inputs, Limits, Recording, SerialRules};
use raddle_world::{ContextId, Event, ImageId, SeededChoices, Site, Snapshot, Unsupported, World};
use thiserror::Error;

use crate::atomics::Atomics;
use crate::attribution::Territory;
use crate::judge::Judge;
use crate::snapshot::{SnapshotAt, reach};
use crate::stack::is_library_file;

/// Why there is nothing to explore.
#[derive(Debug, Error)]
pub enum StartFailure {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("the program cannot be run: {0}")]
    Unsupported(Box<Unsupported>),
    #[error(
        "the program ended ({}) before it created a thread or process: nothing was interleaved, so nothing was tested; check its arguments, or `raddle run` it to see what it does",
        describe_status(*status)
    )]
    EndedAlone { status: i32 },
    #[error(
        "the program does not end within {steps} instructions: give `--cut STEPS` to explore the first part of its run"
    )]
    Long { steps: u64 },
    #[error("the program waits for ever before its schedules begin: {0}")]
    Stuck(String),
    #[error(
        "the program has no function `{0}`; `--snapshot-at` takes `first-thread`, `hint`, `listen`, `step:N` or the name of a function"
    )]
    NoSymbol(String),
    #[error(
        "none of the programs that ran, nor a library that one is linked with, has the hint `raddle_snapshot()`: call it from raddle.h where schedules are to begin, or leave out `--snapshot-at hint`"
    )]
    NoHint,
    #[error(
        "the program ended ({}) without coming to {what}, where schedules were to begin: nothing was interleaved, so nothing was tested",
        describe_status(*status)
    )]
    NotReached { what: String, status: i32 },
    #[error(
        "it was ended before it came to the place where its schedules begin: nothing was tested; give it more `--time`, or see with `raddle run` what it does"
    )]
    Cancelled,
    #[error(
        "the server is not ready: after {seconds} s of its own time it does not listen on port {port} of 127.0.0.1, or is never quiet; see with `raddle run` what it does"
    )]
    NotReady { port: u16, seconds: u64 },
    #[error("no thread for serial orders could be started: {0}")]
    NoThread(std::io::Error),
    #[error("the request `{request}` of the set-up gives {reply}: nothing was tested")]
    SetUp { request: String, reply: String },
    #[error(
        "none of the places to focus on has code: {0}; name functions or FILE:LINE, and compile with -g"
    )]
    NoFocus(String),
}

/// How closely a run is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) observe: Observe,
    /// Whether system calls, signals and what is printed are told, too.
    pub(crate) is_traced: bool,
}

impl Look {
    pub(crate) const NOTHING: Self = Self::at(Observe::None);
    pub(crate) const VALUES: Self = Self::at(Observe::AddrValue);
    pub(crate) const EVERYTHING: Self = Self {
        is_traced: true,
        ..Self::VALUES
    };

    pub(crate) const fn at(observe: Observe) -> Self {
        Self {
            observe,
            is_traced: false,
        }
    }
}

/// How much is kept of where heap blocks come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stacks {
    Callers,
    Whole,
}

/// A program, and what its recordings say of it.
#[derive(Debug, Clone)]
pub struct About {
    pub inputs: Inputs,
    pub snapshot_at: SnapshotAt,
    /// What ends a run at the moment it goes wrong.
    pub checks: Checks,
    /// The right standard output and the command that judges it, for the recording; `judge` acts on them.
    pub expected_output: Option<String>,
    pub oracle: Option<String>,
    /// How operations are compared with those of serial orders, for the recording; `judge` acts on it.
    pub serial: Option<SerialRules>,
    /// An ordinary run: nothing ends it but itself, whatever goes wrong.
    pub is_ordinary: bool,
    /// Has the last word on a run that ended as it should.
    pub judge: Option<Judge>,
    /// The symbols of its files, read once for all workers.
    pub modules: Arc<ModuleStore>,
    /// What the program sees instead of this machine.
    pub elsewhere: Option<Arc<Elsewhere>>,
}

impl About {
    /// What a recording says; `judge` acts on what it says about right results.
    pub fn recorded(recording: &Recording, judge: Option<Judge>) -> Arc<Self> {
        let Ok(snapshot_at) = recording.snapshot_at.parse();
        Arc::new(Self {
            inputs: recording.inputs.clone(),
            snapshot_at,
            checks: recording.checks,
            expected_output: recording.expected.output.clone(),
            oracle: recording.expected.oracle.clone(),
            serial: recording.expected.serial.clone(),
            is_ordinary: recording.ordinary.is_some(),
            judge,
            modules: Arc::default(),
            elsewhere: None,
        })
    }
}

/// A world and the moment it comes back to before each schedule.
#[derive(Debug)]
pub struct Session {
    pub(crate) about: Arc<About>,
    pub(crate) world: LinuxWorld,
    snapshot: Snapshot,
    /// Digest of the run up to the snapshot.
    pub(crate) digest: u64,
    /// The program that is explored: the one that the first context executes at the snapshot.
    image: ImageId,
    pub(crate) territory: Arc<Territory>,
    pub(crate) atomics: Atomics,
    /// Words that were used as locks in the last run in which values were seen.
    pub(crate) inferred_locks: InferredLocks,
    /// Communication points, as far as they are known.
    pub(crate) points: BTreeSet<Site>,
    /// Measures where the time goes, if the caller wants to know.
    pub(crate) clock: Option<Clock>,
    /// How long runs may go on.
    pub(crate) leave: Leave,
}

impl Session {
    /// Runs a program to its snapshot point.
    ///
    /// # Errors
    /// If it does not come there.
    pub fn start(about: &Arc<About>, leave: Leave) -> Result<Self, StartFailure> {
        let About { inputs, checks, .. } = &**about;
        let mut world = LinuxWorld::new(Setup {
            elsewhere: about.elsewhere.clone(),
            ..setup(inputs)
        })?;
        let hooks = raddle_config::hooks::with_standard(&inputs.hooks);
        world.set_hooks_with(hooks, Arc::clone(&about.modules));
        world.set_watch(Watch {
            heap: HeapWatch {
                is_on: checks.heap || checks.red_zones,
                red_zones: checks.red_zones,
                stacks: false,
            },
            cycles: !about.is_ordinary,
        });
        if let Some(scripts) = &inputs.scripts {
            world.add_clients(Arc::new(scripts.clone()));
        }
        if about.judge.as_ref().is_some_and(Judge::reads_marks) {
            world.turn_on_marks();
        }
        if let Some(serial) = &about.serial {
            world.tell_files(serial.state_files.clone());
        }
        reach(&mut world, about, &leave)?;
        world.take_events();
        let territory = Arc::new(Territory::new(&mut world));
        let atomics = Atomics::new(world.symbols(ContextId(0)).unwrap_or_default());
        let digest = world.run_digest();
        world.arm();
        let snapshot = world.snapshot();
        let image = world.image(ContextId(0));
        let known = territory.managed.points.iter();
        let known: Vec<Site> = known.map(|pc| Site::new(image, *pc)).collect();
        let mut session = Self {
            about: Arc::clone(about),
            image,
            world,
            snapshot,
            digest,
            territory,
            atomics,
            inferred_locks: InferredLocks::default(),
            points: BTreeSet::new(),
            clock: None,
            leave,
        };
        session.add_points(&known);
        Ok(session)
    }

    /// Chooses how much is kept of where heap blocks come from.
    pub(crate) fn keep_stacks(&mut self, stacks: Stacks) {
        let mut watch = self.world.watch();
        watch.heap.stacks = stacks == Stacks::Whole;
        self.world.set_watch(watch);
    }

    /// Makes instructions decision points.
    pub(crate) fn add_points(&mut self, points: &[Site]) {
        for site in points {
            if self.points.insert(*site) {
                self.world.add_point(*site);
            }
        }
    }

    /// Takes flags away that were set for a while, except from decision points.
    pub(crate) fn remove_flags<'p>(&mut self, flags: impl IntoIterator<Item = &'p Site>) {
        for site in flags {
            if !self.points.contains(site) {
                self.world.remove_point(*site);
            }
        }
    }

    pub(crate) fn is_point(&self, site: Site) -> bool {
        self.points.contains(&site)
    }

    /// Runs a schedule from where the world stands; `sink` gets the events after each slice. All runs are made here.
    pub(crate) fn drive(
        &mut self,
        scheduler: &mut dyn Scheduler,
        limits: Limits,
        look: Look,
        sink: &mut dyn FnMut(&mut LinuxWorld, &[Event]),
    ) -> Drive {
        self.world.set_observe(look.observe);
        self.world.set_tracing(look.is_traced);
        let leave = &self.leave;
        let going_on = || !leave.is_over();
        let drive = drive_while(&mut self.world, scheduler, limits, sink, &going_on);
        self.world.set_observe(Observe::None);
        self.world.set_tracing(false);
        drive
    }

    /// Runs a schedule from the snapshot, and tells of its system calls, too; no judge looks at it.
    pub fn play(
        &mut self,
        scheduler: &mut dyn Scheduler,
        limits: Limits,
        sink: &mut dyn FnMut(&mut LinuxWorld, &[Event]),
    ) -> Drive {
        self.restore();
        let look = Look {
            is_traced: true,
            ..Look::NOTHING
        };
        self.drive(scheduler, limits, look, sink)
    }

    /// Goes back to the snapshot.
    pub(crate) fn restore(&mut self) {
        self.world.restore(self.snapshot);
    }

    /// Whether an instruction belongs to a library that is not explored. Libraries of other programs are taken to lie
    /// where those of the first one do.
    pub(crate) fn is_library(&self, site: Site) -> bool {
        self.territory.is_library(site.pc())
    }

    /// The program that is explored, and the modules of its own code with what is added to their addresses.
    pub fn own_modules(&mut self) -> (ImageId, Vec<(u64, Arc<Module>)>) {
        // A context that has ended has no symbols.
        self.restore();
        let symbols = self.world.symbols(ContextId(0)).unwrap_or_default();
        let modules = symbols.modules().into_iter();
        let own = modules.filter(|mapping| !is_library_file(&mapping.name));
        let own = own.map(|mapping| (mapping.bias, Arc::clone(&mapping.module)));
        (self.image, own.collect())
    }

    /// The path of the program of an instruction, if it is another one than the program that is explored.
    pub(crate) fn foreign_image(&self, site: Site) -> Option<String> {
        let is_foreign = site != Site::NOWHERE && site.image() != self.image;
        let path = || self.world.image_path(site.image());
        is_foreign.then(|| path().unwrap_or_else(|| "a program that is gone".to_owned()))
    }

    /// An instruction of the program that is explored.
    pub(crate) fn site(&self, pc: u64) -> Site {
        Site::new(self.image, pc)
    }

    /// The code of some places, sorted; an error if none of them has any.
    pub(crate) fn focus(&mut self, on: &[Focus]) -> Result<Vec<Range<Site>>, StartFailure> {
        if on.is_empty() {
            return Ok(Vec::new());
        }
        // A context that has ended has no symbols.
        self.restore();
        let symbols = self.world.symbols(ContextId(0));
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for place in on {
            let Some(symbols) = &symbols else { break };
            match place {
                Focus::Line { file, line } => ranges.extend(symbols.ranges_of_line(file, *line)),
                Focus::Function(name) => ranges.extend(symbols.ranges_of_function(name)),
            }
        }
        if ranges.is_empty() {
            let names: Vec<String> = on.iter().take(5).map(Focus::to_string).collect();
            return Err(StartFailure::NoFocus(names.join(", ")));
        }
        let code = |range: Range<u64>| self.site(range.start)..self.site(range.end);
        Ok(merged(ranges).into_iter().map(code).collect())
    }
}

/// What makes the world of a program.
pub fn setup(inputs: &Inputs) -> Setup {
    let bytes = |text: &String| text.clone().into_bytes();
    Setup {
        program: bytes(&inputs.program),
        arguments: inputs.arguments.iter().map(bytes).collect(),
        environment: inputs.environment.iter().map(bytes).collect(),
        directory: bytes(&inputs.directory),
        stdin: inputs.stdin.clone(),
        mappings: inputs
            .mappings
            .iter()
            .map(|mapping| Mapping {
                host: PathBuf::from(&mapping.host),
                guest: bytes(&mapping.guest),
            })
            .collect(),
        visible: inputs
            .visible
            .as_ref()
            .map(|paths| paths.iter().map(PathBuf::from).collect()),
        elsewhere: None,
        memory_max: inputs.memory_max,
        processes_max: inputs.processes_max,
        cpus: inputs.cpus,
        choices: Box::new(SeededChoices::new(inputs.seed)),
    }
}
