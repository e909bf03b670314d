//! Loops that wait, and loops that only look as if they did, under `raddle explore`.

use std::path::Path;
use std::process::Command;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/liveness");

/// Exit status of an exploration of a program that is compiled with these flags, and the report.
fn explore(name: &str, flags: &[&str]) -> (i32, serde_json::Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join(name);
    let status = Command::new("gcc")
        .args(["-g", "-pthread", "-o"])
        .arg(&program)
        .arg(Path::new(SOURCES).join(format!("{name}.c")))
        .args(flags)
        .status()
        .expect("gcc is installed");
    assert!(status.success());
    let output = Command::new(env!("CARGO_BIN_EXE_raddle"))
        .current_dir(folder.path())
        .args([
            "explore",
            "--schedules",
            "300",
            "--seed",
            "1",
            "--jobs",
            "1",
        ])
        .args(["--json", "--"])
        .arg(&program)
        .output()
        .expect("raddle starts");
    let report = serde_json::from_slice(&output.stdout).expect("the report is JSON");
    (output.status.code().unwrap_or(-1), report)
}

/// The only failure of a program is the assertion in `main`.
#[track_caller]
fn check_counts(name: &str, flags: &[&str]) {
    let (status, report) = explore(name, flags);
    assert_eq!(status, 1, "{name} {flags:?}: {report:#}");
    let findings = report["findings"].as_array().expect("there are findings");
    let titles = findings
        .iter()
        .filter_map(|finding| finding["title"].as_str());
    let failures: Vec<&str> = titles.filter(|title| !title.contains("race")).collect();
    assert_eq!(failures.len(), 1, "{name} {flags:?}: {failures:?}");
    assert!(
        failures[0].contains("Assertion"),
        "{name} {flags:?}: {failures:?}"
    );
}

#[test]
fn loops_that_count_are_not_taken_for_waiting() {
    for level in ["-O0", "-O2"] {
        for name in ["retries", "tries", "list"] {
            check_counts(name, &[level]);
        }
        check_counts("retries", &[level, "-DYIELDS"]);
    }
}

#[test]
fn loops_that_wait_end_and_are_cheap() {
    for level in ["-O0", "-O2"] {
        let (status, report) = explore("waits", &[level]);
        let races_only = [0, 1].contains(&status) && report["summary"]["failing"] == 0;
        assert!(races_only, "{level}: {report:#}");
        let summary = &report["summary"];
        let number = |name: &str| {
            summary[name]
                .as_u64()
                .unwrap_or_else(|| panic!("{name}: {summary:#}"))
        };
        // The worker alone makes 200,000 steps or more; a loop that is not set aside makes as many for each of its turns.
        let steps = number("steps") / number("schedules");
        assert!(steps < 500_000, "{level}: {steps} steps in a schedule");
    }
}
