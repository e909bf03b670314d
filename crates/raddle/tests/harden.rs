//! The hardening commands end to end: the corpus in both modes, C++, Rust, bitcode, reports, robustness.
//!
//! `RADDLE_CORPUS_RUNS` sets how often each hardened corpus program runs; continuous integration does fewer than the
//! thousand of the paper.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a surprise ends the test"
)]

mod harden_common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use harden_common::{Ended, compile, has_llvm, number, raddle, root, run, succeed};

const RUNS: usize = 25;
const LIMIT: Duration = Duration::from_secs(30);

fn case(name: &str) -> PathBuf {
    root().join("corpus/harden").join(name)
}

/// The text behind `key = "..."` in a case's description.
fn described(name: &str, key: &str) -> String {
    let text = std::fs::read_to_string(case(name).join("case.toml")).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{key} = ")))
        .unwrap();
    line.trim_matches('"').replace("\\n", "\n")
}

fn site_line(name: &str) -> usize {
    let text = std::fs::read_to_string(case(name).join("buggy.c")).unwrap();
    1 + text.lines().position(|line| line.contains("SITE")).unwrap()
}

struct Built {
    _folder: tempfile::TempDir,
    plain: PathBuf,
    survival: PathBuf,
    fix: PathBuf,
}

fn build(name: &str, level: &str) -> Built {
    let folder = tempfile::tempdir().unwrap();
    let source = case(name).join("buggy.c");
    let source = source.to_str().unwrap();
    let path = |what: &str| folder.path().join(what);
    succeed(
        Command::new("/usr/lib/llvm-22/bin/clang")
            .args([level, "-Wall", "-pthread", "-isystem"])
            .arg(root().join("crates/harden-rt/rt"))
            .args([source, "-o"])
            .arg(path("plain")),
    );
    let output = |what: &str| path(what).to_str().unwrap().to_owned();
    compile(
        "cc",
        &[
            level,
            "-Wall",
            "-pthread",
            source,
            "-o",
            &output("survival"),
        ],
    );
    let text = std::fs::read_to_string(source).unwrap();
    let site = if text.contains("SITE") {
        format!("--harden-site={name}/buggy.c:{}", site_line(name))
    } else {
        "--harden-mode=fix".into()
    };
    compile(
        "cc",
        &[level, &site, "-pthread", source, "-o", &output("fix")],
    );
    Built {
        plain: path("plain"),
        survival: path("survival"),
        fix: path("fix"),
        _folder: folder,
    }
}

/// The plain build fails in its way; both hardened builds give the right result every time.
fn survives(name: &str, fails: impl Fn(&Ended) -> bool) {
    if !has_llvm() {
        return;
    }
    let built = build(name, "-O2");
    let failures = (0..5)
        .filter(|_| fails(&run(&built.plain, &[], Duration::from_millis(700))))
        .count();
    assert!(
        failures >= 3,
        "the plain {name} failed only {failures} of 5 times"
    );
    let expected = described(name, "stdout");
    for program in [&built.survival, &built.fix] {
        for attempt in 0..number("RADDLE_CORPUS_RUNS", RUNS) {
            let ended = run(program, &[], LIMIT);
            assert_eq!(
                (ended.status, ended.stdout.as_str()),
                (Some(0), expected.as_str()),
                "{} attempt {attempt}: {}",
                program.display(),
                ended.stderr
            );
        }
    }
    // An operator can find it: site, retries and time on one line.
    let log = run(&built.fix, &[], LIMIT).stderr;
    let line = format!("buggy.c:{} (", site_line(name));
    assert!(
        log.lines().any(|text| text.starts_with("raddle-harden: ")
            && text.contains(&line)
            && text.contains(" recovered after ")
            && text.ends_with(" us")),
        "{name}: {log}"
    );
}

/// The hardened builds fail exactly as the plain one.
fn fails_as_before(name: &str) {
    if !has_llvm() {
        return;
    }
    let built = build(name, "-O2");
    let quick = [
        ("RADDLE_HARDEN_RETRIES", "200"),
        ("RADDLE_HARDEN_LOG", "none"),
    ];
    let plain = run(&built.plain, &[], LIMIT);
    assert_ne!(plain.status, Some(0));
    for program in [&built.survival, &built.fix] {
        let ended = run(program, &quick, LIMIT);
        assert_eq!((ended.status, &ended.stdout), (plain.status, &plain.stdout));
        assert_eq!(ended.stdout, described(name, "stdout"));
    }
}

fn hangs(ended: &Ended) -> bool {
    ended.status.is_none()
}

fn crashes(ended: &Ended) -> bool {
    ended.status == Some(-11)
}

fn aborts(ended: &Ended) -> bool {
    ended.status == Some(-6)
}

#[test]
fn fft_wrong_output() {
    survives("fft", |ended| ended.stdout == "elapsed -1000\n");
}

#[test]
fn hawknl_deadlock() {
    survives("hawknl", hangs);
}

#[test]
fn httrack_order_violation_two_calls_below() {
    survives("httrack", crashes);
}

#[test]
fn mozilla_xpcom_order_violation_one_call_below() {
    survives("mozilla-xpcom", crashes);
}

#[test]
fn mozilla_js_deadlock() {
    survives("mozilla-js", hangs);
}

#[test]
fn mysql1_write_write_atomicity() {
    survives("mysql1", |ended| ended.stdout == "query 1 lost\n");
}

#[test]
fn mysql2_read_read_atomicity() {
    survives("mysql2", aborts);
}

#[test]
fn transmission_assertion_in_callee() {
    survives("transmission", aborts);
}

#[test]
fn sqlite_deadlock_with_allocation() {
    survives("sqlite", hangs);
}

#[test]
fn zsnes_assertion() {
    survives("zsnes", aborts);
}

#[test]
fn use_after_free_fails_as_before() {
    fails_as_before("use-after-free");
}

#[test]
fn output_in_the_region_fails_as_before() {
    fails_as_before("output-in-region");
}

#[test]
fn a_sequential_bug_fails_as_before() {
    fails_as_before("sequential-bug");
}

#[test]
fn every_level_recovers() {
    if !has_llvm() {
        return;
    }
    for level in ["-O0", "-O1", "-O3"] {
        for name in ["zsnes", "httrack", "hawknl"] {
            let built = build(name, level);
            for program in [&built.survival, &built.fix] {
                let ended = run(program, &[], LIMIT);
                assert_eq!(ended.stdout, described(name, "stdout"), "{name} at {level}");
            }
        }
    }
}

const CPP: &str = r#"
#include <chrono>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

struct Config { int port; };
static Config *config;
static std::mutex first, second;
static int total, taken;
static volatile int busy;

__attribute__((noinline)) static int port_of(Config *from) { return from->port; }

static int checked(int limit)
{
    if (limit > 1000)
        throw std::runtime_error("too big");
    return limit + port_of(config);
}

static int work()
{
    std::string text = "x";
    try {
        return checked(5) + static_cast<int>(text.size());
    } catch (const std::exception &) {
        return -1;
    }
}

static void forward()
{
    std::lock_guard<std::mutex> one(first);
    __atomic_store_n(&taken, 1, __ATOMIC_RELEASE);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    total++;
    std::lock_guard<std::mutex> two(second);
    total++;
}

static void backward()
{
    std::lock_guard<std::mutex> one(second);
    for (int i = 0; i < 100; i++)
        (void)busy;
    std::lock_guard<std::mutex> two(first);
    total += 10;
}

int main()
{
    std::thread starter([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        config = new Config{80};
    });
    std::cout << work() << "\n";
    starter.join();
    std::thread other(forward);
    while (!__atomic_load_n(&taken, __ATOMIC_ACQUIRE))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    backward();
    other.join();
    try {
        checked(2000);
    } catch (const std::exception &error) {
        std::cout << total << " " << error.what() << "\n";
    }
}
"#;

#[test]
fn a_cpp_program_recovers_and_keeps_its_exceptions() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("program.cpp");
    std::fs::write(&source, CPP).unwrap();
    let program = folder.path().join("program");
    for level in ["-O1", "-O2"] {
        compile(
            "c++",
            &[
                level,
                "-pthread",
                source.to_str().unwrap(),
                "-o",
                program.to_str().unwrap(),
            ],
        );
        let ended = run(&program, &[], LIMIT);
        assert_eq!(
            ended.stdout, "86\n12 too big\n",
            "{level}: {}",
            ended.stderr
        );
        assert!(
            ended.stderr.contains("dereference recovered"),
            "{}",
            ended.stderr
        );
        assert!(
            ended.stderr.contains("deadlock recovered"),
            "{}",
            ended.stderr
        );
    }
}

const RUST: &str = r#"
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

static READY: AtomicU32 = AtomicU32::new(0);
static TAKEN: AtomicU32 = AtomicU32::new(0);

struct Pair {
    a: Mutex<u64>,
    b: Mutex<u64>,
}

#[inline(never)]
fn order() -> u32 {
    let ready = READY.load(Ordering::Acquire);
    assert!(ready == 7, "not ready");
    ready
}

#[inline(never)]
fn backward(pair: &Pair) -> u64 {
    let b = pair.b.lock().unwrap();
    let mut a = pair.a.lock().unwrap();
    *a += *b;
    *a
}

fn forward(pair: &Pair) -> u64 {
    let mut a = pair.a.lock().unwrap();
    TAKEN.store(1, Ordering::Release);
    thread::sleep(Duration::from_millis(30));
    *a += 1;
    let b = pair.b.lock().unwrap();
    *a + *b
}

fn main() {
    let late = thread::spawn(|| {
        thread::sleep(Duration::from_millis(10));
        READY.store(7, Ordering::Release);
    });
    println!("{}", order());
    late.join().unwrap();
    let pair = Arc::new(Pair { a: Mutex::new(1), b: Mutex::new(2) });
    let other = pair.clone();
    let thread = thread::spawn(move || forward(&other));
    while TAKEN.load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
    let backward = backward(&pair);
    println!("{} {}", backward, thread.join().unwrap());
}
"#;

#[test]
fn a_rust_program_recovers() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/main.rs"), RUST).unwrap();
    std::fs::write(
        folder.path().join("Cargo.toml"),
        "[package]\nname = \"survivor\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    )
    .unwrap();
    let mut command = raddle();
    command
        .args(["cargo-harden", "build", "--release", "--offline"])
        .current_dir(folder.path())
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RADDLE_HARDEN_OPTIONS", "--harden-strict");
    succeed(&mut command);
    let program = folder
        .path()
        .join("target/x86_64-unknown-linux-gnu/release/survivor");
    let ended = run(&program, &[], LIMIT);
    assert_eq!(ended.stdout, "7\n4 4\n", "{}", ended.stderr);
    assert!(ended.stderr.contains("src/main.rs:18"), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("assertion recovered"),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("deadlock recovered"),
        "{}",
        ended.stderr
    );
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn bitcode_is_hardened_and_every_site_is_listed() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = write(
        folder.path(),
        "sites.c",
        "#include <assert.h>\n#include <stdio.h>\nint *shared; int flag; int *other;\nint read_it(void) { return *shared; }\nvoid check(void) { assert(flag); }\nvoid tested(void) { if (other) flag = *other; }\nint main(void) { puts(\"x\"); check(); tested(); return read_it(); }\n",
    );
    let bitcode = folder.path().join("sites.bc");
    succeed(
        Command::new("/usr/lib/llvm-22/bin/clang")
            .args([
                "-O2",
                "-gline-tables-only",
                "-fno-inline",
                "-emit-llvm",
                "-c",
                "-o",
            ])
            .arg(&bitcode)
            .arg(&source),
    );
    let output = folder.path().join("out.bc");
    let report = succeed(
        raddle()
            .arg("harden")
            .arg(&bitcode)
            .arg("-o")
            .arg(&output)
            .arg("--report"),
    );
    for expected in [
        "sites.c:4: dereference in read_it: hardened, region of 1 instructions with 1 shared read\n",
        "sites.c:5: assertion in check: hardened, region of 3 instructions with 1 shared read\n",
        "sites.c:6: dereference in tested: left as it is (checked before)\n",
        "sites.c:7: output in main: left as it is (output without an oracle)\n",
        "hardened sites: assertion 1 of 1, dereference 1 of 2, output 0 of 1; 2 re-execution points",
    ] {
        assert!(report.contains(expected), "{expected} is not in:\n{report}");
    }
    assert!(output.is_file());
}

#[test]
fn volatile_reads_can_be_output() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = write(
        folder.path(),
        "device.c",
        "#include <assert.h>\nvolatile int device;\nvoid check(void) { assert(device); }\n",
    );
    let object = folder.path().join("device.o");
    for (option, expected) in [
        ("--harden-mode=survival", "assertion 1 of 1"),
        ("--harden-volatile-is-io", "assertion 0 of 1"),
    ] {
        let report = folder.path().join(option);
        compile(
            "cc",
            &[
                "-O2",
                "-c",
                option,
                &format!("--harden-report={}", report.display()),
                &source,
                "-o",
                object.to_str().unwrap(),
            ],
        );
        let shown = succeed(raddle().arg("harden").arg("--show").arg(&report));
        assert!(shown.contains(expected), "{option}: {shown}");
    }
}

#[test]
fn custom_functions_come_from_the_configuration() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "raddle.toml",
        "version = 1\n[harden]\nassertions = [\"my_panic\"]\noutputs = [\"my_print\"]\n[[harden.locks]]\nlock = \"my_lock\"\nunlock = \"my_unlock\"\ntimed = \"my_timed_lock\"\n[[harden.allocators]]\nalloc = \"my_alloc\"\nfree = \"my_free\"\n",
    );
    let source = write(
        folder.path(),
        "own.c",
        "void my_panic(void) __attribute__((noreturn)); void my_print(const char *); void my_lock(int *); void my_unlock(int *);\nint flag, a, b; char *text; void *my_alloc(void);\nvoid checks(void) { if (!flag) my_panic(); my_print(text); }\nvoid locks(void) {\n my_lock(&a);\n my_lock(&b);\n my_unlock(&b); my_unlock(&a); }\n",
    );
    let report = folder.path().join("sites");
    let object = folder.path().join("own.o");
    succeed(
        raddle()
            .current_dir(folder.path())
            .args(["cc", "--harden-strict", "-O2", "-c"])
            .arg(format!("--harden-report={}", report.display()))
            .arg(&source)
            .arg("-o")
            .arg(object),
    );
    let shown = succeed(raddle().arg("harden").arg("--show").arg(&report));
    for expected in [
        "own.c:3: assertion in checks: hardened",
        "own.c:3: output in checks: hardened",
        "own.c:5: deadlock in locks: left as it is (no lock to release in its region)",
        "own.c:6: deadlock in locks: hardened, region of 1 instructions with 1 lock, gives back 1",
    ] {
        assert!(shown.contains(expected), "{expected} is not in:\n{shown}");
    }
}

#[test]
fn a_broken_source_shows_the_compilers_own_message_once() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = write(
        folder.path(),
        "broken.c",
        "int main(void) { return nothing; }\n",
    );
    let output = raddle().args(["cc", "-c", &source]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.matches("undeclared identifier").count(), 1, "{text}");
}

#[test]
fn trouble_in_hardening_falls_back_to_a_plain_build() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = write(
        folder.path(),
        "fine.c",
        "int *p; int main(void) { return p ? 1 : 0; }\n",
    );
    let program = folder.path().join("fine");
    // A report that cannot be written stands for any trouble inside the plugin.
    let broken = "--harden-report=/nowhere/at/all";
    let arguments = ["cc", broken, &source, "-o", program.to_str().unwrap()];
    let output = raddle().args(arguments).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("without hardening") && text.contains("/nowhere"),
        "{text}"
    );
    assert_eq!(run(&program, &[], LIMIT).status, Some(0));
    let strict = raddle()
        .arg("cc")
        .arg("--harden-strict")
        .args(&arguments[1..])
        .output()
        .unwrap();
    assert!(!strict.status.success());
}

#[test]
fn shared_libraries_static_programs_and_make_work() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "lib.c",
        "int *shared; int get(void) { return shared ? *shared : 7; }\n",
    );
    write(
        folder.path(),
        "main.c",
        "#include <stdio.h>\nint get(void); int main(void) { printf(\"%d\\n\", get()); return 0; }\n",
    );
    write(
        folder.path(),
        "Makefile",
        "all: dynamic static\nlibx.so: lib.c\n\t$(CC) $(CFLAGS) -shared -fPIC lib.c -o libx.so\ndynamic: main.c libx.so\n\t$(CC) $(CFLAGS) main.c -o dynamic -L. -lx -Wl,-rpath,'$$ORIGIN'\nstatic: main.c lib.c\n\t$(CC) $(CFLAGS) -static main.c lib.c -o static\n",
    );
    let driver = format!("{} cc --harden-strict", env!("CARGO_BIN_EXE_raddle"));
    succeed(
        Command::new("make")
            .current_dir(folder.path())
            .arg(format!("CC={driver}"))
            .arg("CFLAGS=-O2 -g")
            .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")),
    );
    for program in ["dynamic", "static"] {
        let ended = run(&folder.path().join(program), &[], LIMIT);
        assert_eq!(ended.stdout, "7\n", "{program}");
    }
}

#[test]
fn without_llvm_the_message_says_what_to_install() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("raddle");
    std::fs::copy(env!("CARGO_BIN_EXE_raddle"), &copy).unwrap();
    let output = Command::new(&copy)
        .args(["cc", "-c", "x.c"])
        .env("PATH", "")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("apt-get install") && text.lines().count() == 1,
        "{text}"
    );
}
