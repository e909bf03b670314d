//! A snapshot in the middle of a program is a place to come back to, as often as one likes.

use raddle_linux::LinuxWorld;
use raddle_sched::{End, Plain, Reaction};
use raddle_testkit::{compile_text, scratch, world};
use raddle_world::{EventKind, Stop, Until, World};

/// Threads, a pipe, a child process, a file, memory: everything that a restore must bring back.
const PROGRAM: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n;
static void *f(void *a) {
    for (int i = 0; i < 20; i++) { pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); }
    return a;
}
int main(void) {
    int p[2];
    if (pipe(p) || write(p[1], "ab", 2) != 2) return 1;
    int fd = open("/tmp/raddle-snapshot-test", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (write(fd, "12345", 5) != 5) return 1;
    char *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    write(1, "mark\n", 5);
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, f, NULL);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    char b[8] = "";
    if (read(p[0], b, 8) != 2) return 2;
    pid_t c = fork();
    if (c == 0) { strcpy(s, "child"); _exit(ftruncate(fd, 2)); }
    int status;
    waitpid(c, &status, 0);
    printf("%d %s %s %ld %d\n", n, b, s, (long)lseek(fd, 0, SEEK_END), status);
    return n;
}
"#;

/// Runs the first thread until it has written `mark`.
fn run_to_mark(world: &mut LinuxWorld) {
    let first = world.contexts().runnable()[0];
    loop {
        let stop = world.run(
            first,
            Until::Sync {
                steps_max: 1_000_000,
            },
        );
        assert!(matches!(stop, Stop::Sync | Stop::Steps), "{stop:?}");
        let is_marked = world.take_events().iter().any(
            |event| matches!(&event.kind, EventKind::Output { bytes, .. } if bytes == b"mark\n"),
        );
        if is_marked {
            return;
        }
    }
}

/// Runs to the end; gives the output and the digest of the run.
fn finish(world: &mut LinuxWorld) -> (String, u64) {
    let mut output = String::new();
    let end = Plain::default().run(world, u64::MAX, &mut |_, events| {
        for event in events {
            if let EventKind::Output { bytes, .. } = &event.kind {
                output.push_str(&String::from_utf8_lossy(bytes));
            }
        }
        Reaction::GoOn
    });
    assert_eq!(end, End::Exited { status: 40 << 8 });
    (output, world.run_digest())
}

#[test]
fn every_restore_gives_the_same_run() {
    let program = compile_text(
        &scratch(),
        "restores.c",
        PROGRAM,
        &["-w", "-pthread", "-O1", "-static"],
    );
    let mut world = world(&program, &[], 3);
    run_to_mark(&mut world);
    let snapshot = world.snapshot();
    let state = world.state_digest();
    let expected = finish(&mut world);
    assert_eq!(expected.0, "40 ab child 2 0\n");
    for round in 0..10_000 {
        world.restore(snapshot);
        if round % 500 == 0 {
            assert_eq!(world.state_digest(), state, "round {round}");
        }
        assert_eq!(finish(&mut world), expected, "round {round}");
    }
    assert_eq!(world.statistics().restores, 10_000);
}

#[test]
fn a_run_from_a_snapshot_is_the_run_without_one() {
    let program = compile_text(
        &scratch(),
        "detour.c",
        PROGRAM,
        &["-w", "-pthread", "-O1", "-static"],
    );
    let mut straight = world(&program, &[], 3);
    run_to_mark(&mut straight);
    let mut detour = world(&program, &[], 3);
    run_to_mark(&mut detour);
    let outer = detour.snapshot();
    let first = detour.contexts().runnable()[0];
    detour.run(first, Until::Steps(700));
    detour.snapshot();
    detour.run(first, Until::Steps(500));
    detour.restore(outer);
    assert_eq!(detour.state_digest(), straight.state_digest());
    assert_eq!(finish(&mut detour), finish(&mut straight));
}

#[test]
fn a_slice_ends_at_exactly_the_requested_step() {
    let program = compile_text(
        &scratch(),
        "slices.c",
        PROGRAM,
        &["-w", "-pthread", "-O1", "-static"],
    );
    let mut whole = world(&program, &[], 3);
    let mut pieces = world(&program, &[], 3);
    let first = whole.contexts().runnable()[0];
    whole.run(first, Until::Steps(5000));
    for _ in 0..50 {
        pieces.run(first, Until::Steps(100));
    }
    assert_eq!(whole.contexts().get(first).steps, 5000);
    assert_eq!(whole.state_digest(), pieces.state_digest());
}
