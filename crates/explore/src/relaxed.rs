//! Semantic replay: the switches of a recording in a program that has changed since.
//!
//! First the recorded order is tried with each switch at its landmark. If the run does not fail, other orders with
//! as few switches are tried, those at these places first: a change may have moved the number of a visit. Where
//! contexts communicate is learned anew for that: what was a function of its own may be inlined now. If all of them are
//! well, the portfolio of `raddle explore` has a short try.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use raddle_campaign::algorithm::default_order;
use raddle_campaign::minimise::orders_at;
use raddle_campaign::{Budget, Learned, Learning, Leave, Material, Watch, scheduler};
use raddle_detect::Race;
use raddle_report::Finding;
use raddle_sched::{Clock, Faults, Given, Scheduler, View};
use raddle_symbols::SymbolSpace;
use raddle_trace::{Path, Phase, Recording, Turn};
use raddle_world::{Context, ContextId, Fault, Site};

use crate::explain;
use crate::judge::{Judge, Rules};
use crate::landmark::{Standing, Visits, locate};
use crate::portfolio::PORTFOLIO;
use crate::schedule_run::{Run, run_schedule};
use crate::session::{About, Session, StartFailure};

/// Orders with as few switches as the recording at most, and their steps.
const ORDERS: Budget = Budget {
    replays: 1_000,
    steps: 150_000_000,
};
/// Schedules of the portfolio at most, and their steps.
const PORTFOLIO_MAX: u64 = 2_000;
const PORTFOLIO_STEPS_MAX: u64 = 300_000_000;

/// What became of a recorded failure in the program as it is now.
#[derive(Debug)]
pub struct Relaxed {
    /// Switches of the recording.
    pub switches: u64,
    /// Those that could be made at their landmarks.
    pub made: u64,
    /// Functions and lines that are not there any more.
    pub lost: Vec<String>,
    /// Other orders that were run, those with switches at these places first.
    pub others: u64,
    /// The failure of the same kind, if there is one, and whether the recorded order itself has it.
    pub failure: Option<(Finding, bool)>,
}

/// Applies the schedule of a recording to the program as it is now.
pub fn replay_relaxed(
    recording: &Recording,
    judge: Option<Judge>,
) -> Result<Relaxed, StartFailure> {
    let mut session = Session::start(&About::recorded(recording, judge), Leave::endless())?;
    let rules = Rules::recorded(recording);
    let symbols = session.world.symbols(ContextId(0)).unwrap_or_default();
    let Located {
        coming,
        sites,
        lost,
    } = locate_all(&session, &symbols, recording);
    let own: Vec<Site> = sites
        .iter()
        .map(|(site, _)| *site)
        .filter(|site| *site != Site::NOWHERE && !session.is_library(*site))
        .collect();
    session.add_points(&own);
    let mut marked = Marked {
        coming,
        visits: Visits::default(),
        torn: None,
        made: 0,
    };
    let outcome = run_schedule(&mut session, &mut marked, &rules, Watch::MEMORY);
    let learned = outcome.learned.clone();
    let is_same = |outcome: &Run| {
        let failure = outcome.failure.as_ref();
        failure.is_some_and(|failure| recording.kind == failure.kind())
    };
    let (mut failing, mut others) = (is_same(&outcome).then_some((outcome, true)), 0);
    if let (None, Some(learned)) = (&failing, learned) {
        let learning = learn_points(&mut session, &rules, &learned);
        let (count, mut found) = orders_at(
            &mut session,
            &rules,
            (sites, recording.preemptions),
            ORDERS,
            &is_same,
        );
        others = count;
        if found.is_none() {
            let (count, more) = try_portfolio(&mut session, &rules, learning, &is_same);
            others += count;
            found = more;
        }
        failing = found.map(|outcome| (outcome, false));
    }
    Ok(Relaxed {
        switches: raddle_stdx::width::to_u64(recording.schedule.len()),
        made: marked.made,
        lost,
        others,
        failure: failing.and_then(|(outcome, is_recorded)| {
            let failure = outcome.failure.clone()?;
            let finding = explain::describe_failure(&mut session, &failure, &outcome, &rules)?;
            Some((finding, is_recorded))
        }),
    })
}

/// Makes the places where contexts met in a run, and in the default order, decision points.
fn learn_points(session: &mut Session, rules: &Rules, learned: &Learned<Race>) -> Learning {
    let mut learning = Learning::default();
    let alone = run_schedule(session, &mut default_order(), rules, Watch::MEMORY);
    for learned in alone.learned.iter().chain([learned]) {
        learned
            .meetings
            .iter()
            .for_each(|group| learning.meet(group));
    }
    session.add_points(&learning.points());
    learning
}

/// Runs schedules as an exploration does; the number of runs, and the first that is as wanted.
fn try_portfolio(
    session: &mut Session,
    rules: &Rules,
    mut learning: Learning,
    is_wanted: &dyn Fn(&Run) -> bool,
) -> (u64, Option<Run>) {
    let alone = run_schedule(session, &mut default_order(), rules, Watch::NOTHING);
    learning.profile = alone.drive.profile(&session.world);
    let groups = learning.groups();
    let mut steps = 0;
    for turn in 0..PORTFOLIO_MAX {
        let algorithm = learning.algorithm(turn, false, None, &PORTFOLIO);
        let material = Material {
            profile: &learning.profile,
            groups: &groups,
            wishes: &Vec::new(),
            focus: &[],
            is_timed: learning.profile.timed_stops > 0 && turn % 4 == 3,
            turn_wait: session.territory.managed.turn_wait,
            is_stepwise: false,
            faults: &[],
        };
        let mut scheduler = scheduler(algorithm, turn, material);
        let outcome = run_schedule(session, &mut *scheduler, rules, Watch::NOTHING);
        steps += outcome.drive.steps;
        if is_wanted(&outcome) {
            return (turn + 1, Some(outcome));
        }
        if steps >= PORTFOLIO_STEPS_MAX {
            return (turn + 1, None);
        }
    }
    (PORTFOLIO_MAX, None)
}

/// The switches of a recording in the program as it is now.
struct Located {
    coming: BTreeMap<Path, VecDeque<Mark>>,
    /// Places of switches, and whether in the middle of the instruction.
    sites: BTreeSet<(Site, bool)>,
    lost: Vec<String>,
}

fn locate_all(session: &Session, symbols: &SymbolSpace, recording: &Recording) -> Located {
    let mut located = Located {
        coming: BTreeMap::new(),
        sites: BTreeSet::new(),
        lost: Vec::new(),
    };
    let deviations = recording.schedule.deviations.iter();
    for (deviation, landmark) in deviations.zip(&recording.landmarks) {
        if !landmark.image.is_empty() {
            located
                .lost
                .push(format!("an instruction of {}", landmark.image));
            continue;
        }
        let place = locate(symbols, landmark);
        if place.is_none() && !landmark.function.is_empty() {
            let gone = format!("`{}` in {}", landmark.text, landmark.function);
            located.lost.push(gone);
            continue;
        }
        let mark = Mark {
            site: place.map_or(Site::NOWHERE, |pc| session.site(pc)),
            standing: Standing::of(deviation.at),
            is_torn: deviation.at.phase == Phase::Torn,
            visit: landmark.visit,
            turn: deviation.turn.clone(),
        };
        located.sites.insert((mark.site, mark.is_torn));
        let queue = located.coming.entry(deviation.context.clone());
        queue.or_default().push_back(mark);
    }
    located
}

/// A switch at a landmark.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    site: Site,
    standing: Standing,
    is_torn: bool,
    visit: u64,
    turn: Turn,
}

/// Switches at landmarks, in the default order otherwise.
#[derive(Debug)]
struct Marked {
    coming: BTreeMap<Path, VecDeque<Mark>>,
    visits: Visits,
    /// Where an instruction was last to be torn apart.
    torn: Option<(Path, u64)>,
    made: u64,
}

impl Marked {
    /// The turn of this kind that belongs here; those before it are passed over.
    fn take(&mut self, view: &View<'_>, is_wanted: fn(&Turn) -> bool) -> Option<Turn> {
        let visit = self.visits.note(view);
        let coming = self
            .coming
            .get_mut(&*view.contexts.get(view.current).path)?;
        let is_here = |mark: &Mark| {
            mark.site == view.site
                && mark.standing == Standing::of(view.at)
                && mark.is_torn == (view.at.phase == Phase::Torn)
                && mark.visit == visit
                && is_wanted(&mark.turn)
        };
        let found = coming.iter().position(is_here)?;
        let mark = coming.drain(..=found).next_back()?;
        self.made += 1;
        Some(mark.turn)
    }
}

impl Scheduler for Marked {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let Some(turn) = self.take(view, |turn| matches!(turn, Turn::Context(_))) else {
            return view.default;
        };
        let mut runnable = view.runnable.iter();
        let found = runnable.find(|id| turn.is_of(&view.contexts.get(**id).path));
        self.made -= u64::from(found.is_none());
        found.copied().unwrap_or(view.default)
    }

    fn clock(&mut self) -> Option<&mut dyn Clock> {
        Some(self)
    }

    fn faults(&mut self) -> Option<&mut dyn Faults> {
        Some(self)
    }

    fn given(&mut self) -> Option<&mut dyn Given> {
        Some(self)
    }
}

impl Clock for Marked {
    fn jumps(&mut self, view: &View<'_>) -> bool {
        self.take(view, |turn| *turn == Turn::Clock).is_some()
    }
}

impl Faults for Marked {
    fn fault(&mut self, view: &View<'_>, possible: &[Fault]) -> Option<Fault> {
        let turn = self.take(view, |turn| matches!(turn, Turn::Fault(_)))?;
        match turn {
            Turn::Fault(fault) if possible.contains(&fault) => Some(fault),
            _ => None,
        }
    }
}

impl Given for Marked {
    fn tears(&mut self, who: &Context) -> bool {
        let Some((site, visit)) = self.visits.seen(who) else {
            return false;
        };
        let asked = (who.path.to_vec(), who.steps);
        let is_wanted = self.coming.get(&*who.path).is_some_and(|coming| {
            let mut coming = coming.iter();
            coming.any(|mark| mark.is_torn && mark.site == site && mark.visit == visit)
        });
        let tears = is_wanted && self.torn.as_ref() != Some(&asked);
        if tears {
            self.torn = Some(asked);
        }
        tears
    }
}
