//! `raddle predict`: what other interleavings could do, from runs in which nothing goes wrong.

use std::path::{Path, PathBuf};
use std::process::Command;

fn build(folder: &Path, program: &str, variant: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../corpus")
        .join(program)
        .join(variant);
    let (compiler, source) = if source.with_extension("c").exists() {
        ("gcc", source.with_extension("c"))
    } else {
        ("g++", source.with_extension("cpp"))
    };
    let binary = folder.join(variant);
    let status = Command::new(compiler)
        .args(["-O1", "-g", "-w", "-pthread", "-o"])
        .args([&binary, &source])
        .status()
        .expect("gcc is installed");
    assert!(status.success(), "{program}");
    binary
}

/// Exit status, standard output, standard error.
fn predict(folder: &Path, program: &Path, options: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_raddle"))
        .current_dir(folder)
        .arg("predict")
        .args(options)
        .arg("--")
        .arg(program)
        .output()
        .expect("raddle starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    (output.status.code(), stdout, stderr)
}

/// The bug is predicted from runs in which it does not happen, and forced; its fixed variant is clean.
#[track_caller]
fn check(program: &str, analysis: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let buggy = build(folder, program, "buggy");
    let options = ["--only", analysis, "--json"];
    let (status, document, errors) = predict(folder, &buggy, &options);
    assert_eq!(status, Some(1), "{program}: {document}{errors}");
    let told: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(told["summary"]["passing_runs"], 3, "{program}: {document}");
    let listed = told["summary"]["listed"].as_array().expect("a list");
    let confirmed = listed.iter().find(|one| one["outcome"] == "confirmed");
    assert!(confirmed.is_some(), "{program}: {document}");
    assert_eq!(told["findings"][0]["confidence"], "confirmed", "{document}");
    let command = told["findings"][0]["recording"]["command"].as_str();
    let recording = command.and_then(|command| command.split(' ').next_back());
    let replayed = Command::new(env!("CARGO_BIN_EXE_raddle"))
        .current_dir(folder)
        .args(["replay", recording.expect("a recording")])
        .output()
        .expect("raddle starts");
    assert_eq!(replayed.status.code(), Some(1), "{program}");
    let fixed = build(folder, program, "fixed");
    let (status, text, errors) = predict(folder, &fixed, &[]);
    assert_eq!(status, Some(0), "{program}: {text}{errors}");
}

#[test]
fn a_pointer_that_is_cleared_in_between_is_forced() {
    check("mysql/query_null", "conmem");
}

#[test]
fn what_belongs_together_is_torn_apart() {
    check("mysql/proc_info", "ctrigger");
    check("mysql/binlog_rotate", "ctrigger");
    check("mysql/table_state", "ctrigger");
}

#[test]
fn what_atomic_instructions_touch_can_be_torn_apart_too() {
    check("apache/cache_refcount", "ctrigger");
}

#[test]
fn a_lock_that_is_cleared_while_others_need_it_is_forced_in_spite_of_a_condition() {
    check("pbzip2/fifo_lock", "conmem");
}

#[test]
fn values_that_lead_to_an_assertion_are_forced() {
    check("aget/resume_log", "conseq");
    check("mysql/relay_log_pos", "conseq");
    check("mozilla/inprogress_url", "conseq");
}

#[test]
fn values_that_lead_to_an_error_message_are_forced() {
    check("mozilla/js_undefined", "conseq");
    check("mysql/create_like", "conseq");
}

#[test]
fn values_that_keep_a_loop_going_are_forced() {
    check("mysql/stop_slave", "conseq");
    check("openoffice/load_hang", "conseq");
}

#[test]
fn what_is_read_before_it_has_its_value_is_forced() {
    check("cherokee/time_string", "conmem");
}

#[test]
fn the_same_seed_predicts_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let program = build(folder, "mysql/table_state", "buggy");
    let told = || {
        let (_, text, _) = predict(folder, &program, &["--predicted", "--concise"]);
        let lines = text.lines().filter(|line| !line.starts_with("looked at"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let first = told();
    assert!(first.len() > 1, "{first:?}");
    assert_eq!(first, told());
}

#[test]
fn predictions_alone_find_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let program = build(folder, "mysql/query_null", "buggy");
    let (status, text, _) = predict(folder, &program, &["--no-validate", "--predicted"]);
    assert_eq!(status, Some(0), "{text}");
    assert!(
        text.contains("con-null, first buggy.c:28 kill_query"),
        "{text}"
    );
    assert!(text.contains("untried in 0 attempts"), "{text}");
}
