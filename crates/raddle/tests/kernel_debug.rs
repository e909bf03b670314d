//! Recordings of kernels under the magnifying glass: gdb, traces, source lines.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use raddle_testkit::kernel::{CORPUS, cache, explore, raddle, recording};
use raddle_testkit::{gdb, raddle_path};
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

/// The lines of an instruction trace, from standard output, and how many instructions the replay says there are.
fn counted_instructions(folder: &Path, recording: &str, extra: &[&str]) -> (Vec<String>, usize) {
    let cache = cache();
    let mut arguments = vec!["kernel", "replay", "--cache", &cache, "--trace", "-"];
    arguments.extend(["--instructions", recording]);
    arguments.extend(extra);
    let (code, text) = raddle(folder, &arguments);
    assert_eq!(code, 1, "{text}");
    assert!(!text.contains("not the recorded one"), "{text}");
    let (before, _) = text
        .split_once(" instructions, ")
        .expect("the replay is told");
    let count = before.rsplit(' ').next().and_then(|word| word.parse().ok());
    let is_traced = |line: &&str| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(|word| word.parse::<u64>().is_ok()) && words.next() == Some("CPU")
    };
    let lines = text.lines().filter(is_traced).map(str::to_owned).collect();
    (lines, count.expect("a number of instructions"))
}

fn instructions(folder: &Path, recording: &str, extra: &[&str]) -> Vec<String> {
    counted_instructions(folder, recording, extra).0
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
    let text = gdb::debug(
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

/// Tracing changes nothing, whatever processors do: wait for each other, take interrupts, print an oops.
#[track_caller]
fn check_trace(bug: &str, contexts: &[&str]) {
    let folder = TempDir::new().expect("a folder");
    let (_, recording) = found(folder.path(), bug);
    let all = ["--limit", "100000000"];
    let (trace, count) = counted_instructions(folder.path(), &recording, &all);
    assert_eq!(trace.len(), count);
    for context in contexts {
        let is_there = trace.iter().any(|line| line.contains(context));
        assert!(is_there, "there is no {context}");
    }
    let part = ["--from", "1000", "--limit", "50"];
    let part = instructions(folder.path(), &recording, &part);
    assert_eq!(part, trace[1000..1050]);
}

#[test]
fn a_run_that_waits_is_traced() {
    check_trace("lost-wakeup", &[" CPU 0 ", " CPU 1 "]);
}

#[test]
fn a_run_with_interrupts_is_traced() {
    check_trace("timer", &[" CPU 0 ", " interrupt 0x"]);
}

#[test]
fn a_run_that_prints_an_oops_is_traced() {
    check_trace("watch", &[" CPU 0 ", " CPU 1 ", "__list_del_entry_valid"]);
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

/// There is no packaged vmlinux with debug information: a program that lies where a function of the kernel does must
/// do.
#[test]
fn a_vmlinux_with_debug_information_gives_lines_of_the_kernel() {
    let folder = TempDir::new().expect("a folder");
    let (_, recording) = found(folder.path(), "torn");
    let trace = instructions(folder.path(), &recording, &[]);
    let is_entry = |line: &&String| line.contains(" __x64_sys_ioctl+0x0 ");
    let entry = trace.iter().find(is_entry).expect("the call is made");
    let at = entry.split_whitespace().nth(3).expect("an address");
    let source = "long ours(long a)\n{\n\treturn a + 1;\n}\n";
    std::fs::write(folder.path().join("fake.c"), source).expect("it can be written");
    let status = Command::new("gcc")
        .current_dir(folder.path())
        .args([
            "-g",
            "-O0",
            "-nostdlib",
            "-static",
            "-no-pie",
            "-Wl,-e,ours",
        ])
        .args([&format!("-Wl,-Ttext=0x{at}"), "-o", "vmlinux", "fake.c"])
        .status()
        .expect("gcc is installed");
    assert!(status.success(), "it links");
    let symbols = ["--symbols", "vmlinux"];
    let trace = instructions(folder.path(), &recording, &symbols);
    let is_named = |line: &&String| line.contains(" fake.c:2 ours+0x0 ");
    let named = trace.iter().find(is_named);
    assert!(named.is_some_and(|line| line.contains(at)), "{named:?}");
}

/// `raddle kernel replay --trace - | head` is no error.
#[test]
fn a_reader_may_leave_early() {
    let folder = TempDir::new().expect("a folder");
    let (_, recording) = found(folder.path(), "torn");
    let mut child = Command::new(raddle_path())
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
