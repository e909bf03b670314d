//! Directed scheduling of a real program: each verdict, and a run that can be had again.

use std::path::{Path, PathBuf};
use std::process::Command;

use raddle_linux::LinuxWorld;
use raddle_sched::{Budget, Directed, End, Follow, Hold, Spot, Verdict, drive};
use raddle_testkit::{compile_text, scratch, succeed};
use raddle_trace::{Limits, Schedule};
use raddle_world::Site;

/// A lost update, and an update under a lock. The labels stand before the instructions that are meant.
const SOURCE: &str = r#"
#include <pthread.h>
#define LABEL(name) __asm__ volatile(".globl " name "\n" name ":")
static volatile int plain, locked, asleep;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#include <unistd.h>
static void *first(void *a) {
    int seen = plain;
    LABEL("first_write"); plain = seen + 1;
    pthread_mutex_lock(&lock);
    seen = locked;
    LABEL("first_locked_write"); locked = seen + 1;
    pthread_mutex_unlock(&lock);
    LABEL("first_end"); asleep++;
    return a;
}
static void *second(void *a) {
    int seen = plain;
    LABEL("second_write"); plain = seen + 1;
    pthread_mutex_lock(&lock);
    LABEL("second_locked_write"); locked = locked + 1;
    pthread_mutex_unlock(&lock);
    usleep(1000);
    LABEL("second_late"); asleep++;
    return a;
}
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, first, 0);
    pthread_create(&threads[1], 0, second, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return plain + 10 * locked;
}
"#;

const LIMITS: Limits = Limits {
    patience: 100_000,
    steps: 10_000_000,
};

fn compile() -> PathBuf {
    let flags = ["-g", "-O1", "-pthread", "-static", "-no-pie"];
    compile_text(&scratch(), "directed.c", SOURCE, &flags)
}

/// The address of a label.
fn label(program: &Path, name: &str) -> Site {
    let text = succeed(Command::new("nm").arg(program));
    let line = text
        .lines()
        .find(|line| line.ends_with(&format!(" {name}")));
    let address = line.and_then(|line| u64::from_str_radix(line.split(' ').next()?, 16).ok());
    Site::first(address.unwrap_or_else(|| panic!("no label {name}")))
}

fn world(program: &Path, points: &[Site]) -> LinuxWorld {
    let mut world = raddle_testkit::world(program, &[], 1);
    points.iter().for_each(|site| world.add_point(*site));
    world
}

/// Holds the thread that comes to one label until another thread has passed the other.
fn directed(program: &Path, at: &str, until: &str, steps: u64) -> (Verdict, i32, Schedule) {
    let sites = [at, until].map(|name| label(program, name));
    let [at, until] = sites.map(|site| Spot { site, addr: None });
    let mut directed = Directed::new(vec![Hold {
        context: None,
        at,
        visit: 1,
        until,
        budget: Budget { steps, jumps: 10 },
    }]);
    let mut world = world(program, &sites);
    let driven = drive(&mut world, &mut directed, LIMITS, &mut |_, _| {});
    let End::Exited { status } = driven.end else {
        panic!("{:?}", driven.end);
    };
    (directed.verdict(), status >> 8, driven.schedule)
}

#[test]
fn orders_of_a_program_are_reached_blocked_or_not_reached() {
    let program = compile();
    let (verdict, status, schedule) = directed(&program, "first_write", "second_write", 100_000);
    assert_eq!(
        (verdict, status),
        (Verdict::Reached, 21),
        "an update is lost"
    );
    let mut again = world(&program, &[]);
    let followed = drive(
        &mut again,
        &mut Follow::new(&schedule),
        LIMITS,
        &mut |_, _| {},
    );
    assert_eq!(followed.end, End::Exited { status: 21 << 8 });
    // The other one needs the lock that is held.
    let blocked = directed(
        &program,
        "first_locked_write",
        "second_locked_write",
        100_000,
    );
    assert_eq!((blocked.0, blocked.1), (Verdict::Blocked, 22));
    // It only sleeps, and comes when time passes.
    let late = directed(&program, "first_end", "second_late", 100_000);
    assert_eq!(late.0, Verdict::Reached);
    let hurried = directed(&program, "first_end", "second_late", 20);
    assert_eq!(hurried.0, Verdict::NotReached);
}
