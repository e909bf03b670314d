//! Concurrent structures from crates.io and a map in C++: nothing is said of them as they are, and each is found with a
//! wrapper that looks before it acts.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{HEADERS, SOURCES, folder, linearize};

/// The harness of all structures, built once for all tests.
fn structures() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("structures");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--quiet", "--manifest-path"])
        .arg(format!("{SOURCES}/structures/Cargo.toml"))
        .env("CARGO_TARGET_DIR", &target)
        .status()
        .expect("cargo is there");
    assert!(status.success());
    target.join("debug/structures")
}

/// Explores a program with arguments, up to 300 schedules.
fn compare(folder: &Path, words: &[&str], options: &[&str]) -> (Option<i32>, Value) {
    let (program, arguments) = words.split_first().expect("a program");
    let options = [&["--schedules", "300"], options].concat();
    let program = Path::new(program);
    super::linearize_with(folder, (program, arguments), &options)
}

#[track_caller]
fn is_clean(folder: &Path, words: &[&str]) {
    let (status, document) = compare(folder, words, &[]);
    assert_eq!(status, Some(0), "{words:?}: {document:#}");
    let summary = &document["summary"];
    assert_eq!(summary["deviating"], 0, "{words:?}: {document:#}");
    assert_eq!(summary["undecided"], 0, "{words:?}: {document:#}");
    assert!(
        summary["histories"].as_u64() > Some(3),
        "{words:?}: {document:#}"
    );
}

#[track_caller]
fn is_found(folder: &Path, words: &[&str]) {
    let until_found = ["--until-found", "--explain-time", "1"];
    let (status, document) = compare(folder, words, &until_found);
    assert_eq!(status, Some(1), "{words:?}: {document:#}");
    let findings = document["findings"].as_array().expect("findings");
    let is_serial = |finding: &Value| {
        let kind = finding["kind"].as_str().unwrap_or_default();
        matches!(
            kind,
            "not-linearizable" | "latent-error" | "unexpected-error"
        )
    };
    assert!(findings.iter().all(is_serial), "{words:?}: {document:#}");
}

/// A structure as it is, and with the wrapper.
#[track_caller]
fn check(name: &str) {
    let harness = structures();
    let harness = harness.to_str().expect("UTF-8");
    let folder = folder();
    is_clean(folder.path(), &[harness, name]);
    is_found(folder.path(), &[harness, name, "seeded"]);
}

#[test]
fn queues_without_locks() {
    check("seg_queue");
    check("array_queue");
    check("concurrent_queue");
}

#[test]
fn maps() {
    check("dash_map");
    check("skip_map");
    check("scc_map");
}

#[test]
fn a_channel_and_a_stack_with_epochs() {
    check("channel");
    check("stack");
}

/// Its first serial order waits for ever: the one client fills the queue before the other takes.
#[test]
fn a_blocking_queue_and_a_cache_behind_a_lock() {
    check("blocking");
    check("cache");
}

/// Four clients with six operations each: orders that leave the same state are one.
#[test]
fn a_crowd_is_decided() {
    let harness = structures();
    let folder = folder();
    is_clean(folder.path(), &[harness.to_str().expect("UTF-8"), "crowd"]);
}

#[test]
fn a_sharded_map_of_cpp() {
    let folder = folder();
    let folder = folder.path();
    for (switches, is_right) in [(&[][..], true), (&["-DBUGGY"], false), (&["-DBOTH"], false)] {
        let program = folder.join(format!("shards{}", switches.concat()));
        let status = Command::new("g++")
            .args(["-std=c++20", "-g", "-O1", "-pthread", "-I", HEADERS, "-o"])
            .arg(&program)
            .args(switches)
            .arg(format!("{SOURCES}/shards.cpp"))
            .status();
        assert!(status.expect("g++ is installed").success());
        let words = [program.to_str().expect("UTF-8")];
        if is_right {
            is_clean(folder, &words);
        } else {
            is_found(folder, &words);
        }
    }
}

/// What a program has written is state: two who write a whole file each, and one of them a line too few.
#[test]
fn files_are_state() {
    let folder = folder();
    let folder = folder.path();
    let rules = "state-files = [\"*.log\"]\n";
    std::fs::write(folder.join("rules.toml"), rules).expect("a file");
    for (switches, expected) in [(&["BUGGY"][..], 1), (&[], 0)] {
        let program = super::build(folder, "journal", switches);
        let (status, document) = linearize(folder, &program, &[]);
        assert_eq!(
            status,
            Some(0),
            "what no probe asks for is not seen: {document:#}"
        );
        let (status, document) = linearize(folder, &program, &["--rules", "rules.toml"]);
        assert_eq!(status, Some(expected), "{document:#}");
        let is_told = super::has_line(&document, "latent-error", "file journal.log");
        assert_eq!(is_told, expected == 1, "{document:#}");
    }
}
