//! What travels over the hub. Every message may come from a stranger: it is decoded with limits, checked, and refused
//! with a reason.

use raddle_campaign::subject::Data;
use raddle_campaign::{Job, Outcome};
use raddle_linux::ContentId;
use raddle_stdx::Digest;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::content::{self, Damaged};
use crate::identity::Identity;

/// First bytes of every message.
const MAGIC: [u8; 4] = *b"RDH1";
/// Bytes of a message at most, unpacked.
const MESSAGE_BYTES_MAX: u64 = 256 << 20;

/// Why a message is refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refused {
    #[error("it is not a message of raddle")]
    Foreign,
    #[error("it is damaged: {0}")]
    Damaged(#[from] Damaged),
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    #[error("it makes no sense: {0}")]
    Nonsense(&'static str),
}

/// Bytes for the journey.
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    let json = serde_json::to_vec(message).expect("messages are plain data");
    let mut bytes = MAGIC.to_vec();
    bytes.extend(content::pack(&json));
    bytes
}

/// The message again.
///
/// # Errors
/// The bytes are no message of this kind.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refused> {
    let packed = bytes.strip_prefix(&MAGIC).ok_or(Refused::Foreign)?;
    let json = content::unpack(packed, MESSAGE_BYTES_MAX)?;
    serde_json::from_slice(&json).map_err(|error| Refused::Unreadable(error.to_string()))
}

/// What a worker needs to know of a subject; what is in `what` only the subject's own kind knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub identity: Identity,
    /// Such as `program`.
    pub kind: String,
    /// For people.
    pub name: String,
    pub what: serde_json::Value,
    /// The files that it needs.
    pub contents: Vec<ContentId>,
}

/// What all jobs of a generation share, as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedPart {
    pub id: ContentId,
    /// Absent if it is so large that it lies in the store.
    pub text: Option<String>,
}

/// Jobs for one worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    pub campaign: String,
    /// The name of the manifest.
    pub subject: ContentId,
    pub shared: SharedPart,
    /// 0 at first; another one is given out when the first is late, or to check it.
    pub attempt: u32,
    pub jobs: Vec<Job>,
}

/// What became of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done<O> {
    Outcome(O),
    /// It could not be done there, for this reason: the director does it.
    NotHere(String),
}

/// What a worker tells of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told<O> {
    pub worker: String,
    pub attempt: u32,
    /// What the batch took on the worker, in microseconds.
    pub micros: u64,
    /// By the number and the key of each job.
    pub done: Vec<(u64, u64, Done<O>)>,
    /// What only this kind of subject tells of its runs.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub beside: serde_json::Value,
}

/// A director asks who is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub identity: Identity,
    pub campaign: String,
    pub name: String,
}

/// A worker answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Present {
    pub identity: Identity,
    pub worker: String,
    pub threads: u32,
}

/// Equal for equal jobs that share equal things: what was told of one job is true of the other.
pub fn key(shared: &ContentId, job: &Job) -> u64 {
    let mut digest = Digest::default();
    digest.bytes(shared.as_str().as_bytes());
    digest.bytes(&serde_json::to_vec(job).expect("jobs are plain data"));
    digest.value()
}

/// Whether an outcome can have come from a run.
///
/// # Errors
/// It cannot.
pub fn check<F: Data, R: Data, T: Data>(
    index: u64,
    outcome: &Outcome<F, R, T>,
) -> Result<(), Refused> {
    if outcome.index != index {
        return Err(Refused::Nonsense("it is about another job"));
    }
    let shows_races = outcome
        .learned
        .as_ref()
        .is_some_and(|l| !l.races.is_empty());
    if (outcome.failure.is_some() || shows_races) && outcome.schedule.is_none() {
        return Err(Refused::Nonsense("it failed, and no schedule says how"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use raddle_campaign::Algorithm;
    use raddle_stdx::Prng;

    use super::*;

    fn batch() -> Batch {
        Batch {
            campaign: "c".into(),
            subject: content::id_of(b"subject"),
            shared: SharedPart {
                id: content::id_of(b"{}"),
                text: Some("{}".into()),
            },
            attempt: 0,
            jobs: (0..20)
                .map(|index| Job {
                    index,
                    seed: index * 77,
                    algorithm: Algorithm::Delay { number: index },
                    wishes: Vec::new(),
                    is_timed: false,
                    may_jump: false,
                    observes: true,
                    covers: false,
                })
                .collect(),
        }
    }

    #[test]
    fn messages_survive_the_journey() {
        let batch = batch();
        let bytes = encode(&batch);
        assert_eq!(decode::<Batch>(&bytes).unwrap(), batch);
        assert_eq!(decode::<Batch>(b"hello"), Err(Refused::Foreign));
        assert!(matches!(
            decode::<Hello>(&bytes),
            Err(Refused::Unreadable(_))
        ));
    }

    #[test]
    fn keys_tell_jobs_apart() {
        let batch = batch();
        let shared = &batch.shared.id;
        assert_eq!(key(shared, &batch.jobs[0]), key(shared, &batch.jobs[0]));
        assert_ne!(key(shared, &batch.jobs[0]), key(shared, &batch.jobs[1]));
        assert_ne!(
            key(shared, &batch.jobs[0]),
            key(&batch.subject, &batch.jobs[0])
        );
    }

    /// Damaged, cut, lengthened and made-up messages are refused or read, and never a panic or much memory.
    #[test]
    fn strange_messages_are_refused() {
        let good = encode(&batch());
        let plain = serde_json::to_vec(&batch()).unwrap();
        let mut prng = Prng::new(25);
        let mut refused = 0;
        for round in 0..20_000 {
            let mut bytes = if round % 2 == 0 {
                good.clone()
            } else {
                plain.clone()
            };
            for _ in 0..=prng.below(8) {
                let at = raddle_stdx::width::to_usize(
                    prng.below(raddle_stdx::width::to_u64(bytes.len())),
                );
                match prng.below(4) {
                    0 => bytes[at] = u8::try_from(prng.below(256)).unwrap(),
                    1 => bytes.truncate(at + 1),
                    2 => bytes[at] ^= 1 << prng.below(8),
                    _ => bytes.insert(at, b'9'),
                }
            }
            if round % 2 == 1 {
                // Damage below the packing, which hides it else.
                bytes = [&MAGIC[..], &content::pack(&bytes)].concat();
            }
            refused += u32::from(decode::<Batch>(&bytes).is_err());
            refused += u32::from(decode::<Told<u64>>(&bytes).is_err());
            refused += u32::from(decode::<Manifest>(&bytes).is_err());
        }
        assert!(refused > 50_000, "{refused}");
    }
}
