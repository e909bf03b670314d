//! What came back of a generation: the first outcome of each job counts, all others must be equal to it.

use std::collections::{BTreeMap, BTreeSet};

use raddle_campaign::subject::Data;
use raddle_campaign::{Job, Outcome, Spent};
use raddle_linux::ContentId;

use crate::message::{Done, Told, check, key};

/// Attempts from this number on are there to check the others.
pub(crate) const CHECK: u32 = 1 << 20;

/// One job of a generation.
#[derive(Debug)]
struct Awaited<O> {
    key: u64,
    /// Whether a second outcome is wanted, to be compared with the first.
    is_checked: bool,
    /// Attempts that were told of.
    told: BTreeSet<u32>,
    first: Option<(O, String)>,
    /// No worker could do it, for this reason.
    not_here: Option<String>,
}

/// Two workers that came to different outcomes of one job: the machine of one of them is broken, or raddle is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub index: u64,
    pub workers: [String; 2],
}

/// The outcomes of a generation, as far as they came.
#[derive(Debug)]
pub struct Round<F, R, T> {
    awaited: BTreeMap<u64, Awaited<Outcome<F, R, T>>>,
    /// Outcomes that came again.
    pub repeated: u64,
    /// Messages that were refused, with the reason of the last one.
    pub refused: Option<String>,
    pub differences: Vec<Difference>,
}

impl<F: Data + PartialEq, R: Data + PartialEq, T: Data + PartialEq> Round<F, R, T> {
    /// `checked` says of which jobs two outcomes are wanted.
    pub fn new(shared: &ContentId, jobs: &[Job], checked: impl Fn(u64) -> bool) -> Self {
        let awaited = jobs.iter().map(|job| {
            let awaited = Awaited {
                key: key(shared, job),
                is_checked: checked(job.index),
                told: BTreeSet::new(),
                first: None,
                not_here: None,
            };
            (job.index, awaited)
        });
        Self {
            awaited: awaited.collect(),
            repeated: 0,
            refused: None,
            differences: Vec::new(),
        }
    }

    /// Whether a worker tells of a job of this generation.
    pub fn is_about(&self, told: &Told<Outcome<F, R, T>>) -> bool {
        let is_known = |(index, key, _): &(u64, u64, Done<_>)| {
            let awaited = self.awaited.get(index);
            awaited.is_some_and(|job| job.key == *key)
        };
        told.done.iter().any(is_known)
    }

    /// Takes what a worker told; says whether something of it was wanted.
    pub fn take(&mut self, told: Told<Outcome<F, R, T>>) -> bool {
        let mut is_new = false;
        for (index, key, done) in told.done {
            is_new |= self.take_one(index, key, done, (&told.worker, told.attempt));
        }
        is_new
    }

    fn take_one(
        &mut self,
        index: u64,
        key: u64,
        done: Done<Outcome<F, R, T>>,
        (worker, attempt): (&str, u32),
    ) -> bool {
        // Jobs of earlier generations, and of a director that planned others.
        let Some(awaited) = self.awaited.get_mut(&index).filter(|job| job.key == key) else {
            self.repeated += 1;
            return false;
        };
        let outcome = match done {
            Done::Outcome(outcome) => outcome,
            Done::NotHere(reason) => {
                awaited.not_here = Some(reason);
                return true;
            }
        };
        if let Err(refused) = check(index, &outcome) {
            self.refused = Some(format!("from {worker}: {refused}"));
            return false;
        }
        let is_new = awaited.told.insert(attempt);
        match &awaited.first {
            None => awaited.first = Some((outcome, worker.to_owned())),
            Some((first, by)) => {
                self.repeated += u64::from(!awaited.is_checked || attempt < CHECK);
                if !is_same(first, &outcome) {
                    self.differences.push(Difference {
                        index,
                        workers: [by.clone(), worker.to_owned()],
                    });
                }
            }
        }
        is_new
    }

    /// Numbers of the jobs that no worker has told of yet, and of those of which the check is missing.
    pub fn missing(&self) -> (BTreeSet<u64>, BTreeSet<u64>) {
        let is_open = |job: &Awaited<_>| job.first.is_none() && job.not_here.is_none();
        let is_unchecked = |job: &Awaited<_>| {
            let has_check = job.told.range(CHECK..).next().is_some();
            job.is_checked && !has_check && job.not_here.is_none()
        };
        let numbers = |wanted: &dyn Fn(&Awaited<_>) -> bool| {
            let jobs = self.awaited.iter().filter(|(_, job)| wanted(job));
            jobs.map(|(index, _)| *index).collect()
        };
        (numbers(&is_open), numbers(&is_unchecked))
    }

    /// Jobs that could not be done by a worker, with the reason.
    pub fn not_here(&self) -> Vec<(u64, String)> {
        let open = self.awaited.iter().filter(|(_, job)| job.first.is_none());
        open.filter_map(|(index, job)| Some((*index, job.not_here.clone()?)))
            .collect()
    }

    /// What the director did itself.
    pub fn put(&mut self, index: u64, outcome: Outcome<F, R, T>) {
        if let Some(awaited) = self.awaited.get_mut(&index) {
            let own = (outcome, "the director".to_owned());
            awaited.first.get_or_insert(own);
        }
    }

    /// How many jobs are done.
    pub fn done(&self) -> usize {
        self.awaited
            .values()
            .filter(|job| job.first.is_some())
            .count()
    }

    /// The outcomes in the order of the jobs' numbers.
    pub fn into_outcomes(self) -> Vec<Outcome<F, R, T>> {
        let jobs = self.awaited.into_values();
        jobs.filter_map(|job| Some(job.first?.0)).collect()
    }
}

/// Equal but for what they cost; a digest that one of them has must be the other's, if that has it, too.
fn is_same<F: Data + PartialEq, R: Data + PartialEq, T: Data + PartialEq>(
    one: &Outcome<F, R, T>,
    other: &Outcome<F, R, T>,
) -> bool {
    let bare = |outcome: &Outcome<F, R, T>| Outcome {
        spent: Spent::default(),
        digests: None,
        ..outcome.clone()
    };
    let has_other_digest = match (one.digests, other.digests) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    };
    !has_other_digest && bare(one) == bare(other)
}

#[cfg(test)]
mod tests {
    use raddle_campaign::{Algorithm, Digests};

    use super::*;
    use crate::content::id_of;

    type Plain = Outcome<u64, u64, ()>;

    fn job(index: u64) -> Job {
        Job {
            index,
            seed: index,
            algorithm: Algorithm::Default,
            wishes: Vec::new(),
            is_timed: false,
            may_jump: false,
            observes: false,
            covers: false,
        }
    }

    fn outcome(index: u64, steps: u64) -> Plain {
        Outcome {
            index,
            schedule: None,
            schedule_digest: 1,
            steps,
            decisions: 0,
            switches: 0,
            contexts: 1,
            class: 0,
            pairs: Vec::new(),
            interrupted: Vec::new(),
            unsupported: None,
            failure: None,
            digests: None,
            profile: None,
            learned: None,
            tally: (),
            spent: Spent::default(),
        }
    }

    fn told(worker: &str, attempt: u32, done: Vec<(u64, Done<Plain>)>) -> Told<Plain> {
        let shared = id_of(b"shared");
        let done = done.into_iter();
        Told {
            worker: worker.into(),
            attempt,
            micros: 1,
            done: done
                .map(|(index, done)| (index, key(&shared, &job(index)), done))
                .collect(),
            beside: serde_json::Value::Null,
        }
    }

    fn round(checked: bool) -> Round<u64, u64, ()> {
        let jobs: Vec<Job> = (5..8).map(job).collect();
        Round::new(&id_of(b"shared"), &jobs, |index| checked && index == 6)
    }

    #[test]
    fn the_first_outcome_counts_and_order_is_that_of_the_jobs() {
        let mut round = round(false);
        assert!(round.take(told("b", 0, vec![(7, Done::Outcome(outcome(7, 70)))])));
        assert!(round.take(told(
            "a",
            0,
            vec![
                (6, Done::Outcome(outcome(6, 60))),
                (5, Done::NotHere("no file".into())),
            ]
        )));
        assert_eq!(round.missing().0, BTreeSet::new());
        assert_eq!(round.not_here(), [(5, "no file".to_owned())]);
        round.put(5, outcome(5, 50));
        // Again, from another worker: equal, so that nothing is told.
        let mut again = outcome(6, 60);
        again.spent.instructions = 9;
        again.digests = Some(Digests { run: 1, state: 1 });
        round.take(told("c", 1, vec![(6, Done::Outcome(again))]));
        assert_eq!((round.repeated, round.differences.len()), (1, 0));
        let steps: Vec<u64> = round.into_outcomes().iter().map(|o| o.steps).collect();
        assert_eq!(steps, [50, 60, 70]);
    }

    #[test]
    fn different_outcomes_of_one_job_are_told() {
        let mut round = round(true);
        assert_eq!(round.missing().1, BTreeSet::from([6]));
        round.take(told("a", 0, vec![(6, Done::Outcome(outcome(6, 60)))]));
        assert_eq!(round.missing().1, BTreeSet::from([6]));
        round.take(told("b", CHECK, vec![(6, Done::Outcome(outcome(6, 61)))]));
        assert_eq!(round.missing().1, BTreeSet::new());
        let difference = Difference {
            index: 6,
            workers: ["a".into(), "b".into()],
        };
        assert_eq!(round.differences, [difference]);
    }

    #[test]
    fn strange_outcomes_are_refused() {
        let mut round = round(false);
        let mut wrong = outcome(5, 1);
        wrong.failure = Some(1);
        round.take(told("a", 0, vec![(5, Done::Outcome(wrong))]));
        let reason = round.refused.clone().unwrap();
        assert!(reason.contains("no schedule says how"), "{reason}");
        round.take(told("a", 0, vec![(6, Done::Outcome(outcome(7, 1)))]));
        assert!(!round.take(told("a", 0, vec![(99, Done::Outcome(outcome(99, 1)))])));
        assert_eq!(round.done(), 0);
    }
}
