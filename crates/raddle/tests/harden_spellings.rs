//! The bugs of the corpus in further spellings: idioms of C and C++, code between the wrong read and the failure or between
//! two locks as real programs have it, sites in callees. Each fails when built plainly and gives the right result every
//! time when hardened, at `-O0` and at `-O2` unless the test says why not.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a surprise ends the test"
)]

use std::time::Duration;

use raddle_testkit::harden::{Ended, Workshop, number, root, run};

/// Runs of each hardened program; `RADDLE_CORPUS_RUNS` asks for more.
const RUNS: usize = 10;
const LIMIT: Duration = Duration::from_secs(30);

/// What the description of a corpus case says the program prints.
fn expected(case: &str) -> String {
    let path = root().join("corpus/harden").join(case).join("case.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let case: toml::Table = text.parse().unwrap();
    case["stdout"].as_str().unwrap().to_owned()
}

fn is_right(case: &str, ended: &Ended) -> bool {
    ended.status == Some(0) && ended.stdout == expected(case)
}

/// For those who run the tests with `--no-capture`.
#[expect(clippy::print_stdout, reason = "the figures of long runs")]
fn say(text: &str) {
    println!("{text}");
}

fn survives(case: &str, file: &str) {
    survives_at(&["-O0", "-O2"], case, file);
}

fn survives_at(levels: &[&str], case: &str, file: &str) {
    let workshop = Workshop::open();
    let source = root().join("corpus/harden").join(case).join(file);
    let source = source.to_str().unwrap();
    let driver = if file.ends_with(".cpp") { "c++" } else { "cc" };
    let plain = workshop.plain(&["-O2", "-lstdc++"], source);
    let failures = (0..5)
        .filter(|_| !is_right(case, &run(&plain, &[], Duration::from_millis(500))))
        .count();
    assert!(
        failures >= 3,
        "the plain {case}/{file} failed only {failures} of 5 times"
    );
    for &level in levels {
        let hardened = workshop.harden(driver, &[level], &[source], "hardened");
        let runs = number("RADDLE_CORPUS_RUNS", RUNS);
        let mut recoveries = 0;
        for attempt in 0..runs {
            let ended = run(&hardened, &[], LIMIT);
            assert!(
                is_right(case, &ended),
                "{case}/{file} {level}, run {attempt}: {:?} {} {}",
                ended.status,
                ended.stdout,
                ended.stderr
            );
            recoveries += usize::from(ended.stderr.contains(" recovered after "));
        }
        assert!(
            recoveries > 0,
            "{case}/{file} {level}: nothing was recovered from"
        );
        say(&format!(
            "{case}/{file} {level}: {runs} of {runs} runs right, {recoveries} of them recovered"
        ));
    }
}

#[test]
fn fft_with_helpers_and_a_formatted_line() {
    // At `-O0` the buffer that is filled in between ends the region.
    survives_at(&["-O2"], "fft", "buffers.c");
}

#[test]
fn fft_with_atomics_of_cpp() {
    survives("fft", "chrono.cpp");
}

#[test]
fn hawknl_with_locks_taken_in_helpers() {
    survives("hawknl", "helpers.c");
}

#[test]
fn hawknl_with_the_site_two_calls_below() {
    survives("hawknl", "callers.c");
}

#[test]
fn httrack_with_fields_read_in_a_loop() {
    survives("httrack", "fields.c");
}

#[test]
fn httrack_with_a_virtual_call() {
    survives("httrack", "virtual.cpp");
}

#[test]
fn mozilla_js_with_a_cycle_of_three() {
    survives("mozilla-js", "three.c");
}

#[test]
fn mozilla_js_with_a_loop_around_trylock() {
    survives("mozilla-js", "trylock.c");
}

#[test]
fn mozilla_xpcom_three_calls_below() {
    survives("mozilla-xpcom", "levels.c");
}

#[test]
fn mozilla_xpcom_with_a_pointer_class() {
    survives("mozilla-xpcom", "pointer.cpp");
}

#[test]
fn mysql1_with_flags_and_an_allocated_record() {
    survives("mysql1", "flags.c");
}

#[test]
fn mysql1_with_the_oracle_in_a_callee() {
    survives("mysql1", "callee.c");
}

#[test]
fn mysql2_with_a_copied_text() {
    // At `-O0` the buffer that is filled in between ends the region.
    survives_at(&["-O2"], "mysql2", "copy.c");
}

#[test]
fn mysql2_with_a_check_of_its_own() {
    survives("mysql2", "session.cpp");
}

#[test]
fn sqlite_with_buffers_between_the_locks() {
    survives("sqlite", "buffers.c");
}

#[test]
fn sqlite_with_guards_of_cpp() {
    survives("sqlite", "guards.cpp");
}

#[test]
fn transmission_with_sums_on_the_way() {
    survives("transmission", "peers.c");
}

#[test]
fn transmission_in_a_member_function() {
    survives("transmission", "member.cpp");
}

#[test]
fn zsnes_with_an_assertion_known_by_its_shape() {
    survives("zsnes", "shape.c");
}

#[test]
fn zsnes_with_a_critical_section_around_the_read() {
    survives("zsnes", "guarded.c");
}
