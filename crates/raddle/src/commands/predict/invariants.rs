//! Invariants as a file: what a user may state as assertions, and what other commands may take as oracles.

use std::path::Path;

use raddle_predict::Proposed;
use serde::Serialize;

use crate::keep;
use crate::message;

/// The entries of a file.
#[derive(Debug, Default, Serialize)]
pub(super) struct Proposals {
    invariant: Vec<Entry>,
}

/// One of them. `value` in the expression is what the read finds.
#[derive(Debug, Serialize)]
struct Entry {
    build_id: String,
    function: String,
    offset: u64,
    /// Empty where it is not known.
    place: String,
    expression: String,
    /// Reads that it was learned from.
    support: u64,
    /// The value that broke it, and the failure that this led to.
    broken_by: String,
    failure: String,
}

impl Proposals {
    pub(super) fn add(&mut self, proposed: &[Proposed]) {
        self.invariant.extend(proposed.iter().map(|proposed| {
            let at = &proposed.at;
            let place = match at.line {
                0 => String::new(),
                line => format!("{}:{line}", at.file),
            };
            Entry {
                build_id: at.build.clone(),
                function: at.function.clone(),
                offset: at.offset,
                place,
                expression: proposed.invariant.holds.to_string(),
                support: proposed.invariant.support,
                broken_by: format!("{:#x}", proposed.invariant.broken_by),
                failure: proposed.fingerprint.clone(),
            }
        }));
    }

    /// Writes all of them; a file without entries says that there are none.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let entries = toml::to_string_pretty(self)?;
        let text = format!(
            "# Held whenever the program ended well, and was broken when it failed. `value` is what the read finds.\n{entries}"
        );
        keep::write(path, text.as_bytes())?;
        message::note(&format!(
            "{} proposed in {}",
            raddle_report::words::counted(
                raddle_stdx::width::to_u64(self.invariant.len()),
                "invariant"
            ),
            path.display()
        ));
        Ok(())
    }
}
