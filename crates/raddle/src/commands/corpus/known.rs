//! Findings that are known: they are counted and kept, and change no exit status. A file of its own, which users may
//! write, too, while the campaign runs.

use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use raddle_stdx::regular_file;
use serde::{Deserialize, Serialize};

use super::Named;
use super::place::Place;
use super::state::State;
use crate::exit::Code;
use crate::{keep, message};

const FILE: &str = "known.toml";
/// Bytes of the file at most.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// All that is known.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Baseline {
    #[serde(default)]
    known: Vec<Known>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    fingerprint: String,
    reason: String,
}

impl Baseline {
    pub(super) fn of(place: &Place) -> anyhow::Result<Self> {
        Self::read(&place.folder().join(FILE))
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        if path.symlink_metadata().is_err() {
            return Ok(Self::default());
        }
        let shown = path.display();
        let bytes = regular_file::read(path, FILE_BYTES_MAX)
            .with_context(|| format!("cannot read {shown}"))?;
        let text = String::from_utf8_lossy(&bytes);
        toml::from_str(&text).map_err(|error| anyhow!("cannot use {shown}: {error}"))
    }

    /// Why a finding is no news.
    pub(super) fn reason(&self, fingerprint: &str) -> Option<&str> {
        let mut known = self.known.iter();
        let known = known.find(|known| known.fingerprint == fingerprint)?;
        Some(&known.reason)
    }

    /// Findings that are news.
    pub(super) fn news(&self, state: &State) -> usize {
        let findings = state.subjects.iter().flat_map(|subject| &subject.findings);
        let is_news = |fingerprint: &str| self.reason(fingerprint).is_none();
        findings
            .filter(|finding| is_news(&finding.fingerprint))
            .count()
    }
}

/// Take a finding as known, with the reason; it changes no exit status any more.
#[derive(Debug, Args)]
pub(super) struct Accept {
    #[command(flatten)]
    named: Named,
    /// The finding, as `show` names it, such as C-7832.
    #[arg(value_name = "FINDING")]
    finding: String,
    /// Why it is known.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl Accept {
    pub(super) fn run(&self) -> anyhow::Result<Code> {
        ensure!(
            !self.reason.trim().is_empty(),
            "`--reason` is empty: say why the finding is known"
        );
        let place = self.named.place()?;
        let state = place.read()?;
        let path = place.folder().join(FILE);
        let mut baseline = Baseline::read(&path)?;
        let findings = state.subjects.iter().flat_map(|subject| &subject.findings);
        let wanted =
            findings.filter(|one| one.id == self.finding || one.fingerprint == self.finding);
        let mut fingerprints: Vec<&str> = wanted.map(|one| one.fingerprint.as_str()).collect();
        fingerprints.sort_unstable();
        fingerprints.dedup();
        let fingerprint = match fingerprints[..] {
            [one] => one,
            [] => bail!(
                "there is no finding `{}`: `raddle campaign show {}` lists them",
                self.finding,
                self.named.name
            ),
            _ => bail!(
                "several findings are called `{}`: name one by its fingerprint, which `raddle campaign show {} --json` tells",
                self.finding,
                self.named.name
            ),
        };
        baseline
            .known
            .retain(|known| known.fingerprint != fingerprint);
        baseline.known.push(Known {
            fingerprint: fingerprint.to_owned(),
            reason: self.reason.trim().to_owned(),
        });
        keep::write(&path, toml::to_string(&baseline)?.as_bytes())?;
        message::note(&format!("{} is known from now on", self.finding));
        Ok(Code::Clean)
    }
}
