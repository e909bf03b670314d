//! `raddle run` end to end: programs behave as natively, runs repeat bit for bit, errors are clean.

#![expect(clippy::unwrap_used, reason = "a test fails where its set-up fails")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use raddle_testkit::{raddle, send, test_program, text};

/// Compiles one of the programs beside this file.
fn compile(name: &str, arguments: &[&str]) -> PathBuf {
    let source = test_program(&format!("programs/{name}.c"));
    let folder = raddle_testkit::scratch().join(format!("run-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let suffix: String = arguments.concat().replace('/', "_");
    let flags = [&["-O1", "-pthread"], arguments, &["-lm", "-lrt"]].concat();
    raddle_testkit::compile(&source, &folder.join(format!("{name}{suffix}")), &flags)
}

fn run(arguments: &[&str], program: &Path) -> Output {
    raddle()
        .arg("run")
        .args(arguments)
        .arg("--")
        .arg(program)
        .output()
        .expect("raddle starts")
}

/// Output and status must be those of a native run (`NAME.expected` was written by one), under several seeds.
/// The native run itself is not repeated here: under load its sleeps do not order anything.
#[track_caller]
fn check_as_native(name: &str, arguments: &[&str], status: i32) {
    let program = compile(name, arguments);
    let expected = test_program(&format!("programs/{name}.expected"));
    let expected = std::fs::read_to_string(expected).unwrap();
    for seed in ["0", "1", "2"] {
        let ours = run(&["--seed", seed], &program);
        assert_eq!(
            text(&ours.stdout),
            expected,
            "{name}, seed {seed}: {}",
            text(&ours.stderr)
        );
        assert_eq!(ours.status.code(), Some(status), "{name}");
    }
}

#[test]
fn signals_are_as_native() {
    check_as_native("signals", &[], 7);
}

#[test]
fn processes_are_as_native() {
    check_as_native("processes", &[], 0);
}

#[test]
fn users_groups_and_permissions_are_as_native() {
    check_as_native("identities", &[], 0);
}

#[test]
fn shared_memory_semaphores_and_message_queues_are_as_native() {
    check_as_native("sysv", &[], 0);
}

#[test]
fn posix_message_queues_are_as_native() {
    check_as_native("queues", &[], 0);
}

#[test]
fn threads_are_as_native() {
    check_as_native("threads", &[], 0);
}

#[test]
fn static_programs_are_as_native() {
    check_as_native("threads", &["-static"], 0);
}

#[test]
fn programs_at_fixed_addresses_are_as_native() {
    check_as_native("threads", &["-no-pie"], 0);
}

#[test]
fn static_pie_programs_are_as_native() {
    check_as_native("futexes", &["-static-pie"], 0);
}

#[test]
fn timers_are_as_native() {
    check_as_native("timers", &[], 0);
}

#[test]
fn memory_is_as_native() {
    check_as_native("memory", &[], 0);
}

#[test]
fn futexes_are_as_native() {
    check_as_native("futexes", &[], 0);
}

/// The digest that `--stats` prints.
fn digest(output: &Output) -> String {
    let message = text(&output.stderr);
    let at = message.find("digest ").expect("a digest is printed");
    message[at + 7..at + 23].to_owned()
}

#[test]
fn a_seed_is_a_run() {
    let program = compile("threads", &[]);
    let first = run(&["--seed", "5", "--stats"], &program);
    let again = raddle()
        .args(["run", "--seed", "5", "--stats", "--trace=/dev/null", "--"])
        .arg(&program)
        .env("HOME", "/elsewhere")
        .env("UNRELATED", "x")
        .output()
        .unwrap();
    assert_eq!(digest(&first), digest(&again));
    let other = run(&["--seed", "6", "--stats"], &program);
    assert_ne!(digest(&first), digest(&other), "seeds choose the schedule");
}

#[test]
fn the_trace_tells_calls_output_and_digest() {
    let program = compile("futexes", &[]);
    let output = run(&["--trace"], &program);
    let trace = text(&output.stderr);
    for part in [
        "call futex(",
        "done futex = -11",
        "create 1",
        "output 1 \"nobody: 0\\n\"",
        "exit",
        "\ndigest ",
    ] {
        assert!(trace.contains(part), "no `{part}` in the trace");
    }
    let file = program.with_file_name("trace.bin");
    let status = run(&[&format!("--trace={}", file.display())], &program).status;
    assert!(status.success());
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"RDLTRACE\x02"));
    assert!(bytes.len() * 4 < trace.len(), "the binary form is compact");
    check_log(&file, &trace);
}

/// What is read back is what is printed; a log that was cut off is shown as far as it is whole, with an error.
fn check_log(file: &Path, trace: &str) {
    let log = |arguments: &[&str]| {
        raddle()
            .arg("log")
            .args(arguments)
            .arg(file)
            .output()
            .unwrap()
    };
    let shown = log(&[]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    let events = |text: &str| -> Vec<String> {
        let is_event = |line: &&str| line.starts_with(' ') && !line.contains('·');
        text.lines().filter(is_event).map(str::to_owned).collect()
    };
    assert_eq!(events(&text(&shown.stdout)), events(trace));
    assert!(text(&shown.stdout).starts_with("log of `"));
    let json = log(&["--json"]);
    let json = text(&json.stdout);
    let last = json.lines().last().unwrap();
    assert!(last.contains("\"end\":\"whole\""), "{last}");
    let bytes = std::fs::read(file).unwrap();
    std::fs::write(file, &bytes[..bytes.len() - 3]).unwrap();
    let cut = log(&[]);
    assert_eq!(cut.status.code(), Some(2));
    assert_eq!(events(&text(&cut.stdout)), events(trace));
    assert!(
        text(&cut.stderr).contains("is cut off"),
        "{}",
        text(&cut.stderr)
    );
}

/// Our own errors: status 125 and one paragraph that contains `expected`.
#[track_caller]
fn check_error(arguments: &[&str], expected: &str) {
    let output = raddle().arg("run").args(arguments).output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{message}");
    assert!(message.contains(expected), "{message}");
}

fn scratch(name: &str, content: &[u8]) -> String {
    let path = raddle_testkit::scratch().join(name);
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn what_cannot_run_is_named() {
    check_error(&["--", "/nonexistent"], "no such file or directory");
    check_error(&["--", "no-such-program"], "on the program's PATH");
    let text_file = scratch("plain.txt", b"hello");
    check_error(&["--", &text_file], "not an ELF file");
    let cut = scratch("cut.elf", b"\x7FELF\x02\x01");
    check_error(&["--", &cut], "cut off");
    let mut foreign = std::fs::read(compile("futexes", &[])).unwrap();
    foreign[18] = 183;
    let foreign = scratch("foreign.elf", &foreign);
    check_error(&["--", &foreign], "another machine");
    let no_linker = compile("futexes", &["-Wl,--dynamic-linker=/no/such/ld.so"]);
    check_error(
        &["--", &no_linker.display().to_string()],
        "`/no/such/ld.so`",
    );
    check_error(
        &["--net", "host", "--", "/bin/true"],
        "differs from run to run",
    );
    check_error(&["--env", "=x", "--", "/bin/true"], "NAME=VALUE");
    check_error(&["--map", "x", "--", "/bin/true"], "HOST:GUEST");
}

#[test]
fn limits_end_runs_cleanly() {
    let program = compile("limits", &[]).display().to_string();
    check_error(
        &["--max-instructions", "1000000", "--", &program, "loop"],
        "--max-instructions",
    );
    check_error(
        &["--max-processes", "50", "--", &program, "bomb"],
        "--max-processes",
    );
    check_error(
        &["--max-memory", "64M", "--", &program, "hog"],
        "--max-memory",
    );
    check_error(&["--", &program, "deadlock"], "waits for the futex at");
    let traced = compile("limits", &["-g"]).display().to_string();
    check_error(&["--", &traced, "deadlock"], "limits.c:9");
    let refused = raddle()
        .args(["run", "--max-memory", "64M", "--", &program, "huge"])
        .output()
        .unwrap();
    assert_eq!(text(&refused.stdout), "refused\n");
}

#[test]
fn time_passes_fast_while_everybody_yields() {
    let program = compile("yielding", &[]);
    for seed in ["0", "1", "2"] {
        // The sleep alone takes 400 million instructions of time.
        let output = run(&["--seed", seed, "--max-instructions", "2000000"], &program);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
}

#[test]
fn an_interrupt_shows_where_the_program_is() {
    let program = compile("limits", &["-g"]);
    let mut child = raddle()
        .args(["run", "--stats", "--"])
        .arg(&program)
        .arg("loop")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut ready)
        .unwrap();
    assert_eq!(ready, "looping\n");
    send(child.id(), "-INT");
    let output = child.wait_with_output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(message.contains("interrupted"), "{message}");
    assert!(message.contains("main at "), "{message}");
    assert!(message.contains("instructions in"), "{message}");
}

#[test]
fn status_is_passed_through() {
    let program = compile("limits", &[]);
    let status = |mode: &str| {
        let output = raddle()
            .args(["run", "--"])
            .arg(&program)
            .arg(mode)
            .output()
            .unwrap();
        (output.status.code(), text(&output.stderr))
    };
    assert_eq!(status("exit").0, Some(77));
    let (code, message) = status("crash");
    assert_eq!(code, Some(128 + 11));
    assert!(message.contains("killed by SIGSEGV"), "{message}");
    assert!(message.contains("writing 0x1234"), "{message}");
}

#[test]
fn environment_directory_and_input_are_what_was_given() {
    let input = scratch("input.txt", b"from a file\n");
    let output = raddle()
        .args([
            "run",
            "--env",
            "COLOUR=blue",
            "--cwd",
            "/usr",
            "--stdin",
            &input,
            "--",
        ])
        .args([
            "sh",
            "-c",
            "pwd; echo $COLOUR $HOME; cat; env | sort | head -2",
        ])
        .env("SECRET", "1")
        .output()
        .unwrap();
    assert_eq!(
        text(&output.stdout),
        "/usr\nblue /root\nfrom a file\nCOLOUR=blue\nHOME=/root\n",
        "{}",
        text(&output.stderr)
    );
}
