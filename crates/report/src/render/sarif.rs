//! SARIF 2.1.0, as code hosts and editors read it.
//!
//! A step is a location of the thread flow of its context; `executionOrder` puts the flows of all contexts in one order.
//! Paths below the project are relative to it, so that a viewer on another machine can place them.

use serde_json::{Map, Value, json};

use super::choice::choose;
use super::project::Project;
use crate::action::sentence;
use crate::evidence::Step;
use crate::finding::{Confidence, Finding};
use crate::place::{Frame, Place};
use crate::words::counted;

/// A rule as SARIF lists it: name, one line, full text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub name: String,
    pub title: String,
    pub about: String,
}

/// The name of the project's folder in a document.
const ROOT: &str = "%SRCROOT%";
/// Steps of a finding at most, the last ones: viewers refuse documents with very long flows.
const STEPS_MAX: usize = 1000;

/// The whole result of a run.
pub fn document(
    findings: &[Finding],
    rules: &[Rule],
    version: &str,
    project: &Project,
) -> serde_json::Result<String> {
    let writer = Writer { rules, project };
    let results: Vec<Value> = findings.iter().map(|one| writer.result(one)).collect();
    let rules: Vec<Value> = rules.iter().map(rule).collect();
    let text = serde_json::to_string_pretty(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "raddle", "version": version, "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "originalUriBaseIds": { ROOT: { "uri": project.uri() } },
            "results": results,
        }],
    }))?;
    Ok(text + "\n")
}

fn rule(rule: &Rule) -> Value {
    json!({
        "id": rule.name,
        "shortDescription": { "text": rule.title },
        "fullDescription": { "text": rule.about },
        "help": { "text": rule.about },
    })
}

struct Writer<'a> {
    rules: &'a [Rule],
    project: &'a Project,
}

impl Writer<'_> {
    fn result(&self, finding: &Finding) -> Value {
        let ends = finding.steps.iter().find(|step| !step.action.is_passing());
        let main = ends.or(finding.steps.first());
        let shown = choose(finding).steps;
        let related = shown.iter().zip(1_u32..).map(|(number, id)| {
            let mut location = self.told(finding, &finding.steps[*number]);
            location["id"] = id.into();
            location
        });
        let mut result = json!({
            "ruleId": finding.kind,
            "level": finding.severity.word(),
            "rank": rank(finding.confidence),
            "message": { "text": message(finding) },
            "locations": main.iter().map(|step| self.location(&step.place)).collect::<Vec<_>>(),
            "relatedLocations": related.collect::<Vec<_>>(),
            "partialFingerprints": { "raddle/v1": finding.fingerprint },
            "properties": properties(finding),
        });
        let index = self.rules.iter().position(|rule| rule.name == finding.kind);
        if let Some(index) = index {
            result["ruleIndex"] = index.into();
        }
        if !finding.steps.is_empty() {
            result["codeFlows"] = json!([self.flow(finding, &shown)]);
        }
        let stacks = self.stacks(finding);
        if !stacks.is_empty() {
            result["stacks"] = stacks.into();
        }
        result
    }

    /// One thread flow for each context that does something.
    fn flow(&self, finding: &Finding, shown: &[usize]) -> Value {
        let from = finding.steps.len().saturating_sub(STEPS_MAX);
        let left_out = finding.steps_dropped + u64::try_from(from).unwrap_or(u64::MAX);
        let thread = |(context, label): (usize, String)| {
            let steps = finding.steps.iter().enumerate().skip(from);
            let own = steps.filter(|(_, step)| step.context == context);
            let locations: Vec<Value> = own
                .map(|(number, step)| self.flow_location(finding, number, step, shown))
                .collect();
            (!locations.is_empty()).then(|| {
                json!({
                    "id": label,
                    "message": { "text": label },
                    "locations": locations,
                })
            })
        };
        let labels = finding.contexts.iter().map(|context| context.label.clone());
        let threads: Vec<Value> = labels.enumerate().filter_map(thread).collect();
        let mut flow = json!({ "threadFlows": threads });
        if left_out > 0 {
            let text = format!("{} before these are left out", counted(left_out, "step"));
            flow["message"] = json!({ "text": text });
        }
        flow
    }

    fn flow_location(
        &self,
        finding: &Finding,
        number: usize,
        step: &Step,
        shown: &[usize],
    ) -> Value {
        let importance = if !step.action.is_passing() {
            "essential"
        } else if shown.binary_search(&number).is_ok() {
            "important"
        } else {
            "unimportant"
        };
        let mut location = json!({
            "location": self.told(finding, step),
            "executionOrder": number + 1,
            "importance": importance,
        });
        if let (Some(object), Some(value)) = (&step.object, step.after.or(step.before)) {
            let mut state = Map::new();
            state.insert(object.clone(), json!({ "text": value.shown() }));
            location["state"] = state.into();
        }
        if let Some(frames) = step.stack.and_then(|stack| finding.stacks.get(stack)) {
            location["stack"] = self.stack(frames, None);
        }
        location
    }

    /// The stacks with which a run ends, or those of both sides of a race.
    fn stacks(&self, finding: &Finding) -> Vec<Value> {
        let has_end = finding.steps.iter().any(|step| !step.action.is_passing());
        let steps = finding.steps.iter();
        let wanted = steps.filter(|step| !(has_end && step.action.is_passing()));
        wanted
            .take(if has_end { STEPS_MAX } else { 2 })
            .filter_map(|step| {
                let frames = finding.stacks.get(step.stack?)?;
                Some(self.stack(frames, Some(finding.label(step.context))))
            })
            .collect()
    }

    fn stack(&self, frames: &[Frame], of: Option<&str>) -> Value {
        let frame = |frame: &Frame| json!({ "location": self.location(&frame.place) });
        let mut stack = json!({ "frames": frames.iter().map(frame).collect::<Vec<_>>() });
        if let Some(of) = of {
            stack["message"] = json!({ "text": format!("stack of {of}") });
        }
        stack
    }

    fn told(&self, finding: &Finding, step: &Step) -> Value {
        let mut location = self.location(&step.place);
        let who = finding.label(step.context);
        let text = format!("{who}: {}", sentence(finding, step));
        location["message"] = json!({ "text": text });
        location
    }

    fn location(&self, place: &Place) -> Value {
        let mut location = json!({});
        if !place.file.is_empty() {
            let mut physical = json!({ "artifactLocation": self.artifact(&place.file) });
            if place.line > 0 {
                physical["region"] = json!({ "startLine": place.line });
            }
            if place.line > 0 && place.column > 0 {
                physical["region"]["startColumn"] = place.column.into();
            }
            location["physicalLocation"] = physical;
        }
        if !place.function.is_empty() {
            let function = json!({ "name": place.function, "kind": "function" });
            location["logicalLocations"] = json!([function]);
        }
        location
    }

    fn artifact(&self, file: &str) -> Value {
        match self.project.relative_uri(file) {
            Ok(uri) => json!({ "uri": uri, "uriBaseId": ROOT }),
            Err(uri) => json!({ "uri": uri }),
        }
    }
}

fn message(finding: &Finding) -> String {
    match finding.why.as_str() {
        "" => finding.title.clone(),
        why => format!("{}: {why}", finding.title),
    }
}

fn properties(finding: &Finding) -> Value {
    let mut properties = json!({
        "id": finding.short_id(),
        "confidence": finding.confidence,
        "objects": finding.objects,
    });
    if let Some(recording) = &finding.recording {
        properties["replay"] = recording.command.clone().into();
    }
    properties
}

fn rank(confidence: Confidence) -> u32 {
    match confidence {
        Confidence::StaticLow => 25,
        Confidence::StaticHigh => 50,
        Confidence::Predicted => 75,
        Confidence::Confirmed => 100,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn written() -> Value {
        let rules = [Rule {
            name: "deadlock".into(),
            title: "nobody can go on".into(),
            about: "all of it".into(),
        }];
        let project = Project::new("/project", "/project/sub");
        let text = document(&samples::all(), &rules, "0.1.0", &project).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn documents_are_as_the_standard_wants_them() {
        let schema = include_str!("../../tests/schemata/sarif-2.1.0.json");
        let mut schema: Value = serde_json::from_str(schema).unwrap();
        // The pattern of languages has a stray bracket, which the standard's errata take back.
        for owner in ["run", "toolComponent"] {
            let language = &mut schema["definitions"][owner]["properties"]["language"];
            language.as_object_mut().unwrap().remove("pattern");
        }
        let validator = jsonschema::validator_for(&schema).unwrap();
        let value = written();
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }

    #[test]
    fn a_viewer_can_place_files_below_the_project() {
        let value = written();
        let run = &value["runs"][0];
        assert_eq!(run["originalUriBaseIds"][ROOT]["uri"], "file:///project/");
        let artifact = |result: usize| {
            run["results"][result]["locations"][0]["physicalLocation"]["artifactLocation"].clone()
        };
        assert_eq!(
            artifact(0),
            json!({ "uri": "src/bank.c", "uriBaseId": ROOT })
        );
        assert_eq!(
            artifact(2),
            json!({ "uri": "sub/fs/a%20b.c", "uriBaseId": ROOT }),
            "a path that the user has named is relative to where he stood"
        );
    }

    #[test]
    fn flows_tell_each_thread_and_the_order_of_all() {
        let value = written();
        let result = &value["runs"][0]["results"][0];
        let threads = result["codeFlows"][0]["threadFlows"].as_array().unwrap();
        let ids: Vec<&str> = threads.iter().map(|t| t["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["thread 1 (main)", "thread 2", "thread 3"]);
        let order = |thread: usize| -> Vec<u64> {
            let steps = threads[thread]["locations"].as_array().unwrap();
            steps
                .iter()
                .map(|step| step["executionOrder"].as_u64().unwrap())
                .collect()
        };
        assert_eq!([order(0), order(1), order(2)], [[5, 6], [1, 4], [2, 3]]);
        let first = &threads[1]["locations"][0];
        assert_eq!(
            first["location"]["message"]["text"],
            "thread 2: reads `balance` = 100"
        );
        assert_eq!(first["state"]["`balance`"]["text"], "100");
        assert_eq!(
            result["partialFingerprints"]["raddle/v1"],
            "1c9e00ff1c9e00ff"
        );
        let deadlock = &value["runs"][0]["results"][1];
        assert_eq!(
            (&deadlock["ruleIndex"], &deadlock["ruleId"]),
            (&json!(0), &json!("deadlock"))
        );
    }
}
