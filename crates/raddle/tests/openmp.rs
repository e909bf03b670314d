//! Programs with OpenMP, whose runtime library waits in loops unless it is told not to.

use std::path::Path;

use raddle_testkit::{compile_test_program, output_in, raddle_in, recording, succeed, told_in};
use tempfile::TempDir;

fn build(folder: &Path, flags: &[&str]) {
    let usual = ["-g", "-O1", "-fopenmp"];
    compile_test_program(folder, "explore/openmp.c", &[&usual, flags].concat());
}

fn explore(folder: &Path) -> (i32, String) {
    let options = ["explore", "--schedules", "100", "--time", "600"];
    told_in(folder, &[&options[..], &["--", "./openmp"]].concat())
}

#[test]
fn a_lost_update_of_a_parallel_loop_is_found_and_replays() {
    let folder = TempDir::new().unwrap();
    build(folder.path(), &[]);
    let (code, text) = explore(folder.path());
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("`counter == 8' failed"), "{text}");
    assert!(!text.contains("guarded == 8' failed"), "{text}");
    assert!(text.contains("OMP_WAIT_POLICY=passive"), "{text}");
    // The recording has the environment, and needs no library to be looked at again.
    let recording = recording(folder.path());
    let (code, text) = told_in(folder.path(), &["replay", &recording]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("`counter == 8' failed"), "{text}");
}

#[test]
fn a_correct_parallel_loop_is_clean() {
    let folder = TempDir::new().unwrap();
    build(folder.path(), &["-DFIXED"]);
    let (code, text) = explore(folder.path());
    assert_eq!(code, 0, "{text}");
    let output = output_in(folder.path(), &["run", "--", "./openmp"]);
    assert!(output.status.success());
    assert_eq!(output.stderr, b"", "what a program prints stays as it is");
}

#[test]
fn only_programs_with_openmp_get_its_variable_and_env_overrides_it() {
    let folder = TempDir::new().unwrap();
    build(folder.path(), &["-DFIXED"]);
    let text = succeed(&mut raddle_in(
        folder.path(),
        &["run", "--", "/usr/bin/env"],
    ));
    assert!(!text.contains("OMP_WAIT_POLICY"), "{text}");
    // OpenMP shows its settings on standard error.
    let (code, text) = told_in(
        folder.path(),
        &["run", "--env", "OMP_DISPLAY_ENV=true", "--", "./openmp"],
    );
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("OMP_WAIT_POLICY = 'PASSIVE'"), "{text}");
    let active = ["--env", "OMP_WAIT_POLICY=active"];
    let shown = ["--env", "OMP_DISPLAY_ENV=true", "--", "./openmp"];
    let (code, text) = told_in(folder.path(), &[&["run"], &active[..], &shown].concat());
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("OMP_WAIT_POLICY = 'ACTIVE'"), "{text}");
}
