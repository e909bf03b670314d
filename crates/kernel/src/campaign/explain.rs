//! From a failing schedule to a finding: minimised, replayed, told in steps with names.

use std::collections::{BTreeMap, BTreeSet};

use raddle_campaign::{Digests, Explained, Found, Smallest, Stage as _, Watch, follow};
use raddle_report::evidence::Held;
use raddle_report::finding::{Confidence, Severity};
use raddle_report::words::counted;
use raddle_report::{Action, Context, Edge, EdgeKind, Finding, Locks, Place, Step, Word};
use raddle_sched::Follow;
use raddle_stdx::Digest;
use raddle_stdx::width::to_u64;
use raddle_trace::Schedule;

use super::failure::Failure;
use super::names::Names;
use super::race_rules::Rank;
use super::run::{Outcome, Rules, Run, run_schedule};
use super::session::{Recordable, Session};
use super::ski_race::{RaceGroup, RacePair, group};
use crate::recording::KernelRecording;
use crate::test_case::TestCase;
use crate::world::{KERNEL_HALF, RCU, Switch, SyncCalls};

/// Makes findings of runs.
#[derive(Debug)]
pub struct Explainer<'a, 'b> {
    session: &'a mut Session<'b>,
    names: Names<'b>,
}

impl<'a, 'b> Explainer<'a, 'b> {
    pub fn new(session: &'a mut Session<'b>) -> Self {
        let names = Names::of(session);
        Self { session, names }
    }

    /// Explains a failing run; nothing if the time for it is used up.
    pub(super) fn found(
        &mut self,
        failing: &Outcome,
        smallest: &Smallest<Run>,
        rules: Rules,
    ) -> Option<Explained<KernelRecording>> {
        let failure = failing.failure.as_ref()?;
        let schedule = &smallest.run.drive.schedule;
        follow(self.session, schedule, &rules);
        let before = self.session.digests();
        let (finding, digests) = self.describe(failure, schedule, rules);
        self.session.leave.still()?;
        let run = Recordable {
            schedule,
            rules,
            start_digest: self.session.start_digest(),
            digests,
        };
        let recording = self.session.target.recording(&finding, run);
        Some(Explained {
            found: Found { finding, recording },
            is_repeated: before == digests,
        })
    }

    /// Runs a schedule once more, writing down its switches, and tells what happened.
    fn describe(
        &mut self,
        failure: &Failure,
        schedule: &Schedule,
        rules: Rules,
    ) -> (Finding, Digests) {
        let why = failure.why(self.session.serial_runs(&rules));
        self.session.world.note_switches(true);
        let calls = SyncCalls::new(&self.session.target.symbols);
        self.session.world.tell_synchronisation(Some(calls));
        follow(self.session, schedule, &rules);
        self.session.world.note_switches(false);
        let digests = self.session.digests();
        let switches = self.session.world.switches().to_vec();
        let test = self.session.target.test.as_ref();
        let mut finding = Finding {
            title: failure.title(test),
            objects: test
                .iter()
                .map(|test| test.path.clone())
                .chain(failure.object())
                .collect(),
            why,
            notes: self.notes(failure),
            serial: failure.serial(),
            fingerprint: failure.fingerprint(),
            console: console(failure),
            ..Finding::new(failure.rule(), Severity::Error, Confidence::Confirmed)
        };
        self.add_steps(&switches, &mut finding);
        self.session.world.tell_synchronisation(None);
        (finding, digests)
    }

    /// The locks that a processor holds when it is switched away from, as far as that is known.
    fn locks(&self, switch: &Switch) -> Locks {
        let Some(held) = &switch.locks else {
            return Locks::Unknown;
        };
        let held = held.iter().map(|lock| Held {
            name: self.lock_name(*lock),
            address: (*lock != RCU).then_some(Word(*lock)),
            is_shared: *lock == RCU,
            section: None,
        });
        Locks::Known(held.collect())
    }

    /// The kernel's variable, the allocated block, or the address.
    fn lock_name(&self, lock: u64) -> String {
        if lock == RCU {
            return "an RCU read side".to_owned();
        }
        let block = self.session.world.block_at(lock);
        let name = self.names.lock(lock, block);
        name.unwrap_or_else(|| format!("{lock:#x}"))
    }

    fn notes(&self, failure: &Failure) -> Vec<String> {
        let mut notes: Vec<String> = failure.object().into_iter().collect();
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

    /// Where processors stopped. Which locks they held there is not known.
    fn add_steps(&self, switches: &[Switch], finding: &mut Finding) {
        let mut sleeping = BTreeMap::new();
        for switch in switches {
            let call = self.call_of(switch);
            if switch.is_idle {
                // A processor that sleeps is told once, not at every tick of its timer.
                if call.is_none()
                    || sleeping.insert(switch.from, call.clone()) == Some(call.clone())
                {
                    continue;
                }
            }
            let in_kernel = switch.pc >= KERNEL_HALF;
            let action = match (switch.interrupt, switch.is_idle) {
                (Some(_), true) => continue,
                (Some(vector), false) => Action::Interrupt { vector, call },
                (None, true) => Action::Sleep { call },
                (None, false) => Action::Stop {
                    call: call.filter(|_| in_kernel),
                    in_user: !in_kernel,
                },
            };
            let place = if in_kernel {
                self.names.place(switch.pc)
            } else {
                Place {
                    function: "user code".to_owned(),
                    ..Place::default()
                }
            };
            let context = finding.context(Context::named(self.session.label(switch.from)));
            let step = Step {
                locks: self.locks(switch),
                ..Step::new(context, action, place)
            };
            if let Some(from) = finding.steps.len().checked_sub(1) {
                finding.edges.push(Edge {
                    kind: EdgeKind::Switch,
                    from,
                    to: from + 1,
                });
            }
            finding.steps.push(step);
        }
    }

    /// The system call in which a processor was switched away from.
    fn call_of(&self, switch: &Switch) -> Option<String> {
        let threads = self.session.world.thread_cpus();
        let index = threads.iter().position(|(_, cpu)| *cpu == switch.from)?;
        let number = switch.progress.get(index).copied().flatten()?;
        let test = self.session.target.test.as_ref()?;
        let statement = test.statements.get(number)?;
        Some(statement.text.clone())
    }

    /// Data races as findings, one for each group, without those inside of lock functions. Each is confirmed by a replay
    /// of the run that showed it, as long as there is time.
    pub(super) fn races(
        &mut self,
        races: &[(RacePair, Outcome)],
        rules: Rules,
    ) -> Vec<Found<Option<KernelRecording>>> {
        let witnesses: BTreeMap<(u64, u64), &Outcome> =
            races.iter().map(|(pair, run)| (pair.key(), run)).collect();
        let pairs: Vec<RacePair> = races.iter().map(|(pair, _)| pair.clone()).collect();
        let mut found = Vec::new();
        for (mut finding, speaker) in self.race_findings(&pairs) {
            let witness = witnesses.get(&speaker.key());
            let recording = witness.and_then(|run| self.confirm(&finding, &speaker, run, rules));
            if recording.is_none() {
                finding.confidence = Confidence::Predicted;
                finding.notes.push(
                    "seen once, and not run again: there was no time, or it did not show again"
                        .to_owned(),
                );
            }
            found.push(Found { finding, recording });
        }
        found
    }

    /// Runs the schedule that showed a race once more; its recording, if the race is there again.
    fn confirm(
        &mut self,
        finding: &Finding,
        race: &RacePair,
        witness: &Outcome,
        rules: Rules,
    ) -> Option<KernelRecording> {
        self.session.leave.still()?;
        let schedule = witness.kept_schedule();
        let start_digest = self.session.start_digest();
        let run = run_schedule(
            self.session,
            &mut Follow::new(schedule),
            rules,
            Watch::MEMORY,
        );
        let races = run.learned?.races;
        let is_there = races.iter().any(|seen| seen.key() == race.key());
        let digests = self.session.digests();
        is_there.then(|| {
            let run = Recordable {
                schedule,
                rules,
                start_digest,
                digests,
            };
            self.session.target.recording(finding, run)
        })
    }

    /// The findings of races, each with the pair that speaks for it.
    fn race_findings(&self, pairs: &[RacePair]) -> Vec<(Finding, RacePair)> {
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
        let mut findings: Vec<(Finding, RacePair)> = groups
            .values()
            .map(|group| (self.race_finding(group, &flags), group.pairs[0].clone()))
            .collect();
        findings.sort_by(|(a, _), (b, _)| {
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
            "{} of instructions in this group, seen {}{handed_over}",
            counted(to_u64(group.pairs.len()), "pair"),
            counted(sum(|pair| pair.count), "time"),
        )
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
                Severity::Note,
                format!("in a module, perhaps benign: {why}"),
            ),
            Rank::Benign(why) => (Severity::Note, format!("probably benign: {why}")),
            Rank::False(why) => (Severity::Note, format!("probably false: {why}")),
        };
        let mut finding = Finding {
            title: format!("data race between {}", names.join(" and ")),
            objects: vec![
                self.names
                    .variable(first.addr)
                    .unwrap_or_else(|| format!("{:#x}", first.addr)),
            ],
            why: "both were seen to touch these bytes from two processors, at least one writing"
                .to_owned(),
            notes: vec![judgement, self.counts(group)],
            fingerprint: format!("{:016x}", digest.value()),
            contexts: ["one processor", "another one"]
                .map(Context::named)
                .to_vec(),
            ..Finding::new("kernel-data-race", severity, Confidence::Confirmed)
        };
        for pair in &group.pairs {
            finding.steps.extend(self.sides(pair));
        }
        finding
    }

    /// The two accesses of a pair.
    fn sides(&self, pair: &RacePair) -> [Step; 2] {
        let sides = [
            (0, pair.first_pc, pair.first_writes),
            (1, pair.second_pc, pair.second_writes),
        ];
        let in_call = false;
        sides.map(|(context, pc, writes)| Step {
            object: self.names.variable(pair.addr),
            address: Some(Word(pair.addr)),
            size: Some(pair.size),
            ..Step::new(
                context,
                if writes {
                    Action::Write { in_call }
                } else {
                    Action::Read { in_call }
                },
                self.names.place(pc),
            )
        })
    }
}

/// What the kernel complained about.
fn console(failure: &Failure) -> String {
    match failure {
        Failure::Splat(splat) => splat.lines.join("\n"),
        _ => String::new(),
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

/// Replays a schedule and explains it: the failure or the race with this fingerprint, or else what fails.
pub fn replay(
    session: &mut Session<'_>,
    schedule: &Schedule,
    rules: Rules,
    fingerprint: &str,
) -> Replayed {
    let mut explainer = Explainer::new(session);
    let run = follow(explainer.session, schedule, &rules);
    let mut digests = explainer.session.digests();
    let console = explainer.session.world.console().test_text();
    let mut finding = None;
    let is_it = |failure: &Failure| failure.fingerprint() == fingerprint;
    if !run.failure.as_ref().is_some_and(is_it) && rules.races.is_some() {
        finding = explainer.race_again(schedule, rules, fingerprint);
    }
    if let (Some(failure), None) = (&run.failure, &finding) {
        let (told, again) = explainer.describe(failure, schedule, rules);
        finding = Some(told);
        digests = again;
    }
    Replayed {
        finding,
        digests,
        steps: run.drive.steps,
        switches: run.drive.switches,
        console,
    }
}

impl Explainer<'_, '_> {
    /// The race with this fingerprint, if a run of the schedule shows it.
    fn race_again(
        &mut self,
        schedule: &Schedule,
        rules: Rules,
        fingerprint: &str,
    ) -> Option<Finding> {
        let follow = &mut Follow::new(schedule);
        let run = run_schedule(self.session, follow, rules, Watch::MEMORY);
        let races = run.learned?.races;
        let findings = self.race_findings(&races).into_iter();
        let mut findings = findings.map(|(finding, _)| finding);
        findings.find(|finding| finding.fingerprint == fingerprint)
    }
}
