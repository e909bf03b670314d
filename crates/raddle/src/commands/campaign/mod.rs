//! What all commands that explore have in common: options, the line that tells how far it is, the judgement at the end.

pub(super) mod log;
pub(super) mod options;
pub(super) mod progress;
pub(super) mod summary;
pub(super) mod verdict;

pub(super) use log::{Log, LogOption};
pub(super) use options::CampaignOptions;
pub(super) use verdict::Verdict;
