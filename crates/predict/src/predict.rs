//! Profile, rank, force, report.

use raddle_campaign::{
    Algorithm, Findings, Habits, Listener, Material, News, Options, Outcome as RunOutcome, Phase,
    Progress, Report, ReportOf, Rules as _, RunOf, Stage, Subject, Symptom as _, Urgency, Watch,
    begin, scheduler,
};
use raddle_sched::{Budget, Directed, End, Hold, Spot as Place};
use raddle_stdx::Prng;
use raddle_stdx::width::to_u64;
use raddle_world::Site;

use crate::profile::Profile;
use crate::target::{Kind, Outcome, Spot, Target};

/// Steps that a context is held at least before the hold is given up.
const HOLD_STEPS_MIN: u64 = 200_000;
/// Times that the clock may jump to the next timer while everybody else sleeps.
const HOLD_JUMPS: u32 = 8;

/// What to do.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// Runs of the profile.
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
}

struct Predictor<'a, S: Stage> {
    stage: S,
    rules: S::Rules,
    options: &'a Options,
    habits: Habits,
    findings: Findings<S>,
    report: Report<S::Recording, S::Tally>,
}

/// Profiles a subject, ranks what could go wrong, and forces it.
///
/// # Errors
/// If the subject does not come to the place where its schedules begin.
pub fn predict<S: Subject>(
    subject: &S,
    what: &Prediction,
    news: &mut Listener<'_, <S::Stage as Stage>::Recording>,
) -> Result<Predictions<S>, S::StartFailure> {
    let Some(begun) = begin(subject, news)? else {
        let mut report = Report::default();
        report.note_end(&subject.options().cancel);
        return Ok(Predictions {
            report,
            predicted: Vec::new(),
            accesses: 0,
            profiled: 0,
            forced: 0,
        });
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
        report,
    };
    predictor.stage.add_points(&points);
    let profile = predictor.profile(what.runs, news);
    let (accesses, profiled) = (profile.accesses, predictor.report.schedules);
    let ranked = profile.targets.ranked().into_iter();
    let is_wanted = |kind: Kind| what.only.is_empty() || what.only.contains(&kind.name());
    let ranked = ranked.filter(|instances| is_wanted(instances[0].kind));
    let predicted = predictor.force_all(ranked.collect(), what.validates, news);
    let forced = predictor.report.schedules - profiled;
    Ok(Predictions {
        report: predictor.finish(news),
        predicted,
        accesses,
        profiled,
        forced,
    })
}

impl<S: Stage> Predictor<'_, S> {
    fn is_over(&self) -> bool {
        self.options.cancel.is_asked(Urgency::TimeIsUp)
    }

    /// Finely interleaved runs: what is apart by accident only must not look ordered.
    fn profile(&mut self, runs: u64, news: &mut Listener<'_, S::Recording>) -> Profile {
        let mut profile = Profile::default();
        for number in 0..runs {
            if self.is_over() {
                break;
            }
            let seed = Prng::derive_seed(self.options.seed, number);
            let default = raddle_sched::Profile::default();
            let material = Material {
                profile: &default,
                groups: &[],
                wishes: &Vec::new(),
                focus: &[],
                is_timed: false,
                is_stepwise: false,
            };
            let mut walk = scheduler(Algorithm::RandomWalk, seed, material);
            let learned = self.stage.run(&mut *walk, &self.rules, Watch::MEMORY);
            let meetings = learned.learned.as_ref().map(|learned| &learned.meetings);
            let points: Vec<Site> = meetings.into_iter().flatten().flatten().copied().collect();
            self.stage.add_points(&points);
            self.note(learned);
            let mut walk = scheduler(Algorithm::RandomWalk, seed, material);
            let observers = &mut [&mut profile as &mut dyn raddle_trace::Observer];
            let run = self.stage.observe(&mut *walk, &self.rules, observers);
            profile.end_run(raddle_world::World::contexts(self.stage.world()));
            self.note(run);
            self.tell(news);
        }
        profile
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
        let sites = ranked.iter().flatten().flat_map(|target| {
            let Target { forced, .. } = target;
            [forced.at.site, forced.until.site]
        });
        let sites: Vec<Site> = sites.collect();
        self.stage.add_points(&sites);
        let mut predicted = Vec::new();
        for instances in ranked {
            let mut result = Predicted {
                target: instances[0].clone(),
                outcome: Outcome::Untried,
                attempts: 0,
                fingerprint: None,
                places: Vec::new(),
            };
            for target in instances.iter().filter(|_| validates) {
                let is_over = self.is_over() || result.outcome == Outcome::Confirmed;
                if is_over {
                    break;
                }
                self.force(target, &mut result);
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

    /// One run with one hold; what came of it is kept if it says more than what is known.
    fn force(&mut self, target: &Target, result: &mut Predicted) {
        let limits = self.rules.limits();
        let place = |spot: Spot| Place {
            site: spot.site,
            addr: (spot.addr != 0).then_some(spot.addr),
        };
        let hold = Hold {
            context: Some(target.path.clone()),
            at: place(target.forced.at),
            visit: target.forced.at.visit,
            until: place(target.forced.until),
            budget: Budget {
                steps: (self.report.baseline_steps * 2)
                    .max(HOLD_STEPS_MIN)
                    .min(limits.steps),
                jumps: HOLD_JUMPS,
            },
        };
        let mut directed = Directed::new(vec![hold]);
        let run = self.stage.run(&mut directed, &self.rules, Watch::NOTHING);
        if run.drive.end == End::Abandoned {
            return;
        }
        result.attempts += 1;
        let verdict = Outcome::of(directed.verdict());
        let fingerprint = self.note(run);
        if fingerprint.is_some() {
            result.outcome = Outcome::Confirmed;
            result.target = target.clone();
            result.fingerprint = fingerprint;
        } else {
            result.outcome = result.outcome.min(verdict);
        }
    }

    fn finish(mut self, news: &mut Listener<'_, S::Recording>) -> Report<S::Recording, S::Tally> {
        self.report.note_end(&self.options.cancel);
        self.report.distinct = self.report.schedules;
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
