//! Invariants as a file: what a user may state as assertions, and what `raddle cc` checks with `--harden-oracles`.

use std::path::Path;

use raddle_harden::invariant::{self, Comparison, Expression, Invariant};
use raddle_predict::{Holds, Proposed};

use crate::keep;
use crate::message;

/// The entries of a file.
#[derive(Debug, Default)]
pub(super) struct Proposals(Vec<Invariant>);

impl Proposals {
    pub(super) fn add(&mut self, proposed: &[Proposed]) {
        self.0.extend(proposed.iter().map(entry));
    }

    /// Writes all of them.
    pub(super) fn write(self, path: &Path) -> anyhow::Result<()> {
        let count = raddle_stdx::width::to_u64(self.0.len());
        keep::write(path, invariant::write(self.0)?.as_bytes())?;
        message::note(&format!(
            "{} proposed in {}",
            raddle_report::words::counted(count, "invariant"),
            path.display()
        ));
        Ok(())
    }
}

fn entry(proposed: &Proposed) -> Invariant {
    let at = &proposed.at;
    let has_line = at.line != 0;
    Invariant {
        build_id: Some(at.build.clone()),
        function: at.function.clone(),
        offset: Some(at.offset),
        file: has_line.then(|| at.file.clone()),
        line: has_line.then_some(at.line),
        expression: expression(&proposed.invariant.holds),
        support: proposed.invariant.support,
        broken_by: Some(proposed.invariant.broken_by),
        failure: Some(proposed.fingerprint.clone()),
    }
}

fn expression(holds: &Holds) -> Expression {
    match holds {
        Holds::Constant(value) => Expression::Compare(Comparison::Equal, *value),
        Holds::NotZero => Expression::Compare(Comparison::NotEqual, 0),
        Holds::Range(low, high) => Expression::Between(*low, *high),
        Holds::OneOf(values) => Expression::OneOf(values.clone()),
    }
}
