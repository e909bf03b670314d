//! Every kind of finding in every machine-readable form, against the schemata.

use std::path::Path;

use raddle_testkit::schema::{FINDINGS, SARIF, checked};
use raddle_testkit::{compile_test_program, failures, raddle_in, run, temporary};
use serde_json::Value;
use tempfile::TempDir;

fn raddle(folder: &Path, arguments: &[&str]) -> String {
    run(&mut raddle_in(folder, arguments)).expect(1).stdout
}

/// Explores a program of `tests/explore`: JSON, SARIF and JUnit of one campaign.
fn explored(name: &str, extra: &[&str]) -> (TempDir, Value, Value, String) {
    let folder = temporary();
    let program = compile_test_program(
        folder.path(),
        &format!("explore/{name}.c"),
        &["-g", "-O0", "-pthread"],
    );
    let program = program.to_string_lossy();
    let mut arguments = vec!["explore", "--schedules", "600", "--time", "600", "--json"];
    arguments.extend(["--report", "sarif=out.sarif", "--junit", "out.xml"]);
    arguments.extend(extra);
    arguments.extend(["--", &*program]);
    let json = checked(FINDINGS, &raddle(folder.path(), &arguments));
    let read = |file| std::fs::read_to_string(folder.path().join(file)).expect("it was written");
    let sarif = checked(SARIF, &read("out.sarif"));
    let junit = read("out.xml");
    (folder, json, sarif, junit)
}

fn kinds(document: &Value) -> Vec<&str> {
    let findings = document["findings"].as_array().expect("a list");
    let kind = |finding: &'_ Value| finding["kind"].as_str().map(str::len).is_some();
    assert!(findings.iter().all(kind));
    findings
        .iter()
        .filter_map(|finding| finding["kind"].as_str())
        .collect()
}

fn step_kinds(finding: &Value) -> Vec<&str> {
    let steps = finding["steps"].as_array().expect("a list");
    steps
        .iter()
        .filter_map(|step| step["kind"].as_str())
        .collect()
}

#[test]
fn an_assertion_is_data_with_values_edges_and_a_run_beside_it() {
    let (_folder, json, sarif, junit) = explored("lost", &[]);
    let finding = &json["findings"][0];
    assert_eq!(finding["kind"], "assertion");
    let steps = finding["steps"].as_array().expect("a list");
    let last = steps.last().expect("there are steps");
    assert_eq!(last["kind"], "give-up");
    let read = steps
        .iter()
        .rfind(|step| step["object"] == "`balance`")
        .expect("the read that decides");
    assert_eq!(read["before"]["bits"], "0x96");
    assert_eq!(read["locks"]["known"], serde_json::json!([]));
    let edge = |kind: &str| {
        let edges = finding["edges"].as_array().expect("a list");
        edges.iter().any(|edge| edge["kind"] == kind)
    };
    assert!(edge("reads-from") && edge("switch") && edge("happens-before"));
    assert!(
        finding["expected"]["steps"]
            .as_array()
            .is_some_and(|steps| !steps.is_empty())
    );
    assert_eq!(finding["search"]["is_minimal"], true);
    let file = finding["recording"]["file"].as_str().expect("a recording");
    assert!(file.ends_with(".raddle"), "{file}");
    let place = &finding["steps"][0]["place"]["file"];
    assert!(
        place.as_str().is_some_and(|file| file.starts_with('/')),
        "{place}"
    );
    let result = &sarif["runs"][0]["results"][0];
    let flows = result["codeFlows"][0]["threadFlows"].as_array();
    assert_eq!(flows.map(Vec::len), Some(3), "one for each thread");
    assert!(junit.contains("failures=\"1\""), "{junit}");
}

#[test]
fn a_deadlock_has_its_graph() {
    let (_folder, json, _, _) = explored("dead", &[]);
    let finding = &json["findings"][0];
    assert_eq!(finding["kind"], "deadlock");
    let waits = finding["waits"].as_array().expect("a graph");
    let circle: Vec<&Value> = waits
        .iter()
        .filter(|wait| wait["in_circle"] == true)
        .collect();
    assert_eq!(circle.len(), 2);
    assert_eq!(circle[0]["holder"], circle[1]["context"]);
    assert_eq!(circle[1]["holder"], circle[0]["context"]);
    let step = &finding["steps"][usize::try_from(circle[0]["step"].as_u64().unwrap()).unwrap()];
    assert_eq!(
        (&step["kind"], &step["on"]),
        (&"blocked".into(), &"lock".into())
    );
    assert_eq!(step["locks"]["known"].as_array().map(Vec::len), Some(1));
}

#[test]
fn heap_errors_and_races_are_as_the_schema_says() {
    let (_folder, json, sarif, _) = explored("freed", &["--races"]);
    let kinds = kinds(&json);
    assert!(
        kinds.contains(&"use-after-free") && kinds.contains(&"data-race"),
        "{kinds:?}"
    );
    let freed = &json["findings"][0];
    assert!(freed["block"]["freed"]["stack"].is_u64());
    assert_eq!(step_kinds(freed).last(), Some(&"use-after-free"));
    let race = json["findings"]
        .as_array()
        .and_then(|all| all.iter().find(|finding| finding["kind"] == "data-race"))
        .expect("a race");
    let steps = race["steps"].as_array().expect("a list");
    assert!(
        steps.iter().all(|step| step["stack"].is_u64()),
        "both sides have a stack"
    );
    assert_eq!(
        sarif["runs"][0]["results"].as_array().map(Vec::len),
        Some(kinds.len())
    );
}

#[test]
fn a_crash_and_a_wrong_output_are_as_the_schema_says() {
    let (_folder, json, _, _) = explored("crash", &[]);
    assert!(kinds(&json).contains(&"crash"));
    let expected = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(expected.path(), "200\n").expect("it can be written");
    let path = expected.path().to_string_lossy().into_owned();
    let (_folder, json, _, _) = explored("printed", &["--expect-output", &path]);
    assert!(kinds(&json).contains(&"wrong-output"), "{:?}", kinds(&json));
}

/// Two bugs with one status have two names, which do not depend on the seed.
#[test]
fn bugs_behind_one_status_are_told_apart() {
    let names = |seed: &str| -> Vec<String> {
        let (folder, json, _, _) = explored("two_bugs", &["--seed", seed]);
        let findings = json["findings"].as_array().expect("a list");
        let wrong = findings
            .iter()
            .filter(|finding| finding["kind"] == "wrong-exit");
        let mut names: Vec<String> = wrong
            .map(|finding| finding["fingerprint"].to_string())
            .collect();
        names.sort();
        let recordings = failures(folder.path());
        assert_eq!(recordings.len(), names.len(), "no recording is left over");
        names
    };
    let first = names("1");
    assert_eq!(first.len(), 2, "{first:?}");
    assert_ne!(first[0], first[1]);
    assert_eq!(names("2"), first);
}

#[test]
fn findings_of_source_are_as_the_schema_says() {
    let folder = temporary();
    let source = "#include <pthread.h>\nstatic pthread_mutex_t m;\nint f(int x)\n{\n\tpthread_mutex_lock(&m);\n\tif (x)\n\t\treturn -1;\n\tpthread_mutex_unlock(&m);\n\treturn 0;\n}\n";
    std::fs::create_dir(folder.path().join("src")).expect("a folder can be made");
    std::fs::write(folder.path().join("src/leak.c"), source).expect("it can be written");
    let arguments = [
        "scan",
        "--all",
        "--json",
        "--report",
        "sarif=out.sarif",
        "--junit",
        "out.xml",
        "src",
    ];
    let json = checked(FINDINGS, &raddle(folder.path(), &arguments));
    assert_eq!(kinds(&json), ["lock-leak"]);
    assert_eq!(
        json["findings"][0]["steps"][0]["place"]["file"],
        "src/leak.c"
    );
    let text = std::fs::read_to_string(folder.path().join("out.sarif")).expect("it was written");
    let sarif = checked(SARIF, &text);
    let artifact = sarif
        .pointer("/runs/0/results/0/locations/0/physicalLocation/artifactLocation")
        .expect("a place");
    assert_eq!(
        *artifact,
        serde_json::json!({ "uri": "src/leak.c", "uriBaseId": "%SRCROOT%" })
    );
    let junit = std::fs::read_to_string(folder.path().join("out.xml")).expect("it was written");
    assert!(junit.contains("<failure type=\"lock-leak\""), "{junit}");
}
