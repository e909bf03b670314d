//! `raddle replay --relaxed`: a recorded failure in a program that was changed since.

use std::path::Path;

use raddle_testkit::{
    compile, compile_text, corpus, recording, recordings, temporary, told_in as raddle,
};

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
    compile_text(folder, "count.c", &source, &["-O1", "-g", "-pthread"]);
}

#[test]
fn a_recording_is_applied_to_a_changed_program() {
    let folder = temporary();
    let folder = folder.path();
    build(folder, RACY);
    let (status, text) = raddle(folder, &["explore", "--until-found", "--", "./count"]);
    assert_eq!(status, 1, "{text}");
    let mut all = recordings(folder).into_iter();
    let race =
        all.find_map(|path| Some(path.to_str()?.to_owned()).filter(|name| name.contains("-DR-")));
    let race = race.expect("the race is recorded, too");
    let (status, text) = raddle(folder, &["replay", &race]);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("data race on `total`"), "{text}");
    let (status, text) = raddle(folder, &["replay", "--relaxed", &race]);
    assert_eq!(status, 2, "{text}");
    let recording = recording(folder);
    build(folder, BUSY);
    let (status, text) = raddle(folder, &["replay", &recording]);
    assert_eq!(status, 2, "{text}");
    assert!(text.contains("--relaxed"), "{text}");
    let (status, text) = raddle(folder, &["replay", "--relaxed", &recording]);
    assert_eq!(status, 1, "{text}");
    assert!(
        text.contains("the failure happens again in the recorded order"),
        "{text}"
    );
    build(folder, RIGHT);
    let (status, text) = raddle(folder, &["replay", "--relaxed", &recording]);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("no assertion any more"), "{text}");
}

fn build_rust(folder: &Path, level: &str) {
    let source = corpus::case("rust/lock_order").join("buggy.rs");
    let level = format!("-Copt-level={level}");
    let flags = ["--edition=2021", "-g", &level];
    compile(&source, &folder.join("locks"), &flags);
}

/// The lock is a function of the standard library first, and inlined into the program then.
#[test]
fn a_recording_survives_another_level_of_optimisation() {
    let folder = temporary();
    let folder = folder.path();
    build_rust(folder, "0");
    let (status, text) = raddle(folder, &["explore", "--until-found", "--", "./locks"]);
    assert_eq!(status, 1, "{text}");
    let recording = recording(folder);
    build_rust(folder, "1");
    let (status, text) = raddle(folder, &["replay", "--relaxed", &recording]);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("wait for each other"), "{text}");
}
