//! Generations of jobs on several workers, who are a [`Crew`].
//!
//! A generation is a list of jobs that is fixed before it begins; what its runs teach is merged in the order of
//! their numbers after it has ended. Each worker has a world of its own and takes the next job when it is free.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Schedules of the first generations; the last number holds for all later ones.
const SIZES: [u64; 3] = [8, 24, 64];

/// How often the director may look at a generation that takes long; no result depends on it.
const LOOK: Duration = Duration::from_millis(100);

/// Jobs with what all of them share.
#[derive(Debug)]
pub struct Generation<S, J> {
    pub shared: S,
    pub jobs: Vec<J>,
}

/// One who does jobs, in a world of its own.
pub trait Worker {
    /// What all jobs of a generation share.
    type Shared: Send + Sync;
    type Job: Send + Sync;
    type Outcome: Send;

    /// To be told before the first job of a generation.
    fn begin(&mut self, shared: &Self::Shared);

    /// Does a job; none if it is not wanted any more.
    fn run(&mut self, shared: &Self::Shared, job: &Self::Job) -> Option<Self::Outcome>;
}

/// One who says what is to be done and takes what was.
pub trait Director<W: Worker> {
    /// The next generation, of this size at most; none to end.
    fn plan(&mut self, number: usize, size: u64) -> Option<Generation<W::Shared, W::Job>>;

    /// Told from time to time how many jobs of the present generation were begun.
    fn watch(&mut self, _begun: usize) {}

    /// The outcomes of the jobs that were done, in the order of the jobs; says whether to go on.
    fn take(&mut self, outcomes: Vec<W::Outcome>) -> bool;
}

/// Those who do the jobs of a generation: threads of this process, or workers on other machines.
///
/// A crew decides who does a job and when, never what comes of it.
pub trait Crew<W: Worker> {
    /// Has the jobs of a generation done, and gives the outcomes of those that were, in the order of the jobs. `watch` is
    /// told from time to time how many were begun.
    fn run(
        &mut self,
        generation: Generation<W::Shared, W::Job>,
        watch: &mut dyn FnMut(usize),
    ) -> Vec<W::Outcome>;
}

/// Runs generations until the director ends them or no worker is left.
pub fn run_generations<W: Worker>(crew: &mut dyn Crew<W>, director: &mut dyn Director<W>) {
    for number in 0.. {
        let size = SIZES[number.min(SIZES.len() - 1)];
        let Some(generation) = director.plan(number, size) else {
            break;
        };
        let done = crew.run(generation, &mut |begun| director.watch(begun));
        let is_without_workers = done.is_empty();
        if !director.take(done) || is_without_workers {
            break;
        }
    }
}

struct Issue<S, J> {
    generation: Generation<S, J>,
    next: AtomicUsize,
}

/// Jobs with what they share, as threads get them.
type IssueOf<W> = Arc<Issue<<W as Worker>::Shared, <W as Worker>::Job>>;

/// Threads of this process, each with a worker of its own.
struct Threads<W: Worker> {
    queues: Vec<mpsc::Sender<IssueOf<W>>>,
    shares: mpsc::Receiver<Share<W::Outcome>>,
}

/// Has `act` done with a crew of threads. A worker for which `start` gives nothing does not take part; the others do its
/// share.
pub fn with_threads<W: Worker, R>(
    workers: usize,
    start: &(dyn Fn() -> Option<W> + Sync),
    act: impl FnOnce(&mut dyn Crew<W>) -> R,
) -> R {
    std::thread::scope(|scope| {
        let (shares_in, shares) = mpsc::channel();
        let mut queues = Vec::new();
        for _ in 0..workers.max(1) {
            let (queue, issues) = mpsc::channel::<IssueOf<W>>();
            let shares_in = shares_in.clone();
            scope.spawn(move || {
                if let Some(worker) = start() {
                    work(worker, &issues, &shares_in);
                }
            });
            queues.push(queue);
        }
        drop(shares_in);
        act(&mut Threads { queues, shares })
    })
}

impl<W: Worker> Crew<W> for Threads<W> {
    fn run(
        &mut self,
        generation: Generation<W::Shared, W::Job>,
        watch: &mut dyn FnMut(usize),
    ) -> Vec<W::Outcome> {
        let issue = Arc::new(Issue {
            generation,
            next: AtomicUsize::new(0),
        });
        for queue in &self.queues {
            // It fails for a worker that could not start.
            drop(queue.send(Arc::clone(&issue)));
        }
        let mut done = collect::<W>(&self.shares, &issue, watch);
        done.sort_by_key(|(index, _)| *index);
        done.into_iter()
            .filter_map(|(_, outcome)| outcome)
            .collect()
    }
}

/// Jobs that one worker took, with their outcomes.
type Share<O> = Vec<(usize, Option<O>)>;

/// Waits until all jobs of a generation were taken and are done; fewer if no worker is left.
fn collect<W: Worker>(
    shares: &mpsc::Receiver<Share<W::Outcome>>,
    issue: &Issue<W::Shared, W::Job>,
    watch: &mut dyn FnMut(usize),
) -> Share<W::Outcome> {
    let jobs = issue.generation.jobs.len();
    let mut done = Vec::with_capacity(jobs);
    while done.len() < jobs {
        match shares.recv_timeout(LOOK) {
            Ok(share) => done.extend(share),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                watch(issue.next.load(Ordering::Relaxed).min(jobs));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    done
}

/// A worker tells of a whole generation at once: to wake the one who waits costs as much as a tenth of a short
/// schedule.
fn work<W: Worker>(
    mut worker: W,
    issues: &mpsc::Receiver<IssueOf<W>>,
    shares: &mpsc::Sender<Share<W::Outcome>>,
) {
    for issue in issues {
        let generation = &issue.generation;
        worker.begin(&generation.shared);
        let mut share = Vec::new();
        loop {
            let index = issue.next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = generation.jobs.get(index) else {
                break;
            };
            share.push((index, worker.run(&generation.shared, job)));
        }
        if !share.is_empty() && shares.send(share).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Adder {
        base: u64,
    }

    impl Worker for Adder {
        type Shared = u64;
        type Job = u64;
        type Outcome = u64;

        fn begin(&mut self, shared: &u64) {
            self.base = *shared;
        }

        fn run(&mut self, _: &u64, job: &u64) -> Option<u64> {
            (!job.is_multiple_of(5)).then_some(self.base + job)
        }
    }

    #[derive(Default)]
    struct Three {
        taken: Vec<u64>,
        sizes: Vec<u64>,
    }

    impl Director<Adder> for Three {
        fn plan(&mut self, number: usize, size: u64) -> Option<Generation<u64, u64>> {
            self.sizes.push(size);
            (number < 3).then(|| Generation {
                shared: 1000,
                jobs: (0..size).collect(),
            })
        }

        fn take(&mut self, outcomes: Vec<u64>) -> bool {
            self.taken.extend(outcomes);
            true
        }
    }

    #[test]
    fn outcomes_come_in_the_order_of_the_jobs_whoever_did_them() {
        let results = [1, 2, 7].map(|workers| {
            let mut director = Three::default();
            with_threads(workers, &|| Some(Adder { base: 0 }), |crew| {
                run_generations(crew, &mut director);
            });
            assert_eq!(director.sizes, [8, 24, 64, 64]);
            director.taken
        });
        assert_eq!(results[0][..4], [1001, 1002, 1003, 1004]);
        assert_eq!(results[0], results[1]);
        assert_eq!(results[0], results[2]);
    }

    #[test]
    fn without_workers_it_ends() {
        let mut director = Three::default();
        with_threads::<Adder, _>(2, &|| None, |crew| run_generations(crew, &mut director));
        assert_eq!(director.taken, Vec::<u64>::new());
    }
}
