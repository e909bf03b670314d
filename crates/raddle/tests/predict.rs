//! `raddle predict`: what other interleavings could do, from runs in which nothing goes wrong.

use std::path::{Path, PathBuf};

use raddle_testkit::kernel::{cache, on_test, raddle as told_in, recording};
use raddle_testkit::{compile_test_program, corpus, raddle_in, run, temporary};

/// Exit status, standard output, standard error.
fn predict(folder: &Path, program: &Path, options: &[&str]) -> (Option<i32>, String, String) {
    let mut command = raddle_in(folder, &["predict"]);
    let ran = run(command.args(options).arg("--").arg(program));
    (ran.code, ran.stdout, ran.stderr)
}

/// The bug is predicted from runs in which it does not happen, and forced; its fixed variant is clean.
#[track_caller]
fn check(program: &str, analysis: &str) -> serde_json::Value {
    let folder = temporary();
    let folder = folder.path();
    let build = |variant: &str| corpus::build(program, variant, folder);
    check_variants(program, analysis, folder, &build)
}

#[track_caller]
fn check_variants(
    program: &str,
    analysis: &str,
    folder: &Path,
    build: &dyn Fn(&str) -> PathBuf,
) -> serde_json::Value {
    let buggy = build("buggy");
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
    let fixed = build("fixed");
    let (status, text, errors) = predict(folder, &fixed, &[]);
    assert_eq!(status, Some(0), "{program}: {text}{errors}");
    told
}

/// Whether a prediction of some kind was confirmed.
fn is_confirmed(told: &serde_json::Value, kind: &str) -> bool {
    let listed = told["summary"]["listed"].as_array().expect("a list");
    let mut listed = listed.iter();
    listed.any(|one| one["outcome"] == "confirmed" && one["kind"] == kind)
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
fn indices_and_lengths_that_change_in_between_are_forced() {
    for program in ["apache/log_buffer", "cherokee/log_message"] {
        let told = check(program, "conmem");
        assert!(is_confirmed(&told, "con-overflow"), "{program}: {told}");
    }
}

#[test]
fn two_switches_in_exact_places_are_forced() {
    check("mozilla/js_two_timing", "conmem");
    check("mozilla/four_accesses", "conseq");
}

#[test]
fn uses_of_a_block_that_is_older_than_the_threads_are_forced_behind_its_end() {
    let folder = temporary();
    let folder = folder.path();
    let build = |variant: &str| {
        let variant = format!("-D{}", variant.to_uppercase());
        let flags = ["-g", "-O0", "-pthread", variant.as_str()];
        compile_test_program(folder, "explore/older_block.c", &flags)
    };
    let told = check_variants("older_block", "conmem", folder, &build);
    assert!(is_confirmed(&told, "con-dangling"), "{told}");
}

#[test]
fn what_only_the_failure_breaks_is_proposed() {
    let folder = temporary();
    let folder = folder.path();
    let program = corpus::build("mysql/query_null", "buggy", folder);
    let (status, text, errors) = predict(folder, &program, &["--invariants", "held.toml"]);
    assert_eq!(status, Some(1), "{text}{errors}");
    assert!(
        errors.contains("invariant") && errors.contains("held.toml"),
        "{errors}"
    );
    let file = std::fs::read_to_string(folder.join("held.toml")).expect("it was written");
    for part in [
        "[[invariant]]",
        "function = \"execute\"",
        "value != 0",
        "broken-by = 0",
    ] {
        assert!(file.contains(part), "`{part}` is missing in\n{file}");
    }
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

/// A bug of the kernel module is predicted from passing runs and forced, and its fixed twin is clean.
#[test]
fn tests_of_kernels_are_predicted() {
    let folder = temporary();
    let folder = folder.path();
    let options = ["--only", "conmem", "--runs", "2"];
    let (code, text) = on_test(&["kernel", "predict"], folder, "bugs/open-close", &options);
    assert_eq!(code, 1, "{text}");
    for part in ["NULL pointer dereference", "predicted: con-"] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
    let replay = ["kernel", "replay", "--cache", &cache(), &recording(folder)];
    let (code, text) = told_in(folder, &replay);
    assert_eq!(code, 1, "{text}");
    // The short way to say it.
    let (code, text) = on_test(&["predict"], folder, "bugs/open-close-fixed", &options);
    assert_eq!(code, 0, "{text}");
}

/// What `raddle coverage` shows adds up over runs, in all its forms.
#[test]
fn coverage_adds_up_over_runs() {
    let folder = temporary();
    let folder = folder.path();
    let program = corpus::build("mysql/proc_info", "buggy", folder);
    let program = program.to_str().expect("a path");
    let options = [
        "explore",
        "--schedules",
        "100",
        "--coverage",
        "cov.json",
        "--",
        program,
    ];
    for campaigns in ["in 1 campaign\n", "in 2 campaigns\n"] {
        let (code, text) = told_in(folder, &options);
        assert_eq!(code, 1, "{text}");
        let (code, text) = told_in(folder, &["coverage", "cov.json"]);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains(campaigns), "{text}");
        assert!(
            text.contains("1 of 1 feasible interleavings covered (100 %)"),
            "{text}"
        );
    }
    let forms = [
        "coverage", "cov.json", "--html", "cov.html", "--lcov", "cov.info",
    ];
    let (code, text) = told_in(folder, &forms);
    assert_eq!(code, 0, "{text}");
    let lcov = std::fs::read_to_string(folder.join("cov.info")).expect("it was written");
    assert!(
        lcov.contains("SF:") && lcov.contains(",1\nBRF:1\n"),
        "{lcov}"
    );
    let html = std::fs::read_to_string(folder.join("cov.html")).expect("it was written");
    assert!(html.contains("<tr class=\"all\">"), "{html}");
}

#[test]
fn what_is_no_coverage_is_refused_before_anything_runs() {
    let folder = temporary();
    let folder = folder.path();
    std::fs::write(folder.join("notes.txt"), "not JSON").expect("it can be written");
    let (code, text) = told_in(
        folder,
        &["explore", "--coverage", "notes.txt", "--", "/bin/true"],
    );
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("notes.txt is no file of coverage"), "{text}");
    let (code, text) = told_in(folder, &["coverage", "missing.json"]);
    assert_eq!(code, 2, "{text}");
}
