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
//! digest), [`connection`] (the hub), [`crew`] (the director's side) with [`outcomes`] (what came back),
//! [`worker`] (the other side), [`server`] (its configuration).

pub mod cache;
pub mod connection;
pub mod content;
pub mod crew;
pub mod identity;
pub mod message;
pub mod outcomes;
pub mod server;
pub mod worker;

pub use cache::Cache;
pub use connection::{Access, Hub, HubError};
pub use crew::{Campaign, Figures, HubCrew, Wishes};
pub use identity::Identity;
pub use message::Manifest;
pub use worker::{Bench, SubjectBench, Workplace, serve};
