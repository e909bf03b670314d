//! `raddle run --record`: an ordinary run is had again, gone through in gdb, and explored from.

#![expect(clippy::unwrap_used, reason = "a test fails where its set-up fails")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};

use raddle_testkit::{
    Ran, compile_test_program, compile_text, failures, gdb, raddle_in, run, send, told_in,
};
use raddle_trace::{Enveloped as _, Recording};
use tempfile::TempDir;

const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../annotations/include");

/// Threads whose interleaving shows in the output and in the status.
const BANK: &str = r#"#include <pthread.h>
#include <stdio.h>
static volatile long balance;
static void *deposit(void *unused) {
    for (int i = 0; i < 60000; i++) balance++;
    return unused;
}
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, deposit, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    printf("balance %ld\n", balance);
    return balance % 100;
}
"#;

fn raddle(folder: &Path, arguments: &[&str]) -> Ran {
    run(&mut raddle_in(folder, arguments))
}

fn recorded(folder: &Path, name: &str) -> Recording {
    Recording::parse(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

/// The same output and status again; gives what the run had.
#[track_caller]
fn check_replay(folder: &Path, command: &[&str]) -> Ran {
    let plain = raddle(folder, &[&["run", "--"], command].concat());
    let options = ["run", "--record", "it.raddle", "--"];
    let first = raddle(folder, &[&options, command].concat());
    assert_eq!((first.code, &first.stdout), (plain.code, &plain.stdout));
    assert!(
        first.stderr.contains("raddle replay it.raddle"),
        "{}",
        first.stderr
    );
    let again = raddle(folder, &["replay", "--times", "2", "it.raddle"]);
    assert_eq!(again.code, first.code, "{}", again.stderr);
    assert_eq!(again.stdout, first.stdout);
    assert!(
        again.stderr.contains("replayed 2 times bit for bit"),
        "{}",
        again.stderr
    );
    first
}

#[test]
fn threads_are_had_again_under_every_seed() {
    let folder = TempDir::new().unwrap();
    compile_text(folder.path(), "bank.c", BANK, &["-O0", "-g", "-pthread"]);
    let mut outputs = Vec::new();
    for seed in ["0", "7"] {
        let options = ["run", "--seed", seed];
        let plain = raddle(
            folder.path(),
            &[&options[..], &["--stats", "--", "./bank"]].concat(),
        );
        let mut texts = Vec::new();
        for name in ["one.raddle", "two.raddle"] {
            let record = ["--record", name, "--", "./bank"];
            let ran = raddle(folder.path(), &[&options[..], &record].concat());
            assert_eq!((ran.code, &ran.stdout), (plain.code, &plain.stdout));
            texts.push(std::fs::read(folder.path().join(name)).unwrap());
        }
        assert_eq!(
            texts[0], texts[1],
            "nothing in it depends on when and where"
        );
        let digest = format!(
            "digest {:016x}",
            recorded(folder.path(), "one.raddle").run_digest
        );
        assert!(plain.stderr.contains(&digest), "{}", plain.stderr);
        let again = raddle(folder.path(), &["replay", "one.raddle"]);
        assert_eq!((again.code, &again.stdout), (plain.code, &plain.stdout));
        assert!(again.stderr.contains(&digest), "{}", again.stderr);
        let traced = raddle(folder.path(), &["replay", "--trace=events", "one.raddle"]);
        assert_eq!((traced.code, &traced.stdout), (plain.code, &plain.stdout));
        let events = std::fs::read_to_string(folder.path().join("events")).unwrap();
        assert!(events.contains("create 1"), "{events}");
        assert!(texts[0].len() < 4096, "{} bytes", texts[0].len());
        outputs.push(plain.stdout);
    }
    assert_ne!(outputs[0], outputs[1], "seeds choose the interleaving");
}

#[test]
fn processes_crashes_deadlocks_and_standard_input_are_had_again() {
    let folder = TempDir::new().unwrap();
    let script = "echo one; (echo two; exit 3); echo $?; exec /bin/sh -c 'echo $0; exit 4'";
    let ran = check_replay(folder.path(), &["/bin/sh", "-c", script]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(4), "one\ntwo\n3\n/bin/sh\n")
    );

    let dies = "#include <stdlib.h>\nint main(void) { abort(); }\n";
    compile_text(folder.path(), "dies.c", dies, &[]);
    let ran = check_replay(folder.path(), &["./dies"]);
    assert_eq!(ran.code, Some(134));
    assert!(ran.stderr.contains("SIGABRT"), "{}", ran.stderr);

    let stuck = "#include <pthread.h>\nint main(void) { pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&m); pthread_mutex_lock(&m); }\n";
    compile_text(folder.path(), "stuck.c", stuck, &["-pthread"]);
    let ran = check_replay(folder.path(), &["./stuck"]);
    assert_eq!(ran.code, Some(125));
    assert!(ran.stderr.contains("deadlock"), "{}", ran.stderr);

    let options = [
        "run",
        "--record",
        "cat.raddle",
        "--stdin",
        "-",
        "--",
        "/bin/cat",
    ];
    let mut child = raddle_in(folder.path(), &options)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"piped\xff\n")
        .unwrap();
    assert!(child.wait().unwrap().success());
    let again = raddle_in(folder.path(), &["replay", "cat.raddle"])
        .output()
        .unwrap();
    assert_eq!(again.stdout, b"piped\xff\n");
}

#[test]
fn gdb_goes_back_to_before_the_first_thread() {
    let folder = TempDir::new().unwrap();
    let source = "#include <pthread.h>\nint set;\nvoid *work(void *a) {\n    set = 2;\n    *(volatile int *)a = 1;\n    return a;\n}\nint main(void) {\n    pthread_t one;\n    set = 1;\n    pthread_create(&one, 0, work, (void *)8);\n    pthread_join(one, 0);\n}\n";
    compile_text(folder.path(), "dies.c", source, &["-g", "-O0", "-pthread"]);
    let ran = raddle(
        folder.path(),
        &["run", "--record", "dies.raddle", "--", "./dies"],
    );
    assert_eq!(ran.code, Some(139), "{}", ran.stderr);
    let text = gdb::debug(
        folder.path(),
        (&["replay"], &["dies.raddle"]),
        &["-ex", "set sysroot /", "dies"],
        &[
            "break work",
            "continue",
            "next",
            "print set",
            "watch set",
            "reverse-continue",
            "reverse-continue",
            "print set",
            "info threads",
        ],
    );
    assert!(text.contains("$1 = 2"), "{text}");
    assert!(text.contains("dies.c:10"), "{text}");
    assert!(text.contains("$2 = 0"), "{text}");
    assert!(text.contains("not begun"), "{text}");
}

/// Over calls and out of functions, in both directions, with the values of the x87 stack.
#[test]
fn gdb_steps_over_and_out_of_functions_both_ways() {
    let folder = TempDir::new().unwrap();
    let source = "#include <pthread.h>\nlong double sum;\n__attribute__((noinline)) long double half(long double of) {\n    long double result = of / 2;\n    return result;\n}\nvoid *work(void *a) {\n    sum += half(2.5L);\n    sum += half(8);\n    return a;\n}\nint main(void) {\n    pthread_t one;\n    pthread_create(&one, 0, work, 0);\n    pthread_join(one, 0);\n    return 0;\n}\n";
    compile_text(
        folder.path(),
        "halves.c",
        source,
        &["-g", "-O0", "-pthread"],
    );
    let options = ["run", "--record", "halves.raddle", "--", "./halves"];
    raddle(folder.path(), &options).expect(0);
    let text = gdb::debug(
        folder.path(),
        (&["replay"], &["halves.raddle"]),
        &["-ex", "set sysroot /", "halves"],
        &[
            "break half",
            "continue",
            "finish",
            "info float",
            "next",
            "print sum",
            "delete",
            "reverse-next",
            "frame",
            "print sum",
            // Line 8 has two entries in the table of lines, and this is the later one: behind the call.
            "break half",
            "continue",
            "reverse-finish",
            "frame",
        ],
    );
    assert!(text.contains("Value returned is $1 = 1.25"), "{text}");
    assert!(
        text.contains("R7: Valid   0x3fffa000000000000000 +1.25"),
        "{text}"
    );
    assert!(text.contains("$2 = 1.25"), "{text}");
    assert!(text.contains("$3 = 0"), "{text}");
    let last = text.rsplit("#0").next().expect("it stopped");
    assert!(last.contains("sum += half(8);"), "{text}");
}

#[test]
fn what_came_from_outside_is_had_again() {
    let folder = TempDir::new().unwrap();
    let record = |program: &[&str]| -> Child {
        let options = ["run", "--record", "it.raddle", "--"];
        raddle_in(folder.path(), &[&options, program].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let first_line = |child: &mut Child| {
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        (line, stdout)
    };
    // A reader that has seen enough.
    let mut child = record(&["yes"]);
    drop(first_line(&mut child));
    assert_eq!(child.wait().unwrap().code(), Some(141));
    let again = raddle(folder.path(), &["replay", "it.raddle"]);
    assert_eq!(again.code, Some(141), "{}", again.stderr);
    assert!(again.stdout.starts_with("y\ny\n"));
    // Ctrl-C.
    let mut child = record(&["/bin/sh", "-c", "echo begins; while :; do :; done"]);
    let (line, _stdout) = first_line(&mut child);
    assert_eq!(line, "begins\n");
    send(child.id(), "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let again = raddle(folder.path(), &["replay", "it.raddle"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(130), "begins\n"));
    assert!(
        again.stderr.contains("interrupted; the threads"),
        "{}",
        again.stderr
    );
}

#[test]
fn a_run_that_ended_well_is_explored_from_its_middle() {
    let folder = TempDir::new().unwrap();
    let flags = ["-g", "-O0", "-pthread", "-I", HEADERS];
    compile_test_program(folder.path(), "explore/hint.c", &flags);
    let ran = raddle(
        folder.path(),
        &["run", "--record", "fine.raddle", "--", "./hint"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let explore = |place: &str| {
        let options = [
            "explore",
            "--schedules",
            "400",
            "--snapshot-at",
            place,
            "fine.raddle",
        ];
        told_in(folder.path(), &options)
    };
    let (code, text) = explore("hint");
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("`balance == 200' failed"), "{text}");
    assert!(!text.contains("ready == 2"), "{text}");
    let found = failures(folder.path());
    let found = found.iter().find(|name| *name != "fine.raddle").unwrap();
    let (code, text) = told_in(folder.path(), &["replay", found]);
    assert_eq!(code, 1, "{text}");
    let steps = recorded(folder.path(), "fine.raddle")
        .ordinary
        .unwrap()
        .steps;
    let (code, text) = explore(&format!("step:{steps}"));
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("begin earlier"), "{text}");
    let (code, text) = told_in(folder.path(), &["explore", found]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("only ordinary runs"), "{text}");
    let (code, text) = told_in(folder.path(), &["explore", "--env", "A=B", "fine.raddle"]);
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("`--env` does not go with a recorded run"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_had_again_is_refused_with_the_reason() {
    let folder = TempDir::new().unwrap();
    compile_text(folder.path(), "bank.c", BANK, &["-O0", "-pthread"]);
    std::fs::create_dir(folder.path().join("there")).unwrap();
    for place in ["there", "nowhere/it", "/proc/it", "/dev/null", "/"] {
        let ran = raddle(folder.path(), &["run", "--record", place, "--", "./bank"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(125), ""), "{place}");
        assert!(ran.stderr.contains("cannot write"), "{}", ran.stderr);
    }
    raddle(
        folder.path(),
        &["run", "--record", "it.raddle", "--", "./bank"],
    );
    let refused = |arguments: &[&str], code: i32, why: &str| {
        let ran = raddle(folder.path(), arguments);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(code), ""),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    };
    refused(
        &["report", "it.raddle"],
        2,
        "the recording of an ordinary run",
    );
    refused(
        &["replay", "--relaxed", "it.raddle"],
        125,
        "which nobody judges",
    );
    let path = folder.path().join("it.raddle");
    let whole = std::fs::read_to_string(&path).unwrap();
    let other = Recording {
        run_digest: 1,
        ..recorded(folder.path(), "it.raddle")
    };
    std::fs::write(&path, other.to_text()).unwrap();
    let ran = raddle(folder.path(), &["replay", "it.raddle"]);
    assert_eq!(ran.code, Some(125), "{}", ran.stderr);
    assert!(ran.stderr.contains("the replay diverges"), "{}", ran.stderr);
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    refused(&["replay", "it.raddle"], 2, "it is damaged");
    std::fs::write(&path, &whole).unwrap();
    compile_text(folder.path(), "bank.c", BANK, &["-O1", "-pthread"]);
    refused(&["replay", "it.raddle"], 125, "record the run again");
    refused(&["explore", "it.raddle"], 2, "record the run again");
}
