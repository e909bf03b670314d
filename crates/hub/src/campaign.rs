//! A campaign on a hub: its names there, what the user wants of it, and what it cost.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use raddle_linux::ContentId;
use raddle_stdx::Digest;
use raddle_stdx::width::to_u64;

use crate::connection::{Hub, HubError};
use crate::content::id_of;
use crate::identity::Identity;
use crate::message::Manifest;
use crate::outcomes::Difference;

/// What the user wants of a campaign on a hub.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wishes {
    /// Take what an earlier director of the same campaign was told.
    pub resume: bool,
    /// Jobs of a thousand that are done twice and compared.
    pub checked_per_mille: u64,
}

/// Those who are told how it goes.
#[derive(Clone, Copy)]
pub struct Ears<'a> {
    /// What the user should know.
    pub notice: &'a dyn Fn(&str),
    /// What only this kind of subject tells of its runs, besides their outcomes.
    pub beside: &'a dyn Fn(&serde_json::Value),
}

impl fmt::Debug for Ears<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ears")
    }
}

/// Names of a campaign on the hub. They follow from what is explored and how: the same command has the same campaign.
#[derive(Debug, Clone)]
pub struct Campaign {
    pub identity: Identity,
    pub id: String,
    pub name: String,
    pub(crate) manifest: ContentId,
    /// Files that were sent, and their bytes.
    pub sent: (u64, u64),
}

impl Campaign {
    /// Sends what a subject needs and the hub does not have. `seed` stands for everything that decides which jobs there
    /// will be.
    ///
    /// # Errors
    /// The hub does not take it.
    pub fn open(
        hub: &Hub,
        manifest: &Manifest,
        files: &BTreeMap<ContentId, Vec<u8>>,
        seed: u64,
    ) -> Result<Self, HubError> {
        let mut sent = (0, 0);
        let text = serde_json::to_vec(manifest).expect("manifests are plain data");
        for bytes in files.values().chain([&text]) {
            if hub.put(bytes)?.1 {
                sent = (sent.0 + 1, sent.1 + to_u64(bytes.len()));
            }
        }
        let id = id_of(&text);
        let mut digest = Digest::default();
        digest.bytes(id.as_str().as_bytes());
        digest.word(seed);
        Ok(Self {
            identity: manifest.identity.clone(),
            id: format!("{:016x}", digest.value()),
            name: manifest.name.clone(),
            manifest: id,
            sent,
        })
    }

    pub(crate) fn jobs(&self) -> String {
        format!("raddle.jobs.{}.{}", self.identity.token(), self.id)
    }

    pub(crate) fn outcomes(&self) -> String {
        format!("raddle.outcomes.{}", self.id)
    }
}

/// What a campaign cost on the hub.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    pub batches: u64,
    pub jobs: u64,
    pub bytes_out: u64,
    pub bytes_in: u64,
    pub messages_in: u64,
    /// Batches that were given out again because nothing came.
    pub doubled: u64,
    /// Outcomes that came again and were thrown away.
    pub repeated: u64,
    /// Jobs that no worker could do, with the reason of the last one.
    pub done_here: u64,
    pub reason: Option<String>,
    /// Jobs of which an earlier director was told.
    pub resumed: u64,
    pub refused: u64,
    pub differences: Vec<Difference>,
    pub workers: BTreeSet<String>,
}
