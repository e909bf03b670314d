//! `raddle replay --relaxed`: a recorded failure in a program that was changed since.

use std::path::Path;
use std::process::Command;

const RACY: &str =
    "static void *add(void *a) {\n    int old = total;\n    total = old + 1;\n    return a;\n}\n";
/// The same with more to do before.
const BUSY: &str = "static void *add(void *a) {\n    for (int i = 0; i < 9; i++)\n        noise[i] = i;\n    int old = total;\n    total = old + 1;\n    return a;\n}\n";
const RIGHT: &str =
    "static void *add(void *a) {\n    __sync_fetch_and_add(&total, 1);\n    return a;\n}\n";

fn build(folder: &Path, add: &str) {
    let source = format!(
        "#include <assert.h>\n#include <pthread.h>\nstatic volatile int total, noise[9];\n{add}int main(void) {{\n    pthread_t x, y;\n    pthread_create(&x, 0, add, 0);\n    pthread_create(&y, 0, add, 0);\n    pthread_join(x, 0);\n    pthread_join(y, 0);\n    assert(total == 2);\n    return 0;\n}}\n"
    );
    let file = folder.join("count.c");
    std::fs::write(&file, source).expect("the source can be written");
    let status = Command::new("gcc")
        .args(["-O1", "-g", "-pthread", "-o"])
        .args([&folder.join("count"), &file])
        .status()
        .expect("gcc is installed");
    assert!(status.success());
}

fn raddle(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_raddle"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("raddle starts");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text.into_owned())
}

/// The name of the only recording of a failure in a folder; a data race may have one, too.
fn recording(folder: &Path) -> String {
    std::fs::read_dir(folder)
        .expect("the folder can be read")
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .find(|name| name.ends_with(".raddle") && !name.contains("-DR-"))
        .expect("a recording")
}

#[test]
fn a_recording_is_applied_to_a_changed_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    build(folder, RACY);
    let (status, text) = raddle(folder, &["explore", "--until-found", "--", "./count"]);
    assert_eq!(status, Some(1), "{text}");
    let race = std::fs::read_dir(folder).expect("the folder can be read");
    let mut race = race.filter_map(|entry| Some(entry.ok()?.path().display().to_string()));
    let race = race.find(|name| name.contains("-DR-"));
    let race = race.expect("the race is recorded, too");
    let (status, text) = raddle(folder, &["replay", &race]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("data race on `total`"), "{text}");
    let (status, text) = raddle(folder, &["replay", "--relaxed", &race]);
    assert_eq!(status, Some(2), "{text}");
    let recording = recording(folder);
    build(folder, BUSY);
    let (status, text) = raddle(folder, &["replay", &recording]);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("--relaxed"), "{text}");
    let (status, text) = raddle(folder, &["replay", "--relaxed", &recording]);
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("the failure happens again in the recorded order"),
        "{text}"
    );
    build(folder, RIGHT);
    let (status, text) = raddle(folder, &["replay", "--relaxed", &recording]);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("no assertion any more"), "{text}");
}

fn build_rust(folder: &Path, level: &str) {
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../corpus/rust/lock_order/buggy.rs"
    );
    let status = Command::new("rustc")
        .args(["--edition=2021", "-g", "-C"])
        .arg(format!("opt-level={level}"))
        .args(["-o", "locks", source])
        .current_dir(folder)
        .status()
        .expect("rustc is installed");
    assert!(status.success());
}

/// The lock is a function of the standard library first, and inlined into the program then.
#[test]
fn a_recording_survives_another_level_of_optimisation() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    build_rust(folder, "0");
    let (status, text) = raddle(folder, &["explore", "--until-found", "--", "./locks"]);
    assert_eq!(status, Some(1), "{text}");
    let recording = recording(folder);
    build_rust(folder, "1");
    let (status, text) = raddle(folder, &["replay", "--relaxed", &recording]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("wait for each other"), "{text}");
}
