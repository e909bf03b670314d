//! Attempts to get out of a guest, and to have files of a stranger do something: none succeeds.
//!
//! `cargo xtask attack` runs the same with more rounds of the random ones.

#![expect(clippy::unwrap_used, reason = "a test fails where its set-up fails")]

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use raddle_kernel::campaign::{LivenessRule, Rules};
use raddle_kernel::recording::{KernelRecording, MachineInputs, SEMANTICS};
use raddle_stdx::{Digest, Prng};
use raddle_testkit::{LOST, Ran, compile_text, number, raddle_in as raddle, recordings, run};
use raddle_trace::{Enveloped, Schedule};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with a recording of a failure that only an output shows.
fn with_recording() -> (TempDir, String) {
    let folder = TempDir::new().unwrap();
    let source = include_str!("explore/printed.c");
    compile_text(folder.path(), "printed.c", source, &["-g", "-pthread"]);
    let options = ["explore", "--until-found", "--oracle", "grep -q 200"];
    let mut command = raddle(folder.path(), &options);
    run(command.args(["--", "./printed"])).expect(1);
    let recording = std::fs::read_to_string(&recordings(folder.path())[0]).unwrap();
    (folder, recording)
}

/// A recording with another content, and with the checksum that belongs to it.
fn forge(recording: &str, change: impl FnOnce(&mut Value)) -> String {
    let (head, body) = recording.split_once('\n').expect("it has a first line");
    let mut content = serde_json::from_str(body).expect("its content is JSON");
    change(&mut content);
    let body = serde_json::to_string_pretty(&content).expect("it can be written") + "\n";
    let words: Vec<&str> = head.split(' ').collect();
    let checksum = Digest::of(body.as_bytes());
    format!("{} {} {checksum:016x}\n{body}", words[0], words[1])
}

fn replay(folder: &Path, recording: &str, options: &[&str]) -> Ran {
    std::fs::write(folder.join("forged"), recording).unwrap();
    run(raddle(folder, &["replay", "forged"]).args(options))
}

#[test]
fn a_recording_runs_nothing() {
    let (folder, recording) = with_recording();
    let mark = folder.path().join("mark");
    let command = format!("touch {}; false", mark.display());
    let forged = forge(&recording, |content| {
        content["expected"]["oracle"] = json!(command);
    });
    for options in [&[][..], &["--relaxed"], &["--times", "2"], &["--sealed"]] {
        let ran = replay(folder.path(), &forged, options).expect_orderly("forged oracle");
        assert!(!mark.exists(), "{options:?}: the command was run");
        assert!(ran.stderr.contains("touch"), "it is shown: {}", ran.stderr);
    }
    // Without its oracle the run is the same, and no oracle judges it; with it, it fails.
    let ran = replay(folder.path(), &recording, &[]).expect(4);
    assert!(ran.stdout.contains("bit for bit"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("--oracle 'grep -q 200'"),
        "{}",
        ran.stderr
    );
    let ran = replay(folder.path(), &recording, &["--oracle", "grep -q 200"]).expect(1);
    assert!(ran.stdout.contains("wrong output"), "{}", ran.stdout);
}

#[test]
fn paths_of_a_recording_lead_to_regular_files_only() {
    let (folder, recording) = with_recording();
    let fifo = folder.path().join("fifo");
    let status = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(status.success());
    let fifo = fifo.to_str().unwrap();
    for path in [
        "/dev/zero",
        "/dev/tty",
        "/proc/kmsg",
        "/",
        fifo,
        "/proc/self/mem",
    ] {
        let changes: [&dyn Fn(&mut Value); 4] = [
            &|content| content["files"][0]["path"] = json!(path),
            &|content| content["inputs"]["program"] = json!(path),
            &|content| content["inputs"]["directory"] = json!(path),
            &|content| {
                content["inputs"]["mappings"] = json!([{ "host": path, "guest": "/mapped" }]);
            },
        ];
        for change in changes {
            let forged = forge(&recording, change);
            for options in [&[][..], &["--sealed"]] {
                replay(folder.path(), &forged, options).expect_orderly(path);
            }
        }
    }
}

/// Values that a stranger may put anywhere into a recording.
fn hostile_value(prng: &mut Prng) -> Value {
    match prng.below(10) {
        0 => json!(0),
        1 => json!(u64::MAX),
        2 => json!(1_u64 << 40),
        3 => json!(-1),
        4 => json!(""),
        5 => json!("../../../../etc/passwd"),
        6 => json!("\u{1b}]0;owned\u{7}\u{202e}"),
        7 => json!([]),
        8 => json!([0, u32::MAX]),
        _ => Value::Null,
    }
}

/// Changes one value somewhere below.
fn mutate(value: &mut Value, prng: &mut Prng) {
    let below = |count: usize, prng: &mut Prng| usize::try_from(prng.below(count as u64)).unwrap();
    match value {
        Value::Array(items) if !items.is_empty() => {
            let at = below(items.len(), prng);
            mutate(&mut items[at], prng);
        }
        Value::Object(fields) if !fields.is_empty() => {
            let at = below(fields.len(), prng);
            let name = fields.keys().nth(at).unwrap().clone();
            mutate(&mut fields[&name], prng);
        }
        leaf => *leaf = hostile_value(prng),
    }
}

#[test]
fn forged_recordings_with_right_checksums_end_in_order() {
    let (folder, recording) = with_recording();
    let seed = 7;
    let mut prng = Prng::new(seed);
    for round in 0..number("RADDLE_ROUNDS", 25) {
        let forged = forge(&recording, |content| {
            for _ in 0..=prng.below(2) {
                mutate(content, &mut prng);
            }
        });
        let ran = replay(folder.path(), &forged, &["--oracle", "true"]);
        let ran = ran.expect_orderly(&format!("seed {seed}, round {round}:\n{forged}"));
        let shown = ran.stdout + &ran.stderr;
        assert!(!shown.contains('\u{1b}'), "round {round}: {shown}");
    }
}

#[test]
fn broken_recordings_are_refused() {
    let (folder, recording) = with_recording();
    let half = &recording[..recording.len() / 2];
    let deep = format!("{{\"a\":{}", "[".repeat(200_000));
    let version = recording.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let deep = format!("{version} {:016x}\n{deep}", Digest::of(deep.as_bytes()));
    for text in [
        "",
        "raddle-recording",
        &format!("{version} 0\n"),
        half,
        &deep,
        "\u{0}\u{1}",
    ] {
        let ran = replay(folder.path(), text, &[]).expect(2);
        assert!(
            ran.stderr.starts_with("raddle: cannot replay forged"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn an_export_stays_in_its_folder() {
    let folder = TempDir::new().unwrap();
    let outside = folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("file"), "mine").unwrap();
    let export = |script: &str| {
        let options = ["run", "--export", "e", "--", "/bin/sh", "-c", script];
        run(&mut raddle(folder.path(), &options)).expect(0)
    };
    let shown = outside.display();
    export(&format!(
        "ln -s {shown} /q; ln -s {shown}/file /f; ln -s .. /up"
    ));
    export("mkdir /q /up; echo x > /q/file; echo x > /up/file; rm -f /f; echo x > /f");
    // What an attacker leaves on the host itself is not followed, either.
    let e = folder.path().join("e");
    std::fs::remove_file(e.join("f")).unwrap();
    symlink(outside.join("file"), e.join("f")).unwrap();
    std::fs::remove_dir_all(e.join("q")).unwrap();
    symlink(&outside, e.join("q")).unwrap();
    export("mkdir /q; echo x > /q/file; echo x > /q/new; echo x > /f");
    assert_eq!(
        std::fs::read_to_string(outside.join("file")).unwrap(),
        "mine"
    );
    let names: Vec<_> = std::fs::read_dir(&outside).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(std::fs::read_to_string(e.join("q/file")).unwrap(), "x\n");
    assert_eq!(std::fs::read_to_string(e.join("f")).unwrap(), "x\n");
    assert!(!folder.path().join("file").exists());
}

#[test]
fn an_export_has_only_what_the_program_changed() {
    let folder = TempDir::new().unwrap();
    let script = "date; ls -la /dev /proc /etc >/dev/null; mkdir /n; echo x > /n/set; chmod 6755 /n/set; mkfifo /n/fifo";
    let options = ["run", "--export", "e", "--", "/bin/sh", "-c", script];
    let ran = run(&mut raddle(folder.path(), &options)).expect(0);
    let e = folder.path().join("e");
    let names = |path: &Path| -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&e), ["n"]);
    assert_eq!(names(&e.join("n")), ["set"]);
    let mode = |name: &str| e.join(name).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode("n/set"), 0o755);
    assert!(
        ran.stderr.contains("did not export 1 FIFO and"),
        "{}",
        ran.stderr
    );
    let options = [
        "run",
        "--export",
        "e",
        "--export-special",
        "--",
        "/bin/sh",
        "-c",
        script,
    ];
    let ran = run(&mut raddle(folder.path(), &options)).expect(0);
    assert_eq!(mode("n/set"), 0o6755);
    assert_eq!(names(&e.join("n")), ["fifo", "set"]);
    assert!(ran.stderr.contains("exported 1 FIFO and"), "{}", ran.stderr);
}

#[test]
fn a_guest_reaches_nothing_outside() {
    let folder = TempDir::new().unwrap();
    let outside = folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let file = outside.join("file");
    std::fs::write(&file, "mine").unwrap();
    let before = std::fs::metadata(&file).unwrap().permissions().mode();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let source = include_str!("attack/escape.c");
    let program = compile_text(
        folder.path(),
        "escape.c",
        source,
        &["-g", "-pthread", "-static"],
    );
    let host = std::process::id().to_string();
    let mut victim = Command::new("sleep").arg("100").spawn().unwrap();
    let id = victim.id().to_string();
    let arguments = [file.to_str().unwrap(), &port, &host, &id];
    let mut command = raddle(folder.path(), &["run", "--", program.to_str().unwrap()]);
    let ran = run(command.args(arguments)).expect(0);
    // Whatever the guest believes to have done, it was done inside.
    assert!(
        ran.stdout.ends_with("all attempts made\n"),
        "{}",
        ran.stdout
    );
    let reached: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|line| line.contains("REACHED"))
        .collect();
    assert!(reached.is_empty(), "{reached:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode(),
        before
    );
    let names: Vec<_> = std::fs::read_dir(&outside).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(listener.accept().is_err(), "the guest has a network");
    assert!(
        victim.try_wait().unwrap().is_none(),
        "the guest has sent a signal"
    );
    victim.kill().unwrap();
    victim.wait().unwrap();
}

#[test]
fn a_sealed_program_sees_what_was_named_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "s3cret").unwrap();
    let source = include_str!("attack/look.c");
    compile_text(folder.path(), "look.c", source, &["-g", "-pthread"]);
    let secret = secret.to_str().unwrap();
    let look = |options: &[&str], paths: &[&str]| {
        let mut command = raddle(folder.path(), &["run"]);
        let command = command.args(options).args(["--", "./look"]).args(paths);
        run(command).expect(0).stdout
    };
    let paths = [
        secret,
        "/etc/passwd",
        "/etc/hostname",
        "/root",
        "/home",
        "/usr/bin/env",
    ];
    let open = look(&[], &paths);
    assert!(
        open.contains("s3cret") && open.contains("/etc/passwd: file"),
        "{open}"
    );
    let sealed = look(&["--sealed"], &paths);
    assert_eq!(sealed.matches(": nothing").count(), paths.len(), "{sealed}");
    let listed = look(&["--sealed"], &["/", ".", "/etc"]);
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines[1], ".: folder look", "{listed}");
    assert!(lines[2] == "/etc: folder ld.so.cache", "{listed}");
    assert!(
        !lines[0].contains("home") && lines[0].contains("proc"),
        "{listed}"
    );
    let mapped = look(
        &["--sealed", "--map", &format!("{secret}:/in/secret")],
        &["/in/secret"],
    );
    assert!(mapped.contains("s3cret"), "{mapped}");
    let paths = [
        secret,
        "/proc/1/root/etc/passwd",
        "/proc/self/root/etc/passwd",
        "../../etc/passwd",
    ];
    let sealed = look(&["--sealed"], &paths);
    assert_eq!(sealed.matches(": nothing").count(), paths.len(), "{sealed}");
}

#[test]
fn a_sealed_failure_is_found_and_replayed() {
    let folder = TempDir::new().unwrap();
    compile_text(folder.path(), "lost.c", LOST, &["-g", "-pthread"]);
    let options = ["explore", "--sealed", "--until-found", "--", "./lost"];
    run(&mut raddle(folder.path(), &options)).expect(1);
    let recording = recordings(folder.path()).remove(0);
    let text = std::fs::read_to_string(&recording).unwrap();
    assert!(text.contains("\"visible\""), "{text}");
    for options in [&[][..], &["--sealed"]] {
        replay(folder.path(), &text, options).expect(1);
    }
    // A recording that was not sealed, and maps what is none of its business.
    let forged = forge(&text, |content| {
        content["inputs"]["visible"] = Value::Null;
        content["inputs"]["mappings"] = json!([{ "host": "/etc", "guest": "/stolen" }]);
    });
    let ran = replay(folder.path(), &forged, &["--sealed"]);
    assert!(
        ran.stderr.contains("/etc is not mapped to /stolen"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_source_tree_runs_nothing() {
    let folder = TempDir::new().unwrap();
    let mark = folder.path().join("mark");
    let tree = folder.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command
            .current_dir(&tree)
            .args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        assert!(
            command.args(arguments).output().unwrap().status.success(),
            "{arguments:?}"
        );
    };
    git(&["init", "-q"]);
    std::fs::write(tree.join("a.c"), "int f(void) { return 0; }\n").unwrap();
    git(&["add", "."]);
    git(&["commit", "-qm", "one"]);
    std::fs::write(tree.join("a.c"), "int f(void) { return 1; }\n").unwrap();
    std::fs::write(tree.join(".gitattributes"), "*.c filter=evil diff=evil\n").unwrap();
    let command = format!("touch {}", mark.display());
    for name in [
        "core.fsmonitor",
        "core.pager",
        "diff.external",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.command",
        "diff.evil.textconv",
    ] {
        git(&["config", name, &command]);
    }
    let hook = tree.join(".git/hooks/post-index-change");
    std::fs::write(&hook, format!("#!/bin/sh\n{command}\n")).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    // The same without our precautions does run it: the trap is armed.
    drop(
        Command::new("git")
            .current_dir(&tree)
            .args(["diff", "HEAD"])
            .output(),
    );
    assert!(mark.exists(), "the repository is not hostile");
    std::fs::remove_file(&mark).unwrap();
    run(&mut raddle(&tree, &["scan", "--diff", "HEAD", "."])).expect(0);
    compile_text(folder.path(), "lost.c", LOST, &["-g", "-pthread"]);
    let options = [
        "explore",
        "--diff",
        "HEAD",
        "--schedules",
        "10",
        "--",
        "../lost",
    ];
    run(&mut raddle(&tree, &options)).expect_orderly("explore --diff");
    assert!(!mark.exists(), "git ran a command of the repository");
}

#[test]
fn hostile_trees_and_settings_end_in_order() {
    let folder = TempDir::new().unwrap();
    let tree = folder.path();
    let fifo = tree.join("pipe.c");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    symlink("/dev/zero", tree.join("zero.c")).unwrap();
    symlink(".", tree.join("loop")).unwrap();
    std::fs::write(tree.join("nul.c"), b"int x;\0\0").unwrap();
    std::fs::write(
        tree.join("deep.c"),
        "int f(void){".to_owned() + &"{(".repeat(50_000),
    )
    .unwrap();
    std::fs::File::create(tree.join("huge.c"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    std::fs::write(tree.join("a.c"), "int f(void) { return 0; }\n").unwrap();
    let ran = run(&mut raddle(tree, &["scan", "."])).expect(0);
    assert!(ran.stdout.contains("not read: huge.c"), "{}", ran.stdout);
    for settings in [
        "version = 1\n[scan]\npatterns = [\"/dev/zero\"]\n",
        "version = 1\n[scan]\npatterns = [\"pipe.c\"]\n",
        "version = 99999999999999999999\n",
        "\u{0}",
        "version = 1\n[[hooks]]\nfunction = 3\n",
        &format!("version = {}1{}", "[".repeat(5000), "]".repeat(5000)),
    ] {
        std::fs::write(tree.join("raddle.toml"), settings).unwrap();
        run(&mut raddle(tree, &["scan", "a.c"])).expect(2);
    }
    std::fs::remove_file(tree.join("raddle.toml")).unwrap();
    for pattern in ["", "\u{0}", "pattern x {", &"(".repeat(100_000)] {
        std::fs::write(tree.join("p.pdl"), pattern).unwrap();
        run(&mut raddle(tree, &["scan", "--pattern", "p.pdl", "a.c"])).expect_orderly("pattern");
    }
}

#[test]
fn what_was_named_and_is_not_there_is_an_error() {
    let folder = TempDir::new().unwrap();
    compile_text(folder.path(), "lost.c", LOST, &["-g", "-pthread"]);
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    for arguments in [
        &["scan", "nosuch"][..],
        &["scan", "empty"],
        &["scan", "/dev/null"],
        &["scan", "--config", "nosuch", "lost.c"],
        &["scan", "--pattern", "nosuch", "lost.c"],
        &["scan", "--baseline", "nosuch", "lost.c"],
        &["scan", "--test-patterns", "nosuch"],
        &["scan", "--only", "nosuch", "lost.c"],
        &["replay", "nosuch"],
        &["explain", "nosuch"],
        &["explore", "--config", "nosuch", "--", "./lost"],
        &["explore", "--stdin", "nosuch", "--", "./lost"],
        &["explore", "--cwd", "nosuch", "--", "./lost"],
        &["explore", "--expect-output", "nosuch", "--", "./lost"],
        &["explore", "--focus", "nosuch", "--", "./lost"],
        &["explore", "--map", "nosuch:/x", "--", "./lost"],
        &["explore", "--", "./nosuch"],
        &["kernel", "explore", "--kernel", "nosuch", "x.ktest"],
        &[
            "kernel",
            "explore",
            "--kernel",
            "lost",
            "--modules",
            "nosuch",
            "x.ktest",
        ],
        &["kernel", "replay", "nosuch"],
        &["kernel", "bundle", "nosuch"],
        &["harden", "report", "nosuch"],
        &["cc", "-c", "nosuch.c"],
    ] {
        let ran = run(&mut raddle(folder.path(), arguments));
        let code = ran.code.unwrap();
        let is_clang = arguments[0] == "cc" && code == 1;
        assert!(
            code == 2 || is_clang,
            "{arguments:?}: {code}\n{}{}",
            ran.stdout,
            ran.stderr
        );
    }
}

#[test]
fn debug_information_names_no_pipes_or_devices() {
    let folder = TempDir::new().unwrap();
    let fifo = folder.path().join("pipe.c");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    for source in [fifo.to_str().unwrap(), "/dev/zero"] {
        let text = format!("#line 1 \"{source}\"\n{LOST}");
        compile_text(folder.path(), "renamed.c", &text, &["-g", "-pthread"]);
        let options = ["explore", "--schedules", "50", "--", "./renamed"];
        run(&mut raddle(folder.path(), &options)).expect(1);
    }
}

#[test]
fn words_of_a_guest_do_not_steer_the_terminal() {
    let folder = TempDir::new().unwrap();
    let text = LOST.replace(
        "assert(balance == 200);",
        "if (balance != 200) { write(2, \"lost: a.c:1: main: Assertion `\\033]0;owned\\007\\033[2J' failed.\\n\", 55); abort(); }",
    );
    let text = format!("#include <stdlib.h>\n#include <unistd.h>\n{text}");
    compile_text(folder.path(), "shouts.c", &text, &["-g", "-pthread"]);
    let options = ["explore", "--until-found", "--", "./shouts"];
    let ran = run(&mut raddle(folder.path(), &options)).expect(1);
    let shown = ran.stdout + &ran.stderr;
    assert!(!shown.contains(['\u{1b}', '\u{7}']), "{shown}");
    assert!(shown.contains("\\u{1b}]0;owned"), "{shown}");
}

#[test]
fn hostile_test_cases_and_kernels_are_refused() {
    let folder = TempDir::new().unwrap();
    let good = std::fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../corpus/kernel/fs/ext4-rename-unlink.ktest"
    ));
    let good =
        good.unwrap_or_else(|_| b"thread a:\n    getpid()\nthread b:\n    getpid()\n".to_vec());
    std::fs::write(folder.path().join("kernel"), "no kernel").unwrap();
    let mut prng = Prng::new(3);
    for round in 0..number("RADDLE_ROUNDS", 30) {
        let mut text = good.clone();
        for _ in 0..=prng.below(4) {
            let at = usize::try_from(prng.below(text.len() as u64)).unwrap();
            match prng.below(3) {
                0 => text[at] = u8::try_from(prng.below(256)).unwrap(),
                1 => text.truncate(at),
                _ => {
                    let piece = text[at..].to_vec();
                    text.extend(piece);
                }
            }
            if text.is_empty() {
                break;
            }
        }
        std::fs::write(folder.path().join("t.ktest"), &text).unwrap();
        let options = [
            "kernel",
            "initramfs",
            "--kernel",
            "kernel",
            "--output",
            "o.cpio",
            "t.ktest",
        ];
        run(&mut raddle(folder.path(), &options)).expect_orderly(&format!("round {round}"));
    }
    for test in [
        "module \"/etc/passwd\"\nthread a:\n",
        "module \"../x.ko\"\nthread a:\n",
    ] {
        std::fs::write(folder.path().join("t.ktest"), test).unwrap();
        let options = [
            "kernel",
            "initramfs",
            "--sealed",
            "--kernel",
            "kernel",
            "--output",
            "o.cpio",
            "t.ktest",
        ];
        run(&mut raddle(folder.path(), &options)).expect(2);
    }
    for kernel in [&b""[..], b"MZ", &[0xFF; 4096], b"\x7fELF\x02\x01\x01"] {
        std::fs::write(folder.path().join("kernel"), kernel).unwrap();
        let ran = run(&mut raddle(
            folder.path(),
            &["kernel", "boot", "--kernel", "kernel"],
        ));
        assert!(matches!(ran.code, Some(2 | 3)), "{}", ran.stderr);
    }
}

/// A recording of a kernel that names files which are none of its business.
fn kernel_recording(folder: &Path, guest: &str, host: &str) -> KernelRecording {
    let kernel = folder.join("kernel");
    std::fs::write(&kernel, "no kernel").unwrap();
    KernelRecording {
        semantics: SEMANTICS,
        needs: Vec::new(),
        serial: None,
        failure: "oops".into(),
        fingerprint: "ab".into(),
        machine: MachineInputs {
            kernel: kernel.to_str().unwrap().into(),
            kernel_digest: Digest::of(b"no kernel"),
            cpus: 2,
            memory: 1 << 28,
            command_line: "quiet".into(),
            seed: 0,
            initramfs_digest: 2,
            program: None,
            files: vec![(guest.into(), host.into())],
            modules: vec![],
        },
        test_path: "a.ktest".into(),
        test: Some("thread a:\n    getpid()\n".into()),
        modules: vec![],
        time_max: 1_000_000,
        rules: Rules {
            patience: 1000,
            steps: 1_000_000,
            races: None,
            interrupts: true,
            pause_window: 3,
            loop_window: 2,
            liveness: LivenessRule::Rehearsed,
        },
        schedule: Schedule::default(),
        start_digest: 3,
        run_digest: 4,
        state_digest: 5,
    }
}

#[test]
fn a_bundle_takes_nothing_along_that_is_none_of_its_business() {
    let folder = TempDir::new().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "s3cret").unwrap();
    let names = [
        "etc/x",
        "../../planted",
        "/planted",
        "a/../../../planted",
        "",
    ];
    let hosts = [secret.to_str().unwrap(), "/dev/zero", "/etc/passwd"];
    for (guest, host) in names.into_iter().zip(hosts.into_iter().cycle()) {
        let recording = kernel_recording(folder.path(), guest, host);
        std::fs::write(folder.path().join("k.kraddle"), recording.to_text()).unwrap();
        let options = ["kernel", "bundle", "k.kraddle", "--output", "bundle/below"];
        run(&mut raddle(folder.path(), &options)).expect(2);
        assert!(!folder.path().join("bundle").exists(), "{guest}");
        assert!(!folder.path().join("planted").exists(), "{guest}");
        // With a seal, nothing but what lies beside the recording is read.
        let ran = run(&mut raddle(
            folder.path(),
            &["replay", "--sealed", "k.kraddle"],
        ))
        .expect(2);
        let is_told = ran.stderr.contains("not beside the recording");
        assert!(
            is_told || ran.stderr.contains("no path of a file"),
            "{}",
            ran.stderr
        );
    }
}
