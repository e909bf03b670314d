//! Exhaustive mode: all interleavings of a small program, up to the order of what does not concern each other.
//!
//! Granularity: contexts are switched at system calls, at known synchronisation functions and at communication
//! points. The points are learned while searching; a new one begins the search anew, so that at the end the
//! set of points is complete for everything that was explored.

use std::collections::BTreeSet;
use std::sync::Arc;

use raddle_campaign::{
    Exhaustive, Findings, News, Options, Phase, Progress, Stage as _, Urgency, Watch,
};
use raddle_linux::{Effect, LinuxWorld, Observe};
use raddle_sched::dpor::{SharedLog, Touched, Transition};
use raddle_sched::{Dpor, End};
use raddle_stdx::width::to_u64;
use raddle_trace::Recording;
use raddle_world::{ContextId, Event, EventKind, Site, World};

use crate::attribution::Attribution;
use crate::judge::Rules;
use crate::program::{HABITS, ProgramReport};
use crate::schedule_run::{Outcome, block_places, run_under};
use crate::session::{Look, Session};

/// What joining threads and ending ones have in common.
const JOIN_OBJECT: u64 = u64::MAX - 1;
/// System calls whose order may matter touch this.
const KERNEL_OBJECT: u64 = u64::MAX - 2;
/// Synchronisation objects and memory never have equal names.
const SYNC_BIT: u64 = 1 << 63;
/// Virtual pages, which calls can take away from everybody.
const PAGE_BIT: u64 = 1 << 62;
const PAGE_BITS: u32 = 12;
/// Bytes of a freed block that are looked at; larger ones have pages of their own.
const BLOCK_MAX: u64 = 1 << 20;
/// Pages of one call that are looked at: as many as a program can have by default.
const PAGES_MAX: usize = 1 << 20;

/// Searches until everything is explored, the schedules are used up, or an end is asked for.
pub(crate) fn search(
    session: &mut Session,
    options: &Options,
    rules: &Rules,
    report: &mut ProgramReport,
    news: &mut dyn FnMut(News<'_, Recording>),
) {
    let mut search = Search {
        points: BTreeSet::new(),
        findings: Findings::default(),
        dpor: Dpor::default(),
        cut_short: 0,
        classes: BTreeSet::new(),
        interrupted: BTreeSet::new(),
    };
    let mut has_enough = false;
    while !search.dpor.is_over() && report.schedules < options.schedules && !has_enough {
        search.run(session, rules, report);
        search.findings.keep_new(session, rules, options, news);
        news(News::Progress(search.progress(Phase::Exploring, report)));
        let is_found = options.until_found && !search.findings.is_empty();
        has_enough = is_found || options.cancel.is_asked(Urgency::TimeIsUp);
    }
    report.note_end(&options.cancel);
    report.interrupted = search.points_interrupted();
    report.points = to_u64(search.points.len());
    report.classes = to_u64(search.classes.len());
    report.distinct = search.dpor.interleavings();
    report.exhaustive = Some(Exhaustive {
        interleavings: search.dpor.interleavings(),
        estimate: search.dpor.estimate(),
        is_complete: search.dpor.is_over() && search.cut_short == 0,
        cut_short: search.cut_short,
    });
    let progress = search.progress(Phase::Exploring, report);
    search.findings.explain(
        session,
        rules,
        (options, &HABITS.effort),
        report,
        &mut |number, of| {
            news(News::Progress(Progress {
                phase: Phase::Explaining { number, of },
                ..progress
            }));
        },
    );
}

struct Search {
    points: BTreeSet<Site>,
    findings: Findings<Session>,
    dpor: Dpor,
    cut_short: u64,
    classes: BTreeSet<u64>,
    interrupted: BTreeSet<Site>,
}

impl Search {
    fn progress(&self, phase: Phase, report: &ProgramReport) -> Progress {
        Progress {
            phase,
            schedules: report.schedules,
            distinct: self.dpor.interleavings(),
            failures: to_u64(self.findings.len()),
            points: to_u64(self.points.len()),
            interrupted: self.points_interrupted(),
            classes: to_u64(self.classes.len()),
        }
    }

    fn points_interrupted(&self) -> u64 {
        to_u64(self.interrupted.intersection(&self.points).count())
    }

    /// One run, and what follows from it.
    fn run(&mut self, session: &mut Session, rules: &Rules, report: &mut ProgramReport) {
        let (mut scheduler, log) = self.dpor.next_run();
        let territory = Arc::clone(&session.territory);
        let mut attribution = Attribution::new(&territory).without_limit();
        let look = Look {
            observe: Observe::Addr,
            is_traced: true,
        };
        let closely = (Watch::MEMORY, look);
        let run = run_under(
            session,
            &mut scheduler,
            rules,
            closely,
            &mut |world, events| {
                note_events(world, events, &log, &mut attribution);
            },
        );
        if run.drive.end == End::Abandoned {
            return;
        }
        // In the second half of its steps a run gives turns to everybody, whatever was planned.
        let is_given_turns = run.drive.steps >= rules.limits.steps / 2;
        let is_cut_short = is_given_turns || matches!(run.drive.end, End::Unsupported(_));
        let timed_stops = run.drive.timed_stops;
        let mut outcome = Outcome::new(report.schedules, run);
        report.schedules += 1;
        report.steps += outcome.steps;
        report.contexts = report.contexts.max(outcome.contexts);
        report.decisions = report.decisions.max(outcome.decisions);
        report.timed_stops += timed_stops;
        self.classes.insert(outcome.class);
        self.interrupted.extend(&outcome.interrupted);
        self.cut_short += u64::from(is_cut_short);
        if let Some(what) = &outcome.unsupported {
            let entry = report.unsupported.get_or_insert((what.clone(), 0));
            entry.1 += 1;
        }
        if outcome.failure.is_some() {
            report.failing += 1;
            report.first_failing.get_or_insert(outcome.index);
            outcome.digests = Some(session.digests());
        }
        self.findings.note(&outcome);
        if self.learn(session, &outcome, report) {
            self.dpor = Dpor::default();
        } else {
            self.dpor.note(&log.borrow());
        }
    }

    /// Whether there are new communication points.
    fn learn(
        &mut self,
        session: &mut Session,
        outcome: &Outcome,
        report: &mut ProgramReport,
    ) -> bool {
        let Some(learned) = &outcome.learned else {
            return false;
        };
        report.shared_places = report.shared_places.max(learned.shared_places);
        let before = self.points.len();
        for site in learned.meetings.iter().flatten() {
            if self.points.insert(*site) {
                session.world.add_point(*site);
            }
        }
        self.points.len() != before
    }
}

/// Writes down what the current transition touched.
fn note_events(
    world: &LinuxWorld,
    events: &[Event],
    log: &SharedLog,
    attribution: &mut Attribution,
) {
    let mut log = log.borrow_mut();
    let Some(transition) = log.current() else {
        return;
    };
    for event in events {
        if let Some(event) = attribution.step(world, event) {
            note_event(world, &event, transition);
        }
        note_call(world, event.context, &mut transition.touched);
    }
}

fn note_event(world: &LinuxWorld, event: &Event, transition: &mut Transition) {
    let touched = &mut transition.touched;
    match &event.kind {
        EventKind::Access(access) => {
            touched.read(access.addr >> PAGE_BITS | PAGE_BIT);
            for piece in access.pieces() {
                if access.how.writes() {
                    touched.write(piece.location.granule().number());
                } else {
                    touched.read(piece.location.granule().number());
                }
            }
        }
        EventKind::Acquire { object, .. }
        | EventKind::Release { object, .. }
        | EventKind::WaitBegin { object, .. }
        | EventKind::WaitEnd { object, .. }
        | EventKind::Notify { object, .. }
        | EventKind::BarrierEnter { object }
        | EventKind::BarrierLeave { object } => touched.write(object | SYNC_BIT),
        EventKind::Free { addr } => {
            // Whoever uses the block must do so before.
            for location in block_places(world, event.context, *addr, BLOCK_MAX) {
                touched.write(location.granule().number());
            }
        }
        EventKind::Exit => touched.read(JOIN_OBJECT),
        EventKind::SyscallEnter { number, arguments } => {
            note_system_call(*number, arguments, touched);
        }
        EventKind::Create { child } => {
            let path = world.contexts().get(*child).path.to_vec();
            transition.created.push(path);
        }
        _ => {}
    }
}

fn note_system_call(number: u32, arguments: &[u64; 6], touched: &mut Touched) {
    let call = raddle_calls::of(number);
    if let Some(changed) = call.and_then(|call| call.memory_changed(arguments)) {
        let last = changed.end.saturating_sub(1) >> PAGE_BITS;
        for page in (changed.start >> PAGE_BITS..=last).take(PAGES_MAX) {
            touched.write(page | PAGE_BIT);
        }
    } else if call.is_none_or(|call| call.has_order) {
        touched.write(KERNEL_OBJECT);
    }
}

/// A context inside a known function touches what the function is about, whenever it goes on there.
fn note_call(world: &LinuxWorld, who: ContextId, touched: &mut Touched) {
    let Some(call) = world.pending_call(who) else {
        return;
    };
    match call.effect {
        Effect::JoinThread => touched.write(JOIN_OBJECT),
        Effect::CreateThread
        | Effect::Allocate
        | Effect::AllocateInto
        | Effect::Reallocate
        | Effect::Free => {}
        _ => touched.write(call.object | SYNC_BIT),
    }
}
