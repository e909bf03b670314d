//! Locks without a function: Rust's Mutex and a spin lock of C are told as locks; counters and flags are not.

use std::path::{Path, PathBuf};
use std::process::Command;

use raddle_testkit::{compile_text, succeed, told_in as raddle};
use tempfile::TempDir;

const MUTEX: &str = r"
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
static SEEN: AtomicUsize = AtomicUsize::new(0);
fn main() {
    let balance = Arc::new(Mutex::new(100));
    let threads: Vec<_> = (0..2).map(|_| {
        let balance = balance.clone();
        std::thread::spawn(move || {
            let old = *balance.lock().unwrap();
            SEEN.fetch_add(1, Ordering::SeqCst);
            *balance.lock().unwrap() = old + 1;
        })
    }).collect();
    for thread in threads { thread.join().unwrap(); }
    assert_eq!(*balance.lock().unwrap(), 102);
}
";

const SPIN: &str = r"
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
atomic_int lock, count, once;
int balance = 100, ready;
static void take(void) {
    int zero = 0;
    while (!atomic_compare_exchange_strong(&lock, &zero, 1)) zero = 0;
}
static void give(void) { atomic_store_explicit(&lock, 0, memory_order_release); }
static void *work(void *unused) {
    int zero = 0;
    if (atomic_compare_exchange_strong(&once, &zero, 1)) { ready = 5; atomic_store(&once, 2); }
    take(); int old = balance; give();
    atomic_fetch_add(&count, 1);
    take(); balance = old + 1; give();
    atomic_fetch_sub(&count, 1);
    return unused;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    assert(balance == 102);
}
";

fn spin(folder: &Path) -> PathBuf {
    let flags = ["-g", "-O1", "-pthread", "-no-pie"];
    compile_text(folder, "program.c", SPIN, &flags)
}

/// The steps of the failure that a search finds.
fn steps(folder: &Path) -> String {
    let search = [
        "explore",
        "--schedules",
        "500",
        "--until-found",
        "--",
        "./program",
    ];
    let (code, text) = raddle(folder, &search);
    assert_eq!(code, 1, "{text}");
    text
}

#[test]
fn a_mutex_of_rust_is_held_in_the_steps() {
    for level in ["-Copt-level=0", "-Copt-level=2"] {
        let folder = TempDir::new().unwrap();
        compile_text(
            folder.path(),
            "program.rs",
            MUTEX,
            &["-g", level, "--crate-name=bank"],
        );
        let text = steps(folder.path());
        for part in [
            " locks ",
            " unlocks ",
            " holds ",
            "atomically updates `bank::SEEN`",
        ] {
            assert!(text.contains(part), "no `{part}` with {level} in\n{text}");
        }
        assert!(!text.contains("locks `bank::SEEN`"), "{text}");
    }
}

#[test]
fn a_spin_lock_is_held_in_the_steps_and_no_counter_and_no_flag_is() {
    let folder = TempDir::new().unwrap();
    spin(folder.path());
    let text = steps(folder.path());
    for part in [
        " locks `lock`",
        " unlocks `lock`",
        " holds `lock`",
        "updates `count`",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(
        !text.contains("locks `count`") && !text.contains("locks `once`"),
        "{text}"
    );
    // What the C library locks for itself is its own business.
    assert!(!text.contains("holds memory"), "{text}");
}

#[test]
fn the_log_has_the_sections_of_a_spin_lock() {
    let folder = TempDir::new().unwrap();
    let program = spin(folder.path());
    let run = [
        "run",
        "--trace=spin.events",
        "--accesses",
        "--",
        "./program",
    ];
    let (code, text) = raddle(folder.path(), &run);
    assert_eq!(code, 0, "{text}");
    let names = succeed(Command::new("nm").arg(&program));
    let address = |name: &str| {
        let suffix = format!(" B {name}");
        let line = names.lines().find(|line| line.ends_with(&suffix)).unwrap();
        let digits = line.split_whitespace().next().unwrap();
        format!("{:#x}", u64::from_str_radix(digits, 16).unwrap())
    };
    let (code, text) = raddle(folder.path(), &["log", "--json", "spin.events"]);
    assert_eq!(code, 0, "{text}");
    let inferred = |name: &str| {
        let lock = format!("\"lock\":\"{}\"", address(name));
        let facts = text
            .lines()
            .filter(|line| line.contains("\"inferred\":true"));
        facts.filter(|line| line.contains(&lock)).count()
    };
    // The first section is told when it ends, the three others when they begin and end.
    assert_eq!(inferred("lock"), 7, "{text}");
    assert_eq!((inferred("count"), inferred("once")), (0, 0));
}
