//! The machine-readable form: one object with a schema version and the list of findings.
//!
//! `docs/src/reference/findings.md` describes it; its schema lies beside that page and is made from these types.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::finding::{Finding, SCHEMA_VERSION};

/// What `--json` prints.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Findings {
    /// Version of this form. A reader should refuse versions that it does not know.
    pub schema_version: u32,
    pub findings: Vec<Finding>,
    /// Counts of the command that made it; they differ from command to command and may change.
    #[serde(default)]
    pub summary: Value,
}

/// The whole result of a run as pretty-printed JSON; `summary` is the tool's own closing record.
pub fn document(findings: Vec<Finding>, summary: Value) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(&Findings {
        schema_version: SCHEMA_VERSION,
        findings,
        summary,
    })?;
    text.push('\n');
    Ok(text)
}

/// Why a text has no findings for us.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("it holds findings of version {found}; this raddle reads version {SCHEMA_VERSION}")]
    Version { found: u64 },
    #[error("it is no result of `--json`, and no finding: {0}")]
    NoFindings(#[from] serde_json::Error),
}

/// Reads what `--json` printed, or a list of findings, or a single one.
pub fn read(text: &str) -> Result<Vec<Finding>, ReadError> {
    let value: Value = serde_json::from_str(text)?;
    match value.get("schema_version").map(Value::as_u64) {
        Some(Some(version)) if version == u64::from(SCHEMA_VERSION) => {
            Ok(serde_json::from_value::<Findings>(value)?.findings)
        }
        Some(version) => Err(ReadError::Version {
            found: version.unwrap_or(0),
        }),
        None if value.is_array() => Ok(serde_json::from_value(value)?),
        None => Ok(vec![serde_json::from_value(value)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn what_was_written_is_read_back() {
        let findings = samples::all();
        let text = document(findings.clone(), Value::Null).unwrap();
        assert_eq!(read(&text).unwrap(), findings);
        let one = serde_json::to_string(&findings[0]).unwrap();
        assert_eq!(read(&one).unwrap(), findings[..1]);
    }

    #[test]
    fn other_versions_and_other_texts_are_refused() {
        let old = r#"{"schema_version": 1, "findings": []}"#;
        let error = read(old).unwrap_err().to_string();
        assert!(error.contains("version 1"), "{error}");
        let error = read("[1]").unwrap_err().to_string();
        assert!(error.contains("no result of `--json`"), "{error}");
    }

    /// The schema in the manual is that of the types; where it is not, the right one is written beside it.
    #[test]
    fn the_schema_in_the_manual_is_that_of_the_types() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/src/reference/findings.schema.json"
        );
        let mut schema = serde_json::to_value(schemars::schema_for!(Findings)).unwrap();
        schema["title"] = "Findings of raddle, version 2".into();
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let present = std::fs::read_to_string(path).unwrap_or_default();
        if present != text {
            std::fs::write(format!("{path}.new"), &text).unwrap();
        }
        assert!(
            present == text,
            "{path} is not what the types say; move {path}.new there"
        );
    }

    #[test]
    fn every_kind_of_evidence_has_its_place_in_the_schema() {
        let schema = include_str!("../../../../docs/src/reference/findings.schema.json");
        let schema: Value = serde_json::from_str(schema).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let text = document(samples::all(), serde_json::json!({"schedules": 3})).unwrap();
        let mut value: Value = serde_json::from_str(&text).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
        value["findings"][0]["steps"][0]["kind"] = "sings".into();
        assert!(!validator.is_valid(&value), "unknown kinds are refused");
    }
}
