//! `raddle explore --faults`: what the system may do to a program and seldom does is found on request only, told,
//! replayed, and a program that bears it is clean.

use std::path::Path;

use raddle_testkit::{compile_test_program, raddle_in, recording, run, temporary};

/// Explores a test program, as it is or fixed, and gives the status and all text.
fn explore(folder: &Path, name: &str, extra: &[&str], options: &[&str]) -> (i32, String) {
    let source = format!("system_faults/{name}.c");
    let flags = [&["-g", "-O1", "-pthread"], extra].concat();
    let program = compile_test_program(folder, &source, &flags);
    let mut command = raddle_in(folder, &["explore", "--jobs", "1", "--schedules", "300"]);
    run(command.args(options).arg("--").arg(program)).told()
}

/// The fault is found if it is asked for, told in these words and replayed; without it, and in the fixed program,
/// nothing fails.
fn check(name: &str, kind: &str, told: &str) {
    let folder = temporary();
    let faults = ["--faults", kind];
    let (status, text) = explore(folder.path(), name, &[], &faults);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains(told), "{text}");
    let recording = recording(folder.path());
    let replayed = run(&mut raddle_in(folder.path(), &["replay", &recording])).told();
    assert_eq!(replayed.0, 1, "{}", replayed.1);
    assert!(replayed.1.contains(told), "{}", replayed.1);
    let (status, text) = explore(folder.path(), name, &[], &[]);
    assert_eq!(status, 0, "{text}");
    let (status, text) = explore(folder.path(), name, &["-DFIXED"], &faults);
    assert_eq!(status, 0, "{text}");
}

#[test]
fn a_wait_may_end_for_nothing() {
    check(
        "wake_up",
        "wake-up",
        "is woken from its wait though nothing has changed",
    );
}

#[test]
fn the_last_who_waits_may_be_woken_first() {
    check(
        "wake_order",
        "wake-order",
        "wakes the last who waits, not the first",
    );
}

#[test]
fn a_pipe_may_move_one_byte() {
    check("short_read", "short", "gets only one byte through");
}

#[test]
fn a_call_may_be_interrupted_if_there_is_a_handler() {
    check(
        "interrupted",
        "interrupt",
        "has its call interrupted by a signal (EINTR)",
    );
}

#[test]
fn an_allocation_may_fail() {
    check("no_memory", "memory", "is given no memory (NULL)");
}

#[test]
fn a_fault_that_does_not_exist_is_refused() {
    let folder = temporary();
    let (status, text) = explore(folder.path(), "no_memory", &[], &["--faults", "lightning"]);
    assert_eq!(status, 2, "{text}");
    assert!(text.contains("choose `all` or some of wake-up, "), "{text}");
}
