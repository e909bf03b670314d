//! `raddle explore` and `raddle replay` from the outside: small programs with and without bugs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use raddle_testkit::{
    cargo_raddle_in, compile_test_program, counter_package, gdb, output_in as raddle, raddle_path,
    recordings, send, snapshot, told_in,
};
use tempfile::TempDir;

/// Where raddle.h is.
const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../annotations/include");

/// The program of a source in C, or in Rust if the name ends in `.rs`.
fn build(folder: &Path, name: &str) -> PathBuf {
    if name.ends_with(".rs") {
        return compile_test_program(folder, &format!("explore/{name}"), &["-g"]);
    }
    let flags = ["-g", "-O0", "-pthread", "-I", HEADERS];
    compile_test_program(folder, &format!("explore/{name}.c"), &flags)
}

fn explore(folder: &Path, name: &str, extra: &[&str]) -> (i32, String) {
    let program = build(folder, name);
    let mut arguments = vec!["explore", "--schedules", "600", "--time", "600"];
    arguments.extend(extra);
    let program = program.to_string_lossy();
    arguments.extend(["--", &*program]);
    told_in(folder, &arguments)
}

fn assert_replays(folder: &Path) {
    let found = recordings(folder);
    assert!(!found.is_empty(), "no recording was written");
    for path in found {
        let output = raddle(folder, &["replay", "--times", "3", &path.to_string_lossy()]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(text.contains("replayed 3 times bit for bit"), "{text}");
    }
}

/// The report is that of the snapshot, and its recordings replay.
#[track_caller]
fn check_found(name: &str) {
    let folder = TempDir::new().expect("a temporary folder");
    build(folder.path(), name);
    let program = format!("./{name}");
    let arguments = [
        "explore",
        "--schedules",
        "600",
        "--time",
        "600",
        "--",
        &program,
    ];
    let ran = snapshot::check(&format!("explore-{name}"), folder.path(), &arguments).expect(1);
    let replayed = "reproduced in 2 of 2 replays";
    assert!(ran.stdout.contains(replayed), "{}", ran.stdout);
    assert_replays(folder.path());
}

#[test]
fn a_lost_update_is_found_explained_and_replayed() {
    check_found("lost");
}

/// The names of the memory that the steps of a report tell of.
fn accessed(text: &str) -> BTreeSet<&str> {
    let steps = text.lines().filter(|line| line.starts_with("  ("));
    steps.filter_map(|line| line.split('`').nth(1)).collect()
}

#[test]
fn variables_of_functions_have_names() {
    let folder = TempDir::new().expect("a temporary folder");
    let all: [(&str, &[&str]); 2] = [
        ("statics", &["add::count.misses", "add::table.used"]),
        (
            "statics.rs",
            &[
                "statics::add::COUNT",
                "statics::main::{{closure}}::TICKS[1]",
            ],
        ),
    ];
    for (name, expected) in all {
        let (code, text) = explore(folder.path(), name, &[]);
        assert_eq!(code, 1, "{text}");
        assert!(accessed(&text).iter().eq(expected), "{text}");
        assert!(!text.contains("memory at"), "{text}");
    }
}

#[test]
fn a_deadlock_is_found_with_its_cycle() {
    check_found("dead");
}

#[test]
fn a_crash_is_found_with_its_place() {
    check_found("crash");
}

#[test]
fn correct_programs_are_clean() {
    for name in ["fixed", "spin"] {
        let folder = TempDir::new().expect("a temporary folder");
        let (code, text) = explore(folder.path(), name, &["--races"]);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("0 findings, 0 schedules failed"), "{text}");
        assert!(recordings(folder.path()).is_empty());
    }
}

#[test]
fn a_program_without_threads_proves_nothing() {
    let folder = TempDir::new().expect("a temporary folder");
    let (code, text) = explore(folder.path(), "single", &[]);
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("nothing was interleaved"), "{text}");
}

#[test]
fn stacks_and_blocks_that_are_used_again_connect_nobody() {
    let folder = TempDir::new().unwrap();
    let program = build(folder.path(), "reused");
    let program = program.to_string_lossy();
    let points = |rounds| {
        let explore = [
            "explore",
            "--json",
            "--schedules",
            "200",
            "--",
            &program,
            rounds,
        ];
        let output = raddle(folder.path(), &explore);
        assert_eq!(output.status.code(), Some(0));
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        told["summary"]["points"].as_u64().unwrap()
    };
    let once = points("1");
    assert!(once > 0, "the sum is shared");
    assert_eq!(points("4"), once);
}

#[test]
fn races_are_reported_on_request() {
    let folder = TempDir::new().expect("a temporary folder");
    let (code, text) = explore(folder.path(), "crash", &["--races", "--concise"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("data race on `config`"), "{text}");
}

#[test]
fn the_number_of_workers_changes_nothing() {
    let texts: Vec<String> = ["1", "3"]
        .iter()
        .map(|jobs| {
            let folder = TempDir::new().expect("a temporary folder");
            let program = build(folder.path(), "lost");
            // The same path for both, since it is part of the program's stack.
            let map = format!("{}:/guest/lost", program.display());
            let output = raddle(
                folder.path(),
                &[
                    "explore",
                    "--schedules",
                    "400",
                    "--time",
                    "600",
                    "--jobs",
                    jobs,
                    "--json",
                    "--map",
                    &map,
                    "--cwd",
                    "/",
                    "--",
                    "/guest/lost",
                ],
            );
            assert_eq!(
                output.status.code(),
                Some(1),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            let text = String::from_utf8_lossy(&output.stdout);
            snapshot::normalise(&text, folder.path())
        })
        .collect();
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn bad_input_is_refused_with_its_reason() {
    let folder = TempDir::new().expect("a temporary folder");
    let missing = raddle(folder.path(), &["explore", "--", "./missing"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("missing"));
    let damaged = folder.path().join("damaged.raddle");
    for (text, reason) in [
        ("raddle-recording 3 0\n{}\n", "damaged"),
        (
            "raddle-recording 2 0\n{}\n",
            "it has format version 2, this raddle reads version 3",
        ),
    ] {
        std::fs::write(&damaged, text).unwrap();
        let output = raddle(folder.path(), &["replay", &damaged.to_string_lossy()]);
        assert_eq!(output.status.code(), Some(2));
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.contains(reason), "{message}");
    }
    let unknown = raddle(
        folder.path(),
        &["explore", "--scheduler", "magic", "--", "/bin/true"],
    );
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("pct3"));
}

/// Explores a package with one racy, one fixed and one plain test with `cargo raddle test`.
fn cargo_raddle(folder: &Path, arguments: &[&str]) -> (i32, String) {
    counter_package(folder);
    cargo_raddle_in(folder, &[&["test"], arguments].concat())
}

#[test]
fn each_test_of_a_package_is_explored_by_itself() {
    let folder = TempDir::new().expect("a temporary folder");
    let (code, text) = cargo_raddle(
        folder.path(),
        &["--schedules", "300", "--junit", "junit.xml"],
    );
    assert_eq!(code, 1, "{text}");
    for part in [
        "test `racy`: assertion failed: thread 'racy'",
        "test racy ... FAILED: explored 300 schedules",
        "test fixed ... ok: explored 300 schedules",
        "test alone ... nothing tested: creates no threads",
        "3 tests explored in 600 schedules: 1 failed, 1 without threads",
    ] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
    let junit = std::fs::read_to_string(folder.path().join("junit.xml")).unwrap();
    assert!(
        junit.contains("tests=\"3\" failures=\"1\" skipped=\"1\""),
        "{junit}"
    );
    assert_replays(folder.path());
    let (code, text) = cargo_raddle(folder.path(), &["fixed", "--schedules", "100"]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = cargo_raddle(folder.path(), &["alone"]);
    assert_eq!(code, 4, "{text}");
    let (code, text) = cargo_raddle(folder.path(), &["no such test"]);
    assert_eq!(code, 2, "{text}");
}

#[test]
fn heap_errors_are_found_where_they_happen() {
    check_found("freed");
    check_found("twice");
    let folder = TempDir::new().expect("a temporary folder");
    for clean in ["freed_fixed", "strings"] {
        let (code, text) = explore(folder.path(), clean, &["--red-zones"]);
        assert_eq!(code, 0, "{text}");
    }
    let (code, text) = explore(folder.path(), "overflow", &[]);
    assert_eq!(code, 0, "the allocator has room to spare: {text}");
    let (code, text) = explore(folder.path(), "overflow", &["--red-zones"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("heap overflow: thread "), "{text}");
}

#[test]
fn a_lost_wake_up_is_named() {
    check_found("wakeup");
}

#[test]
fn outputs_are_judged() {
    let folder = TempDir::new().expect("a temporary folder");
    std::fs::write(folder.path().join("right"), "200\n").unwrap();
    let (code, text) = explore(folder.path(), "printed", &[]);
    assert_eq!(code, 0, "nobody said what is right: {text}");
    let (code, text) = explore(folder.path(), "printed", &["--expect-output", "right"]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("wrong output: line 1 is `150` instead of `200`"),
        "{text}"
    );
    assert_replays(folder.path());
    let oracle = "grep -q 200 || { echo lost money; exit 1; }";
    let (code, text) = explore(
        folder.path(),
        "printed",
        &["--oracle", oracle, "--until-found"],
    );
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("wrong output: lost money"), "{text}");
    let (code, text) = explore(folder.path(), "printed", &["--expect-exit", "7"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("exit status 0 instead of 7"), "{text}");
}

#[test]
fn a_changed_program_is_named_by_a_replay() {
    let folder = TempDir::new().expect("a temporary folder");
    let (code, _) = explore(folder.path(), "lost", &["--until-found"]);
    assert_eq!(code, 1);
    let recording = recordings(folder.path()).remove(0);
    std::fs::copy(build(folder.path(), "fixed"), folder.path().join("lost")).unwrap();
    let output = raddle(folder.path(), &["replay", &recording.to_string_lossy()]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("lost has "), "{errors}");
    assert!(errors.contains("explore again"), "{errors}");
}

#[test]
fn a_trace_names_threads_and_lines() {
    let folder = TempDir::new().expect("a temporary folder");
    explore(folder.path(), "lost", &["--until-found"]);
    let recording = recordings(folder.path()).remove(0);
    let output = raddle(
        folder.path(),
        &["replay", "--trace", &recording.to_string_lossy()],
    );
    let trace = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = trace.lines().find(|line| line.contains("lost.c:5 deposit"));
    let line = line.unwrap_or_else(|| panic!("no access in\n{trace}"));
    assert!(line.starts_with("thread 2"), "{line}");
    assert!(line.ends_with("= 0x64"), "{line}");
    let file = "--trace=lost.trace";
    raddle(
        folder.path(),
        &["replay", file, &recording.to_string_lossy()],
    );
    let written = std::fs::read_to_string(folder.path().join("lost.trace")).expect("a trace");
    assert!(written.lines().any(|other| other == line), "{written}");
    let output = raddle(
        folder.path(),
        &["replay", "--console", &recording.to_string_lossy()],
    );
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("is not a recording of a kernel"),
        "{errors}"
    );
}

#[test]
fn gdb_goes_forwards_and_backwards() {
    let folder = TempDir::new().expect("a temporary folder");
    explore(folder.path(), "lost", &["--until-found"]);
    let recording = recordings(folder.path()).remove(0);
    let text = gdb::debug(
        folder.path(),
        (&["replay"], &[&recording.to_string_lossy()]),
        &["-ex", "set sysroot /", "lost"],
        &[
            "break deposit",
            "continue",
            "info threads",
            "backtrace",
            "info sharedlibrary",
            "delete",
            "watch balance",
            "continue",
            "continue",
            "reverse-continue",
            "reverse-continue",
            "print balance",
            "x/i $pc",
            "stepi",
            "reverse-stepi",
            "continue",
        ],
    );
    for part in [
        "hit Breakpoint 1, deposit",
        "Thread 1.2 (thread 2)",
        "in start_thread",
        "libc.so.6",
        "Old value = 100\nNew value = 150",
        "Old value = 150\nNew value = 100",
        "$1 = 100",
    ] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
}

#[test]
fn an_interrupt_keeps_what_was_found() {
    use std::io::{BufRead, Read};
    let folder = TempDir::new().expect("a temporary folder");
    let program = build(folder.path(), "lost");
    let mut child = Command::new(raddle_path())
        .current_dir(folder.path())
        .args(["explore", "--schedules", "100000000", "--time", "600", "--"])
        .arg(&program)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("raddle starts");
    // It says when it has found something.
    let errors = child.stderr.take().unwrap();
    let mut lines = std::io::BufReader::new(errors).lines();
    let found = lines.find_map(|line| line.ok().filter(|line| line.contains("1 failure after")));
    assert!(found.is_some(), "it ended without a failure");
    send(child.id(), "-INT");
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(1), "{text}");
    assert!(text.contains("assertion failed"), "{text}");
    assert!(
        text.contains("interrupted before the schedules were used up"),
        "{text}"
    );
    assert_replays(folder.path());
}

/// Starts an exploration that would not end, and asks it to end when it has said something.
fn interrupt_when(folder: &Path, arguments: &[&str], words: &str) -> (Option<i32>, String) {
    use std::io::{BufRead, Read};
    let program = build(folder, "forever");
    let mut child = Command::new(raddle_path())
        .current_dir(folder)
        .args(["explore", "--time", "100000", "--"])
        .arg(&program)
        .args(arguments)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("raddle starts");
    let mut errors = std::io::BufReader::new(child.stderr.take().expect("it is piped"));
    let mut said = String::new();
    while !said.contains(words) {
        let read = errors.read_line(&mut said).expect("it writes lines");
        assert!(read > 0, "it ended without saying `{words}`:\n{said}");
    }
    send(child.id(), "-TERM");
    errors.read_to_string(&mut said).expect("it writes text");
    let status = child.wait().expect("it ends");
    (status.code(), said)
}

#[test]
fn an_interrupt_ends_the_way_to_the_snapshot_and_a_run_that_does_not_end() {
    let folder = TempDir::new().expect("a temporary folder");
    let (code, text) = interrupt_when(folder.path(), &[], "running to where schedules begin");
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("nothing was tested"), "{text}");
    let alone = "running once without interruptions";
    let (code, text) = interrupt_when(folder.path(), &["in a thread"], alone);
    assert_eq!(code, Some(130), "{text}");
}

#[test]
fn the_time_limit_holds_in_a_run_that_does_not_end() {
    let folder = TempDir::new().expect("a temporary folder");
    for arguments in [&[][..], &["in a thread"]] {
        let program = build(folder.path(), "forever");
        let mut all = vec!["explore", "--time", "1", "--"];
        let program = program.to_string_lossy();
        all.push(&program);
        all.extend(arguments);
        let output = raddle(folder.path(), &all);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert_eq!(output.status.code(), Some(4), "{text}");
        assert!(text.contains("nothing was tested"), "{text}");
        assert!(text.contains("--time"), "{text}");
    }
}

#[test]
fn the_summary_says_that_the_time_was_up_and_findings_are_kept() {
    let folder = TempDir::new().expect("a temporary folder");
    let endless = ["--schedules", "100000000", "--time", "10"];
    let program = build(folder.path(), "lost");
    let program = program.to_string_lossy();
    let arguments = [&["explore"], &endless[..], &["--", &program]].concat();
    let output = raddle(folder.path(), &arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("stopped by the time limit"), "{text}");
    assert_replays(folder.path());
}

#[test]
fn schedules_begin_where_the_program_says() {
    let folder = TempDir::new().expect("a temporary folder");
    let (code, text) = explore(folder.path(), "hint", &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("`ready == 2' failed"), "{text}");
    let other = TempDir::new().expect("a temporary folder");
    let (code, text) = explore(other.path(), "hint", &["--snapshot-at", "hint"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("`balance == 200' failed"), "{text}");
    assert!(!text.contains("ready == 2"), "{text}");
    assert_replays(other.path());
}

#[test]
fn a_hint_that_is_not_there_or_never_reached_is_told() {
    let folder = TempDir::new().expect("a temporary folder");
    let (code, text) = explore(folder.path(), "lost", &["--snapshot-at", "hint"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("has the hint `raddle_snapshot()`"), "{text}");
    let (code, text) = explore(folder.path(), "hint_passed_by", &["--snapshot-at", "hint"]);
    assert_eq!(code, 4, "{text}");
    let part = "ended (exit status 0) without coming to `raddle_snapshot()`";
    assert!(text.contains(part), "{text}");
    let native = Command::new(folder.path().join("hint_passed_by"))
        .arg("passes it")
        .status()
        .expect("it runs without raddle");
    assert!(native.success());
}

#[test]
fn a_function_may_be_reached_after_the_first_thread() {
    let folder = TempDir::new().expect("a temporary folder");
    let (code, text) = explore(folder.path(), "hint", &["--snapshot-at", "deposit"]);
    assert_eq!(code, 1, "{text}");
    assert!(!text.contains("ready == 2"), "{text}");
}

#[test]
fn every_instruction_is_a_decision_point_on_request() {
    let folder = TempDir::new().expect("a temporary folder");
    let (code, text) = explore(folder.path(), "window", &[]);
    assert_eq!(code, 0, "no instruction meets another's access: {text}");
    let every = ["--every-instruction", "--until-found"];
    let (code, text) = explore(folder.path(), "window", &every);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("`after - before < 1000' failed"), "{text}");
    assert!(text.contains("minimal: 1 preemption"), "{text}");
    assert_replays(folder.path());
}

#[test]
fn programs_that_cannot_run_are_told_apart() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let make = |name: &str, bytes: &[u8]| {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    // An ELF file for another machine: AArch64 is number 183.
    let mut foreign = std::fs::read(build(folder.path(), "lost")).unwrap();
    foreign[18] = 183;
    make("foreign", &foreign);
    make("script", b"#!/no/such/interpreter\necho\n");
    make("text", b"just text\n");
    for (name, part) in [
        ("foreign", "x86-64"),
        ("script", "interpreter"),
        ("text", "text"),
    ] {
        let output = raddle(folder.path(), &["explore", "--", &path(name)]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{name}: {errors}");
        assert!(errors.contains(part), "{name}: {errors}");
        assert!(!errors.contains("panicked"), "{errors}");
    }
    let (code, text) = explore(folder.path(), "greedy", &["--max-memory", "64M"]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("--max-memory"), "{text}");
    let foreign = raddle(folder.path(), &["replay", &path("lost")]);
    assert_eq!(foreign.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&foreign.stderr).contains("not a recording"));
}

/// The C library reads strings in whole lines, and an allocator may put a freed block and a string into one line.
#[test]
fn strings_beside_small_freed_blocks_are_no_error() {
    let folder = TempDir::new().expect("a temporary folder");
    let program = build(folder.path(), "small_blocks");
    let program = program.to_string_lossy();
    let explore = |arguments: &[&str]| {
        let options = ["explore", "--schedules", "40", "--concise", "--", &*program];
        let output = raddle(folder.path(), &[&options, arguments].concat());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    };
    let (code, text) = explore(&[]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = explore(&["wrong"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("use after free"), "{text}");
    assert!(text.contains("small_blocks.c:54"), "{text}");
}

/// A hang is a run that no fair order ends, and locks are handed over in a fair order, too.
#[test]
fn threads_that_poll_under_a_lock_do_not_hang() {
    let folder = TempDir::new().expect("a temporary folder");
    let (code, text) = explore(folder.path(), "pollers", &[]);
    assert_eq!(code, 0, "{text}");
}
