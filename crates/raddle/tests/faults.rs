//! Kills, full and unwritable folders, closed pipes: what was found is printed and kept all the same.
//!
//! `cargo xtask faults` runs the same with more rounds of the random ones.

#![expect(clippy::unwrap_used, reason = "a test fails where its set-up fails")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use raddle_stdx::Prng;
use raddle_testkit::{LOST, cargo_raddle, compile_text, number, raddle_in as raddle, run, send};
use tempfile::TempDir;

/// A program with several kinds of failures, whose schedules are long: what is found takes long to explain, too.
const SLOW: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
static volatile int balance, spins;
static int *volatile block;
static void *work(void *way) {
    for (int i = 0; i < 20000; i++)
        spins = i;
    int old = balance;
    if (way) {
        int *own = block;
        free(own);
        block = malloc(8);
    }
    balance = old + 1;
    return 0;
}
int main(void) {
    pthread_t threads[3];
    block = malloc(8);
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    assert(balance == 3);
    return 0;
}
"#;

fn spawn(command: &mut Command) -> Child {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The commands with which failures were said to be kept, until one is told or the command ends.
fn until_kept(stderr: &mut impl BufRead) -> Vec<String> {
    let mut line = String::new();
    while stderr.read_line(&mut line).unwrap() > 0 {
        if let Some((_, command)) = line.trim_end().split_once("kept as it was found: ") {
            return vec![command.to_owned()];
        }
        line.clear();
    }
    Vec::new()
}

/// Replays what a line of a report says, with this raddle.
fn replay(folder: &Path, command: &str) {
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    let ran = run(&mut raddle(folder, &arguments)).expect(1);
    let told = ran.stdout + &ran.stderr;
    assert!(told.contains("bit for bit"), "{told}");
}

#[test]
fn what_was_found_survives_a_kill() {
    let seed = 5;
    let mut prng = Prng::new(seed);
    let (mut told, mut lost) = (0, 0);
    for _ in 0..number("RADDLE_ROUNDS", 2) {
        let folder = TempDir::new().unwrap();
        compile_text(folder.path(), "slow.c", SLOW, &["-g", "-pthread"]);
        let mut child = spawn(&mut raddle(folder.path(), &["explore", "--", "./slow"]));
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let kept = until_kept(&mut stderr);
        std::thread::park_timeout(Duration::from_millis(prng.below(1500)));
        send(child.id(), "-KILL");
        child.wait().unwrap();
        // What was said between the first line and the kill counts, too.
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).unwrap();
        let more = rest
            .lines()
            .filter_map(|line| line.split_once("kept as it was found: "));
        let more = more.map(|(_, command)| command.to_owned());
        for command in kept.into_iter().chain(more) {
            told += 1;
            let file = command.rsplit(' ').next().unwrap();
            lost += u32::from(!folder.path().join(file).is_file());
            replay(folder.path(), &command);
        }
    }
    assert!(told > 0, "seed {seed}: nothing was found before a kill");
    assert_eq!(lost, 0, "seed {seed}: of {told} findings");
}

#[test]
fn a_request_to_end_reports_what_was_found() {
    let mut prng = Prng::new(6);
    for _ in 0..number("RADDLE_ROUNDS", 2) {
        let folder = TempDir::new().unwrap();
        compile_text(folder.path(), "slow.c", SLOW, &["-g", "-pthread"]);
        let options = ["explore", "--until-found", "--", "./slow"];
        let mut child = spawn(&mut raddle(folder.path(), &options));
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let kept = until_kept(&mut stderr);
        assert!(!kept.is_empty(), "nothing was found");
        std::thread::park_timeout(Duration::from_millis(prng.below(800)));
        send(child.id(), "-TERM");
        let mut text = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        let mut errors = String::new();
        stderr.read_to_string(&mut errors).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{text}{errors}");
        assert!(text.contains("finding 1 of"), "{text}{errors}");
        assert!(!errors.contains("panicked"), "{errors}");
        for command in kept {
            replay(folder.path(), &command);
        }
    }
}

#[test]
fn a_finding_is_told_although_its_recording_cannot_be_written() {
    let folder = TempDir::new().unwrap();
    compile_text(folder.path(), "slow.c", SLOW, &["-g", "-pthread"]);
    let output = folder.path().join("output");
    let options = [
        "explore",
        "--until-found",
        "--output",
        "output",
        "--",
        "./slow",
    ];
    let mut command = raddle(folder.path(), &options);
    // There is no refuge, either.
    let mut child = spawn(command.env("TMPDIR", folder.path().join("nowhere")));
    // The folder was tried, and is there; from now on it takes nothing, for a user of every kind.
    while !output.is_dir() {
        std::thread::yield_now();
    }
    while std::fs::remove_dir_all(&output).is_err() {}
    std::fs::write(&output, "").unwrap();
    let mut text = String::new();
    let mut errors = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut errors)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{text}{errors}");
    assert!(text.contains("finding 1 of"), "{text}");
    assert!(
        text.contains("its recording could not be written"),
        "{text}"
    );
    assert_eq!(std::fs::read(&output).unwrap(), b"", "nothing half written");
}

#[test]
fn a_folder_that_takes_nothing_is_refused_before_the_work() {
    let folder = TempDir::new().unwrap();
    compile_text(folder.path(), "lost.c", LOST, &["-g", "-pthread"]);
    for output in ["lost/below", "/proc/nowhere"] {
        let options = ["explore", "--output", output, "--", "./lost"];
        let ran = run(&mut raddle(folder.path(), &options)).expect(2);
        assert!(ran.stderr.contains("--output DIR"), "{}", ran.stderr);
        assert!(!ran.stdout.contains("explored"), "{}", ran.stdout);
    }
}

#[test]
fn closed_pipes_are_no_fault_of_ours() {
    let folder = TempDir::new().unwrap();
    compile_text(folder.path(), "lost.c", LOST, &["-g", "-pthread"]);
    for arguments in [
        &["explore", "--schedules", "200", "--", "./lost"][..],
        &["explore", "--json", "--schedules", "200", "--", "./lost"],
        &["run", "--trace", "--", "./lost"],
        &["scan", "lost.c"],
        &["explain"],
        &["--help"],
        &["replay", "nosuch"],
    ] {
        for (stdout, stderr) in [(true, false), (false, true), (true, true)] {
            let mut child = spawn(&mut raddle(folder.path(), arguments));
            let (out, err) = (child.stdout.take(), child.stderr.take());
            let kept = (out.filter(|_| !stdout), err.filter(|_| !stderr));
            drop(kept.0.map(|mut out| out.read_to_end(&mut Vec::new())));
            drop(kept.1.map(|mut err| err.read_to_end(&mut Vec::new())));
            let code = child.wait().unwrap().code();
            assert!(
                matches!(code, Some(0..=4 | 125)),
                "{arguments:?}, closed {stdout} {stderr}: {code:?}"
            );
        }
    }
}

#[test]
fn a_closed_output_ends_the_program() {
    let folder = TempDir::new().unwrap();
    let mut child = spawn(&mut raddle(folder.path(), &["run", "--", "yes"]));
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    drop(stdout);
    let mut errors = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut errors)
        .unwrap();
    // 128 + SIGPIPE, as a shell has it.
    assert_eq!(child.wait().unwrap().code(), Some(141), "{errors}");
    assert_eq!((line.as_str(), errors.as_str()), ("y\n", ""));
    // One that does not want to be killed hears of it.
    let source = "#include <errno.h>\n#include <signal.h>\n#include <unistd.h>\nint main(void) { signal(SIGPIPE, SIG_IGN); while (write(1, \"y\\n\", 2) == 2); return errno; }\n";
    let program = compile_text(folder.path(), "deaf.c", source, &["-g", "-pthread"]);
    let mut child = spawn(&mut raddle(
        folder.path(),
        &["run", "--", program.to_str().unwrap()],
    ));
    drop(child.stdout.take());
    // EPIPE
    assert_eq!(child.wait().unwrap().code(), Some(32));
}

#[test]
fn the_time_limit_holds_in_every_phase() {
    let folder = TempDir::new().unwrap();
    // Schedules of seconds, all of which fail at their end: the start, the plain run, a schedule, its explanation.
    let endless = SLOW.replace("20000", "100000000").replace("== 3", "== 4");
    for (name, source) in [("slow", SLOW), ("endless", &endless)] {
        compile_text(
            folder.path(),
            &format!("{name}.c"),
            source,
            &["-g", "-pthread"],
        );
        let program = format!("./{name}");
        // Without a limit, the second takes far longer than the limit of `run`.
        let options = ["explore", "--time", "2", "--", &program];
        let ran = run(&mut raddle(folder.path(), &options)).expect_orderly(name);
        let told = ran.stdout + &ran.stderr;
        assert!(told.contains("time"), "{told}");
    }
}

#[test]
fn equal_seeds_and_generations_give_equal_results() {
    let folder = TempDir::new().unwrap();
    compile_text(folder.path(), "lost.c", LOST, &["-g", "-pthread"]);
    // 97 schedules are the first one and three generations; the fourth is broken off or not, as the time has it.
    let counts = |options: &[&str]| {
        let mut command = raddle(folder.path(), &["explore", "--json", "--seed", "3"]);
        let ran = run(command.args(options).args(["--", "./lost"])).expect(1);
        let value: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let findings = value["findings"].as_array().unwrap().len();
        let counts = ["schedules", "distinct", "failing", "points", "steps"];
        (findings, counts.map(|name| value["summary"][name].clone()))
    };
    let whole = counts(&["--schedules", "97"]);
    assert_eq!(counts(&["--schedules", "97", "-j1"]), whole);
    assert_eq!(
        counts(&["--schedules", "97", "-j3", "--time", "600"]),
        whole
    );
}

#[test]
fn what_a_test_of_rust_shows_survives_a_kill() {
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("src");
    std::fs::create_dir(&source).unwrap();
    let manifest = "[package]\nname = \"counter\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    std::fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    let test = r"
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
#[test]
fn counts() {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let add = || COUNTER.store(COUNTER.load(SeqCst) + 1, SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(add);
        scope.spawn(add);
    });
    assert_eq!(COUNTER.load(SeqCst), 2);
}
";
    std::fs::write(source.join("lib.rs"), test).unwrap();
    let mut command = cargo_raddle();
    command.current_dir(folder.path()).args(["raddle", "test"]);
    let mut child = spawn(command.env("CARGO_TARGET_DIR", folder.path().join("target")));
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let kept = until_kept(&mut stderr);
    send(child.id(), "-KILL");
    child.wait().unwrap();
    assert_eq!(kept.len(), 1, "the lost count is found");
    replay(folder.path(), &kept[0]);
}

#[test]
fn a_compiler_that_is_killed_leaves_a_whole_file_or_none() {
    let folder = TempDir::new().unwrap();
    let function = |number: u32| format!("int f{number}(int *p) {{ return p[{number}] + *p; }}\n");
    let source: String = (0..3000).map(function).collect();
    std::fs::write(folder.path().join("big.c"), source).unwrap();
    let mut prng = Prng::new(8);
    for round in 0..number("RADDLE_ROUNDS", 4) {
        let object = folder.path().join("big.o");
        drop(std::fs::remove_file(&object));
        let options = ["cc", "-O1", "-c", "big.c", "-o", "big.o"];
        let mut child = spawn(&mut raddle(folder.path(), &options));
        std::thread::park_timeout(Duration::from_millis(prng.below(1200)));
        drop(child.kill());
        child.wait().unwrap();
        if object.exists() {
            let listed = Command::new("nm").arg(&object).output().unwrap();
            assert!(listed.status.success(), "round {round}");
            let names = String::from_utf8_lossy(&listed.stdout).into_owned();
            assert!(names.contains("f2999"), "round {round}");
        }
    }
    // What cannot be written is told, and is not called done.
    let options = ["cc", "-O1", "-c", "big.c", "-o", "nowhere/big.o"];
    let ran = run(&mut raddle(folder.path(), &options));
    assert!(
        ran.code != Some(0) && ran.stderr.contains("nowhere/big.o"),
        "{}",
        ran.stderr
    );
}
