//! `raddle linearize`: runs that no serial order of their operations explains.

#[path = "linearize/kernels.rs"]
mod kernels;
#[path = "linearize/servers.rs"]
mod servers;
#[path = "linearize/structures.rs"]
mod structures;

use std::path::{Path, PathBuf};
use std::process::Command;

use raddle_report::SerialOrders;
use raddle_report::serial::Effect;
use serde_json::Value;
use tempfile::TempDir;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/linearize");
/// Where raddle.h is.
const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../annotations/include");
/// The crate for harnesses in Rust.
const ANNOTATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../annotations/src/lib.rs");

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A harness in C, with some switches on.
fn build(folder: &Path, name: &str, switches: &[&str]) -> PathBuf {
    let program = folder.join(format!("{name}{}", switches.concat()));
    let status = Command::new("gcc")
        .args(["-g", "-O1", "-pthread", "-I", HEADERS, "-o"])
        .arg(&program)
        .args(switches.iter().map(|switch| format!("-D{switch}")))
        .arg(format!("{SOURCES}/{name}.c"))
        .status()
        .expect("gcc is installed");
    assert!(status.success(), "{name}");
    program
}

/// Exit status, standard output, standard error.
fn raddle(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_raddle"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("raddle starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn linearize(folder: &Path, program: &Path, options: &[&str]) -> (Option<i32>, Value) {
    let standard = ["--schedules", "400"];
    linearize_with(folder, (program, &[]), &[&standard[..], options].concat())
}

fn linearize_with(
    folder: &Path,
    (program, words): (&Path, &[&str]),
    options: &[&str],
) -> (Option<i32>, Value) {
    let program = program.to_str().expect("UTF-8");
    let standard = ["linearize", "--json"];
    let arguments = [&standard[..], options, &["--", program], words].concat();
    let (status, document, errors) = raddle(folder, &arguments);
    let document = serde_json::from_str(&document);
    (
        status,
        document.unwrap_or_else(|_| panic!("{program}: {errors}")),
    )
}

/// What serial orders say about each finding of a kind.
fn serial_orders(document: &Value, kind: &str) -> Vec<SerialOrders> {
    let findings = document["findings"].as_array().expect("findings");
    let of_kind = findings.iter().filter(|finding| finding["kind"] == kind);
    let serial = of_kind.map(|finding| finding["serial"].clone());
    serial
        .map(|serial| serde_json::from_value(serial).expect("a comparison with serial orders"))
        .collect()
}

/// Whether some finding of a kind has a row or a difference that contains a text.
fn has_line(document: &Value, kind: &str, text: &str) -> bool {
    let orders = serial_orders(document, kind);
    let mut lines = orders.iter().flat_map(SerialOrders::lines);
    lines.any(|line| line.contains(text))
}

/// The buggy harness has a finding of this kind with this line, which replays; the right one has none.
#[track_caller]
fn check(name: &str, kind: &str, note: &str) {
    let folder = folder();
    let folder = folder.path();
    let buggy = build(folder, name, &["BUGGY"]);
    let (status, document) = linearize(folder, &buggy, &[]);
    assert_eq!(status, Some(1), "{document:#}");
    assert!(has_line(&document, kind, note), "{document:#}");
    assert_eq!(
        document["findings"][0]["confidence"], "confirmed",
        "{document:#}"
    );
    for finding in document["findings"].as_array().expect("findings") {
        let command = finding["recording"]["command"]
            .as_str()
            .expect("a recording");
        let arguments: Vec<&str> = command.split(' ').skip(1).collect();
        let (status, text, errors) = raddle(folder, &arguments);
        assert_eq!(status, Some(1), "{command}: {text}{errors}");
    }
    let fixed = build(folder, name, &[]);
    let (status, document) = linearize(folder, &fixed, &[]);
    assert_eq!(status, Some(0), "{document:#}");
    assert_eq!(document["summary"]["deviating"], 0, "{document:#}");
}

#[test]
fn two_who_both_put_what_was_absent_fit_no_order() {
    check("map", "not-linearizable", "+ B: put_if_absent(1, 20) = 20");
}

#[test]
fn an_error_that_no_order_gives_is_told_as_one() {
    check(
        "string_buffer",
        "unexpected-error",
        "error string index out of range",
    );
}

#[test]
fn a_stale_answer_in_a_cache_is_latent() {
    check(
        "cache",
        "latent-error",
        "serial order A B: same results: yes, same state: no",
    );
}

#[test]
fn operations_that_wait_for_others_have_fewer_orders() {
    check("queue", "latent-error", "left()");
}

#[test]
fn effect_and_orders_are_data() {
    let folder = folder();
    let folder = folder.path();
    let buggy = build(folder, "map", &["BUGGY"]);
    let (_, document) = linearize(folder, &buggy, &[]);
    let orders = serial_orders(&document, "not-linearizable");
    let [map] = &orders[..] else {
        panic!("{document:#}");
    };
    assert_eq!((map.effect, map.is_latent), (Effect::Semantic, Some(false)));
    let fits = |row: &raddle_report::serial::SerialOrder| (row.same_results, row.same_state);
    let rows: Vec<_> = map.orders.iter().map(fits).collect();
    assert_eq!(rows, [(Some(false), Some(false)); 2]);
    let size = map.differences.last().expect("the probe");
    assert_eq!((size.client.as_deref(), size.is_same), (None, false));
    assert_eq!(
        (size.expected.as_deref(), size.seen.as_str()),
        (Some("1"), "2")
    );
    let buggy = build(folder, "cache", &["BUGGY"]);
    let (_, document) = linearize(folder, &buggy, &[]);
    let orders = serial_orders(&document, "latent-error");
    let is_latent =
        |serial: &SerialOrders| (serial.effect, serial.is_latent) == (Effect::Semantic, Some(true));
    assert!(
        !orders.is_empty() && orders.iter().all(is_latent),
        "{document:#}"
    );
}

/// All results are right: only those who ask how long it takes hear of it.
#[test]
fn an_operation_that_takes_many_times_as_long_is_found_on_request() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("rules.toml"), "slower-than = 20\n").expect("a file");
    let rules = ["--rules", "rules.toml"];
    let buggy = build(folder, "backoff", &["BUGGY"]);
    let (status, document) = linearize(folder, &buggy, &rules);
    assert_eq!(status, Some(1), "{document:#}");
    let orders = serial_orders(&document, "slow-operation");
    assert_eq!(orders[0].effect, Effect::Performance, "{document:#}");
    let command = document["findings"][0]["recording"]["command"].as_str();
    let command = command.expect("a recording");
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    let (status, text, errors) = raddle(folder, &arguments);
    assert_eq!(status, Some(1), "{text}{errors}");
    let (status, document) = linearize(folder, &buggy, &[]);
    assert_eq!(status, Some(0), "{document:#}");
    let fixed = build(folder, "backoff", &[]);
    let (status, document) = linearize(folder, &fixed, &rules);
    assert_eq!(status, Some(0), "{document:#}");
}

#[test]
fn a_rule_lets_a_cache_leave_out_what_it_likes() {
    let folder = folder();
    let folder = folder.path();
    // The reader of this cache does not store its answer if another client writes: then it is empty, as after no serial
    // order.
    let harness = build(folder, "cache", &["CACHE_CONTENT", "CAREFUL"]);
    let (status, document) = linearize(folder, &harness, &[]);
    assert_eq!(status, Some(1), "{document:#}");
    assert!(
        has_line(&document, "latent-error", "+ cache()"),
        "{document:#}"
    );
    let rules =
        "[[rule]]\noperation = \"cache\"\ncompare = \"ignore\"\nreason = \"it may be empty\"\n";
    std::fs::write(folder.join("rules.toml"), rules).expect("a file");
    let (status, document) = linearize(folder, &harness, &["--rules", "rules.toml"]);
    assert_eq!(status, Some(0), "{document:#}");
    // A true bug stays found.
    let buggy = build(folder, "cache", &["CACHE_CONTENT", "BUGGY"]);
    let (status, document) = linearize(folder, &buggy, &["--rules", "rules.toml"]);
    assert_eq!(status, Some(1), "{document:#}");
    assert!(
        has_line(&document, "latent-error", "+ sum() = 1"),
        "{document:#}"
    );
}

#[test]
fn a_harness_in_rust_marks_its_operations_too() {
    let folder = folder();
    let folder = folder.path();
    let rustc = |arguments: &[&str]| {
        let status = Command::new("rustc")
            .current_dir(folder)
            .args(["--edition", "2024", "-g", "-O"])
            .args(arguments)
            .status();
        assert!(status.expect("rustc is installed").success());
    };
    rustc(&[
        "--crate-type",
        "rlib",
        "--crate-name",
        "raddle_annotations",
        ANNOTATIONS,
    ]);
    let source = format!("{SOURCES}/counter.rs");
    let library = ["--extern", "raddle_annotations=libraddle_annotations.rlib"];
    rustc(&[&library[..], &["-o", "fixed", &source]].concat());
    rustc(
        &[
            &library[..],
            &["--cfg", "feature=\"buggy\"", "-o", "buggy", &source],
        ]
        .concat(),
    );
    let (status, document) = linearize(folder, &folder.join("buggy"), &[]);
    assert_eq!(status, Some(1), "{document:#}");
    assert!(
        has_line(&document, "not-linearizable", "add("),
        "{document:#}"
    );
    let (status, document) = linearize(folder, &folder.join("fixed"), &[]);
    assert_eq!(status, Some(0), "{document:#}");
}

#[test]
fn the_same_test_and_seed_give_the_same_verdict() {
    let folder = folder();
    let folder = folder.path();
    let buggy = build(folder, "queue", &["BUGGY"]);
    let told = |jobs: &str| {
        let (_, mut document) = linearize(folder, &buggy, &["--jobs", jobs, "--seed", "7"]);
        document["summary"].take();
        document
    };
    let (one, two) = (told("1"), told("2"));
    assert_eq!(one["findings"], two["findings"]);
}

/// The one paragraph that is said of a test that cannot be compared.
#[track_caller]
fn complaint(switches: &[&str], part: &str) {
    let folder = folder();
    let program = build(folder.path(), "bad_marks", switches);
    let program = program.to_str().expect("UTF-8");
    let (status, text, errors) = raddle(folder.path(), &["linearize", "--", program]);
    assert_eq!((status, text.as_str()), (Some(2), ""), "{errors}");
    assert!(errors.contains(part), "{errors}");
    assert_eq!(errors.trim_end().lines().count(), 1, "{errors}");
}

#[test]
fn marks_in_the_wrong_place_are_refused() {
    complaint(&[], "marks no operation");
    complaint(&["NESTED"], "begins inside another one");
    complaint(&["EARLY"], "probe begins while an operation is not over");
    complaint(&["ONE"], "only one thread");
    complaint(&["CRASH"], "do not come to their end (killed by SIGSEGV");
}

#[test]
fn rules_that_make_no_sense_are_refused() {
    let folder = folder();
    let folder = folder.path();
    let program = build(folder, "map", &[]);
    let program = program.to_str().expect("UTF-8");
    let cases = [
        ("[[rules]]\n", "unknown field `rules`"),
        (
            "[[rule]]\noperation = \"a\"\ncompare = \"maybe\"\nreason = \"b\"\n",
            "maybe",
        ),
        (
            "[[mask]]\npattern = \"(\"\nreason = \"b\"\n",
            "not a regular expression",
        ),
        (
            "[[rule]]\noperation = \"a\"\ncompare = \"ignore\"\nreason = \"\"\n",
            "no reason",
        ),
    ];
    for (rules, part) in cases {
        std::fs::write(folder.join("rules.toml"), rules).expect("a file");
        let (status, _, errors) = raddle(
            folder,
            &["linearize", "--rules", "rules.toml", "--", program],
        );
        assert_eq!(status, Some(2), "{rules}: {errors}");
        assert!(errors.contains(part), "{rules}: {errors}");
    }
}
