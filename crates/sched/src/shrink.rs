//! Delta debugging on the deviations of a schedule (Zeller and Hildebrandt, TSE 2002).

use raddle_trace::Schedule;

/// A search for a smaller schedule that still does what it should.
pub trait Shrink {
    /// A run that does what it should.
    type Run;
    /// The schedule of a run, as the run itself wrote it down.
    fn schedule(run: &Self::Run) -> &Schedule;
    /// Runs a schedule; the run, if it does what it should and is smaller than the best one so far.
    fn smaller(&mut self, schedule: &Schedule, best: &Self::Run) -> Option<Self::Run>;
    /// Whether no more runs may be made.
    fn is_exhausted(&self) -> bool;
}

/// Takes deviations away, many at a time at first, until none can go or the search is exhausted.
pub fn remove_deviations<S: Shrink>(search: &mut S, best: &mut S::Run) {
    let mut chunk = S::schedule(best).len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut removed_any = false;
        while at < S::schedule(best).len() {
            if search.is_exhausted() {
                return;
            }
            let end = (at + chunk).min(S::schedule(best).len());
            let candidate = S::schedule(best).without(at..end);
            match search.smaller(&candidate, best) {
                Some(found) => {
                    *best = found;
                    removed_any = true;
                }
                None => at = end,
            }
        }
        if chunk > 1 {
            chunk = chunk.div_ceil(2);
        } else if !removed_any {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use raddle_trace::{Deviation, Phase, Position, Turn};

    use super::*;

    /// Fails as long as the deviations at these steps are there.
    struct Needs {
        steps: Vec<u64>,
        runs: u32,
    }

    impl Shrink for Needs {
        type Run = Schedule;

        fn schedule(run: &Schedule) -> &Schedule {
            run
        }

        fn smaller(&mut self, schedule: &Schedule, _: &Schedule) -> Option<Schedule> {
            self.runs += 1;
            let has = |steps: &u64| schedule.deviations.iter().any(|d| d.at.steps == *steps);
            self.steps.iter().all(has).then(|| schedule.clone())
        }

        fn is_exhausted(&self) -> bool {
            self.runs >= 200
        }
    }

    #[test]
    fn only_what_is_needed_stays() {
        let deviation = |steps| Deviation {
            context: vec![0],
            at: Position {
                steps,
                phase: Phase::Plain,
            },
            turn: Turn::Context(vec![1]),
        };
        let mut best = Schedule {
            deviations: (0..50).map(deviation).collect(),
        };
        let mut search = Needs {
            steps: vec![7, 30, 31],
            runs: 0,
        };
        remove_deviations(&mut search, &mut best);
        let left: Vec<u64> = best.deviations.iter().map(|d| d.at.steps).collect();
        assert_eq!(left, search.steps);
        assert!(search.runs < 100, "{} runs", search.runs);
    }
}
