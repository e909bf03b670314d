//! Campaigns over many machines: the jobs of a generation go to a work queue of a NATS server with JetStream, workers
//! take them from there, and what comes of them comes back by message.
//!
//! ```text
//!   director (HubCrew) ── Batch ──▶ stream of jobs ──▶ worker (serve) ── Told ──▶ stream of outcomes ──▶ director
//!          └── subject: manifest, files by digest ──▶ object store ──▶ cache of the worker
//! ```
//!
//! The async client and its runtime live here and nowhere else; everything that this crate offers is synchronous.
//! A crew decides who does a job and when, never what comes of it: results are those of local threads, bit for bit.
//!
//! Reading order: [`identity`] (who may work for whom), [`message`] (what travels), [`content`] and [`cache`] (files by
//! digest), [`connection`] (the hub), [`campaign`] and [`crew`] (the director's side) with [`outcomes`] (what came back),
//! [`worker`], [`mod@bench`] and [`desk`] (the other side), [`server`] (its configuration).

mod batching;
pub mod bench;
pub mod cache;
pub mod campaign;
pub mod connection;
pub mod content;
pub mod crew;
pub mod desk;
pub mod identity;
pub mod message;
pub mod outcomes;
pub mod server;
pub mod worker;

pub use bench::{Bench, SubjectBench};
pub use cache::Cache;
pub use campaign::{Campaign, Ears, Figures, Wishes};
pub use connection::{Access, Hub, HubError};
pub use crew::{Comparable, HubCrew};
pub use desk::{Desk, DistantBench};
pub use identity::Identity;
pub use message::Manifest;
pub use worker::{Workplace, serve};
