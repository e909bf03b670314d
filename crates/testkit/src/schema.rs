//! Documents against their schemata.

use serde_json::Value;

/// The schema of what `--json` prints.
pub const FINDINGS: &str = include_str!("../../../docs/src/reference/findings.schema.json");
/// The schema of SARIF 2.1.0.
pub const SARIF: &str = include_str!("../../report/tests/schemata/sarif-2.1.0.json");

/// The document, if its schema accepts it.
#[track_caller]
pub fn checked(schema: &str, text: &str) -> Value {
    let mut schema: Value = serde_json::from_str(schema).expect("the schema is JSON");
    // The pattern of languages has a stray bracket, which the standard's errata take back.
    for owner in ["run", "toolComponent"] {
        let language = schema.pointer_mut(&format!("/definitions/{owner}/properties/language"));
        if let Some(language) = language.and_then(Value::as_object_mut) {
            language.remove("pattern");
        }
    }
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let value: Value = serde_json::from_str(text).expect("the document is JSON");
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    value
}
