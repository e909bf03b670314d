//! The director's side: a crew of workers behind a hub.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use async_nats::Subscriber;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::message::PublishMessage;
use futures_util::StreamExt;
use raddle_campaign::{
    Cancel, Crew, Explorer, Generation, Job, OutcomeOf, Shared, Stage, Subject, Urgency, Worker,
};
use raddle_stdx::Prng;
use raddle_stdx::width::to_u64;

use crate::batching::batch_size;
use crate::campaign::{Campaign, Ears, Figures, Wishes};
use crate::connection::{Hub, HubError, JOBS, OUTCOMES};
use crate::content::id_of;
use crate::message::{Batch, Hello, Present, SharedPart, Told, decode, encode};
use crate::outcomes::{CHECK, Round};

/// How often the director looks up while it waits.
const LOOK: Duration = Duration::from_millis(100);
/// What is shared goes with every batch up to this size, else it is fetched by its digest.
const INLINE_MAX: usize = 32 << 10;
/// The shortest time without news after which jobs are given out again.
const PATIENCE: Duration = Duration::from_secs(1);
const PATIENCE_MAX: Duration = Duration::from_secs(30);
/// Batches that take longest are waited for so many times as long.
const PATIENCE_FACTOR: u32 = 6;
/// How often the director asks who is there while nothing comes.
const ASKING: Duration = Duration::from_secs(5);
/// How long answers are waited for.
const ANSWERS: Duration = Duration::from_millis(250);

/// Workers behind a hub.
pub struct HubCrew<'a, S: Subject> {
    hub: &'a Hub,
    subject: &'a S,
    campaign: Campaign,
    wishes: Wishes,
    ears: Ears<'a>,
    told: Subscriber,
    /// What an earlier director was told; none when all of it was read.
    past: Option<PullConsumer>,
    /// Told earlier, of jobs that were not planned yet.
    ahead: BTreeMap<u64, Vec<Vec<u8>>>,
    /// Does what no worker can.
    own: Option<Explorer<S>>,
    /// Tells batches of this director from those of another.
    nonce: String,
    troubles: (mpsc::Sender<String>, mpsc::Receiver<String>),
    threads: u64,
    micros_per_job: u64,
    slowest: Duration,
    noticed: Option<Instant>,
    /// Jobs may be missing from the queue.
    has_lost: bool,
    figures: Figures,
}

impl<S: Subject> fmt::Debug for HubCrew<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = &self.figures;
        f.debug_struct("HubCrew").field("figures", figures).finish()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long workers are waited for decides who does a job, and no result"
)]
fn now() -> Instant {
    Instant::now()
}

impl<'a, S: Subject> HubCrew<'a, S> {
    /// Asks who is there.
    ///
    /// # Errors
    /// The hub does not answer.
    pub fn new(
        hub: &'a Hub,
        subject: &'a S,
        campaign: Campaign,
        wishes: Wishes,
        ears: Ears<'a>,
    ) -> Result<Self, HubError> {
        let outcomes = campaign.outcomes();
        let told = hub
            .wait(hub.client.subscribe(outcomes.clone()))
            .map_err(|error| hub.failed("hear of outcomes", error))?;
        hub.purge(JOBS, &campaign.jobs())?;
        let past = if wishes.resume {
            Some(hub.told_since(&outcomes, 1)?)
        } else {
            hub.purge(OUTCOMES, &outcomes)?;
            None
        };
        let mut crew = Self {
            hub,
            subject,
            wishes,
            ears,
            told,
            past,
            ahead: BTreeMap::new(),
            own: None,
            nonce: hub.client.new_inbox(),
            troubles: mpsc::channel(),
            threads: 1,
            micros_per_job: 1_000,
            slowest: Duration::ZERO,
            noticed: None,
            has_lost: false,
            figures: Figures::default(),
            campaign,
        };
        crew.ask_who_is_there();
        Ok(crew)
    }

    fn cancel(&self) -> &Cancel {
        &self.subject.options().cancel
    }

    /// Ends the campaign on the hub: what is queued is thrown away, and if it is over, also what was told.
    pub fn end(self, is_over: bool) -> Figures {
        let purged = self.hub.purge(JOBS, &self.campaign.jobs());
        let purged = match is_over {
            true => purged.and_then(|()| self.hub.purge(OUTCOMES, &self.campaign.outcomes())),
            false => purged,
        };
        if let Err(error) = purged {
            (self.ears.notice)(&error.to_string());
        }
        let subject = format!("raddle.end.{}", self.campaign.id);
        let said = self.hub.wait(async {
            drop(self.hub.client.publish(subject, "".into()).await);
            self.hub.client.flush().await
        });
        // Workers that do not hear of it find out by themselves.
        drop(said);
        self.figures
    }

    /// Counts the threads of workers of this build, and tells why others take no part.
    fn ask_who_is_there(&mut self) {
        let hello = encode(&Hello {
            identity: self.campaign.identity.clone(),
            campaign: self.campaign.id.clone(),
            name: self.campaign.name.clone(),
        });
        let client = &self.hub.client;
        let answers: Vec<Present> = self.hub.wait(async {
            let inbox = client.new_inbox();
            let Ok(mut answers) = client.subscribe(inbox.clone()).await else {
                return Vec::new();
            };
            let asked = client.publish_with_reply("raddle.hello", inbox, hello.into());
            if asked.await.is_err() {
                return Vec::new();
            }
            let mut present = Vec::new();
            let until = tokio::time::Instant::now() + ANSWERS;
            while let Ok(Some(answer)) = tokio::time::timeout_at(until, answers.next()).await {
                present.extend(decode::<Present>(&answer.payload).ok());
            }
            present
        });
        let own = &self.campaign.identity;
        let mut threads = 0;
        let mut others = BTreeSet::new();
        for present in answers {
            match own.difference(&present.identity) {
                None => threads += u64::from(present.threads),
                Some(why) => drop(others.insert(format!("{} is of {why}", present.worker))),
            }
        }
        self.threads = threads.max(1);
        if threads == 0 && self.figures.messages_in == 0 {
            let mut text = format!(
                "no worker of this build answers on {}: jobs wait there until one comes (`raddle worker --hub {}`)",
                self.hub.url(),
                self.hub.url()
            );
            for other in others {
                text.push_str(&format!("; {other}"));
            }
            self.say(&text);
        }
    }

    /// Says something, but not again and again.
    fn say(&mut self, text: &str) {
        let is_early = self.noticed.is_some_and(|at| at.elapsed() < ASKING * 6);
        if !is_early {
            (self.ears.notice)(text);
            self.noticed = Some(now());
        }
    }

    /// Puts jobs into the queue.
    fn issue(&mut self, shared: &SharedPart, jobs: &[&Job], attempt: u32) {
        let mut rest = jobs;
        while !rest.is_empty() {
            let counts = (to_u64(rest.len()), to_u64(jobs.len()));
            let size = batch_size(counts, self.threads, self.micros_per_job);
            let (part, later) = rest.split_at(size.min(rest.len()));
            rest = later;
            let batch = Batch {
                campaign: self.campaign.id.clone(),
                subject: self.campaign.manifest.clone(),
                shared: shared.clone(),
                attempt,
                jobs: part.iter().map(|job| (*job).clone()).collect(),
            };
            let payload = encode(&batch);
            self.figures.batches += 1;
            self.figures.jobs += to_u64(part.len());
            self.figures.bytes_out += to_u64(payload.len());
            let first = part[0].index;
            let id = format!("{}.{}.{first}.{attempt}", self.nonce, self.campaign.id);
            let message = PublishMessage::build()
                .payload(payload.into())
                .message_id(id);
            let sent = self
                .hub
                .wait(self.hub.context.send_publish(self.campaign.jobs(), message));
            let trouble = self.troubles.0.clone();
            match sent {
                Ok(stored) => {
                    self.hub.beside(async move {
                        if let Err(error) = stored.await {
                            // It fails when the campaign is over, and then it does not matter.
                            drop(trouble.send(error.to_string()));
                        }
                    });
                }
                Err(error) => drop(trouble.send(error.to_string())),
            }
        }
    }

    /// What all jobs share, on its way.
    fn share(&mut self, text: String) -> SharedPart {
        let id = id_of(text.as_bytes());
        if text.len() <= INLINE_MAX {
            return SharedPart {
                id,
                text: Some(text),
            };
        }
        while let Err(error) = self.hub.put(text.as_bytes()) {
            self.say(&error.to_string());
            if self.cancel().is_asked(Urgency::TimeIsUp) {
                break;
            }
        }
        SharedPart { id, text: None }
    }
}

type RoundOf<S> = Round<
    <<S as Subject>::Stage as Stage>::Symptom,
    <<S as Subject>::Stage as Stage>::Race,
    <<S as Subject>::Stage as Stage>::Tally,
>;

/// The outcomes of a subject's jobs can be compared.
pub trait Comparable:
    Subject<Stage: Stage<Symptom: PartialEq, Race: PartialEq, Tally: PartialEq>>
{
}

impl<S> Comparable for S where
    S: Subject<Stage: Stage<Symptom: PartialEq, Race: PartialEq, Tally: PartialEq>>
{
}

type SharedOf<S> = Shared<<<S as Subject>::Stage as Stage>::Rules>;

impl<S: Comparable> HubCrew<'_, S> {
    fn take(&mut self, payload: &[u8], round: &mut RoundOf<S>) -> bool {
        self.figures.messages_in += 1;
        self.figures.bytes_in += to_u64(payload.len());
        let told: Told<OutcomeOf<S::Stage>> = match decode(payload) {
            Ok(told) => told,
            Err(refused) => {
                self.figures.refused += 1;
                self.say(&format!("a message with outcomes was refused: {refused}"));
                return false;
            }
        };
        let jobs = to_u64(told.done.len()).max(1);
        self.micros_per_job = (self.micros_per_job * 7 + told.micros / jobs) / 8;
        let took = Duration::from_micros(told.micros);
        self.slowest = self.slowest.max(took);
        if !self.figures.workers.contains(&told.worker) && self.figures.workers.len() < 10_000 {
            self.figures.workers.insert(told.worker.clone());
        }
        if !told.beside.is_null() && round.is_about(&told) {
            (self.ears.beside)(&told.beside);
        }
        round.take(told)
    }

    /// Takes what an earlier director was told of the jobs of a round.
    fn take_past(&mut self, round: &mut RoundOf<S>, jobs: &[Job]) {
        let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else {
            return;
        };
        let later = self.ahead.split_off(&(last.index + 1));
        let now = std::mem::replace(&mut self.ahead, later);
        for payload in now.into_values().flatten() {
            self.take(&payload, round);
        }
        while !round.missing().0.is_empty() {
            let Some(past) = &self.past else { break };
            let read = self.hub.wait(async {
                let mut messages = past.fetch().max_messages(256).messages().await.ok()?;
                let mut payloads = Vec::new();
                while let Some(Ok(message)) = messages.next().await {
                    payloads.push(message.payload.to_vec());
                }
                Some(payloads)
            });
            let payloads = read.unwrap_or_default();
            if payloads.is_empty() {
                self.past = None;
            }
            for payload in payloads {
                let told = decode::<Told<serde_json::Value>>(&payload);
                let numbers = told.map(|told| told.done.into_iter().map(|(index, _, _)| index));
                match numbers.ok().and_then(Iterator::max) {
                    Some(index) if index > last.index => {
                        self.ahead.entry(index).or_default().push(payload);
                    }
                    Some(index) if index >= first.index => drop(self.take(&payload, round)),
                    _ => {}
                }
            }
        }
        self.figures.resumed += to_u64(round.done());
    }

    /// Does the jobs that no worker can.
    fn do_here(&mut self, round: &mut RoundOf<S>, shared: &SharedOf<S>, jobs: &[Job]) {
        for (index, reason) in round.not_here() {
            let Some(job) = jobs.iter().find(|job| job.index == index) else {
                continue;
            };
            if self.own.is_none() {
                self.own = Explorer::try_start(self.subject).ok();
            }
            let Some(own) = &mut self.own else { return };
            own.begin(shared);
            own.forget_failures();
            let Some(outcome) = own.run(shared, job) else {
                return;
            };
            round.put(index, outcome);
            self.figures.done_here += 1;
            self.figures.reason = Some(reason);
        }
    }

    /// Gives out again what nothing was told of.
    fn double(&mut self, round: &RoundOf<S>, shared: &SharedPart, jobs: &[Job], attempt: u32) {
        let (open, unchecked) = round.missing();
        let chosen = |numbers: &BTreeSet<u64>| -> Vec<&Job> {
            let wanted = jobs.iter().filter(|job| numbers.contains(&job.index));
            wanted.collect()
        };
        self.figures.doubled += u64::from(!open.is_empty()) + u64::from(!unchecked.is_empty());
        self.issue(shared, &chosen(&open), attempt);
        self.issue(shared, &chosen(&unchecked), CHECK + attempt);
    }

    /// Waits for outcomes until all are there, an end is asked for, or nothing comes for so long.
    fn hear(
        &mut self,
        round: &mut RoundOf<S>,
        patience: Duration,
        watch: &mut dyn FnMut(usize),
        here: &mut dyn FnMut(&mut Self, &mut RoundOf<S>),
    ) -> Heard {
        let mut since = now();
        loop {
            let (open, unchecked) = round.missing();
            if open.is_empty() && unchecked.is_empty() {
                here(self, round);
                return Heard::All;
            }
            if self.cancel().is_asked(Urgency::TimeIsUp) {
                return Heard::End;
            }
            let told = &mut self.told;
            let next = self
                .hub
                .wait(async { tokio::time::timeout(LOOK, told.next()).await });
            let next = next.ok().flatten();
            match next {
                Some(message) => {
                    if self.take(&message.payload, round) {
                        since = now();
                    }
                }
                None => {
                    watch(round.done());
                    here(self, round);
                }
            }
            if let Ok(trouble) = self.troubles.1.try_recv() {
                self.has_lost = true;
                self.say(&format!("the hub does not take jobs: {trouble}"));
            }
            if since.elapsed() >= patience {
                return Heard::Nothing;
            }
        }
    }
}

/// How waiting ended.
enum Heard {
    All,
    End,
    Nothing,
}

impl<S: Comparable> Crew<Explorer<S>> for HubCrew<'_, S> {
    fn run(
        &mut self,
        generation: Generation<SharedOf<S>, Job>,
        watch: &mut dyn FnMut(usize),
    ) -> Vec<OutcomeOf<S::Stage>> {
        let Generation { shared, jobs } = generation;
        let text = serde_json::to_string(&shared).expect("what is shared is plain data");
        let part = self.share(text);
        let per_mille = self.wishes.checked_per_mille;
        let mut round: RoundOf<S> = Round::new(&part.id, &jobs, |index| {
            Prng::new(Prng::derive_seed(index, 25)).chance(per_mille.min(1000), 1000)
        });
        self.take_past(&mut round, &jobs);
        let mut attempt = 0;
        let mut patience = (self.slowest * PATIENCE_FACTOR).clamp(PATIENCE, PATIENCE_MAX);
        loop {
            let (open, unchecked) = round.missing();
            if attempt == 0 {
                let chosen = |numbers: &BTreeSet<u64>| -> Vec<&Job> {
                    let wanted = jobs.iter().filter(|job| numbers.contains(&job.index));
                    wanted.collect()
                };
                self.issue(&part, &chosen(&open), 0);
                self.issue(&part, &chosen(&unchecked), CHECK);
            } else {
                self.ask_who_is_there();
                // Without workers the queue has everything that it took.
                if self.figures.messages_in > 0 || std::mem::take(&mut self.has_lost) {
                    self.double(&round, &part, &jobs, attempt);
                }
            }
            let mut here = |crew: &mut Self, round: &mut RoundOf<S>| {
                crew.do_here(round, &shared, &jobs);
            };
            match self.hear(&mut round, patience, watch, &mut here) {
                Heard::All | Heard::End => break,
                Heard::Nothing => attempt += 1,
            }
            patience = (patience * 2).min(PATIENCE_MAX);
        }
        if attempt > 0 && self.figures.doubled > 0 {
            // Copies of what is done would only keep workers busy.
            drop(self.hub.purge(JOBS, &self.campaign.jobs()));
        }
        self.figures.repeated += round.repeated;
        if let Some(reason) = round.refused.take() {
            self.figures.refused += 1;
            self.say(&format!("an outcome was refused {reason}"));
        }
        for difference in &round.differences {
            (self.ears.notice)(&format!(
                "TWO WORKERS DISAGREE on schedule {}: {} and {}; one of these machines is broken, or raddle is not deterministic: please report it",
                difference.index, difference.workers[0], difference.workers[1]
            ));
        }
        self.figures.differences.append(&mut round.differences);
        round.into_outcomes()
    }
}
