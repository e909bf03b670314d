//! A subject that stands ready on a worker, and what jobs come to there.

use std::collections::BTreeSet;
use std::fmt;

use raddle_campaign::{Explorer, Job, OutcomeOf, Shared, Stage, Subject, Worker};
use raddle_linux::ContentId;
use raddle_world::{Site, Unsupported};
use serde_json::Value;

use crate::message::{Batch, Done, Told, encode, key};
use crate::worker::now;

/// A subject that stands ready on one thread.
pub trait Bench {
    /// Does jobs, and tells of them. `text` is what they share, unless it is known.
    ///
    /// # Errors
    /// What is shared cannot be read.
    fn run(&mut self, batch: &Batch, text: Option<&str>, worker: &str) -> Result<Vec<u8>, String>;

    /// Whether it knows what jobs share.
    fn knows(&self, shared: &ContentId) -> bool;
}

type SharedOf<S> = Shared<<<S as Subject>::Stage as Stage>::Rules>;

/// The bench of any subject.
pub struct SubjectBench<S: Subject> {
    subject: S,
    explorer: Explorer<S>,
    /// Decision points that the explorer's stage has.
    points: BTreeSet<Site>,
    shared: Option<(ContentId, SharedOf<S>)>,
    /// Asked after each batch what there is to tell besides its outcomes.
    beside: Option<Box<dyn FnMut() -> Value>>,
}

impl<S: Subject> fmt::Debug for SubjectBench<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubjectBench")
    }
}

impl<S: Subject> SubjectBench<S> {
    /// Brings the subject to where its schedules begin.
    ///
    /// # Errors
    /// It does not come there.
    pub fn start(subject: S) -> Result<Self, S::StartFailure> {
        Ok(Self {
            explorer: Explorer::try_start(&subject)?,
            subject,
            points: BTreeSet::new(),
            shared: None,
            beside: None,
        })
    }

    /// The same with something to tell of each batch besides its outcomes.
    #[must_use]
    pub fn telling(self, beside: impl FnMut() -> Value + 'static) -> Self {
        Self {
            beside: Some(Box::new(beside)),
            ..self
        }
    }

    /// Takes what jobs share. Points are never taken away from a stage, so jobs of a campaign that began anew, which
    /// knows fewer of them, need a new one.
    fn share(&mut self, id: &ContentId, text: &str) -> Result<(), String> {
        let shared: SharedOf<S> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let points: BTreeSet<Site> = shared.points.iter().copied().collect();
        if !self.points.is_subset(&points) {
            let again = Explorer::try_start(&self.subject);
            self.explorer = again.map_err(|_| "it does not start a second time".to_owned())?;
        }
        self.points = points;
        self.explorer.begin(&shared);
        self.shared = Some((id.clone(), shared));
        Ok(())
    }

    fn job(&mut self, job: &Job) -> Done<OutcomeOf<S::Stage>> {
        let Some((_, shared)) = &self.shared else {
            return Done::NotHere("nothing is known of what jobs share".into());
        };
        let Some(outcome) = self.explorer.run(shared, job) else {
            return Done::NotHere("it took longer than the worker gives a job".into());
        };
        match outcome.unsupported.as_deref() {
            Some(what @ Unsupported::Elsewhere { .. }) => Done::NotHere(what.to_string()),
            _ => Done::Outcome(outcome),
        }
    }
}

impl<S: Subject> Bench for SubjectBench<S> {
    fn run(&mut self, batch: &Batch, text: Option<&str>, worker: &str) -> Result<Vec<u8>, String> {
        let begun = now();
        if let Some(text) = text {
            self.share(&batch.shared.id, text)?;
        }
        // Jobs of a batch come in the order of their numbers, batches in any order.
        self.explorer.forget_failures();
        let mut done = Vec::with_capacity(batch.jobs.len());
        for job in &batch.jobs {
            done.push((job.index, key(&batch.shared.id, job), self.job(job)));
        }
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        Ok(encode(&Told {
            worker: worker.to_owned(),
            attempt: batch.attempt,
            micros,
            done,
            beside: self.beside.as_mut().map_or(Value::Null, |tell| tell()),
        }))
    }

    fn knows(&self, shared: &ContentId) -> bool {
        self.shared.as_ref().is_some_and(|(id, _)| id == shared)
    }
}
