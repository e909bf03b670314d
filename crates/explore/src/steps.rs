//! The story of a run: what the contexts did to shared memory and to each other, in order.

use std::collections::BTreeSet;
use std::sync::Arc;

use raddle_detect::Communication;
use raddle_report::{Action, Context, Edge, Finding, Frame, Place, Step};
use raddle_trace::facts::InferredLocks;
use raddle_trace::{Facts, Schedule};
use raddle_world::{Access, ContextId, EventKind, Site};

use crate::attribution::{Attribution, Own, Territory};
use crate::handlers::Handlers;
use crate::history::History;
use crate::judge::Rules;
use crate::landmark::{Mark, Marked, Marking, with_images};
use crate::session::{Look, Session};
use crate::stack::{Line, source_line};
use crate::teller::Teller;

/// What happened, in order.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) steps: Vec<Step>,
    /// Call stacks of the steps.
    pub(crate) stacks: Vec<Vec<Frame>>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) contexts: Vec<Context>,
    /// What the program printed.
    pub(crate) console: String,
    /// Steps that were not kept.
    pub(crate) dropped: u64,
    /// Waiting and waking.
    pub(crate) history: History,
    /// What was known at its end, or when a context complained.
    pub(crate) facts: Facts,
    /// Who said first that something is wrong, and with which stack.
    pub(crate) complaint: Option<(ContextId, Vec<Line>)>,
}

impl Story {
    /// Makes the steps those of a finding.
    pub(crate) fn put_into(&mut self, finding: &mut Finding) {
        finding.contexts = std::mem::take(&mut self.contexts);
        finding.steps = std::mem::take(&mut self.steps);
        finding.stacks = std::mem::take(&mut self.stacks);
        finding.edges = std::mem::take(&mut self.edges);
        finding.console = std::mem::take(&mut self.console);
        finding.steps_dropped = self.dropped;
        finding.objects = objects(&finding.steps);
        quote_steps(finding);
    }
}

/// The variables that were used, the most recent first.
fn objects(steps: &[Step]) -> Vec<String> {
    let is_access = |step: &&Step| {
        matches!(
            step.action,
            Action::Read { .. } | Action::Write { .. } | Action::Update | Action::AtomicUpdate
        )
    };
    let mut objects: Vec<String> = Vec::new();
    for step in steps.iter().rev().filter(is_access) {
        if let Some(object) = &step.object
            && !objects.contains(object)
        {
            objects.push(object.clone());
        }
        if objects.len() == OBJECTS_MAX {
            break;
        }
    }
    objects
}

/// Variables that are named as involved.
const OBJECTS_MAX: usize = 32;

/// Reads the source lines of all steps.
pub(crate) fn quote_steps(finding: &mut Finding) {
    let beside = finding.expected.iter().flat_map(|run| &run.steps);
    let steps = finding.steps.iter().chain(beside);
    let places: BTreeSet<Place> = steps.map(|step| step.place.clone()).collect();
    for place in places {
        finding.quote(&place, source_line);
    }
}

/// A context's number in a finding.
pub(crate) fn number(context: ContextId) -> usize {
    context.0 as usize
}

/// What a first look at a run told.
#[derive(Debug)]
pub(crate) struct Observed {
    communication: Communication,
    /// What was touched in the default order: what a run reads and no context has written there may be what matters.
    beside: Communication,
    /// Words that are locks.
    locks: InferredLocks,
    /// Where the deviations of its schedule happen.
    marks: Vec<Mark>,
}

impl Observed {
    /// Whether an access touches what another context has written or could have. Heap blocks and stacks of two
    /// runs at one address may be two things; variables are what they are.
    pub(crate) fn is_meeting(&self, territory: &Territory, access: &Access) -> bool {
        let run = &self.communication;
        run.is_meeting(access)
            || self.beside.is_meeting(access)
            || (territory.is_own_data(access.addr) && run.is_meeting_with(&self.beside, access))
    }
}

/// Runs a schedule again and tells what happened, and where its deviations were. `block` is a heap block whose life is
/// part of the story.
pub(crate) fn tell(
    session: &mut Session,
    schedule: &Schedule,
    rules: &Rules,
    (observed, block): (&Observed, Option<u64>),
) -> (Story, Vec<Marked>) {
    session.restore();
    // A stop before each access shows the stack that it is made with; visits are counted where the world stops.
    let runs = [&observed.communication, &observed.beside].into_iter();
    let meetings = runs.flat_map(|run| run.meetings(&mut |site| !session.is_library(site)));
    let marked = observed.marks.iter().map(|(site, _)| *site);
    let marked = marked.filter(|site| *site != Site::NOWHERE && !session.is_library(*site));
    let points: Vec<Site> = meetings.flatten().chain(marked).collect();
    points
        .iter()
        .for_each(|site| session.world.add_point(*site));
    let territory = Arc::clone(&session.territory);
    let mut attribution = Attribution::new(&territory);
    let facts = Facts::knowing(&observed.locks);
    let is_meeting = |access: &Access| observed.is_meeting(&territory, access);
    let mut teller = Teller::new(&mut session.world, facts, block);
    let mut marking = Marking::new(schedule);
    session.drive(
        &mut marking,
        rules.limits,
        Look::EVERYTHING,
        &mut |world, events| {
            teller.begin_slice(world, events);
            for event in events {
                teller.note_facts(world, event, &attribution);
                let own = attribution.step(world, event);
                match (own.filter(Own::is_exact), &event.kind) {
                    (Some(own), _) => teller.event(world, &own, &is_meeting),
                    (None, EventKind::Access(access)) => teller.pass(access),
                    (None, _) => {}
                }
            }
            if let Some(last) = events.last() {
                teller.end_slice(world, last.context);
            }
        },
    );
    session.remove_flags(&points);
    let story = teller.story(&session.world);
    let marks = with_images(session, marking.into_marks(schedule));
    (story, marks)
}

/// Runs a schedule and finds out where contexts meet, which words are locks, and where its deviations are. The world
/// stands where that run has ended.
pub(crate) fn observe(session: &mut Session, schedule: &Schedule, rules: &Rules) -> Observed {
    let default = Schedule::default();
    let beside = if schedule.is_empty() {
        Communication::default()
    } else {
        let mut marking = Marking::new(&default);
        look(session, &mut marking, rules).0
    };
    let mut marking = Marking::new(schedule);
    let (communication, facts) = look(session, &mut marking, rules);
    Observed {
        communication,
        beside,
        locks: facts.inferred_locks(),
        marks: marking.into_marks(schedule),
    }
}

fn look(session: &mut Session, marking: &mut Marking, rules: &Rules) -> (Communication, Facts) {
    session.restore();
    let mut communication = Communication::default();
    let mut handlers = Handlers::default();
    let mut facts = Facts::default();
    let territory = Arc::clone(&session.territory);
    let mut attribution = Attribution::new(&territory);
    session.drive(marking, rules.limits, Look::VALUES, &mut |world, events| {
        for event in events {
            facts.event_with(event, &mut |site| attribution.locked(world, event, site));
            if let Some(own) = attribution.own(world, event) {
                handlers.event(&own);
                handlers.communicate(&mut communication, (world, &territory), &own);
            }
        }
    });
    (communication, facts)
}
