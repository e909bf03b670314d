//! Calls of synchronising functions become events: for pthreads, C11 threads, C++ and functions of a project.

#![expect(clippy::unwrap_used, reason = "a test fails where its set-up fails")]

use std::path::Path;

use raddle_testkit::{compile_text, raddle_in, run};
use tempfile::TempDir;

/// The events of a program's main thread that are not system calls, mappings or allocations, between the two
/// lines `begin` and `end` that it writes: verbs with letters for objects in the order of their appearance.
fn events(folder: &Path, flags: &[&str], name: &str, source: &str) -> String {
    let flags = [flags, &["-O0", "-pthread"]].concat();
    let program = compile_text(folder, name, source, &flags);
    let mut command = raddle_in(folder, &["run", "--trace", "--"]);
    let text = run(command.arg(program)).expect(0).stderr;
    let mut objects: Vec<String> = Vec::new();
    let mut found = Vec::new();
    let mut is_on = false;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(context), Some(verb)) = (words.next(), words.nth(2)) else {
            continue;
        };
        if line.contains("output 1 ") {
            is_on = line.contains("begin");
        }
        let known = [
            "acquire", "release", "wait", "waited", "notify", "barrier", "create", "join",
        ];
        if !is_on || context != "0" || !known.contains(&verb) {
            continue;
        }
        let mut shown = verb.to_owned();
        for word in words {
            if word.starts_with("0x") {
                let at = objects.iter().position(|known| known == word);
                let at = at.unwrap_or_else(|| {
                    objects.push(word.to_owned());
                    objects.len() - 1
                });
                shown.push(' ');
                shown.push(char::from(b'a' + u8::try_from(at).unwrap()));
            } else {
                shown.push(' ');
                shown.push_str(word);
            }
        }
        found.push(shown);
    }
    found.join("\n")
}

fn check(flags: &[&str], name: &str, source: &str, expected: &[&str]) {
    let folder = TempDir::new().unwrap();
    let found = events(folder.path(), flags, name, source);
    assert_eq!(found, expected.join("\n"), "{name}");
}

const PTHREADS: &str = r#"
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t s;
static pthread_barrier_t b;
static sem_t sem;
static void *idle(void *x) { return x; }
int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("begin");
    struct timespec past = {0, 0};
    pthread_mutex_lock(&m);
    pthread_mutex_trylock(&m);
    pthread_cond_timedwait(&c, &m, &past);
    pthread_mutex_unlock(&m);
    pthread_mutex_timedlock(&m, &past);
    pthread_mutex_unlock(&m);
    pthread_rwlock_rdlock(&rw);
    pthread_rwlock_trywrlock(&rw);
    pthread_rwlock_unlock(&rw);
    pthread_rwlock_wrlock(&rw);
    pthread_rwlock_unlock(&rw);
    pthread_spin_init(&s, 0);
    pthread_spin_lock(&s);
    pthread_spin_unlock(&s);
    pthread_cond_signal(&c);
    pthread_cond_broadcast(&c);
    pthread_barrier_init(&b, NULL, 1);
    pthread_barrier_wait(&b);
    sem_init(&sem, 0, 0);
    sem_post(&sem);
    sem_wait(&sem);
    pthread_t t;
    pthread_create(&t, NULL, idle, NULL);
    pthread_join(t, NULL);
    puts("end");
    return 0;
}
"#;
const PTHREAD_EVENTS: &[&str] = &[
    "acquire a",
    "release a",
    "wait b condition",
    "waited b condition",
    "acquire a",
    "release a",
    "acquire a",
    "release a",
    "acquire c shared",
    "release c shared",
    "acquire c",
    "release c",
    // In glibc, initialising a spin lock is the same function as unlocking it.
    "release d",
    "acquire d",
    "release d",
    "notify b condition",
    "notify b condition all",
    "barrier e",
    "barrier left e",
    "notify f semaphore",
    "wait f semaphore",
    "waited f semaphore",
    // The loader's lock, for the new thread's local storage.
    "acquire g",
    "release g",
    "create 1",
    "join 1",
];

#[test]
fn pthreads() {
    check(&[], "pthreads.c", PTHREADS, PTHREAD_EVENTS);
}

#[test]
fn pthreads_of_a_static_program() {
    check(&["-static"], "pthreads.c", PTHREADS, PTHREAD_EVENTS);
}

#[test]
fn the_cpp_library() {
    let source = r#"
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <thread>
static std::mutex m;
static std::shared_mutex sm;
static std::condition_variable c;
int main() {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    puts("begin");
    { std::lock_guard<std::mutex> hold(m); }
    { std::shared_lock<std::shared_mutex> hold(sm); }
    { std::unique_lock<std::shared_mutex> hold(sm); }
    c.notify_one();
    c.notify_all();
    std::thread t([] {});
    t.join();
    puts("end");
}
"#;
    check(
        &[],
        "std.cpp",
        source,
        &[
            "acquire a",
            "release a",
            "acquire b shared",
            "release b shared",
            "acquire b",
            "release b",
            "notify c condition",
            "notify c condition all",
            "acquire d",
            "release d",
            "create 1",
            "join 1",
        ],
    );
}

#[test]
fn functions_of_a_project() {
    let source = r#"
#include <stdio.h>
static int held;
__attribute__((noinline)) int grab(int how, int *lock) { *lock += how; return 1; }
__attribute__((noinline)) void drop(int *lock) { *lock = 0; }
int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("begin");
    grab(1, &held);
    drop(&held);
    puts("end");
    return 0;
}
"#;
    let folder = TempDir::new().unwrap();
    assert_eq!(events(folder.path(), &[], "own.c", source), "");
    std::fs::write(
        folder.path().join("raddle.toml"),
        "version = 1\n[[hooks]]\nfunctions = [\"grab\"]\neffect = \"acquire\"\nobject = 1\nsuccess = \"non-zero\"\n\
         [[hooks]]\nfunctions = [\"drop\"]\neffect = \"release\"\n",
    )
    .unwrap();
    assert_eq!(
        events(folder.path(), &[], "own.c", source),
        "acquire a\nrelease a"
    );
    std::fs::write(folder.path().join("raddle.toml"), "version = 1\nhook = 1\n").unwrap();
    let text = run(&mut raddle_in(folder.path(), &["run", "--", "/bin/true"])).stderr;
    assert!(text.contains("cannot use raddle.toml"), "{text}");
}

#[test]
fn c11_threads() {
    let source = r#"
#include <stdio.h>
#include <threads.h>
static mtx_t m;
static cnd_t c;
static once_flag once = ONCE_FLAG_INIT;
static void first(void) {}
static int idle(void *x) { (void)x; return 0; }
int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("begin");
    mtx_init(&m, mtx_plain);
    cnd_init(&c);
    mtx_lock(&m);
    mtx_unlock(&m);
    cnd_signal(&c);
    cnd_broadcast(&c);
    call_once(&once, first);
    thrd_t t;
    thrd_create(&t, idle, NULL);
    thrd_join(t, NULL);
    puts("end");
    return 0;
}
"#;
    check(
        &[],
        "c11.c",
        source,
        &[
            "acquire a",
            "release a",
            "notify b condition",
            "notify b condition all",
            "wait c once",
            "waited c once",
            // The loader's, for the new thread's storage.
            "acquire d",
            "release d",
            "create 1",
            "join 1",
        ],
    );
}
