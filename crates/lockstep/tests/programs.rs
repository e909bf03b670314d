//! Whole programs, instruction by instruction beside the host processor.

use std::path::Path;
use std::process::Command;

use raddle_lockstep::{Pair, Report};
use raddle_testkit::{compile_text, scratch, world};

/// Threads with a mutex, a signal handler, long double and vector arithmetic, string instructions, a crash that is
/// handled.
const MIXED: &str = r#"
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counter;
static volatile int handled;
static sigjmp_buf back;
static void handle(int n) { handled += n; if (n == SIGSEGV) siglongjmp(back, 1); }
static void *work(void *seed) {
    for (int i = 0; i < 300; i++) {
        pthread_mutex_lock(&lock);
        counter += (long)seed + i;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}
int main(void) {
    pthread_t t[3];
    signal(SIGUSR1, handle);
    signal(SIGSEGV, handle);
    for (long i = 0; i < 3; i++) pthread_create(&t[i], NULL, work, (void *)i);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    raise(SIGUSR1);
    if (sigsetjmp(back, 1) == 0) *(volatile int *)8 = 1;
    long double x = 1.5L;
    double v[64];
    for (int i = 0; i < 64; i++) { v[i] = sqrt(i) * 0.3; x = x * 1.01L + v[i]; }
    char s[200], d[200];
    memset(s, 'a', sizeof s); s[199] = 0;
    char *to = d, *from = s;
    long count = 200;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    printf("%ld %d %.10Lf %.15g %zu\n", counter, handled, x, pow(v[63], 1.7), strlen(d));
    return 3;
}
"#;

fn run(words: &[&str]) -> (Report, String) {
    let world = world(Path::new(words[0]), &words[1..], 1);
    let mut pair = Pair::new(world).expect("a process can be stepped");
    let report = pair
        .run(5_000_000)
        .unwrap_or_else(|error| panic!("{error}"));
    (report, String::from_utf8_lossy(pair.output()).into_owned())
}

#[test]
fn threads_signals_and_arithmetic_are_as_on_the_host_processor() {
    let flags = ["-O1", "-pthread", "-lm"];
    let program = compile_text(&scratch(), "lockstep-mixed.c", MIXED, &flags);
    let (report, output) = run(&[&program.display().to_string()]);
    assert_eq!(report.end, "exit status 3", "{report:?}");
    let native = Command::new(&program).output().expect("the program runs");
    assert_eq!(output, String::from_utf8_lossy(&native.stdout));
    assert!(report.compared > 100_000, "{report:?}");
    assert_eq!(report.signals, 2, "{report:?}");
    assert!(report.memory_checks > 20, "{report:?}");
}

#[test]
fn a_program_of_debian_is_as_on_the_host_processor() {
    let (report, output) = run(&["/usr/bin/sort", "--version"]);
    assert_eq!(report.end, "exit status 0", "{report:?}");
    assert!(output.starts_with("sort (GNU coreutils)"), "{output}");
    assert!(report.compared > 100_000, "{report:?}");
}
