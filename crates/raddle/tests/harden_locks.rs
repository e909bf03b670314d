//! Deadlocks of every kind of lock that is known: each pair of locks is taken in two orders, hangs when built plainly and
//! recovers when hardened.

use std::path::Path;
use std::time::Duration;

use raddle_testkit::harden::{Workshop, run};

/// Runs of each hardened program.
const RUNS: usize = 4;
/// Runs until the two threads have met.
const RUNS_MAX: usize = 100;
const LIMIT: Duration = Duration::from_secs(30);

/// `TAKE_FIRST` and `TAKE_SECOND` are what each kind is about.
const C: &str = r#"#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <threads.h>
#include <unistd.h>
static KIND one, two;
static pthread_barrier_t start;
static int sum;
static void work(KIND *first, KIND *second)
{
    pthread_barrier_wait(&start);
    TAKE_FIRST(first);
    usleep(3000);
    TAKE_SECOND(second);
    __atomic_fetch_add(&sum, 1, __ATOMIC_RELAXED);
    RELEASE(second);
    RELEASE(first);
}
static void *other(void *unused)
{
    work(&two, &one);
    return unused;
}
int main(void)
{
    pthread_t thread;
    INIT
    pthread_barrier_init(&start, NULL, 2);
    pthread_create(&thread, NULL, other, NULL);
    work(&one, &two);
    pthread_join(thread, NULL);
    printf("%d\n", sum);
    return 0;
}
"#;

const CPP: &str = r#"#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <unistd.h>
static KIND one, two;
static int sum;
static void work(KIND &first, KIND &second)
{
    usleep(3000);
    GUARD_FIRST held(first);
    usleep(3000);
    GUARD_SECOND also(second);
    __atomic_fetch_add(&sum, 1, __ATOMIC_RELAXED);
}
int main()
{
    std::thread other([] { work(two, one); });
    work(one, two);
    other.join();
    std::cout << sum << "\n";
}
"#;

fn recovers(workshop: &Workshop, driver: &str, text: &str, defines: &[&str]) {
    recovers_at(&["-O0", "-O2"], workshop, driver, text, defines);
}

fn recovers_at(
    levels: &[&'static str],
    workshop: &Workshop,
    driver: &str,
    text: &str,
    defines: &[&str],
) {
    let name = if driver == "cc" { "pair.c" } else { "pair.cpp" };
    let source = workshop.write(name, text);
    let with = |level: &'static str| -> Vec<&str> {
        let mut all = vec![level];
        all.extend(defines);
        all
    };
    let mut plain = with("-O2");
    plain.push("-lstdc++");
    let plain = workshop.plain(&plain, &source);
    let is_right = |program: &Path, limit| run(program, &[], limit).stdout == "2\n";
    let hangs = (0..RUNS_MAX).any(|_| !is_right(&plain, Duration::from_millis(400)));
    assert!(hangs, "{defines:?} never hung");
    for &level in levels {
        let hardened = workshop.harden(driver, &with(level), &[&source], "hardened");
        let mut log = String::new();
        // On a busy machine the threads may miss each other for a while.
        let mut runs = 0;
        while runs < RUNS || (runs < RUNS_MAX && !log.contains("deadlock recovered")) {
            runs += 1;
            let ended = run(&hardened, &[], LIMIT);
            let seen = (ended.status, ended.stdout.as_str());
            assert_eq!(
                seen,
                (Some(0), "2\n"),
                "{defines:?} {level}: {}",
                ended.stderr
            );
            log.push_str(&ended.stderr);
        }
        assert!(
            log.contains("deadlock recovered"),
            "{defines:?} {level}: {log}"
        );
    }
}

fn mutex_of_type(settings: &str) {
    let init = format!(
        "-DINIT=pthread_mutexattr_t kind; pthread_mutexattr_init(&kind); {settings}; \
         pthread_mutex_init(&one, &kind); pthread_mutex_init(&two, &kind);"
    );
    let defines = [
        "-DKIND=pthread_mutex_t",
        "-DTAKE_FIRST=pthread_mutex_lock",
        "-DTAKE_SECOND=pthread_mutex_lock",
        "-DRELEASE=pthread_mutex_unlock",
        &init,
    ];
    recovers(&Workshop::open(), "cc", C, &defines);
}

#[test]
fn recursive_mutexes() {
    mutex_of_type("pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE)");
}

#[test]
fn robust_mutexes() {
    mutex_of_type("pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST)");
}

#[test]
fn mutexes_that_inherit_priority() {
    mutex_of_type("pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT)");
}

#[test]
fn readers_and_writers() {
    let defines = [
        "-DKIND=pthread_rwlock_t",
        "-DTAKE_FIRST=pthread_rwlock_rdlock",
        "-DTAKE_SECOND=pthread_rwlock_wrlock",
        "-DRELEASE=pthread_rwlock_unlock",
        "-DINIT=",
    ];
    recovers(&Workshop::open(), "cc", C, &defines);
}

#[test]
fn spin_locks() {
    let defines = [
        "-DKIND=pthread_spinlock_t",
        "-DTAKE_FIRST=pthread_spin_lock",
        "-DTAKE_SECOND=pthread_spin_lock",
        "-DRELEASE=pthread_spin_unlock",
        "-DINIT=pthread_spin_init(&one, 0); pthread_spin_init(&two, 0);",
    ];
    recovers(&Workshop::open(), "cc", C, &defines);
}

#[test]
fn mutexes_of_c11() {
    let defines = [
        "-DKIND=mtx_t",
        "-DTAKE_FIRST=mtx_lock",
        "-DTAKE_SECOND=mtx_lock",
        "-DRELEASE=mtx_unlock",
        "-DINIT=mtx_init(&one, mtx_plain); mtx_init(&two, mtx_plain);",
    ];
    recovers(&Workshop::open(), "cc", C, &defines);
}

#[test]
fn guards_of_cpp() {
    let workshop = Workshop::open();
    let mutex = "-DKIND=std::mutex";
    for (kind, first, second) in [
        (mutex, "std::scoped_lock", "std::scoped_lock"),
        (mutex, "std::unique_lock", "std::lock_guard"),
        (
            "-DKIND=std::recursive_mutex",
            "std::lock_guard",
            "std::unique_lock",
        ),
        (
            "-DKIND=std::shared_mutex",
            "std::unique_lock",
            "std::lock_guard",
        ),
    ] {
        let first = format!("-DGUARD_FIRST={first}");
        let second = format!("-DGUARD_SECOND={second}");
        let options = ["-std=c++17", kind, &first, &second];
        recovers(&workshop, "c++", CPP, &options);
    }
}

/// The library takes a shared mutex for reading in a loop, so that it cannot be told what was taken: the cycle is told.
#[test]
fn a_cycle_of_shared_locks_of_cpp_is_told() {
    let workshop = Workshop::open();
    let source = workshop.write("pair.cpp", CPP);
    let options = [
        "-O2",
        "-std=c++17",
        "-DKIND=std::shared_mutex",
        "-DGUARD_FIRST=std::shared_lock",
        "-DGUARD_SECOND=std::unique_lock",
    ];
    let hardened = workshop.harden("c++", &options, &[&source], "hardened");
    let told = (0..5).any(|_| {
        let ended = run(&hardened, &[], Duration::from_secs(2));
        ended.status.is_none()
            && ended
                .stderr
                .contains("of 2 threads cannot be recovered from")
            && ended.stderr.contains("as far as known")
    });
    assert!(told);
}

/// `std::scoped_lock` of several mutexes goes back by itself: it is left alone, and what it takes counts as held, so
/// that a cycle is recovered from or told.
#[test]
fn a_guard_of_two_mutexes_against_single_ones() {
    let text = r#"#include <chrono>
#include <iostream>
#include <mutex>
#include <thread>
static std::mutex one, two, three;
static int sum;
static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(3)); }
static void left()
{
    std::scoped_lock both(one, two);
    pause();
    std::lock_guard also(three);
    __atomic_fetch_add(&sum, 1, __ATOMIC_RELAXED);
}
static void right()
{
    std::lock_guard held(three);
    pause();
    std::lock_guard also(one);
    __atomic_fetch_add(&sum, 1, __ATOMIC_RELAXED);
}
int main()
{
    std::thread other(left);
    right();
    other.join();
    std::cout << sum << "\n";
}
"#;
    // Whether the program goes on depends on which of the two closes the cycle: the one with single locks can go back.
    let workshop = Workshop::open();
    let source = workshop.write("pair.cpp", text);
    let hardened = workshop.harden("c++", &["-O2", "-std=c++17"], &[&source], "hardened");
    for _ in 0..5 {
        let ended = run(&hardened, &[], Duration::from_secs(2));
        let is_over = ended.status == Some(0) && ended.stdout == "2\n";
        let is_told = ended
            .stderr
            .contains("of 2 threads cannot be recovered from");
        assert!(is_over || is_told, "{}", ended.stderr);
    }
}
