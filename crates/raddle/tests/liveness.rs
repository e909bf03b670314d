//! Loops that wait, and loops that only look as if they did, under `raddle explore`.

use raddle_testkit::{compile_test_program, raddle_in, run, temporary};

/// Exit status of an exploration of a program that is compiled with these flags, and the report.
fn explore(name: &str, flags: &[&str]) -> (i32, serde_json::Value) {
    let folder = temporary();
    let source = format!("liveness/{name}.c");
    let flags = [&["-g", "-pthread"], flags].concat();
    let program = compile_test_program(folder.path(), &source, &flags);
    let options = [
        "explore",
        "--schedules",
        "300",
        "--seed",
        "1",
        "--jobs",
        "1",
    ];
    let mut command = raddle_in(folder.path(), &options);
    let ran = run(command.args(["--json", "--"]).arg(program));
    let report = serde_json::from_str(&ran.stdout).expect("the report is JSON");
    (ran.code.unwrap_or(-1), report)
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

/// Trying out how a child goes on must not give it pages that are taken back.
#[test]
fn children_that_yield_keep_their_memory() {
    let (status, report) = explore("forked", &["-O1"]);
    let summary = &report["summary"];
    assert_eq!(summary["failing"], 0, "{status}: {report:#}");
    assert!(summary["distinct"].as_u64() > Some(1), "{report:#}");
}
