//! Profile, rank, force, report.

use std::collections::BTreeSet;
use std::ops::Range;

use raddle_campaign::{
    Algorithm, CodeName, Findings, Habits, Listener, Material, NamedCoverage, News, Options,
    Outcome as RunOutcome, Phase, Progress, Report, ReportOf, Rules as _, RunOf, Stage, Subject,
    Symptom as _, Urgency, Watch, begin, scheduler,
};
use raddle_detect::{Coverage, Covered};
use raddle_sched::{Budget, Directed, End, Hold, Scheduler, Spot as Place};
use raddle_stdx::Prng;
use raddle_stdx::width::to_u64;
use raddle_trace::Observer;
use raddle_world::Site;

use crate::critical_reads::ProgramCode;
use crate::profile::Profile;
use crate::target::{Forced, Kind, Outcome, Spot, Target, Way};
use crate::values::Invariant;

/// Steps that a context is held at least before the hold is given up.
const HOLD_STEPS_MIN: u64 = 200_000;
/// Times that the clock may jump to the next timer while everybody else sleeps.
const HOLD_JUMPS: u32 = 8;

/// Runs that are tried for each run of the profile that ends well.
const TRIES: u64 = 4;

/// What to do.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// Runs of the profile that end well.
    pub runs: u64,
    /// Whether targets are forced.
    pub validates: bool,
    /// Only kinds of these names; empty for all.
    pub only: Vec<&'static str>,
}

/// A target and what came of it.
#[derive(Debug, Clone)]
pub struct Predicted {
    pub target: Target,
    pub outcome: Outcome,
    /// Runs that it took.
    pub attempts: u64,
    /// What failed, if it did.
    pub fingerprint: Option<String>,
    /// The instructions that take part, in words, with what each of them is.
    pub places: Vec<(String, &'static str)>,
}

/// An invariant that is worth stating, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposed {
    pub at: CodeName,
    pub invariant: Invariant,
    /// What fails if it is broken.
    pub fingerprint: String,
}

/// What was predicted and confirmed.
#[derive(Debug)]
pub struct Predictions<S: Subject> {
    pub report: ReportOf<S>,
    /// Targets in the order of their ranks.
    pub predicted: Vec<Predicted>,
    /// Accesses that the profile looked at.
    pub accesses: u64,
    /// Runs of the profile, and runs in which targets were forced.
    pub profiled: u64,
    pub forced: u64,
    /// Runs of the profile that ended well, from which everything was predicted.
    pub passing: u64,
    /// Reads that could find no other value, since order or critical sections forbid it.
    pub excluded: u64,
    /// What held in all runs that ended well and was broken by those that were forced and failed.
    pub invariants: Vec<Proposed>,
    /// Loops that wait for another context, in words: the read, and a write that has ended the wait.
    pub waiting: Vec<(String, String)>,
    /// Failure sites of the program's code, and the reads that decide about them.
    pub failure_sites: u64,
    pub critical_reads: u64,
}

impl<S: Subject> Predictions<S> {
    fn nothing(report: ReportOf<S>) -> Self {
        Self {
            report,
            predicted: Vec::new(),
            accesses: 0,
            profiled: 0,
            forced: 0,
            passing: 0,
            excluded: 0,
            invariants: Vec::new(),
            waiting: Vec::new(),
            failure_sites: 0,
            critical_reads: 0,
        }
    }
}

struct Predictor<'a, S: Stage> {
    stage: S,
    rules: S::Rules,
    options: &'a Options,
    habits: Habits,
    /// Where contexts were seen to meet.
    points: BTreeSet<Site>,
    findings: Findings<S>,
    report: Report<S::Recording, S::Tally>,
    /// What all runs have covered, if that is asked for.
    covered: Option<Covered>,
}

/// Profiles a subject, ranks what could go wrong, and forces it. `code` finds the reads that decide about failures
/// and those that become addresses in the code of a stage.
///
/// # Errors
/// If the subject does not come to the place where its schedules begin.
pub fn predict<S: Subject>(
    subject: &S,
    what: &Prediction,
    code: &mut dyn FnMut(&mut S::Stage) -> ProgramCode,
    news: &mut Listener<'_, <S::Stage as Stage>::Recording>,
) -> Result<Predictions<S>, S::StartFailure> {
    let Some(begun) = begin(subject, news)? else {
        let mut report = Report::default();
        report.note_end(&subject.options().cancel);
        return Ok(Predictions::nothing(report));
    };
    let mut report = begun.report();
    report.contexts = begun.contexts();
    let points = begun.points();
    let mut predictor = Predictor {
        rules: begun.rules.clone(),
        findings: begun.findings(),
        stage: begun.stage,
        options: subject.options(),
        habits: subject.habits(),
        points: points.into_iter().collect(),
        report,
        covered: subject.options().coverage.then(Covered::default),
    };
    let focus = subject.focus(&mut predictor.stage)?;
    predictor.set_points();
    let code = code(&mut predictor.stage);
    let critical = &code.critical;
    let sizes = (to_u64(critical.sites()), to_u64(critical.reads()));
    let (mut profile, passing) = predictor.profile(what.runs, code, news);
    let (accesses, excluded) = (profile.accesses, profile.excluded);
    let profiled = predictor.report.schedules;
    let ranked = profile.ranked().into_iter();
    let is_wanted = |kind: Kind| what.only.is_empty() || what.only.contains(&kind.name());
    let ranked = ranked.filter(|instances| {
        is_wanted(instances[0].kind) && takes_part(&instances[0].sites, &focus)
    });
    let waiting = predictor.waiting_loops(&profile);
    let predicted = predictor.force_all(ranked.collect(), what.validates, news);
    let invariants = predictor.proposed(&profile, &predicted);
    let forced = predictor.report.schedules - profiled;
    Ok(Predictions {
        predicted,
        accesses,
        profiled,
        forced,
        passing,
        excluded,
        invariants,
        waiting,
        failure_sites: sizes.0,
        critical_reads: sizes.1,
        ..Predictions::nothing(predictor.finish(news))
    })
}

/// Whether one of the instructions lies in the code that was asked for, if any was.
fn takes_part(sites: &[(Site, &'static str)], focus: &[Range<Site>]) -> bool {
    focus.is_empty()
        || sites
            .iter()
            .any(|(site, _)| focus.iter().any(|range| range.contains(site)))
}

impl<S: Stage> Predictor<'_, S> {
    fn set_points(&mut self) {
        let points: Vec<Site> = self.points.iter().copied().collect();
        self.stage.add_points(&points);
    }

    fn is_over(&self) -> bool {
        self.options.cancel.is_asked(Urgency::TimeIsUp)
    }

    /// Finely interleaved runs: what is apart by accident only must not look ordered. What is predicted comes from runs
    /// that end well; if one fails, which is a finding, another one is tried.
    fn profile(
        &mut self,
        runs: u64,
        code: ProgramCode,
        news: &mut Listener<'_, S::Recording>,
    ) -> (Profile, u64) {
        let mut profile = Profile::with(code);
        let mut passing = 0;
        for number in 0..runs.saturating_mul(TRIES) {
            if self.is_over() || passing == runs {
                break;
            }
            let seed = Prng::derive_seed(self.options.seed, number);
            passing += u64::from(self.profile_run(seed, &mut profile));
            self.tell(news);
        }
        (profile, passing)
    }

    /// One run of the profile: once to learn where contexts meet, once to look at everything. Whether it ended well.
    fn profile_run(&mut self, seed: u64, profile: &mut Profile) -> bool {
        let default = raddle_sched::Profile::default();
        let material = Material {
            profile: &default,
            groups: &[],
            wishes: &Vec::new(),
            focus: &[],
            is_timed: false,
            turn_wait: None,
            is_stepwise: false,
            faults: &[],
        };
        let mut walk = scheduler(Algorithm::RandomWalk, seed, material);
        let learned = self.stage.run(&mut *walk, &self.rules, Watch::MEMORY);
        let meetings = learned.learned.as_ref().map(|learned| &learned.meetings);
        self.points.extend(meetings.into_iter().flatten().flatten());
        self.set_points();
        self.note(learned);
        let mut walk = scheduler(Algorithm::RandomWalk, seed, material);
        let run = self.observe(&mut *walk, Some(&mut *profile));
        let has_failed = run.failure.is_some() || run.drive.end == End::Abandoned;
        profile.end_run(
            raddle_world::World::contexts(self.stage.world()),
            has_failed,
        );
        self.note(run);
        !has_failed
    }

    /// Runs with observers: the profile, if this run is part of it, and the coverage, if that is asked for.
    fn observe(
        &mut self,
        scheduler: &mut dyn Scheduler,
        profile: Option<&mut Profile>,
    ) -> RunOf<S> {
        let mut coverage = Coverage::default();
        let mut observers: Vec<&mut dyn Observer> = Vec::new();
        if let Some(profile) = profile {
            observers.push(profile);
        }
        if self.covered.is_some() {
            observers.push(&mut coverage);
        }
        let run = self.stage.observe(scheduler, &self.rules, &mut observers);
        if let Some(covered) = &mut self.covered {
            covered.absorb(coverage.finish());
        }
        run
    }

    /// Takes a run into account; its fingerprint if it failed.
    fn note(&mut self, run: RunOf<S>) -> Option<String> {
        if run.drive.end == End::Abandoned {
            return None;
        }
        let digests = run.failure.is_some().then(|| self.stage.digests());
        let mut outcome = RunOutcome::new(self.report.schedules, run);
        outcome.digests = digests;
        self.report.schedules += 1;
        self.report.steps += outcome.steps;
        self.report.decisions = self.report.decisions.max(outcome.decisions);
        self.report.contexts = self.report.contexts.max(outcome.contexts);
        self.findings.note(&outcome);
        let failure = outcome.failure.as_ref()?;
        self.report.failing += 1;
        self.report.first_failing.get_or_insert(outcome.index);
        Some(failure.fingerprint())
    }

    fn tell(&mut self, news: &mut Listener<'_, S::Recording>) {
        self.findings
            .keep_new(&mut self.stage, &self.rules, self.options, news);
        news(News::Progress(self.progress(Phase::Exploring)));
    }

    fn progress(&self, phase: Phase) -> Progress {
        Progress {
            phase,
            schedules: self.report.schedules,
            distinct: self.report.schedules,
            failures: to_u64(self.findings.len()),
            ..Progress::default()
        }
    }

    fn force_all(
        &mut self,
        ranked: Vec<Vec<Target>>,
        validates: bool,
        news: &mut Listener<'_, S::Recording>,
    ) -> Vec<Predicted> {
        let mut predicted = Vec::new();
        for instances in ranked {
            let mut result = Predicted {
                target: instances[0].clone(),
                outcome: Outcome::Untried,
                attempts: 0,
                fingerprint: None,
                places: Vec::new(),
            };
            let instances = instances.iter().filter(|_| validates);
            let ways = instances.flat_map(|target| {
                let ways = target.ways.iter();
                ways.map(move |way| (target, way))
            });
            for (target, way) in ways {
                if self.is_over() || result.outcome == Outcome::Confirmed {
                    break;
                }
                self.force(target, way, &mut result);
                self.tell(news);
            }
            predicted.push(result);
        }
        for result in &mut predicted {
            let sites = result.target.sites.iter();
            let places = sites.map(|(site, role)| (self.stage.describe(*site), *role));
            result.places = places.collect();
        }
        predicted
    }

    /// Forces a target in one of its ways: in the default order, and if that does not lead there, with the context that
    /// is to be held first of all.
    fn force(&mut self, target: &Target, way: &Way, result: &mut Predicted) {
        for is_first in [false, true] {
            let outcome = self.attempt((target, way), is_first, result);
            if matches!(outcome, None | Some(Outcome::Confirmed | Outcome::Benign)) {
                break;
            }
        }
    }

    /// One run with the holds of a way; what came of it is kept if it says more than what is known.
    fn attempt(
        &mut self,
        (target, way): (&Target, &Way),
        is_first: bool,
        result: &mut Predicted,
    ) -> Option<Outcome> {
        let holds = way.iter().map(|forced| self.hold(forced));
        let mut directed = Directed::new(holds.collect());
        if is_first && let Some(first) = way.first() {
            directed = directed.preferring(first.path.clone());
        }
        // Where decisions are made besides does not matter: all others follow the default order.
        let sites = way.iter();
        let sites = sites.flat_map(|forced| [forced.at.site, forced.until.site]);
        self.stage.add_points(&sites.collect::<Vec<_>>());
        let run = if self.covered.is_some() {
            self.observe(&mut directed, None)
        } else {
            self.stage.run(&mut directed, &self.rules, Watch::NOTHING)
        };
        if run.drive.end == End::Abandoned {
            return None;
        }
        result.attempts += 1;
        let outcome = match self.note(run) {
            Some(fingerprint) => {
                result.target = target.clone();
                result.fingerprint = Some(fingerprint);
                Outcome::Confirmed
            }
            None => Outcome::of(directed.verdict()),
        };
        result.outcome = result.outcome.min(outcome);
        Some(outcome)
    }

    fn waiting_loops(&mut self, profile: &Profile) -> Vec<(String, String)> {
        let loops = profile.waiting_loops().into_iter();
        let words = loops.map(|(read, write)| {
            let read = self.stage.describe(read);
            (read, self.stage.describe(write))
        });
        words.collect()
    }

    /// The invariants that only failing runs broke, the best supported first.
    fn proposed(&mut self, profile: &Profile, predicted: &[Predicted]) -> Vec<Proposed> {
        let mut proposed: Vec<Proposed> = Vec::new();
        for predicted in predicted {
            let Some(fingerprint) = predicted.fingerprint.clone() else {
                continue;
            };
            let Some(invariant) = profile.broken_by(&predicted.target) else {
                continue;
            };
            let Some(at) = self.stage.name_code(invariant.read) else {
                continue;
            };
            let is_known = |known: &Proposed| known.invariant.read == invariant.read;
            if !proposed.iter().any(is_known) {
                proposed.push(Proposed {
                    at,
                    invariant,
                    fingerprint,
                });
            }
        }
        proposed.sort_by_key(|proposed| std::cmp::Reverse(proposed.invariant.support));
        proposed
    }

    fn hold(&self, forced: &Forced) -> Hold {
        let limits = self.rules.limits();
        let place = |spot: Spot| Place {
            site: spot.site,
            addr: (spot.addr != 0).then_some(spot.addr),
        };
        Hold {
            context: Some(forced.path.clone()),
            at: place(forced.at),
            visit: forced.at.visit,
            until: place(forced.until),
            budget: Budget {
                steps: (self.report.baseline_steps * 2)
                    .max(HOLD_STEPS_MIN)
                    .min(limits.steps),
                jumps: HOLD_JUMPS,
            },
        }
    }

    fn finish(mut self, news: &mut Listener<'_, S::Recording>) -> Report<S::Recording, S::Tally> {
        self.report.note_end(&self.options.cancel);
        self.report.distinct = self.report.schedules;
        if let Some(covered) = self.covered.take() {
            let named = NamedCoverage::of(&mut self.stage, covered);
            self.report.coverage = Some(named);
        }
        let progress = self.progress(Phase::Exploring);
        self.findings.explain(
            &mut self.stage,
            &self.rules,
            (self.options, &self.habits.effort),
            &mut self.report,
            &mut |number, of| {
                news(News::Progress(Progress {
                    phase: Phase::Explaining { number, of },
                    ..progress
                }));
            },
        );
        self.report
    }
}
