//! The subject "program": how it is started, when its runs count as wrong, how that is told.

use std::ops::Range;
use std::sync::Arc;

use raddle_campaign::{
    Budget, CodeName, Digests, Effort, Explained, Focus, Found, Habits, Leave, News, Report,
    Smallest, Stage, Subject, Watch,
};
use raddle_detect::{Failure, Race};
use raddle_linux::LinuxWorld;
use raddle_sched::{End, Scheduler};
use raddle_trace::{Limits, Observer, Recording};
use raddle_world::{ContextId, Duration, Fault, Site, World};

use crate::explain;
use crate::judge::Rules;
use crate::portfolio::PORTFOLIO;
use crate::schedule_run::{Outcome, Run, run_observed, run_schedule};
use crate::session::{About, Session, StartFailure};
use crate::stack::{own_place, place_of};

/// Steps in a row before the default order goes on to the next context.
const PATIENCE: u64 = 100_000;
/// The same for programs that execute others: one that is executed makes 200,000 steps before it begins, and must be
/// able to come before all that others do. A context that waits in a loop which is not seen through costs so much.
const PATIENCE_MAX: u64 = 1_000_000;
/// Steps of the default order at most.
const FIRST_STEPS: u64 = 2_000_000_000;
/// Steps of a schedule before it counts as hanging, if the default order took fewer.
const HANG_STEPS_MIN: u64 = 4_000_000;
/// How much longer than the default order a schedule may take.
const HANG_FACTOR: u64 = 40;

/// How programs are explored.
pub const HABITS: Habits = Habits {
    portfolio: &PORTFOLIO,
    sample: 32,
    learning_sample: 4,
    worker_schedules: 16,
    effort: Effort {
        shrink: Budget {
            replays: 3_000,
            steps: 300_000_000,
        },
        below: Budget {
            replays: 4_000,
            steps: 150_000_000,
        },
        wander: Budget {
            replays: 20_000,
            steps: 200_000_000,
        },
        stop_steps: 0,
    },
};

/// A program to explore.
#[derive(Debug, Clone)]
pub struct Program {
    pub options: raddle_campaign::Options,
    pub about: Arc<About>,
    /// Status that counts as right; none for that of the default order.
    pub expected_exit: Option<i32>,
    /// Steps of one schedule at most; none for a multiple of the default order's.
    pub steps_max: Option<u64>,
    /// What becomes of runs that are longer than that.
    pub cut: Cut,
    /// Explore all interleavings instead of sampling them.
    pub exhaustive: bool,
    /// Decide only inside these functions and lines; empty for everywhere.
    pub focus: Vec<Focus>,
}

/// What becomes of long runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cut {
    /// They are hanging.
    #[default]
    Never,
    /// Runs end after so many steps; what happened before that is judged.
    At(u64),
    /// A program whose default order takes more steps than this is not explored.
    Refuse(u64),
}

impl Cut {
    fn steps(self) -> Option<u64> {
        match self {
            Self::Never => None,
            Self::At(steps) | Self::Refuse(steps) => Some(steps),
        }
    }
}

/// What a campaign on a program found out.
pub type ProgramReport = Report<Recording, ()>;

/// Explores. `news` is told of each phase, of each generation, and of each new failure.
///
/// # Errors
/// If the program does not come to the place where its schedules begin.
pub fn explore(
    program: &Program,
    news: &mut dyn FnMut(News<'_, Recording>),
) -> Result<ProgramReport, StartFailure> {
    if !program.exhaustive {
        return raddle_campaign::explore(program, news);
    }
    let Some(begun) = raddle_campaign::begin(program, news)? else {
        let mut report = Report::default();
        report.note_end(&program.options.cancel);
        return Ok(report);
    };
    raddle_campaign::exhaustive::search(program, begun, news)
}

impl Subject for Program {
    type Stage = Session;
    type StartFailure = StartFailure;

    fn habits(&self) -> Habits {
        HABITS
    }

    fn options(&self) -> &raddle_campaign::Options {
        &self.options
    }

    fn start(&self) -> Result<Session, StartFailure> {
        let leave = Leave::to_explore(&self.options.cancel);
        let mut session = Session::start(&self.about, leave)?;
        session.clock = self.options.clock;
        let may_lack_memory = self.options.faults.contains(&Fault::NoMemory);
        session.world.stop_at_allocations(may_lack_memory);
        Ok(session)
    }

    fn first_rules(&self) -> Rules {
        Rules {
            limits: Limits {
                patience: PATIENCE,
                steps: self.cut.steps().or(self.steps_max).unwrap_or(FIRST_STEPS),
            },
            expected_exit: self.expected_exit,
            is_cut: self.cut != Cut::Never,
        }
    }

    /// The default order says which exit status is right and how long a run takes.
    fn rules(&self, session: &mut Session, baseline: &Run) -> Result<Rules, StartFailure> {
        let is_long = baseline.drive.end == End::Hanging;
        match self.cut {
            Cut::Refuse(steps) if is_long => return Err(StartFailure::Long { steps }),
            Cut::At(_) => return Ok(self.first_rules()),
            _ => {}
        }
        let status = match baseline.drive.end {
            End::Exited { status } if status & 0x7F == 0 && baseline.failure.is_none() => {
                status >> 8 & 0xFF
            }
            _ => 0,
        };
        let steps = baseline.drive.steps.saturating_mul(HANG_FACTOR);
        Ok(Rules {
            limits: Limits {
                steps: self.steps_max.unwrap_or(steps.max(HANG_STEPS_MIN)),
                patience: match session.world.has_executed_others() {
                    true => baseline.drive.steps.clamp(PATIENCE, PATIENCE_MAX),
                    false => PATIENCE,
                },
            },
            expected_exit: Some(self.expected_exit.unwrap_or(status)),
            is_cut: false,
        })
    }

    fn focus(&self, session: &mut Session) -> Result<Vec<Range<Site>>, StartFailure> {
        session.focus(&self.focus)
    }
}

impl Stage for Session {
    type World = LinuxWorld;
    type Rules = Rules;
    type Symptom = Failure;
    type Race = Race;
    type Tally = ();
    type Recording = Recording;

    fn world(&self) -> &LinuxWorld {
        &self.world
    }

    fn leave(&self) -> &Leave {
        &self.leave
    }

    fn set_leave(&mut self, leave: Leave) {
        self.leave = leave;
    }

    fn add_points(&mut self, points: &[Site]) {
        Self::add_points(self, points);
    }

    fn turn_wait(&self) -> Option<Duration> {
        self.territory.managed.turn_wait
    }

    fn run(&mut self, scheduler: &mut dyn Scheduler, rules: &Rules, watch: Watch) -> Run {
        run_schedule(self, scheduler, rules, watch)
    }

    fn observe(
        &mut self,
        scheduler: &mut dyn Scheduler,
        rules: &Rules,
        observers: &mut [&mut dyn Observer],
    ) -> Run {
        run_observed(self, scheduler, rules, observers)
    }

    fn digests(&mut self) -> Digests {
        Digests {
            run: self.world.run_digest(),
            state: self.world.state_digest(),
        }
    }

    fn describe(&mut self, site: Site) -> String {
        // A context that has ended has no symbols.
        self.restore();
        let symbols = self.world.symbols(ContextId(0)).unwrap_or_default();
        let place = own_place(&symbols, site.pc());
        place
            .unwrap_or_else(|| place_of(&symbols, site.pc()))
            .describe()
    }

    fn name_code(&mut self, site: Site) -> Option<CodeName> {
        if self.foreign_image(site).is_some() || self.territory.is_library(site.pc()) {
            return None;
        }
        self.restore();
        let symbols = self.world.symbols(ContextId(0)).unwrap_or_default();
        let mapping = symbols.mapping_at(site.pc())?;
        let link = mapping.link(site.pc());
        let function = mapping.module.symbols().function_at(link)?;
        let build = mapping.module.build_id();
        let place = place_of(&symbols, site.pc());
        Some(CodeName {
            build: build.map_or_else(|| mapping.name.to_string(), ToString::to_string),
            function: function.name.to_string(),
            offset: link.0.wrapping_sub(function.address.0),
            file: if place.line > 0 {
                place.file
            } else {
                String::new()
            },
            line: place.line,
        })
    }

    fn as_found(&mut self, failing: &Outcome, rules: &Rules) -> Found<Recording> {
        explain::as_found(self, failing, rules)
    }

    fn explain(
        &mut self,
        failing: &Outcome,
        smallest: &Smallest<Run>,
        rules: &Rules,
    ) -> Option<Explained<Recording>> {
        explain::finding(self, failing, smallest, rules)
    }

    fn explain_races(
        &mut self,
        races: &[(Race, Outcome)],
        rules: &Rules,
    ) -> Vec<Found<Option<Recording>>> {
        explain::races(self, races, rules)
    }
}

impl raddle_campaign::Rules for Rules {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }
}
