//! Recordings of kernels under the magnifying glass: gdb, traces, source lines.

mod gdb_common;
mod kernel_common;
#[path = "kernel_common/known.rs"]
mod known;

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use kernel_common::{CORPUS, raddle};
use known::{cache, explore, recording};
use tempfile::TempDir;

/// Explores a known bug until it shows: what was printed, and the recording.
fn found(folder: &Path, bug: &str) -> (String, String) {
    let wanted = ["--schedules", "2000", "--until-found"];
    let (code, text) = explore(folder, &format!("bugs/{bug}"), &wanted);
    assert_eq!(code, 1, "{text}");
    (text, recording(folder))
}

/// The number of the line of a module's file that has this text.
fn line_of(file: &str, text: &str) -> usize {
    let source = std::fs::read_to_string(format!("{CORPUS}/module/{file}")).expect("the source");
    let found = source.lines().position(|line| line.contains(text));
    1 + found.unwrap_or_else(|| panic!("no `{text}` in {file}"))
}

/// The lines of an instruction trace, from standard output.
fn instructions(folder: &Path, recording: &str, extra: &[&str]) -> Vec<String> {
    let cache = cache();
    let mut arguments = vec!["kernel", "replay", "--cache", &cache, "--trace", "-"];
    arguments.extend(["--instructions", recording]);
    arguments.extend(extra);
    let (code, text) = raddle(folder, &arguments);
    assert_eq!(code, 1, "{text}");
    assert!(!text.contains("not the recorded one"), "{text}");
    let is_traced = |line: &&str| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(|word| word.parse::<u64>().is_ok()) && words.next() == Some("CPU")
    };
    text.lines().filter(is_traced).map(str::to_owned).collect()
}

/// The address that an instruction of a trace accesses so: `writes 8 bytes at`.
fn address(line: &str, how: &str) -> String {
    let (_, rest) = line.split_once(how).expect("the access is told");
    rest.split_whitespace()
        .next()
        .expect("an address")
        .to_owned()
}

#[test]
fn gdb_goes_from_one_processor_to_the_write_of_the_other() {
    let folder = TempDir::new().expect("a folder");
    let (_, recording) = found(folder.path(), "torn");
    let trace = instructions(folder.path(), &recording, &["--accesses"]);
    let writes = "writes 8 bytes at ";
    let write = trace
        .iter()
        .find(|line| line.contains("torn_call") && line.contains(writes))
        .expect("the first word is written");
    let word = address(write, writes);
    let symbols = recording.replace(".kraddle", ".symbols");
    let text = gdb_common::debug(
        folder.path(),
        (&["kernel", "replay", "--cache", &cache()], &[&recording]),
        &["-ex", &format!("symbol-file {symbols}")],
        &[
            "break *torn_call",
            "continue",
            "info threads",
            "x/i $pc",
            "stepi",
            "x/i $pc",
            "reverse-stepi",
            "x/i $pc",
            "info registers cs ss",
            "continue",
            "delete",
            &format!("watch *(long *){word}"),
            "reverse-continue",
            "info threads",
            &format!("set *(long *){word} = 7"),
            "continue",
            "continue",
        ],
    );
    let mut rest = text.as_str();
    for part in [
        "Thread 1 hit Breakpoint 1, ",
        "* 1    Thread 1.1 (CPU 0 `first`) ",
        "Thread 1.2 (CPU 1 `second`) ",
        "<torn_call>:",
        "<torn_call+5>:",
        "<torn_call>:",
        "cs             0x10 ",
        "Thread 2 hit Breakpoint 1, ",
        // Backwards from the second processor to what the first one did.
        "Thread 1 hit Hardware watchpoint 2: ",
        "Old value = 5\nNew value = 1",
        "* 1    Thread 1.1 (CPU 0 `first`) ",
        "Thread 1 hit Hardware watchpoint 2: ",
        "Old value = 1\nNew value = 5",
        "No more reverse-execution history.",
    ] {
        let found = rest.split_once(part);
        let (_, behind) = found.unwrap_or_else(|| panic!("`{part}` is missing in\n{text}"));
        rest = behind;
    }
    assert!(text.contains("Cannot access memory"), "written to: {text}");
}

/// Tracing changes nothing, whatever processors do: wait, take interrupts, print.
#[test]
fn every_instruction_of_the_recorded_run_is_traced() {
    for bug in ["lost-wakeup", "timer", "watch"] {
        let folder = TempDir::new().expect("a folder");
        let (_, recording) = found(folder.path(), bug);
        let all = ["--limit", "100000000"];
        let trace = instructions(folder.path(), &recording, &all);
        let (_, text) = raddle(
            folder.path(),
            &["kernel", "replay", "--cache", &cache(), &recording],
        );
        let count = format!(": {} instructions, ", trace.len());
        assert!(text.contains(&count), "{bug}: not{count}{text}");
        for context in ["CPU 0 ", "CPU 1 ", " interrupt 0x"] {
            let is_there = trace.iter().any(|line| line.contains(context));
            assert!(is_there, "{bug} has no {context}");
        }
        // A part of it is that part.
        let part = ["--from", "1000", "--limit", "50"];
        let part = instructions(folder.path(), &recording, &part);
        assert_eq!(part, trace[1000..1050]);
    }
}

#[test]
fn traces_and_findings_have_source_lines() {
    let folder = TempDir::new().expect("a folder");
    let (text, recording) = found(folder.path(), "torn");
    let second = line_of("torn.c", "WRITE_ONCE(pair.twice");
    let stop = format!("torn.c:{second}  torn_call+0x");
    assert!(text.contains(&stop), "no `{stop}` in:\n{text}");
    let registers = ["--accesses", "--registers"];
    let trace = instructions(folder.path(), &recording, &registers);
    let read = line_of("torn.c", "READ_ONCE(pair.value)");
    let place = format!("torn.c:{read} torn_call+0x");
    let line = trace.iter().find(|line| line.contains(&place));
    let line = line.unwrap_or_else(|| panic!("no `{place}` in the trace"));
    for word in ["CPU 1 ", "mov rax, [0x", "; rax = 0x5", " = 0x5"] {
        assert!(line.contains(word), "no `{word}` in `{line}`");
    }
    let read_address = address(line, "reads 8 bytes at ");
    let written = format!("writes 8 bytes at {read_address} = 0x5");
    let writer = trace.iter().find(|line| line.contains(&written));
    assert!(writer.is_some_and(|line| line.contains("CPU 0 ")), "{line}");
}

/// `raddle kernel replay --trace - | head` is no error.
#[test]
fn a_reader_may_leave_early() {
    let folder = TempDir::new().expect("a folder");
    let (_, recording) = found(folder.path(), "torn");
    let mut child = Command::new(env!("CARGO_BIN_EXE_raddle"))
        .current_dir(folder.path())
        .args(["kernel", "replay", "--cache", &cache(), "--trace", "-"])
        .args(["--instructions", "--registers", &recording])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("raddle starts");
    let mut first = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    output.read_line(&mut first).expect("a line");
    drop(output);
    let mut errors = String::new();
    let mut told = child.stderr.take().expect("it is piped");
    told.read_to_string(&mut errors).expect("text");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(1), "{first}{errors}");
    assert!(!errors.contains("panicked"), "{errors}");
}
