//! The file layer end to end: what a program sees of files, pipes and sockets is what it sees natively.

#![expect(clippy::unwrap_used, reason = "a test fails where its set-up fails")]

use std::path::PathBuf;
use std::process::Command;

use raddle_testkit::{scratch, succeed as output, test_program};

fn fresh(name: &str) -> PathBuf {
    let folder = scratch().join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn raddle(arguments: &[&str]) -> Command {
    let mut command = raddle_testkit::raddle();
    command.arg("run").args(arguments).arg("--");
    command
}

/// Thousands of random operations give the same results and errors, one by one, and leave the same tree.
#[track_caller]
fn check_operations(seed: u32, on_host_files: bool) {
    let folder = fresh(&format!("file-calls-{seed}-{on_host_files}"));
    let base = folder.join("base");
    let script = test_program("programs/file_calls.py");
    let python = "/usr/bin/python3";
    let run = |command: &mut Command, seed: u32, keep: bool| {
        command
            .arg(&script)
            .args([&seed.to_string(), "800"])
            .arg(&base);
        if keep {
            command.arg("keep");
        }
        output(command)
    };
    if on_host_files {
        // What the host holds underneath is itself the result of random operations.
        run(&mut Command::new(python), seed + 1000, false);
    }
    let ours = run(raddle(&[]).arg(python), seed, on_host_files);
    let native = run(&mut Command::new(python), seed, on_host_files);
    for (ours, native) in ours.lines().zip(native.lines()) {
        assert_eq!(ours, native, "seed {seed}");
    }
    assert_eq!(ours.lines().count(), native.lines().count());
}

#[test]
fn random_operations_in_the_overlay() {
    for seed in [1, 2, 3] {
        check_operations(seed, false);
    }
}

#[test]
fn random_operations_on_host_files() {
    for seed in [3, 5] {
        check_operations(seed, true);
    }
}

#[test]
fn events_locks_and_sockets() {
    let script = test_program("programs/file_events.py");
    let native = output(Command::new("/usr/bin/python3").arg(&script));
    for seed in ["0", "1"] {
        let ours = output(
            raddle(&["--seed", seed])
                .arg("/usr/bin/python3")
                .arg(&script),
        );
        assert_eq!(ours, native, "seed {seed}");
    }
}

#[test]
fn the_host_is_never_written_and_the_overlay_can_be_exported() {
    let folder = fresh("export");
    std::fs::write(folder.join("notes.txt"), "from the host\n").unwrap();
    let (out, guest) = (folder.join("out"), folder.to_str().unwrap());
    let line = format!(
        "cd {guest}; echo changed > notes.txt; mkdir new; echo x > new/file; cat notes.txt"
    );
    let shown = output(
        raddle(&["--export", out.to_str().unwrap()])
            .arg("/bin/bash")
            .args(["-c", &line]),
    );
    assert_eq!(shown, "changed\n");
    assert_eq!(
        std::fs::read_to_string(folder.join("notes.txt")).unwrap(),
        "from the host\n"
    );
    assert!(!folder.join("new").exists());
    let exported = out.join(folder.strip_prefix("/").unwrap());
    assert_eq!(
        std::fs::read_to_string(exported.join("notes.txt")).unwrap(),
        "changed\n"
    );
    assert_eq!(
        std::fs::read_to_string(exported.join("new/file")).unwrap(),
        "x\n"
    );
}
