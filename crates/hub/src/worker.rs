//! A worker: threads that take jobs from a hub, each with worlds of its own.
//!
//! A worker trusts nothing that comes: a message that cannot be read is thrown away and logged, a subject sees nothing
//! of the machine but the files that travelled with it, and a job that takes too long is left.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, AckKind};
use futures_util::StreamExt;
use raddle_campaign::{Cancel, Job, Urgency};
use raddle_linux::ContentId;
use raddle_stdx::width::to_u64;

use crate::bench::Bench;
use crate::cache::Cache;
use crate::connection::{ACK_WAIT, Hub, HubError};
use crate::content::id_of;
use crate::identity::Identity;
use crate::message::{Batch, Done, Hello, Manifest, Present, Told, decode, encode, key};

/// How long a thread waits for jobs before it looks whether to go on.
const WAIT: Duration = Duration::from_secs(1);
/// How often limits are looked at.
const LOOK: Duration = Duration::from_millis(200);
/// Subjects that a thread keeps ready.
const BENCHES_MAX: usize = 3;

/// Makes a bench from a manifest, whose files are in the cache.
pub type OpenBench<'a> =
    dyn Fn(&Manifest, &Cache, &Cancel) -> Result<Box<dyn Bench>, String> + Sync + 'a;

/// Where and how work is done.
pub struct Workplace<'a> {
    pub identity: Identity,
    /// Of this worker, for people.
    pub name: String,
    pub threads: usize,
    pub cache: Cache,
    /// What one batch may take.
    pub batch_time: Duration,
    pub open: &'a OpenBench<'a>,
    /// Told what happens.
    pub log: &'a (dyn Fn(&str) + Sync),
    /// Asked from time to time whether to end.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
}

impl fmt::Debug for Workplace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workplace")
            .field("name", &self.name)
            .finish()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a batch takes decides how large the next ones are, and no result"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// What a thread is busy with.
#[derive(Debug, Default)]
struct Seat {
    campaign: String,
    cancel: Cancel,
    since: Option<Instant>,
}

type Seats = Mutex<Vec<Seat>>;

/// Works until it is over; says how many jobs were done.
///
/// # Errors
/// The hub does not let us take jobs.
pub fn serve(hub: &Hub, workplace: &Workplace<'_>) -> Result<u64, HubError> {
    let queue = hub.queue(&workplace.identity.token())?;
    let threads = workplace.threads.max(1);
    let seats: Seats = Mutex::new((0..threads).map(|_| Seat::default()).collect());
    let is_served = Mutex::new(false);
    let mut doors = Doors::open(hub)?;
    let done = std::thread::scope(|scope| {
        let mut hands = Vec::new();
        for number in 0..threads {
            let (queue, seats, is_served) = (&queue, &seats, &is_served);
            hands.push(scope.spawn(move || {
                let mut hand = Hand {
                    hub,
                    workplace,
                    seats,
                    number,
                    benches: Vec::new(),
                };
                let mut done = 0;
                while !is_set(is_served) {
                    done += hand.next(queue);
                }
                done
            }));
        }
        while !(workplace.is_over)() {
            doors.attend(hub, workplace, &seats);
            look_at_clock(workplace, &seats);
        }
        *is_served.lock().unwrap_or_else(PoisonError::into_inner) = true;
        // What is under way is given up: the hub gives it to another.
        for seat in seats.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            seat.cancel.ask(Urgency::AtOnce);
        }
        let hands = hands.into_iter().map(std::thread::ScopedJoinHandle::join);
        hands.map(Result::unwrap_or_default).sum()
    });
    Ok(done)
}

fn is_set(flag: &Mutex<bool>) -> bool {
    *flag.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Leaves batches that take too long.
fn look_at_clock(workplace: &Workplace<'_>, seats: &Seats) {
    for seat in seats.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let is_late = |since: Instant| since.elapsed() > workplace.batch_time;
        if seat.since.is_some_and(is_late) {
            seat.cancel.ask(Urgency::AtOnce);
        }
    }
}

/// Where directors knock.
struct Doors {
    hello: async_nats::Subscriber,
    end: async_nats::Subscriber,
}

impl Doors {
    fn open(hub: &Hub) -> Result<Self, HubError> {
        let subscribe = |subject: &'static str| {
            let subscribed = hub.wait(hub.client.subscribe(subject));
            subscribed.map_err(|error| hub.failed("hear directors", error))
        };
        Ok(Self {
            hello: subscribe("raddle.hello")?,
            end: subscribe("raddle.end.>")?,
        })
    }

    /// Answers who asks, for a while.
    fn attend(&mut self, hub: &Hub, workplace: &Workplace<'_>, seats: &Seats) {
        let (hello, end) = (&mut self.hello, &mut self.end);
        let next = hub.wait(async {
            let next = async {
                tokio::select! {
                    hello = hello.next() => (hello, None),
                    end = end.next() => (None, end),
                }
            };
            tokio::time::timeout(LOOK, next).await
        });
        match next {
            Ok((Some(hello), _)) => answer(hub, workplace, &hello),
            Ok((_, Some(end))) => {
                let campaign = end.subject.rsplit('.').next().unwrap_or_default();
                for seat in seats.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                    if seat.campaign == campaign {
                        seat.cancel.ask(Urgency::AtOnce);
                    }
                }
            }
            _ => {}
        }
    }
}

fn answer(hub: &Hub, workplace: &Workplace<'_>, message: &async_nats::Message) {
    let hello: Hello = match decode(&message.payload) {
        Ok(hello) => hello,
        Err(refused) => return (workplace.log)(&format!("a question was refused: {refused}")),
    };
    if let Some(why) = workplace.identity.difference(&hello.identity) {
        (workplace.log)(&format!(
            "no work for campaign {} ({}): it is of {why}",
            hello.campaign, hello.name
        ));
    }
    let present = encode(&Present {
        identity: workplace.identity.clone(),
        worker: workplace.name.clone(),
        threads: u32::try_from(workplace.threads).unwrap_or(u32::MAX),
    });
    if let Some(reply) = message.reply.clone() {
        // A director that does not hear it asks again.
        drop(hub.wait(hub.client.publish(reply, present.into())));
    }
}

/// A bench, or why there is none.
struct Ready {
    subject: ContentId,
    campaign: String,
    cancel: Cancel,
    bench: Result<Box<dyn Bench>, String>,
}

/// One thread of a worker.
struct Hand<'a> {
    hub: &'a Hub,
    workplace: &'a Workplace<'a>,
    seats: &'a Seats,
    number: usize,
    benches: Vec<Ready>,
}

impl Hand<'_> {
    /// Takes a batch, if there is one, and does it; says how many jobs were done.
    fn next(&mut self, queue: &PullConsumer) -> u64 {
        let taken = self.hub.wait(async {
            let batch = queue.batch().max_messages(1).expires(WAIT);
            let mut messages = batch.messages().await.map_err(|e| e.to_string())?;
            messages.next().await.transpose().map_err(|e| e.to_string())
        });
        match taken {
            Ok(Some(message)) => self.take(message),
            Ok(None) => 0,
            Err(reason) => {
                (self.workplace.log)(&format!("the hub gives no jobs: {reason}"));
                self.hub.wait(async { tokio::time::sleep(WAIT).await });
                0
            }
        }
    }

    fn take(&mut self, message: jetstream::Message) -> u64 {
        let batch: Batch = match decode(&message.payload) {
            Ok(batch) => batch,
            Err(refused) => {
                (self.workplace.log)(&format!("a message with jobs was refused: {refused}"));
                drop(self.hub.wait(message.ack_with(AckKind::Term)));
                return 0;
            }
        };
        let message = Arc::new(message);
        let alive = {
            let message = Arc::clone(&message);
            self.hub.beside(async move {
                loop {
                    tokio::time::sleep(ACK_WAIT / 3).await;
                    drop(message.ack_with(AckKind::Progress).await);
                }
            })
        };
        let told = self.run(&batch);
        alive.abort();
        let Some(told) = told else { return 0 };
        self.tell(&batch, told, message);
        to_u64(batch.jobs.len())
    }

    /// Does a batch; none if it is not wanted any more.
    fn run(&mut self, batch: &Batch) -> Option<Vec<u8>> {
        let at = self.ready(batch);
        self.sit(
            &batch.campaign,
            &self.benches[at].cancel.clone(),
            Some(now()),
        );
        let told = self.run_at(at, batch);
        let cancel = self.benches[at].cancel.clone();
        let was_late = self.stand_up();
        if cancel.is_asked(Urgency::TimeIsUp) {
            // Its worlds do not go on any more.
            self.benches.remove(at);
            // Who took too long tells so; what is over or ends with this worker tells nothing.
            if !was_late {
                return None;
            }
        }
        Some(told.unwrap_or_else(|reason| self.not_here(batch, &reason)))
    }

    fn run_at(&mut self, at: usize, batch: &Batch) -> Result<Vec<u8>, String> {
        let (hub, name) = (self.hub, &self.workplace.name);
        let bench = match &mut self.benches[at].bench {
            Ok(bench) => bench,
            Err(reason) => return Err(reason.clone()),
        };
        let text = match &batch.shared.text {
            _ if bench.knows(&batch.shared.id) => None,
            Some(text) if id_of(text.as_bytes()) == batch.shared.id => Some(text.clone()),
            Some(_) => return Err("what its jobs share has another digest".to_owned()),
            None => {
                let bytes = hub.get(&batch.shared.id).map_err(|e| e.to_string())?;
                Some(String::from_utf8(bytes).map_err(|e| e.to_string())?)
            }
        };
        // Jobs may come from a stranger: what they break is their bench.
        let act = AssertUnwindSafe(|| bench.run(batch, text.as_deref(), name));
        catch_unwind(act).unwrap_or_else(|_| {
            let reason = "it made the worker panic, which is a bug of raddle's".to_owned();
            self.benches[at].bench = Err(reason.clone());
            Err(reason)
        })
    }

    fn not_here(&self, batch: &Batch, reason: &str) -> Vec<u8> {
        let not_here = |job: &Job| {
            let done: Done<()> = Done::NotHere(reason.to_owned());
            (job.index, key(&batch.shared.id, job), done)
        };
        encode(&Told {
            worker: self.workplace.name.clone(),
            attempt: batch.attempt,
            micros: 0,
            done: batch.jobs.iter().map(not_here).collect(),
            beside: serde_json::Value::Null,
        })
    }

    fn sit(&self, campaign: &str, cancel: &Cancel, since: Option<Instant>) {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats[self.number] = Seat {
            campaign: campaign.to_owned(),
            cancel: cancel.clone(),
            since,
        };
    }

    /// Says whether the batch took longer than it may.
    fn stand_up(&self) -> bool {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let seat = std::mem::take(&mut seats[self.number]);
        let limit = self.workplace.batch_time;
        seat.since.is_some_and(|since| since.elapsed() > limit)
    }

    /// The bench of a batch's subject, made if need be.
    fn ready(&mut self, batch: &Batch) -> usize {
        let is_it =
            |ready: &Ready| ready.subject == batch.subject && ready.campaign == batch.campaign;
        if let Some(at) = self.benches.iter().position(is_it) {
            return at;
        }
        if self.benches.len() >= BENCHES_MAX {
            self.benches.remove(0);
        }
        let cancel = Cancel::default();
        self.sit(&batch.campaign, &cancel, None);
        let bench = self.open(&batch.subject, &cancel);
        if let Err(reason) = &bench {
            (self.workplace.log)(&format!("campaign {} is refused: {reason}", batch.campaign));
        }
        self.benches.push(Ready {
            subject: batch.subject.clone(),
            campaign: batch.campaign.clone(),
            cancel,
            bench,
        });
        self.benches.len() - 1
    }

    fn open(&self, subject: &ContentId, cancel: &Cancel) -> Result<Box<dyn Bench>, String> {
        let Workplace {
            identity,
            cache,
            log,
            open,
            ..
        } = self.workplace;
        let bytes = self.hub.get(subject).map_err(|error| error.to_string())?;
        let manifest: Manifest =
            serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        if let Some(why) = identity.difference(&manifest.identity) {
            return Err(format!("it is of {why}"));
        }
        let mut fetched = 0;
        for id in &manifest.contents {
            if !cache.has(id) {
                let bytes = self.hub.get(id).map_err(|error| error.to_string())?;
                fetched += bytes.len();
                cache.put(id, &bytes).map_err(|error| error.to_string())?;
            }
        }
        let bench = open(&manifest, cache, cancel)?;
        log(&format!(
            "{} is ready on thread {}; {fetched} bytes were fetched",
            manifest.name,
            self.number + 1
        ));
        Ok(bench)
    }

    /// Tells of a batch; the hub keeps it until it was stored.
    fn tell(&self, batch: &Batch, told: Vec<u8>, message: Arc<jetstream::Message>) {
        let told = if told.len() > self.hub.message_bytes_max() {
            self.not_here(batch, "what it came to is too large for a message")
        } else {
            told
        };
        let first = batch
            .jobs
            .first()
            .map_or(0, |job| key(&batch.shared.id, job));
        let id = format!("{}.{first:016x}.{}", batch.campaign, batch.attempt);
        let subject = format!("raddle.outcomes.{}", batch.campaign);
        let told = PublishMessage::build().payload(told.into()).message_id(id);
        match self.hub.wait(self.hub.context.send_publish(subject, told)) {
            Ok(stored) => {
                self.hub.beside(async move {
                    // What was not stored is given out again.
                    drop(match stored.await {
                        Ok(_) => message.ack().await,
                        Err(_) => message.ack_with(AckKind::Nak(None)).await,
                    });
                });
            }
            Err(error) => (self.workplace.log)(&format!("the hub takes no outcomes: {error}")),
        }
    }
}
