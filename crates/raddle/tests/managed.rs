//! Programs in languages with a machine of their own: Go and Python. What threads of the machine do among themselves is
//! no place to switch at; the user's own operations are.

use std::path::Path;

use raddle_testkit::{compile_test_program, recording, test_program, told_in};
use tempfile::TempDir;

fn build_go(folder: &Path, name: &str) -> Vec<String> {
    compile_test_program(folder, &format!("managed/{name}.go"), &[]);
    vec![format!("./{name}")]
}

fn python(name: &str) -> Vec<String> {
    let script = test_program(&format!("managed/{name}.py"));
    vec![
        "/usr/bin/python3".to_owned(),
        script.to_string_lossy().into_owned(),
    ]
}

fn explore(folder: &Path, options: &[&str], program: &[String]) -> (i32, String) {
    let mut arguments = vec!["explore", "--time", "600", "--explain-time", "20"];
    arguments.extend_from_slice(options);
    arguments.push("--");
    arguments.extend(program.iter().map(String::as_str));
    told_in(folder, &arguments)
}

/// The bug is found in so many schedules, and what was recorded replays; the fixed variant is clean.
fn found_and_absent(program: &[String], folder: &Path, schedules: (&str, &str), told: &str) {
    let until = ["--schedules", schedules.0, "--until-found"];
    let (code, text) = explore(folder, &until, program);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains(told), "{text}");
    assert!(text.contains("confirmed"), "{text}");
    let (code, text) = told_in(
        folder,
        &["replay", "--explain-time", "1", &recording(folder)],
    );
    assert_eq!(code, 1, "{text}");
    let fixed = [program, &["fixed".to_owned()]].concat();
    let (code, text) = explore(folder, &["--schedules", schedules.1], &fixed);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn a_lost_update_between_two_critical_sections_of_go() {
    let folder = TempDir::new().unwrap();
    let program = build_go(folder.path(), "transfer");
    found_and_absent(&program, folder.path(), ("4000", "400"), "lost a transfer");
}

#[test]
fn a_channel_of_go_that_is_closed_before_it_is_sent_to() {
    let folder = TempDir::new().unwrap();
    let program = build_go(folder.path(), "closed");
    let told = "exit status 2 instead of 0";
    found_and_absent(&program, folder.path(), ("4000", "400"), told);
}

#[test]
fn a_test_and_an_act_of_python_with_a_switch_between() {
    let folder = TempDir::new().unwrap();
    let told = "AssertionError: sold 2 of 1";
    found_and_absent(&python("stock"), folder.path(), ("1000", "60"), told);
}

#[test]
fn a_deadlock_of_python() {
    let folder = TempDir::new().unwrap();
    let program = python("embrace");
    found_and_absent(&program, folder.path(), ("1500", "60"), "deadlock");
}

#[test]
fn a_search_in_python_is_the_same_with_any_number_of_workers() {
    let told = |jobs: &str| {
        let folder = TempDir::new().unwrap();
        let options = ["--schedules", "32", "--json", "--jobs", jobs];
        let (_, text) = explore(folder.path(), &options, &python("stock"));
        let start = text.find('{').expect("there is JSON");
        let end = text.rfind('}').expect("it ends");
        let mut json: serde_json::Value =
            serde_json::from_str(&text[start..=end]).expect("it is JSON");
        json["summary"]["nanoseconds"].take();
        json["summary"].to_string()
    };
    assert_eq!(told("1"), told("2"));
}
