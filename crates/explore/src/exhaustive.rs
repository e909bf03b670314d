//! Exhaustive mode: all interleavings of a small program, up to the order of what does not concern each other.
//!
//! Granularity: contexts are switched at system calls, at known synchronisation functions and at communication
//! points. The points are learned while searching; a new one begins the search anew, so that at the end the
//! set of points is complete for everything that was explored.

use std::collections::BTreeSet;

use raddle_campaign::{Failures, Kept, Leave, Urgency};
use raddle_linux::{Effect, LinuxWorld};
use raddle_sched::dpor::{SharedLog, Touched, Transition};
use raddle_sched::{Dpor, End};
use raddle_stdx::width::to_u64;
use raddle_world::{ContextId, Event, EventKind, Site, World};

use crate::attribution::Attribution;
use crate::campaign::{News, Options, Phase, Progress, Report};
use crate::explain;
use crate::judge::Rules;
use crate::schedule_run::{Outcome, block_places, run_watched};
use crate::session::Session;

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

/// How far an exhaustive search came.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exhaustive {
    pub interleavings: u64,
    /// How many there probably are.
    pub estimate: f64,
    /// Whether all were explored.
    pub is_complete: bool,
    /// Runs that were not explored to their end, because they did not end.
    pub cut_short: u64,
}

/// Searches until everything is explored, the schedules are used up, or an end is asked for.
pub(crate) fn search(
    session: &mut Session,
    options: &Options,
    rules: &Rules,
    report: &mut Report,
    news: &mut dyn FnMut(News<'_>),
) {
    let mut search = Search {
        points: BTreeSet::new(),
        failures: Failures::default(),
        dpor: Dpor::default(),
        cut_short: 0,
        classes: BTreeSet::new(),
        interrupted: BTreeSet::new(),
    };
    let mut kept = Kept::default();
    let mut has_enough = false;
    while !search.dpor.is_over() && report.schedules < options.schedules && !has_enough {
        search.run(session, rules, report);
        explain::keep_new(&mut kept, &search.failures, session, (rules, options), news);
        news(News::Progress(search.progress(Phase::Exploring, report)));
        let is_found = options.until_found && !search.failures.is_empty();
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
    let of = to_u64(search.failures.len().min(options.findings_max));
    for (number, outcome) in (1..=of).zip(search.failures.iter()) {
        let phase = Phase::Explaining { number, of };
        news(News::Progress(search.progress(phase, report)));
        session.leave = Leave::to_explain(&options.cancel, number);
        let explained = explain::finding(session, outcome, rules, options);
        report.note_finding(explained, &kept);
    }
    report.unexplained = to_u64(search.failures.len()) - of;
}

struct Search {
    points: BTreeSet<Site>,
    failures: Failures<Outcome>,
    dpor: Dpor,
    cut_short: u64,
    classes: BTreeSet<u64>,
    interrupted: BTreeSet<Site>,
}

impl Search {
    fn progress(&self, phase: Phase, report: &Report) -> Progress {
        Progress {
            phase,
            schedules: report.schedules,
            distinct: self.dpor.interleavings(),
            failures: to_u64(self.failures.len()),
            points: to_u64(self.points.len()),
            interrupted: self.points_interrupted(),
            classes: to_u64(self.classes.len()),
        }
    }

    fn points_interrupted(&self) -> u64 {
        to_u64(self.interrupted.intersection(&self.points).count())
    }

    /// One run, and what follows from it.
    fn run(&mut self, session: &mut Session, rules: &Rules, report: &mut Report) {
        let (mut scheduler, log) = self.dpor.next_run();
        let mut attribution = Attribution::new(&session.territory).without_limit();
        session.world.set_tracing(true);
        let mut outcome = run_watched(
            session,
            &mut scheduler,
            rules,
            true,
            &mut |world, events| note_events(world, events, &log, &mut attribution),
        );
        session.world.set_tracing(false);
        if outcome.drive.end == End::Abandoned {
            return;
        }
        outcome.index = report.schedules;
        report.schedules += 1;
        report.steps += outcome.drive.steps;
        report.contexts = report.contexts.max(outcome.contexts);
        report.decisions = report.decisions.max(outcome.drive.decisions);
        self.classes.insert(outcome.drive.class);
        self.interrupted.extend(&outcome.drive.interrupted);
        if matches!(outcome.drive.end, End::Hanging | End::Unsupported(_)) {
            self.cut_short += 1;
        }
        if let End::Unsupported(what) = &outcome.drive.end {
            let entry = report.unsupported.get_or_insert((what.clone(), 0));
            entry.1 += 1;
        }
        if let Some(failure) = &outcome.failure {
            report.failing += 1;
            let fingerprint = failure.fingerprint();
            outcome.note_digests(&mut session.world);
            self.failures.note(fingerprint, &outcome);
        }
        if self.learn(session, &outcome, report) {
            self.dpor = Dpor::default();
        } else {
            self.dpor.note(&log.borrow());
        }
    }

    /// Whether there are new communication points.
    fn learn(&mut self, session: &mut Session, outcome: &Outcome, report: &mut Report) -> bool {
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
        | EventKind::WaitBegin { object }
        | EventKind::WaitEnd { object }
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
