//! The hardening commands end to end: the corpus in both modes, C++, bitcode, reports, robustness.
//!
//! `RADDLE_CORPUS_RUNS` sets how often each hardened corpus program runs; continuous integration does fewer than the
//! thousand of the paper.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a surprise ends the test"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use raddle_testkit::harden::{Ended, Workshop, number, raddle, root, run, succeed};
use raddle_testkit::{raddle_path, scratch};

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

/// For those who run the tests with `--no-capture`.
#[expect(clippy::print_stdout, reason = "the figures of long runs")]
fn say(text: &str) {
    println!("{text}");
}

struct Built {
    _workshop: Workshop,
    plain: PathBuf,
    survival: PathBuf,
    fix: PathBuf,
}

fn build(name: &str, level: &str) -> Built {
    let workshop = Workshop::open();
    let source = case(name).join("buggy.c");
    let text = std::fs::read_to_string(&source).unwrap();
    let site = if text.contains("SITE") {
        format!("--harden-site={name}/buggy.c:{}", site_line(name))
    } else {
        "--harden-mode=fix".into()
    };
    let source = source.to_str().unwrap();
    Built {
        plain: workshop.plain(&[level, "-Wall"], source),
        survival: workshop.harden("cc", &[level, "-Wall"], &[source], "survival"),
        fix: workshop.harden("cc", &[level, &site], &[source], "fix"),
        _workshop: workshop,
    }
}

/// The plain build fails in its way; both hardened builds give the right result every time.
fn survives(name: &str, fails: impl Fn(&Ended) -> bool) {
    let built = build(name, "-O2");
    let failures = (0..5)
        .filter(|_| fails(&run(&built.plain, &[], Duration::from_millis(700))))
        .count();
    assert!(
        failures >= 3,
        "the plain {name} failed only {failures} of 5 times"
    );
    let site = format!("buggy.c:{} (", site_line(name));
    for (mode, program, site) in [
        ("survival", &built.survival, ""),
        ("fix", &built.fix, site.as_str()),
    ] {
        let runs = number("RADDLE_CORPUS_RUNS", RUNS);
        let mut times: Vec<u64> = (0..runs)
            .filter_map(|attempt| right_run(name, program, attempt, site))
            .collect();
        times.sort_unstable();
        // An operator can find it: site, retries and time on one line.
        let Some(median) = times.get(times.len() / 2) else {
            panic!("{name} in {mode} mode: no run recovered at {site}");
        };
        say(&format!(
            "{name}, {mode} mode: {runs} of {runs} runs right, {} of them recovered, median {median} us",
            times.len()
        ));
    }
}

/// A run that must be right; how many microseconds its recovery at the site took, if there was one.
fn right_run(name: &str, program: &Path, attempt: usize, site: &str) -> Option<u64> {
    let ended = run(program, &[], LIMIT);
    assert_eq!(
        (ended.status, ended.stdout),
        (Some(0), described(name, "stdout")),
        "{} attempt {attempt}: {}",
        program.display(),
        ended.stderr
    );
    ended
        .stderr
        .lines()
        .filter(|line| line.starts_with("raddle-harden: ") && line.contains(site))
        .find_map(|line| line.split_once(" recovered after "))
        .and_then(|(_, rest)| rest.strip_suffix(" us")?.rsplit(' ').next()?.parse().ok())
}

/// The hardened builds fail exactly as the plain one.
fn fails_as_before(name: &str) {
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
    let workshop = Workshop::open();
    let source = workshop.write("program.cpp", CPP);
    for level in ["-O0", "-O1", "-O2"] {
        let program = workshop.harden("c++", &[level], &[&source], "program");
        let ended = run(&program, &[], LIMIT);
        assert_eq!(
            ended.stdout, "86\n12 too big\n",
            "{level}: {}",
            ended.stderr
        );
        holds(
            &ended.stderr,
            &["dereference recovered", "deadlock recovered"],
        );
    }
}

fn holds(text: &str, all: &[&str]) {
    for expected in all {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
}

#[test]
fn bitcode_is_hardened_and_every_site_is_listed() {
    let workshop = Workshop::open();
    let source = workshop.write(
        "sites.c",
        "#include <assert.h>\n#include <stdio.h>\nint *shared; int flag; int *other;\nint read_it(void) { return *shared; }\nvoid check(void) { assert(flag); }\nvoid tested(void) { if (other) flag = *other; }\nint main(void) { puts(\"x\"); check(); tested(); return read_it(); }\n",
    );
    let bitcode = workshop.path("sites.bc");
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
    let output = workshop.path("out.bc");
    let report = succeed(
        raddle()
            .arg("harden")
            .arg(&bitcode)
            .arg("-o")
            .arg(&output)
            .arg("--report"),
    );
    let expected = [
        "sites.c:4: dereference in read_it: hardened, region of 1 instructions with 1 shared read\n",
        "sites.c:5: assertion in check: hardened, region of 3 instructions with 1 shared read\n",
        "sites.c:6: dereference in tested: left as it is (checked before)\n",
        "sites.c:7: output in main: left as it is (output without an oracle)\n",
        "hardened sites: assertion 1 of 1, dereference 1 of 2, output 0 of 1; 2 re-execution points",
    ];
    holds(&report, &expected);
    assert!(Path::new(&output).is_file());
}

#[test]
fn volatile_reads_can_be_output() {
    let workshop = Workshop::open();
    let source = workshop.write(
        "device.c",
        "#include <assert.h>\nvolatile int device;\nvoid check(void) { assert(device); }\n",
    );
    for (option, expected) in [
        ("--harden-mode=survival", "assertion 1 of 1"),
        ("--harden-volatile-is-io", "assertion 0 of 1"),
    ] {
        holds(&workshop.sites(&["-O2", option], &source), &[expected]);
    }
}

#[test]
fn custom_functions_come_from_the_configuration() {
    let workshop = Workshop::open();
    workshop.write(
        "raddle.toml",
        "version = 1\n[harden]\nassertions = [\"my_panic\"]\noutputs = [\"my_print\"]\n[[harden.locks]]\nlock = \"my_lock\"\nunlock = \"my_unlock\"\ntimed = \"my_timed_lock\"\n[[harden.allocators]]\nalloc = \"my_alloc\"\nfree = \"my_free\"\n",
    );
    let source = workshop.write(
        "own.c",
        "void my_panic(void) __attribute__((noreturn)); void my_print(const char *); void my_lock(int *); void my_unlock(int *);\nint flag, a, b; char *text; void *my_alloc(void);\nvoid checks(void) { if (!flag) my_panic(); my_print(text); }\nvoid locks(void) {\n my_lock(&a);\n my_lock(&b);\n my_unlock(&b); my_unlock(&a); }\n",
    );
    let expected = [
        "own.c:3: assertion in checks: hardened",
        "own.c:3: output in checks: hardened",
        "own.c:5: deadlock in locks: left as it is (no lock to release in its region)",
        "own.c:6: deadlock in locks: hardened, region of 1 instructions with 1 lock, gives back 1",
    ];
    holds(&workshop.sites(&["-O2"], &source), &expected);
}

#[test]
fn a_broken_source_shows_the_compilers_own_message_once() {
    let workshop = Workshop::open();
    let source = workshop.write("broken.c", "int main(void) { return nothing; }\n");
    let output = raddle().args(["cc", "-c", &source]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.matches("undeclared identifier").count(), 1, "{text}");
}

#[test]
fn trouble_in_hardening_falls_back_to_a_plain_build() {
    let workshop = Workshop::open();
    let source = workshop.write("fine.c", "int *p; int main(void) { return p ? 1 : 0; }\n");
    let program = workshop.path("fine");
    // A report that cannot be written stands for any trouble inside the plugin.
    let broken = "--harden-report=/nowhere/at/all";
    let arguments = ["cc", broken, &source, "-o", &program];
    let output = raddle().args(arguments).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    holds(&text, &["without hardening", "/nowhere"]);
    assert_eq!(run(Path::new(&program), &[], LIMIT).status, Some(0));
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
    let workshop = Workshop::open();
    workshop.write(
        "lib.c",
        "int *shared; int get(void) { return shared ? *shared : 7; }\n",
    );
    workshop.write(
        "main.c",
        "#include <stdio.h>\nint get(void); int main(void) { printf(\"%d\\n\", get()); return 0; }\n",
    );
    workshop.write(
        "Makefile",
        "all: dynamic static\nlibx.so: lib.c\n\t$(CC) $(CFLAGS) -shared -fPIC lib.c -o libx.so\ndynamic: main.c libx.so\n\t$(CC) $(CFLAGS) main.c -o dynamic -L. -lx -Wl,-rpath,'$$ORIGIN'\nstatic: main.c lib.c\n\t$(CC) $(CFLAGS) -static main.c lib.c -o static\n",
    );
    let driver = format!("{} cc --harden-strict", raddle_path().display());
    succeed(
        Command::new("make")
            .current_dir(workshop.folder())
            .arg(format!("CC={driver}"))
            .arg("CFLAGS=-O2 -g")
            .env("XDG_CACHE_HOME", scratch()),
    );
    for program in ["dynamic", "static"] {
        let ended = run(&workshop.folder().join(program), &[], LIMIT);
        assert_eq!(ended.stdout, "7\n", "{program}");
    }
}
