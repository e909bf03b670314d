//! Hardened Rust programs: assertions, locks, and recovery in callers that have something to drop, beside panics that
//! pass the same frames.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a surprise ends the test"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use raddle_testkit::harden::{Workshop, raddle, run, succeed};

const LIMIT: Duration = Duration::from_secs(60);

/// An assertion that comes too early, and two locks in two orders.
const PAIR: &str = r#"
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

/// What is missing comes when the runtime has logged the failure, so that there is always something to recover from.
const PROGRAM: &str = r#"
use std::panic::{catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

struct Config {
    port: u32,
}

static CONFIG: AtomicPtr<Config> = AtomicPtr::new(std::ptr::null_mut());
static DROPPED: AtomicU32 = AtomicU32::new(0);
static CALLS: AtomicU32 = AtomicU32::new(0);

struct Noisy(u32);

impl Drop for Noisy {
    #[inline(never)]
    fn drop(&mut self) {
        DROPPED.fetch_add(self.0, Ordering::Relaxed);
    }
}

#[inline(never)]
fn port_of(config: *const Config, limit: u32) -> u32 {
    // Volatile, or the compiler reads it in the callers.
    let port = unsafe { std::ptr::read_volatile(&raw const (*config).port) };
    if port > limit {
        resume_unwind(Box::new(port));
    }
    port
}

#[inline(never)]
fn handed_on(config: *const Config, limit: u32) -> u32 {
    port_of(config, limit) + 1
}

#[inline(never)]
fn one_level(limit: u32) -> u32 {
    let noisy = Noisy(1);
    let port = port_of(CONFIG.load(Ordering::Acquire), limit);
    port + noisy.0
}

#[inline(never)]
fn two_levels(limit: u32) -> u32 {
    let noisy = Noisy(10);
    let port = handed_on(CONFIG.load(Ordering::Acquire), limit);
    port + noisy.0
}

/// Others see that it was here, so it must not be here twice.
#[inline(never)]
fn destroying(limit: u32) -> u32 {
    let noisy = Noisy(100);
    let config = CONFIG.load(Ordering::Acquire);
    CALLS.fetch_add(1, Ordering::Relaxed);
    port_of(config, limit) + noisy.0
}

fn logged() -> u64 {
    let log = std::env::var_os("RADDLE_HARDEN_LOG").unwrap();
    std::fs::metadata(log).map_or(0, |log| log.len())
}

fn main() {
    let run = match std::env::var("SURVIVOR").unwrap().as_str() {
        "one" => one_level,
        "two" => two_levels,
        _ => destroying,
    };
    let late = thread::spawn(|| {
        while logged() == 0 {
            thread::sleep(Duration::from_micros(500));
        }
        CONFIG.store(Box::into_raw(Box::new(Config { port: 8080 })), Ordering::Release);
    });
    let port = run(10_000);
    late.join().unwrap();
    let dropped = DROPPED.load(Ordering::Relaxed);
    if cfg!(panic = "unwind") {
        let panic = catch_unwind(|| run(100)).unwrap_err();
        let again = DROPPED.load(Ordering::Relaxed);
        println!("{port} {dropped} {again} {:?}", panic.downcast_ref::<u32>());
    } else {
        println!("{port} {dropped}");
    }
}
"#;

const SIGSEGV: i32 = 11;

/// A package of one source; `profile` is what its release profile says.
fn package(source: &str, profile: &str) -> Workshop {
    let workshop = Workshop::open();
    std::fs::create_dir(workshop.folder().join("src")).unwrap();
    workshop.write("src/main.rs", source);
    workshop.write(
        "Cargo.toml",
        &format!(
            "[package]\nname = \"survivor\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n\
             [profile.release]\n{profile}"
        ),
    );
    workshop
}

/// Builds the package and hardens it; `folder` is that of the profile.
fn harden(workshop: &Workshop, options: &[&str], folder: &str) -> PathBuf {
    let mut command = raddle();
    command
        .arg("cargo-harden")
        .env("RADDLE_HARDEN_OPTIONS", "--harden-strict");
    build(workshop, &mut command, options);
    let target = workshop.folder().join("target/x86_64-unknown-linux-gnu");
    target.join(folder).join("survivor")
}

fn build(workshop: &Workshop, command: &mut Command, options: &[&str]) {
    command
        .args(["build", "--offline"])
        .args(options)
        .current_dir(workshop.folder())
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    succeed(command);
}

/// What the program prints and logs in one of its cases.
fn outcome(program: &Path, case: &str) -> (Option<i32>, String, String) {
    let log = program.with_extension(format!("{case}.log"));
    let settings = [
        ("RADDLE_HARDEN_LOG", log.to_str().unwrap_or_default()),
        ("SURVIVOR", case),
    ];
    let ended = run(program, &settings, LIMIT);
    let log = std::fs::read_to_string(&log).unwrap_or_default();
    (ended.status, ended.stdout, log + &ended.stderr)
}

fn recovers(program: &Path, case: &str, expected: &str) {
    let (status, printed, log) = outcome(program, case);
    assert_eq!((status, printed.as_str()), (Some(0), expected), "{log}");
    assert!(log.contains("port_of"), "{log}");
    assert!(log.contains("dereference recovered"), "{log}");
}

fn crashes(program: &Path, case: &str) {
    let (status, printed, log) = outcome(program, case);
    assert_eq!((status, printed.as_str()), (Some(-SIGSEGV), ""), "{log}");
}

#[test]
fn callers_with_something_to_drop_are_re_executed_and_panics_pass_them() {
    let workshop = package(PROGRAM, "");
    build(&workshop, &mut Command::new("cargo"), &["--release"]);
    let plain = workshop.folder().join("target/release/survivor");
    let hardened = harden(&workshop, &["--release"], "release");
    for case in ["one", "two", "destroying"] {
        crashes(&plain, case);
    }
    recovers(&hardened, "one", "8081 1 2 Some(8080)\n");
    recovers(&hardened, "two", "8091 10 20 Some(8080)\n");
    crashes(&hardened, "destroying");
}

#[test]
fn callers_are_re_executed_where_panics_abort() {
    let workshop = package(PROGRAM, "panic = \"abort\"\n");
    let hardened = harden(&workshop, &["--release"], "release");
    recovers(&hardened, "one", "8081 1\n");
    recovers(&hardened, "two", "8091 10\n");
    crashes(&hardened, "destroying");
}

#[test]
fn a_rust_program_recovers() {
    let workshop = package(PAIR, "");
    for (options, folder) in [(&["--release"][..], "release"), (&[], "debug")] {
        let program = harden(&workshop, options, folder);
        let ended = run(&program, &[], LIMIT);
        assert_eq!(ended.stdout, "7\n4 4\n", "{folder}: {}", ended.stderr);
        for expected in ["src/main.rs", "assertion recovered", "deadlock recovered"] {
            assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        }
    }
}
