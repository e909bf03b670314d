//! From a failing schedule to a finding: minimised, replayed, told in steps with names.

use std::collections::{BTreeMap, BTreeSet};

use raddle_campaign::Leave;
use raddle_report::Finding;
use raddle_report::finding::{Confidence, Place, Severity, Step};
use raddle_report::words::counted;
use raddle_stdx::Digest;
use raddle_stdx::width::to_u64;
use raddle_trace::Schedule;

use super::failure::Failure;
use super::minimise::{follow, minimise};
use super::names::Names;
use super::race_rules::Rank;
use super::run::{Digests, Outcome, Rules};
use super::session::Session;
use super::ski_race::{RaceGroup, RacePair, group};
use super::{Found, Options};
use crate::test_case::TestCase;
use crate::world::{KERNEL_HALF, Switch};

/// Lines of the kernel's own report that are shown.
const SPLAT_LINES: usize = 24;
/// Switches that are shown.
const STEPS_MAX: usize = 12;
/// Pairs of a race group that are shown.
const PAIRS_MAX: usize = 6;

/// Makes findings of outcomes.
#[derive(Debug)]
pub struct Explainer<'a, 'b> {
    session: &'a mut Session<'b>,
    names: Names<'b>,
    seed: u64,
}

impl<'a, 'b> Explainer<'a, 'b> {
    pub fn new(session: &'a mut Session<'b>, seed: u64) -> Self {
        let names = Names::of(session);
        Self {
            session,
            names,
            seed,
        }
    }

    /// Minimises, replays and explains a failing outcome, the one with this number from 1; nothing if the time for it
    /// is used up.
    pub(super) fn found(
        &mut self,
        number: u64,
        outcome: &Outcome,
        options: &Options,
        kept: &Found,
    ) -> Option<Found> {
        self.session.leave = Leave::to_explain(&options.cancel, number);
        self.session.leave.still()?;
        let rules = kept.rules;
        let minimised = minimise(self.session, outcome, rules);
        self.session.leave.still()?;
        let (best, note, confidence) = match minimised {
            Some((best, true)) => (best, None, Confidence::Confirmed),
            Some((best, false)) => (
                best,
                Some(
                    "the schedule may not be minimal: the limit of replays was reached".to_owned(),
                ),
                Confidence::Confirmed,
            ),
            None => (
                outcome.clone(),
                Some(
                    "the schedule did not fail again when it was replayed: please report this"
                        .to_owned(),
                ),
                Confidence::Predicted,
            ),
        };
        let schedule = best.drive.schedule.clone();
        let (finding, digests) = self.describe(&best, rules, confidence, note);
        self.session.leave.still()?;
        Some(Found {
            finding,
            schedule,
            rules,
            start_digest: kept.start_digest,
            digests,
        })
    }

    /// Runs a schedule once more, writing down its switches, and tells what happened.
    fn describe(
        &mut self,
        outcome: &Outcome,
        rules: Rules,
        confidence: Confidence,
        note: Option<String>,
    ) -> (Finding, Digests) {
        self.session.world.note_switches(true);
        let again = follow(self.session, &outcome.drive.schedule, rules);
        self.session.world.note_switches(false);
        let digests = Digests::of(&mut self.session.world);
        let failure = outcome
            .failure
            .clone()
            .or(again.failure)
            .unwrap_or(Failure::Reset);
        let switches = self.session.world.switches().to_vec();
        let mut notes = self.notes(&failure);
        notes.extend(note);
        let test = self.session.target.test.as_ref();
        let finding = Finding {
            kind: failure.rule().to_owned(),
            severity: Severity::Error,
            confidence,
            title: failure.title(test),
            objects: test.iter().map(|test| test.path.clone()).collect(),
            steps: self.steps(&switches),
            why: failure.why().to_owned(),
            notes,
            fingerprint: failure.fingerprint(),
            replay: None,
        };
        (finding, digests)
    }

    fn notes(&self, failure: &Failure) -> Vec<String> {
        let mut notes = Vec::new();
        if let Failure::Splat(splat) = failure {
            notes.push("the kernel says:".to_owned());
            notes.extend(
                splat
                    .lines
                    .iter()
                    .filter(|line| !line.trim().is_empty())
                    .take(SPLAT_LINES)
                    .map(|line| format!("  {line}")),
            );
            if splat.lines.len() > SPLAT_LINES {
                notes.push(format!(
                    "  ({} more lines)",
                    splat.lines.len() - SPLAT_LINES
                ));
            }
        }
        if let (Failure::WrongResult { .. } | Failure::Stuck { .. }, Some(test)) =
            (failure, &self.session.target.test)
        {
            for result in self.session.world.results() {
                if result.kind == crate::program::ResultKind::Returned
                    && let Some(statement) = test.statements.get(result.statement)
                    && statement.section != crate::test_case::Section::Setup
                {
                    notes.push(format!(
                        "line {}: {} gave {}",
                        statement.line,
                        statement.text,
                        TestCase::show_result(result.value)
                    ));
                }
            }
        }
        notes
    }

    fn steps(&self, switches: &[Switch]) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut sleeping = BTreeMap::new();
        for switch in switches {
            let call = self.call_of(switch);
            if switch.is_idle {
                // A processor that sleeps is told once, not at every tick of its timer.
                if call.is_empty()
                    || sleeping.insert(switch.from, call.clone()) == Some(call.clone())
                {
                    continue;
                }
            }
            let in_kernel = switch.pc >= KERNEL_HALF;
            let action = match (switch.interrupt, switch.is_idle, in_kernel) {
                (Some(_), true, _) => continue,
                (Some(vector), false, _) => format!("takes interrupt {vector:#x} {call}"),
                (None, true, _) => format!("sleeps {call}"),
                (None, false, true) => format!("stops {call}"),
                (None, false, false) => "stops between two calls".to_owned(),
            };
            steps.push(Step {
                context: self.session.label(switch.from),
                action: action.trim_end().to_owned(),
                place: if in_kernel {
                    self.names.place(switch.pc)
                } else {
                    Place {
                        function: "user code".to_owned(),
                        ..Place::default()
                    }
                },
                locks: Vec::new(),
                excerpt: None,
            });
        }
        let skipped = steps.len().saturating_sub(STEPS_MAX);
        steps.split_off(skipped)
    }

    /// The system call in which a processor was switched away from.
    fn call_of(&self, switch: &Switch) -> String {
        let threads = self.session.world.thread_cpus();
        let index = threads.iter().position(|(_, cpu)| *cpu == switch.from);
        let statement = index
            .and_then(|index| switch.progress.get(index).copied().flatten())
            .and_then(|number| {
                let test = self.session.target.test.as_ref()?;
                test.statements.get(number)
            });
        statement.map_or_else(String::new, |statement| format!("in `{}`", statement.text))
    }

    /// Data races as findings, one for each group, without those inside of lock functions.
    pub fn races(&self, pairs: &[RacePair]) -> Vec<Finding> {
        let data: Vec<RacePair> = pairs
            .iter()
            .filter(|pair| !self.is_lock(pair.first_pc) && !self.is_lock(pair.second_pc))
            .cloned()
            .collect();
        // What is between the same two functions is one report, whichever instructions it was seen at.
        let mut groups: BTreeMap<[String; 2], RaceGroup> = BTreeMap::new();
        for group in group(&data) {
            let first = &group.pairs[0];
            let mut names = [first.first_pc, first.second_pc].map(|pc| self.names.function(pc));
            names.sort();
            groups
                .entry(names)
                .and_modify(|known| known.pairs.extend_from_slice(&group.pairs))
                .or_insert(group);
        }
        let orders = data.iter().filter_map(|pair| pair.by);
        let flags = orders
            .map(|by| (by.store.pc(), by.load.pc()))
            .map(|(store, load)| (store.min(load), store.max(load)))
            .collect();
        let mut findings: Vec<Finding> = groups
            .values()
            .map(|group| self.race_finding(group, &flags))
            .collect();
        findings.sort_by(|a, b| {
            b.severity
                .cmp(&a.severity)
                .then_with(|| a.title.cmp(&b.title))
        });
        findings
    }

    fn is_lock(&self, pc: u64) -> bool {
        let function = self.names.function(pc);
        self.session.target.race_rules.is_lock(&function)
    }

    fn counts(&self, group: &RaceGroup) -> String {
        let sum = |count: fn(&RacePair) -> u64| group.pairs.iter().map(count).sum::<u64>();
        let handed_over = match sum(|pair| pair.handed_over) {
            0 => String::new(),
            count => format!(" ({count} of them ordered by what was read before)"),
        };
        format!(
            "{} of instructions in this group, seen {}{handed_over}; seed {}",
            counted(to_u64(group.pairs.len()), "pair"),
            counted(sum(|pair| pair.count), "time"),
            self.seed
        )
    }

    /// What both accesses of a pair touch: `8 bytes of jiffies at 0xffffffff82a07980`.
    fn bytes_of(&self, pair: &RacePair) -> String {
        let variable = self.names.variable(pair.addr);
        let of = variable.map_or_else(String::new, |name| format!(" of {name}"));
        let bytes = counted(pair.size.into(), "byte");
        format!("{bytes}{of} at {:#x}", pair.addr)
    }

    fn race_finding(&self, group: &RaceGroup, flags: &BTreeSet<(u64, u64)>) -> Finding {
        let first = &group.pairs[0];
        let mut digest = Digest::default();
        let mut names = [first.first_pc, first.second_pc].map(|pc| self.names.function(pc));
        names.sort();
        names.iter().for_each(|name| digest.bytes(name.as_bytes()));
        let named = self.names.name(first.first_pc);
        let in_module = named.is_some_and(|named| named.module.is_some());
        let rank = self
            .session
            .target
            .race_rules
            .rank(group, flags, &|pc| self.names.function(pc));
        let (severity, judgement) = match rank {
            Rank::Harmful(why) => (Severity::Warning, format!("probably harmful: {why}")),
            // A module is the user's own code: nothing in it is on purpose until he says so.
            Rank::Benign(why) if in_module => (
                Severity::Warning,
                format!("in a module, perhaps benign: {why}"),
            ),
            Rank::Benign(why) => (Severity::Note, format!("probably benign: {why}")),
            Rank::False(why) => (Severity::Note, format!("probably false: {why}")),
        };
        let verb = |writes| if writes { "writes" } else { "reads" };
        let mut steps = Vec::new();
        for pair in group.pairs.iter().take(PAIRS_MAX) {
            for (context, pc, writes) in [
                ("one processor", pair.first_pc, pair.first_writes),
                ("another one", pair.second_pc, pair.second_writes),
            ] {
                steps.push(Step {
                    context: context.to_owned(),
                    action: format!("{} {}", verb(writes), self.bytes_of(pair)),
                    place: self.names.place(pc),
                    locks: Vec::new(),
                    excerpt: None,
                });
            }
        }
        Finding {
            kind: "kernel-data-race".to_owned(),
            severity,
            confidence: Confidence::Confirmed,
            title: format!("data race between {}", names.join(" and ")),
            objects: vec![
                self.names
                    .variable(first.addr)
                    .unwrap_or_else(|| format!("{:#x}", first.addr)),
            ],
            steps,
            why: "both were seen to touch these bytes from two processors, at least one writing"
                .to_owned(),
            notes: vec![judgement, self.counts(group)],
            fingerprint: format!("{:016x}", digest.value()),
            replay: None,
        }
    }
}

/// What a replay showed.
#[derive(Debug, Clone)]
pub struct Replayed {
    pub finding: Option<Finding>,
    pub digests: Digests,
    pub steps: u64,
    pub switches: u64,
    pub console: String,
}

/// Replays a schedule and explains it.
pub fn replay(session: &mut Session<'_>, schedule: &Schedule, rules: Rules) -> Replayed {
    let mut explainer = Explainer::new(session, 0);
    let outcome = follow(explainer.session, schedule, rules);
    let mut digests = Digests::of(&mut explainer.session.world);
    let console = explainer.session.world.console().test_text();
    let finding = outcome.failure.is_some().then(|| {
        let (finding, again) = explainer.describe(&outcome, rules, Confidence::Confirmed, None);
        digests = again;
        finding
    });
    Replayed {
        finding,
        digests,
        steps: outcome.drive.steps,
        switches: outcome.drive.switches,
        console,
    }
}
