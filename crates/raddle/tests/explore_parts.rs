//! `raddle explore` where only a part of a program, or of its findings, is wanted.

use std::path::Path;

use raddle_testkit::{compile_test_program, recordings, told_in};
use tempfile::TempDir;

const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../annotations/include");

fn build(folder: &Path, name: &str) {
    let flags = ["-g", "-O0", "-pthread", "-I", HEADERS];
    compile_test_program(folder, &format!("explore/{name}.c"), &flags);
}

fn explore(folder: &Path, options: &[&str], command: &[&str]) -> (i32, String) {
    let fixed = ["explore", "--schedules", "400", "--time", "600"];
    told_in(folder, &[&fixed, options, &["--"], command].concat())
}

#[test]
fn a_hint_is_found_in_a_program_that_another_executes() {
    let folder = TempDir::new().unwrap();
    build(folder.path(), "hint");
    for script in ["exec ./hint", "./hint; exit $?"] {
        let (code, text) = explore(
            folder.path(),
            &["--snapshot-at", "hint"],
            &["/bin/sh", "-c", script],
        );
        assert_eq!(code, 1, "{text}");
        assert!(text.contains("`balance == 200' failed"), "{text}");
        assert!(!text.contains("ready == 2"), "{text}");
    }
}

/// Such a program gets longer turns, which are known only once it was run: what failed before must still be had again.
#[test]
fn failures_of_a_program_that_executes_another_replay() {
    let folder = TempDir::new().unwrap();
    build(folder.path(), "executed");
    for schedules in ["1", "100"] {
        let options = ["explore", "--schedules", schedules, "--"];
        let command = ["/bin/sh", "-c", "exec ./executed"];
        let (code, text) = told_in(folder.path(), &[&options[..], &command].concat());
        let found = recordings(folder.path());
        assert!(code == 1 || schedules == "1", "{code}: {text}");
        assert_eq!(found.is_empty(), code != 1, "{text}");
        assert!(!text.contains("did not fail in the same way"), "{text}");
        for recording in found {
            let name = recording.to_string_lossy();
            let (code, text) = told_in(folder.path(), &["replay", &name]);
            assert_eq!(code, 1, "{text}");
        }
    }
}

#[test]
fn schedules_of_a_server_begin_where_it_waits_for_a_client() {
    let folder = TempDir::new().unwrap();
    build(folder.path(), "listening");
    let (code, text) = explore(
        folder.path(),
        &["--snapshot-at", "listen"],
        &["./listening"],
    );
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("`balance == 200' failed"), "{text}");
    assert!(!text.contains("ready == 2"), "{text}");
    build(folder.path(), "lost");
    let (code, text) = explore(folder.path(), &["--snapshot-at", "listen"], &["./lost"]);
    assert_eq!(code, 4, "{text}");
    assert!(
        text.contains("without coming to a wait for a client"),
        "{text}"
    );
}

#[test]
fn the_first_part_of_an_endless_run_is_judged() {
    let folder = TempDir::new().unwrap();
    build(folder.path(), "endless");
    let (code, text) = explore(folder.path(), &["--cut", "100000"], &["./endless"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("`balance == 2' failed"), "{text}");
    let (code, text) = explore(folder.path(), &["--cut", "100000"], &["./endless", "right"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("cut after 100000 instructions"), "{text}");
}

#[test]
fn known_findings_are_left_out_with_their_reason() {
    let folder = TempDir::new().unwrap();
    build(folder.path(), "lost");
    let config = |text: &str| {
        let text = format!("version = 1\n\n[[suppress]]\n{text}");
        std::fs::write(folder.path().join("raddle.toml"), text).unwrap();
    };
    config(
        "kind = \"assertion\"\nreason = \"known\"\n\n[[suppress]]\nkind = \"hang\"\nreason = \"old\"\n",
    );
    let (code, text) = explore(folder.path(), &["--no-fail-on-races"], &["./lost"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("suppressed by kind = \"assertion\" (known)"),
        "{text}"
    );
    assert!(
        text.contains("unused suppression in raddle.toml: kind = \"hang\" (old)"),
        "{text}"
    );
    // That of the race is left: it is no finding that a rule names.
    let kept = recordings(folder.path());
    let is_of_race = |path: &std::path::PathBuf| path.to_string_lossy().contains("-DR-");
    assert!(kept.iter().all(is_of_race), "{kept:?}");
    config("kind = \"assertion\"\n");
    let (code, text) = explore(folder.path(), &[], &["./lost"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("gives no reason"), "{text}");
}

/// A handler comes between any two instructions of the thread that it interrupts.
#[test]
fn a_signal_handler_meets_what_it_interrupts() {
    let folder = TempDir::new().unwrap();
    build(folder.path(), "interrupted");
    let (code, text) = explore(folder.path(), &["--until-found"], &["./interrupted"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("exit status 5 instead of 0"), "{text}");
    assert!(text.contains("is interrupted by SIGUSR1"), "{text}");
    let (code, text) = explore(folder.path(), &["--exhaustive"], &["./interrupted"]);
    assert_eq!(code, 1, "{text}");

    let flags = ["-g", "-O0", "-pthread", "-DFIXED"];
    compile_test_program(folder.path(), "explore/interrupted.c", &flags);
    let (code, text) = explore(folder.path(), &[], &["./interrupted"]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = explore(folder.path(), &["--exhaustive"], &["./interrupted"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("there may be others: signal handlers came where"),
        "{text}"
    );
}

/// Nothing that could still happen ends the loop: that is known without waiting for the limit of a schedule.
#[test]
fn a_program_that_hangs_in_every_schedule_has_a_hang() {
    let folder = TempDir::new().unwrap();
    build(folder.path(), "stopped_too_early");
    let (code, text) = explore(folder.path(), &[], &["./stopped_too_early"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("hang: "), "{text}");

    let flags = ["-g", "-O0", "-pthread", "-DFIXED"];
    compile_test_program(folder.path(), "explore/stopped_too_early.c", &flags);
    let (code, text) = explore(folder.path(), &[], &["./stopped_too_early"]);
    assert_eq!(code, 0, "{text}");
}
