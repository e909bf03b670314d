//! Data races as findings: related ones together, the suspicious before the probably harmless.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use raddle_campaign::{Found, Stage as _, follow};
use raddle_detect::{Race, Races, Side};
use raddle_report::evidence::Held;
use raddle_report::finding::{Confidence, Severity};
use raddle_report::words::counted;
use raddle_report::{Action, Context, Finding, Frame, Locks, Place, Step, Word};
use raddle_sched::Follow;
use raddle_stdx::Digest;
use raddle_symbols::SymbolSpace;
use raddle_trace::{Facts, Observer as _, Recording, Schedule};
use raddle_world::{ContextId, EventKind, Site};

use super::recording;
use crate::attribution::{Attribution, Own};
use crate::judge::Rules;
use crate::names::{code_at, contexts, name_of};
use crate::schedule_run::Outcome;
use crate::session::{Look, Session, Stacks};
use crate::stack::{self, Line, frames, is_own_code, own, own_place};
use crate::steps::{number, quote_steps};

/// The kind of findings that are data races.
pub const DATA_RACE: &str = "data-race";

/// Pairs of a group that are listed besides the first.
const PAIRS_SHOWN: usize = 6;

/// A race with what a second look at its run told.
struct Seen {
    object: String,
    contexts: Vec<Context>,
    /// Both accesses are made by own code, not by a library on its behalf, and nothing orders them in a way that only
    /// debug information could tell.
    is_own: bool,
    sides: [SeenSide; 2],
    pattern: Option<&'static str>,
    schedule: u64,
    pair: (Site, Site),
    order: Schedule,
}

impl Seen {
    fn label(&self, side: &SeenSide) -> &str {
        let context = self.contexts.get(side.step.context);
        context.map_or("somebody", |context| &context.label)
    }
}

/// One of the two accesses; what is not known of its place is empty.
struct SeenSide {
    step: Step,
    stack: Vec<Frame>,
}

impl SeenSide {
    fn held(&self) -> &[Held] {
        self.step.locks.known().unwrap_or_default()
    }

    /// `writes at bank.c:12 deposit`.
    fn text(&self) -> String {
        let verb = match self.step.action {
            Action::Write { .. } => "writes",
            _ => "reads",
        };
        let place = &self.step.place;
        let place = if *place == Place::default() {
            "?".into()
        } else {
            place.describe()
        };
        format!("{verb} at {place}")
    }
}

/// One finding for each group of instructions that race with each other, directly or by way of others.
pub(crate) fn races(
    session: &mut Session,
    races: &[(Race, Outcome)],
    rules: &Rules,
) -> Vec<Found<Option<Recording>>> {
    let seen = look_at_all(session, races, rules);
    let mut found: Vec<Found<Option<Recording>>> = groups(&seen)
        .iter()
        .map(|group| told(session, group, rules))
        .collect();
    found.sort_by_key(|found| std::cmp::Reverse(found.finding.severity));
    found
}

/// The race with this fingerprint among those of one run.
pub(crate) fn race_again(
    session: &mut Session,
    races: &[(Race, Outcome)],
    rules: &Rules,
    fingerprint: &str,
) -> Option<Finding> {
    let seen = look_at_all(session, races, rules);
    let mut findings = seen.iter().map(|race| finding(&[race], race));
    findings.find(|finding| finding.fingerprint == fingerprint)
}

/// A finding for a group, with the recording of the run that shows its speaker.
fn told(session: &mut Session, group: &[&Seen], rules: &Rules) -> Found<Option<Recording>> {
    let speaker = speaker(group);
    let finding = finding(group, speaker);
    // What a replay must come to is told by a run that no observer looks at, as that run itself writes it down.
    let run = follow(session, &speaker.order, rules);
    let (order, digests) = (run.drive.schedule, session.digests());
    let is_whole = !session.leave.is_over();
    let recording = is_whole.then(|| recording(session, &finding, &order, digests, rules));
    Found { finding, recording }
}

/// Runs the schedule of each race again.
fn look_at_all(session: &mut Session, races: &[(Race, Outcome)], rules: &Rules) -> Vec<Seen> {
    session.keep_stacks(Stacks::Whole);
    let mut seen: Vec<Seen> = Vec::new();
    for (race, outcome) in races {
        if session.leave.is_over() {
            break;
        }
        let again = look_again(session, race, outcome, rules);
        seen.extend(again);
    }
    session.keep_stacks(Stacks::Callers);
    seen
}

/// What was seen at the two instructions of a race.
struct Witness {
    facts: Facts,
    detector: Races,
    /// The name of what they race for, from the moment of the second access: at the end of the run the block may be
    /// gone, and the stack surely is.
    object: Option<String>,
    /// The stack that led to the last access of each context.
    stacks: BTreeMap<(ContextId, Site), Vec<Line>>,
    values: BTreeMap<(ContextId, Site), u64>,
    visits: BTreeMap<(ContextId, Site), u64>,
}

/// Runs the schedule of a race again, now with values and stacks.
fn look_again(
    session: &mut Session,
    race: &Race,
    outcome: &Outcome,
    rules: &Rules,
) -> Option<Seen> {
    let pair = [race.first.site, race.second.site];
    // A context that has ended has no symbols: ask before the run.
    session.restore();
    let symbols = session.world.symbols(ContextId(0))?;
    let seen = witness(session, pair, outcome, rules);
    let sorted = (pair[0].min(pair[1]), pair[0].max(pair[1]));
    let found = seen.detector.of_pair(sorted)?;
    let world = &mut session.world;
    let object = seen.object.clone();
    let object =
        object.unwrap_or_else(|| name_of(world, &symbols, found.second.context, found.addr));
    let mut side = |side: &Side| {
        let lines = seen.stacks.get(&(side.context, side.site));
        let lines = lines.map_or(&[][..], Vec::as_slice);
        let place = own(lines).map(|line| line.place.clone());
        let place = place.or_else(|| own_place(&symbols, side.site.pc()));
        let in_call = false;
        let action = if side.writes {
            Action::Write { in_call }
        } else {
            Action::Read { in_call }
        };
        let held = seen.facts.locks(side.lockset).iter().map(|lock| Held {
            name: name_of(world, &symbols, side.context, *lock),
            address: Some(Word(*lock)),
            is_shared: false,
            section: None,
        });
        SeenSide {
            step: Step {
                object: Some(object.clone()),
                address: Some(Word(found.addr)),
                code: code_at(&symbols, side.site.pc()),
                locks: Locks::Known(held.collect()),
                ..Step::new(number(side.context), action, place.unwrap_or_default())
            },
            stack: frames(lines),
        }
    };
    let value = |side: &Side| seen.values.get(&(side.context, side.site)).copied();
    let visited = |side: &Side| seen.visits.get(&(side.context, side.site)).copied();
    let sides = [side(&found.first), side(&found.second)];
    Some(Seen {
        object,
        contexts: contexts(world),
        is_own: pair.iter().all(|site| is_own_code(&symbols, site.pc()))
            && !is_ordered_by_moves(&symbols, found),
        pattern: pattern(found, value, |side| visited(side).unwrap_or(0)),
        sides,
        schedule: outcome.index,
        pair: sorted,
        order: outcome.kept_schedule().clone(),
    })
}

/// Whether plain moves that may well be atomic operations order the two accesses, or are them: those of a library, and
/// those of code without debug information, where nothing tells one kind from the other.
fn is_ordered_by_moves(symbols: &SymbolSpace, race: &Race) -> bool {
    let is_told = |pc: u64| {
        let module = symbols.module_at(pc);
        is_own_code(symbols, pc) && module.is_some_and(|(module, _)| module.has_debug_info())
    };
    if let Some(by) = race.handed_over {
        return !is_told(by.store.pc()) || !is_told(by.load.pc());
    }
    let sides = [&race.first, &race.second];
    let is_store_and_load =
        sides[0].writes != sides[1].writes && sides.iter().all(|side| !side.updates);
    is_store_and_load && race.size <= 8 && sides.iter().any(|side| !is_told(side.site.pc()))
}

fn witness(session: &mut Session, pair: [Site; 2], outcome: &Outcome, rules: &Rules) -> Witness {
    session.restore();
    let sorted = (pair[0].min(pair[1]), pair[0].max(pair[1]));
    pair.iter().for_each(|site| session.world.add_point(*site));
    let mut seen = Witness {
        facts: Facts::default(),
        detector: Races::default(),
        object: None,
        stacks: BTreeMap::new(),
        values: BTreeMap::new(),
        visits: BTreeMap::new(),
    };
    let territory = Arc::clone(&session.territory);
    let mut attribution = Attribution::new(&territory);
    let mut atomics = std::mem::take(&mut session.atomics);
    let mut follow = Follow::new(outcome.kept_schedule());
    session.drive(
        &mut follow,
        rules.limits,
        Look::VALUES,
        &mut |world, events| {
            for event in events {
                let own = attribution.own(world, event);
                let Some(event) = own.filter(Own::is_exact) else {
                    continue;
                };
                if let EventKind::Access(access) = &event.kind {
                    // A library call makes many accesses, which say nothing of how often it is made.
                    if pair.contains(&event.site) && !event.is_in_call() {
                        let key = (event.context, event.site);
                        seen.values.insert(key, access.value.unwrap_or(0));
                        *seen.visits.entry(key).or_default() += 1;
                    }
                    if atomics.is_atomic(event.pc(), access.addr) {
                        seen.facts.mark_atomic(access);
                    }
                }
                let code = &mut |site| attribution.locked(world, &event, site);
                seen.facts.event_with(&event, code);
                seen.detector.event(&event, &seen.facts);
                if seen.object.is_none()
                    && let Some(race) = seen.detector.of_pair(sorted)
                {
                    let who = event.context;
                    let symbols = world.symbols(who);
                    seen.object = symbols.map(|symbols| name_of(world, &symbols, who, race.addr));
                }
            }
            let last = events.last().map(|event| event.context);
            let standing = last.and_then(|who| {
                Some((
                    who,
                    Site::new(world.image(who), world.registers(who)?.pc()?),
                ))
            });
            if let Some((who, site)) = standing.filter(|(_, site)| pair.contains(site)) {
                seen.stacks.insert((who, site), stack::stack(world, who));
            }
        },
    );
    session.atomics = atomics;
    session.remove_flags(&pair);
    seen
}

/// Patterns that developers often call harmless (Narayanasamy et al., PLDI 2007; Erickson et al., OSDI 2010).
fn pattern(
    race: &Race,
    value: impl Fn(&Side) -> Option<u64>,
    visits: impl Fn(&Side) -> u64,
) -> Option<&'static str> {
    const POLLING: u64 = 3;
    let sides = [&race.first, &race.second];
    if sides.iter().all(|side| side.updates) && race.size <= 8 {
        return Some("both count up or down: a statistics counter, if lost counts do not matter");
    }
    if sides.iter().all(|side| side.writes && !side.updates)
        && value(sides[0]).is_some()
        && value(sides[0]) == value(sides[1])
    {
        return Some("both write the same value");
    }
    let reader = sides.iter().find(|side| !side.writes);
    if reader.is_some_and(|reader| visits(reader) >= POLLING) && race.size <= 8 {
        return Some("the reader polls a flag in a loop; the language still calls it a race");
    }
    None
}

/// Races that share an instruction belong together, and so do those that share one with them.
fn groups(seen: &[Seen]) -> Vec<Vec<&Seen>> {
    let mut groups: Vec<(BTreeSet<Site>, Vec<&Seen>)> = Vec::new();
    for race in seen {
        let mut members = vec![race];
        let mut instructions = BTreeSet::from([race.pair.0, race.pair.1]);
        let (touching, apart): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|(known, _)| !known.is_disjoint(&instructions));
        groups = apart;
        for (known, others) in touching {
            instructions.extend(known);
            members.splice(0..0, others);
        }
        groups.push((instructions, members));
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

/// The most suspicious pair of those that are certain speaks for the group.
fn speaker<'a>(group: &[&'a Seen]) -> &'a Seen {
    let is_certain = group.iter().any(|race| race.is_own);
    let mut speakers = group.iter().filter(|race| race.is_own == is_certain);
    let suspicious = speakers.clone().find(|race| race.pattern.is_none());
    suspicious.or_else(|| speakers.next()).unwrap_or(&group[0])
}

fn finding(group: &[&Seen], first: &Seen) -> Finding {
    let mut notes = Vec::new();
    let mut listed: BTreeSet<String> = BTreeSet::new();
    listed.insert(pair_text(first));
    for race in group {
        let text = pair_text(race);
        if listed.insert(text.clone()) && listed.len() <= PAIRS_SHOWN {
            notes.push(format!("related: {text}"));
        }
    }
    notes.extend(lock_hint(first));
    notes.extend(
        first
            .pattern
            .map(|text| format!("probably harmless: {text}")),
    );
    notes.push(format!(
        "seen in schedule {}; {} of instructions in this group",
        first.schedule,
        counted(raddle_stdx::width::to_u64(group.len()), "pair")
    ));
    let is_harmless = first.pattern.is_some();
    let severity = if is_harmless {
        Severity::Note
    } else {
        Severity::Warning
    };
    let confidence = if first.is_own {
        Confidence::Confirmed
    } else {
        Confidence::Predicted
    };
    let places = first
        .sides
        .each_ref()
        .map(|side| side.step.place.describe());
    let mut finding = Finding {
        title: format!(
            "data race on {} between {} and {}",
            first.object, places[0], places[1]
        ),
        objects: vec![first.object.clone()],
        contexts: first.contexts.clone(),
        why: "no lock, creation, join or atomic operation orders these two accesses".into(),
        notes,
        fingerprint: fingerprint(first),
        ..Finding::new(DATA_RACE, severity, confidence)
    };
    for side in &first.sides {
        let step = Step {
            stack: finding.stack(side.stack.clone()),
            ..side.step.clone()
        };
        finding.steps.push(step);
    }
    quote_steps(&mut finding);
    finding
}

/// The same race whichever side came first.
fn fingerprint(race: &Seen) -> String {
    let mut digest = Digest::default();
    let mut sides = race.sides.each_ref().map(SeenSide::text);
    sides.sort();
    digest.bytes(race.object.as_bytes());
    sides.iter().for_each(|side| digest.bytes(side.as_bytes()));
    format!("{:016x}", digest.value())
}

fn pair_text(race: &Seen) -> String {
    let [first, second] = race.sides.each_ref().map(SeenSide::text);
    format!("{}: {first} against {second}", race.object)
}

/// Which lock would help, if one side has one.
fn lock_hint(race: &Seen) -> Option<String> {
    let [first, second] = &race.sides;
    let is_common = |held: &Held| second.held().iter().any(|other| other.name == held.name);
    let has_common = first.held().iter().any(is_common);
    let (with, lock, without) = match (first.held().last(), second.held().last()) {
        (Some(lock), None) => (first, lock, second),
        (None, Some(lock)) => (second, lock, first),
        (Some(one), Some(other)) if !has_common => {
            return Some(format!(
                "{} holds {} and {} holds {}: two locks protect nothing from each other",
                race.label(first),
                one.name,
                race.label(second),
                other.name
            ));
        }
        _ => return None,
    };
    Some(format!(
        "{} holds {} here, {} does not",
        race.label(with),
        lock.name,
        race.label(without)
    ))
}
