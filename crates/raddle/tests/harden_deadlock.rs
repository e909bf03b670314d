//! Deadlocks end to end: what cannot be recovered from is told, and what may lie between two locks.

use std::time::Duration;

use raddle_testkit::harden::{Workshop, raddle, root, run, succeed};

const LIMIT: Duration = Duration::from_secs(30);

/// Both threads print between their locks, so neither can go back.
const HOPELESS: &str = r#"#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
static void *left(void *unused)
{
    pthread_mutex_lock(&one);
    usleep(20000);
    puts("left");
    pthread_mutex_lock(&two);
    return unused;
}
static void right(void)
{
    pthread_mutex_lock(&two);
    usleep(20000);
    puts("right");
    pthread_mutex_lock(&one);
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, left, NULL);
    right();
    pthread_join(thread, NULL);
    return 0;
}
"#;

#[test]
fn a_deadlock_that_nothing_can_be_done_about_is_told_once() {
    let workshop = Workshop::open();
    let source = workshop.write("hopeless.c", HOPELESS);
    let program = workshop.harden("cc", &["-O2", "-fno-inline"], &[&source], "hopeless");
    let ended = run(&program, &[], Duration::from_secs(2));
    assert_eq!(ended.status, None, "it goes on waiting: {}", ended.stderr);
    let told: Vec<&str> = ended
        .stderr
        .lines()
        .filter(|line| line.contains("of 2 threads cannot be recovered from"))
        .collect();
    let [line] = told[..] else {
        panic!("one line was expected: {}", ended.stderr);
    };
    for part in [
        "waits for lock 0x",
        "hopeless.c:7 (left)",
        "hopeless.c:15 (right)",
    ] {
        assert!(line.contains(part), "{part} is missing in: {line}");
    }
    let abort = [("RADDLE_HARDEN_ON_DEADLOCK", "abort")];
    assert_eq!(run(&program, &abort, LIMIT).status, Some(-6), "SIGABRT");
    let wait = [("RADDLE_HARDEN_ON_DEADLOCK", "wait")];
    let ended = run(&program, &wait, Duration::from_secs(1));
    assert_eq!((ended.status, ended.stderr.as_str()), (None, ""));
}

/// Between its locks this asks a function of another object.
const ASKING: &str = r#"#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
int state_of(int number);
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t start;
static int states;
static void *left(void *unused)
{
    pthread_barrier_wait(&start);
    pthread_mutex_lock(&one);
    int state = state_of(1);
    usleep(3000);
    pthread_mutex_lock(&two);
    states += state;
    pthread_mutex_unlock(&two);
    pthread_mutex_unlock(&one);
    return unused;
}
int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&start, NULL, 2);
    pthread_create(&thread, NULL, left, NULL);
    pthread_barrier_wait(&start);
    pthread_mutex_lock(&two);
    int state = state_of(2);
    usleep(3000);
    pthread_mutex_lock(&one);
    states += state;
    pthread_mutex_unlock(&one);
    pthread_mutex_unlock(&two);
    pthread_join(thread, NULL);
    printf("%d\n", states);
    return 0;
}
"#;

#[test]
fn a_promise_of_another_object_is_found_by_the_linker() {
    let workshop = Workshop::open();
    let asking = workshop.write("asking.c", ASKING);
    let reads = workshop.write(
        "reads.c",
        "int table[3] = {5, 6, 7};\nint state_of(int number) { return table[number]; }\n",
    );
    let writes = workshop.write(
        "writes.c",
        "int asked;\nint state_of(int number) { asked++; return number + 5; }\n",
    );
    let sites = workshop.sites(&["-O2"], &asking);
    assert!(sites.contains("if harmless: state_of"), "{sites}");
    let program = workshop.harden("cc", &["-O2"], &[&asking, &reads], "reads");
    for _ in 0..5 {
        let ended = run(&program, &[], LIMIT);
        assert_eq!(
            (ended.status, ended.stdout.as_str()),
            (Some(0), "13\n"),
            "{}",
            ended.stderr
        );
    }
    // Without the promise the site gives up: the cycle is told, and the program waits as it would have.
    let program = workshop.harden("cc", &["-O2"], &[&asking, &writes], "writes");
    let ended = run(&program, &[], Duration::from_secs(2));
    assert_eq!(ended.status, None, "{}", ended.stdout);
    assert!(
        ended.stderr.contains("cannot be recovered from"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stderr.contains("re-executing"), "{}", ended.stderr);
}

#[test]
fn counters_are_kept_in_a_file_and_the_log_has_a_limit() {
    let workshop = Workshop::open();
    let source = root().join("corpus/harden/hawknl/helpers.c");
    let program = workshop.harden("cc", &["-O2"], &[source.to_str().unwrap()], "counted");
    let file = workshop.path("counters");
    let settings = [
        ("RADDLE_HARDEN_STATS", file.as_str()),
        ("RADDLE_HARDEN_LOG_RATE", "0"),
    ];
    let recovered = (0..20).find_map(|_| {
        let ended = run(&program, &settings, LIMIT);
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""));
        let shown = succeed(raddle().args(["harden", "stats", &file]));
        shown.starts_with("recoveries: 1").then_some(shown)
    });
    let shown = recovered.expect("one run of twenty recovers");
    assert!(shown.contains("lines left out: 2"), "{shown}");
    assert!(shown.contains("not recovered: 0"), "{shown}");
}

/// A write to a variable that another thread reads without the lock is not taken back, unless the user vouches for it.
#[test]
fn only_guarded_writes_are_taken_back_by_default() {
    let workshop = Workshop::open();
    let head = "#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static long x;
void f(void)
{
    pthread_mutex_lock(&a);
    x++;
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
}
";
    let peek = format!("{head}long peek(void) {{ return x; }}\n");
    for (text, option, is_hardened) in [
        (head, "--harden-undo=proven", true),
        (&peek, "--harden-undo=proven", false),
        (&peek, "--harden-undo=plain", true),
        (head, "--harden-undo=never", false),
    ] {
        let source = workshop.write("guard.c", text);
        let sites = workshop.sites(&["-O1", option], &source);
        let found = sites.contains("guard.c:8: deadlock in f: hardened");
        assert_eq!(found, is_hardened, "{option}: {sites}");
    }
}

/// Assertion functions of well-known code bases are recognised by their name and by what follows them.
#[test]
fn assertions_are_recognised_by_name_and_shape() {
    let workshop = Workshop::open();
    let source = workshop.write(
        "shapes.c",
        "void _serverAssert(const char *text);
void report_assertion(const char *text);
void ends(const char *text) __attribute__((noreturn));
int shared;
void f(void) { if (!shared) { _serverAssert(\"shared\"); __builtin_unreachable(); } }
void g(void) { if (!shared) report_assertion(\"goes on\"); }
void h(void) { if (!shared) ends(\"by another name\"); }
",
    );
    let sites = workshop.sites(&["-O1"], &source);
    assert!(
        sites.contains("shapes.c:5: assertion in f: hardened"),
        "{sites}"
    );
    assert!(
        !sites.contains("in g:") && !sites.contains("in h:"),
        "{sites}"
    );
}

#[test]
fn harmless_functions_come_from_the_configuration() {
    let workshop = Workshop::open();
    let source = workshop.write(
        "own.c",
        "#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
int my_state(int);
int f(void)
{
    pthread_mutex_lock(&a);
    int state = my_state(3);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return state;
}
",
    );
    let condition = "if harmless: my_state";
    let sites = workshop.sites(&["-O2"], &source);
    assert!(sites.contains(condition), "{sites}");
    let config = workshop.write(
        "raddle.toml",
        "version = 1\n[harden]\nharmless = [\"my_state\"]\n",
    );
    let option = format!("--harden-config={config}");
    let sites = workshop.sites(&["-O2", &option], &source);
    assert!(
        sites.contains("own.c:8: deadlock in f: hardened"),
        "{sites}"
    );
    assert!(!sites.contains(condition), "{sites}");
    let help = succeed(raddle().args(["help", "cc"]));
    assert!(help.contains("--harden-undo="), "{help}");
}
