//! `raddle predict`: what other interleavings could do, from runs in which nothing goes wrong.

use std::path::Path;

use raddle_testkit::{corpus, raddle_in, run, temporary};

/// Exit status, standard output, standard error.
fn predict(folder: &Path, program: &Path, options: &[&str]) -> (Option<i32>, String, String) {
    let mut command = raddle_in(folder, &["predict"]);
    let ran = run(command.args(options).arg("--").arg(program));
    (ran.code, ran.stdout, ran.stderr)
}

/// The bug is predicted from runs in which it does not happen, and forced; its fixed variant is clean.
#[track_caller]
fn check(program: &str, analysis: &str) {
    let folder = temporary();
    let folder = folder.path();
    let buggy = corpus::build(program, "buggy", folder);
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
    let replay = ["replay", recording.expect("a recording")];
    run(&mut raddle_in(folder, &replay)).expect(1);
    let fixed = corpus::build(program, "fixed", folder);
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
    let folder = temporary();
    let folder = folder.path();
    let program = corpus::build("mysql/table_state", "buggy", folder);
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
    let folder = temporary();
    let folder = folder.path();
    let program = corpus::build("mysql/query_null", "buggy", folder);
    let (status, text, _) = predict(folder, &program, &["--no-validate", "--predicted"]);
    assert_eq!(status, Some(0), "{text}");
    assert!(
        text.contains("con-null, first buggy.c:28 kill_query"),
        "{text}"
    );
    assert!(text.contains("untried in 0 attempts"), "{text}");
}
