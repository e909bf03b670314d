//! SARIF 2.1.0, as code hosts and editors read it.

use serde_json::{Value, json};

use crate::action::sentence;
use crate::finding::{Confidence, Finding, Severity};
use crate::place::Place;

/// A rule as SARIF lists it: name, one line, full text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub name: String,
    pub title: String,
    pub about: String,
}

/// The whole result of a run.
pub fn document(findings: &[Finding], rules: &[Rule], version: &str) -> serde_json::Result<String> {
    let rules: Vec<Value> = rules
        .iter()
        .map(|rule| {
            json!({
                "id": rule.name,
                "shortDescription": { "text": rule.title },
                "fullDescription": { "text": rule.about },
            })
        })
        .collect();
    let results: Vec<Value> = findings.iter().map(result).collect();
    serde_json::to_string_pretty(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "raddle", "version": version, "rules": rules } },
            "results": results,
        }],
    }))
}

fn result(finding: &Finding) -> Value {
    let level = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let flow: Vec<Value> = finding
        .steps
        .iter()
        .map(|step| {
            let mut location = location(&step.place);
            location["message"] = json!({ "text": format!("{}: {}", finding.label(step.context), sentence(finding, step)) });
            location
        })
        .collect();
    let first = finding.steps.first().map(|step| location(&step.place));
    json!({
        "ruleId": finding.kind,
        "level": level,
        "rank": rank(finding.confidence),
        "message": { "text": format!("{}: {}", finding.title, finding.why) },
        "locations": first.into_iter().collect::<Vec<_>>(),
        "relatedLocations": flow,
        "partialFingerprints": { "raddle/v1": finding.fingerprint },
    })
}

fn rank(confidence: Confidence) -> u32 {
    match confidence {
        Confidence::StaticLow => 25,
        Confidence::StaticHigh => 50,
        Confidence::Predicted => 75,
        Confidence::Confirmed => 100,
    }
}

fn location(place: &Place) -> Value {
    json!({
        "physicalLocation": {
            "artifactLocation": { "uri": place.file },
            "region": { "startLine": place.line.max(1), "startColumn": place.column.max(1) },
        },
        "logicalLocations": [{ "name": place.function, "kind": "function" }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Action;
    use crate::evidence::{Context, Step};

    #[test]
    fn results_name_rule_place_and_fingerprint() {
        let place = Place {
            file: "a.c".into(),
            line: 3,
            column: 0,
            function: "f".into(),
        };
        let finding = Finding {
            title: "race".into(),
            contexts: vec![Context::named("pattern 1")],
            steps: vec![Step::new(0, Action::Write { in_call: false }, place)],
            why: "bad".into(),
            fingerprint: "00ff".into(),
            ..Finding::new("data-race", Severity::Warning, Confidence::StaticHigh)
        };
        let text = document(&[finding], &[], "0.1.0").unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let result = &value["runs"][0]["results"][0];
        assert_eq!(result["ruleId"], "data-race");
        let region = &result["locations"][0]["physicalLocation"]["region"];
        assert_eq!(
            (&region["startLine"], &region["startColumn"]),
            (&json!(3), &json!(1))
        );
        assert_eq!(result["partialFingerprints"]["raddle/v1"], "00ff");
    }
}
