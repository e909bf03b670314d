//! The machine-readable form: one object with a schema version and the list of findings.

use serde::Serialize;

use crate::finding::{Finding, SCHEMA_VERSION};

#[derive(Serialize)]
struct Document<'a, S: Serialize> {
    schema_version: u32,
    findings: &'a [Finding],
    summary: S,
}

/// The whole result of a run as pretty-printed JSON; `summary` is the tool's own closing record.
pub fn document<S: Serialize>(findings: &[Finding], summary: S) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&Document {
        schema_version: SCHEMA_VERSION,
        findings,
        summary,
    })
}
