//! What commands print, as a whole: every file of `snapshots` is the output of one command.
//!
//! `SNAPSHOTS=overwrite cargo nextest run -p raddle --test snapshots` writes them anew; read the difference before you
//! commit it.

use std::path::Path;

use raddle_testkit::{
    compile_test_program, compile_text, corpus, kernel, output_in, recording, root, snapshot,
    temporary,
};

/// Compiles a program of `tests/explore` and runs a command in its folder.
#[track_caller]
fn with_program(program: &str, snapshot: &str, arguments: &[&str]) {
    let folder = temporary();
    build(folder.path(), program);
    snapshot::check(snapshot, folder.path(), arguments);
}

fn build(folder: &Path, name: &str) {
    let flags = ["-g", "-O0", "-pthread"];
    compile_test_program(folder, &format!("explore/{name}.c"), &flags);
}

#[test]
fn help() {
    let commands: [&[&str]; 19] = [
        &[],
        &["explain"],
        &["run"],
        &["explore"],
        &["predict"],
        &["replay"],
        &["log"],
        &["report"],
        &["scan"],
        &["harden"],
        &["cargo-test"],
        &["kernel"],
        &["kernel", "boot"],
        &["kernel", "new-test"],
        &["kernel", "generate"],
        &["kernel", "explore"],
        &["kernel", "initramfs"],
        &["kernel", "replay"],
        &["kernel", "bundle"],
    ];
    let folder = temporary();
    for command in commands {
        let name = [&["help"], command].concat().join("-");
        let arguments = [command, &["--help"]].concat();
        snapshot::check(&name, folder.path(), &arguments);
    }
}

#[test]
fn explanations() {
    let folder = temporary();
    snapshot::check("explain-list", folder.path(), &["explain", "--list"]);
    snapshot::check("explain-race", folder.path(), &["explain", "data-race"]);
    let pattern = ["explain", "lock-leak"];
    snapshot::check("explain-lock-leak", folder.path(), &pattern);
}

#[test]
fn explore_races() {
    let options = ["explore", "--races", "--schedules", "300", "--", "./crash"];
    with_program("crash", "explore-races", &options);
}

#[test]
fn explore_concise() {
    let options = ["explore", "--concise", "--schedules", "300", "--", "./dead"];
    with_program("dead", "explore-concise", &options);
}

#[test]
fn explore_json() {
    let options = ["explore", "--json", "--schedules", "300", "--", "./lost"];
    with_program("lost", "explore-json", &options);
}

#[test]
fn explore_sarif() {
    let options = ["explore", "--sarif", "--schedules", "300", "--", "./dead"];
    with_program("dead", "explore-sarif", &options);
}

#[test]
fn explore_clean() {
    let options = ["explore", "--races", "--schedules", "300", "--", "./fixed"];
    with_program("fixed", "explore-clean", &options);
}

#[test]
fn explore_all_interleavings() {
    let options = ["explore", "--exhaustive", "--", "./lost"];
    with_program("lost", "explore-exhaustive", &options);
}

#[test]
fn explore_wrong_output() {
    let folder = temporary();
    build(folder.path(), "printed");
    std::fs::write(folder.path().join("right"), "200\n").expect("the folder can be written");
    let expected = ["explore", "--schedules", "300", "--expect-output", "right"];
    let arguments = [&expected[..], &["--", "./printed"]].concat();
    snapshot::check("explore-wrong-output", folder.path(), &arguments);
}

#[test]
fn replay() {
    let folder = temporary();
    build(folder.path(), "lost");
    let explore = ["explore", "--until-found", "--", "./lost"];
    output_in(folder.path(), &explore);
    let recording = recording(folder.path());
    snapshot::check("replay", folder.path(), &["replay", &recording]);
    let times = ["replay", "--times", "3", &recording];
    snapshot::check("replay-times", folder.path(), &times);
    let page = ["report", &recording, "-o", "lost.html"];
    snapshot::check("report", folder.path(), &page);
    // Another program of the same name.
    build(folder.path(), "fixed");
    let renamed = std::fs::rename(folder.path().join("fixed"), folder.path().join("lost"));
    renamed.expect("the program can be renamed");
    snapshot::check("replay-changed", folder.path(), &["replay", &recording]);
}

/// A program that ends in each of these ways.
const ENDS: &str = r#"#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int main(int count, char **words) {
    write(1, "begins\n", 7);
    if (words[1][0] == 'c')
        *(volatile int *)0x1234 = 1;
    if (words[1][0] == 'd') {
        pthread_mutex_lock(&lock);
        pthread_mutex_lock(&lock);
    }
    return 7;
}
"#;

#[test]
fn run() {
    let folder = temporary();
    compile_text(folder.path(), "ends.c", ENDS, &["-pthread", "-w"]);
    for way in ["exit", "crash"] {
        let arguments = ["run", "--", "./ends", way];
        snapshot::check(&format!("run-{way}"), folder.path(), &arguments);
    }
    let limited = ["run", "--max-instructions", "1000", "--", "./ends", "exit"];
    snapshot::check("run-limit", folder.path(), &limited);
}

#[test]
fn predict() {
    let folder = temporary();
    corpus::build("mysql/query_null", "buggy", folder.path());
    let arguments = ["predict", "--", "./buggy"];
    snapshot::check("predict", folder.path(), &arguments);
}

#[test]
fn scan() {
    let folder = temporary();
    let data = root().join("crates/scan/test_data");
    for (name, file, options) in [
        (
            "scan",
            "paper/xt_hashlimit_buggy.c",
            &["--only", "misused-test-and-set"][..],
        ),
        ("scan-clean", "paper/xt_hashlimit_fixed.c", &[]),
        ("scan-leak", "lock-leak/buggy.c", &["--all"]),
        ("scan-json", "lock-leak/buggy.c", &["--all", "--json"]),
    ] {
        let copied = std::fs::copy(data.join(file), folder.path().join("x.c"));
        copied.expect("the source can be copied");
        let arguments = [&["scan", "x.c"], options].concat();
        snapshot::check(name, folder.path(), &arguments);
    }
    let arguments = ["scan", "--list-patterns"];
    snapshot::check("scan-patterns", folder.path(), &arguments);
}

#[test]
fn errors() {
    let folder = temporary();
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("the folder can be written");
    };
    build(folder.path(), "lost");
    write("damaged.raddle", "raddle-recording 3 0\n{}\n");
    write("old.raddle", "raddle-recording 2 0\n{}\n");
    write("text", "just text\n");
    write(
        "own.pdl",
        "bug x {\n  pattern 1 { fun $f { wirte $x; } }\n}",
    );
    write("x.c", "int f(void) { return 0; }\n");
    for (name, arguments) in [
        ("no-command", &["frobnicate"][..]),
        ("no-program", &["explore", "--", "./missing"]),
        ("no-elf", &["run", "--", "./text"]),
        ("no-kind", &["explain", "no-such-kind"]),
        (
            "no-scheduler",
            &["explore", "--scheduler", "magic", "--", "./lost"],
        ),
        (
            "no-focus",
            &["explore", "--focus", "no_such_function", "--", "./lost"],
        ),
        (
            "no-hint",
            &["explore", "--snapshot-at", "hint", "--", "./lost"],
        ),
        ("no-mapping", &["run", "--map", "x", "--", "./lost"]),
        ("no-recording", &["replay", "text"]),
        ("damaged-recording", &["replay", "damaged.raddle"]),
        ("old-recording", &["replay", "old.raddle"]),
        ("no-findings", &["report", "text"]),
        ("no-log", &["log", "text"]),
        ("no-source", &["scan", "no/such/path"]),
        (
            "bad-pattern",
            &["scan", "--all", "x.c", "--pattern", "own.pdl"],
        ),
        ("no-kernel", &["kernel", "boot", "--kernel", "text"]),
    ] {
        snapshot::check(&format!("error-{name}"), folder.path(), arguments);
    }
}

/// A known bug of a module in the packaged kernel; its fixed twin is clean.
#[test]
fn kernel_explore() {
    let folder = temporary();
    for (test, schedules) in [("torn", "3000"), ("torn-fixed", "40")] {
        let options = ["--schedules", schedules, "--until-found"];
        let (code, text) = kernel::explore(folder.path(), &format!("bugs/{test}"), &options);
        let ran = raddle_testkit::Ran {
            code: Some(code),
            // The module holds the name of the folder in which it was built, and a guest depends on every byte.
            stdout: snapshot::without_counts(&text),
            stderr: String::new(),
        };
        let shown = ["kernel", "explore", "--kernel", "IMAGE", test];
        snapshot::compare(&format!("kernel-{test}"), folder.path(), &shown, &ran);
    }
}
