//! `raddle explore` and `raddle replay` from the outside: small programs with and without bugs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/explore");

fn build(folder: &Path, name: &str) -> PathBuf {
    let program = folder.join(name);
    let status = Command::new("gcc")
        .args(["-g", "-O0", "-pthread", "-o"])
        .arg(&program)
        .arg(format!("{SOURCES}/{name}.c"))
        .status()
        .expect("gcc is installed");
    assert!(status.success());
    program
}

fn raddle(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_raddle"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("raddle starts")
}

fn explore(folder: &Path, name: &str, extra: &[&str]) -> (i32, String) {
    let program = build(folder, name);
    let mut arguments = vec!["explore", "--schedules", "600", "--time", "600"];
    arguments.extend(extra);
    let program = program.to_string_lossy();
    arguments.extend(["--", &*program]);
    let output = raddle(folder, &arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), text + &errors)
}

fn recordings(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder exists")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "raddle"))
        .collect();
    found.sort();
    found
}

fn assert_replays(folder: &Path) {
    let found = recordings(folder);
    assert!(!found.is_empty(), "no recording was written");
    for path in found {
        let output = raddle(folder, &["replay", "--times", "3", &path.to_string_lossy()]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(text.contains("replayed 3 times bit for bit"), "{text}");
    }
}

fn check_found(name: &str, parts: &[&str]) {
    let folder = TempDir::new().expect("a temporary folder");
    let (code, text) = explore(folder.path(), name, &[]);
    assert_eq!(code, 1, "{text}");
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
    assert!(text.contains("reproduced in 2 of 2 replays"), "{text}");
    assert_replays(folder.path());
}

#[test]
fn a_lost_update_is_found_explained_and_replayed() {
    check_found(
        "lost",
        &[
            "assertion failed: lost: ",
            "Assertion `balance == 200' failed",
            "reads `balance` = 100",
            "writes `balance` = 150",
            "deposit",
            "minimal: 1 preemption, 4 context switches in all",
        ],
    );
}

#[test]
fn a_deadlock_is_found_with_its_cycle() {
    check_found(
        "dead",
        &[
            "deadlock: thread 3 and thread 2 wait for each other",
            "the circle was closed by thread 2",
            "thread 2 wants `right`, which thread 3 holds",
            "thread 3 wants `left`, which thread 2 holds",
        ],
    );
}

#[test]
fn a_crash_is_found_with_its_place() {
    check_found("crash", &["crash: SIGSEGV", "reader", "reading 0x0"]);
}

#[test]
fn correct_programs_are_clean() {
    for name in ["fixed", "spin"] {
        let folder = TempDir::new().expect("a temporary folder");
        let (code, text) = explore(folder.path(), name, &["--races"]);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("0 findings, 0 schedules failed"), "{text}");
        assert!(recordings(folder.path()).is_empty());
    }
}

#[test]
fn a_program_without_threads_proves_nothing() {
    let folder = TempDir::new().expect("a temporary folder");
    let (code, text) = explore(folder.path(), "single", &[]);
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("nothing was interleaved"), "{text}");
}

#[test]
fn races_are_reported_on_request() {
    let folder = TempDir::new().expect("a temporary folder");
    let (code, text) = explore(folder.path(), "crash", &["--races", "--concise"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("data race on `config`"), "{text}");
}

#[test]
fn the_number_of_workers_changes_nothing() {
    let texts: Vec<String> = ["1", "3"]
        .iter()
        .map(|jobs| {
            let folder = TempDir::new().expect("a temporary folder");
            let program = build(folder.path(), "lost");
            // The same path for both, since it is part of the program's stack.
            let map = format!("{}:/guest/lost", program.display());
            let output = raddle(
                folder.path(),
                &[
                    "explore",
                    "--schedules",
                    "400",
                    "--time",
                    "600",
                    "--jobs",
                    jobs,
                    "--json",
                    "--map",
                    &map,
                    "--cwd",
                    "/",
                    "--",
                    "/guest/lost",
                ],
            );
            assert_eq!(
                output.status.code(),
                Some(1),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8_lossy(&output.stdout).into_owned()
        })
        .collect();
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn bad_input_is_refused_with_its_reason() {
    let folder = TempDir::new().expect("a temporary folder");
    let missing = raddle(folder.path(), &["explore", "--", "./missing"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("missing"));
    let damaged = folder.path().join("damaged.raddle");
    std::fs::write(&damaged, "raddle-recording 2 0\n{}\n").unwrap();
    let output = raddle(folder.path(), &["replay", &damaged.to_string_lossy()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("damaged"));
    let unknown = raddle(
        folder.path(),
        &["explore", "--scheduler", "magic", "--", "/bin/true"],
    );
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("pct3"));
}
