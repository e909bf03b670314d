//! Random arguments for every supported system call: whatever a program asks for, the world answers or names
//! what it does not support; it never panics, and the same program gives the same run.

use raddle_linux::syscall_table;
use raddle_sched::{Plain, Reaction};
use raddle_testkit::{compile_text, scratch, world};

/// Makes calls from a list of numbers (`argv[2..]`) with arguments drawn from a seed (`argv[1]`).
const PROGRAM: &str = r#"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static uint64_t s;
static uint64_t next(void) { s ^= s << 13; s ^= s >> 7; s ^= s << 17; return s; }
static char buffer[3][8192];
static uint64_t argument(void) {
    switch (next() % 14) {
    case 0: return 0;
    case 1: return next() % 8;
    case 2: return next() % 5000;
    case 3: return -1;
    case 4: return -(next() % 200);
    case 5: return next();
    case 6: return 1ull << (next() % 64);
    case 7: case 8: return (uint64_t)buffer[next() % 3];
    case 9: return (uint64_t)buffer[0] + next() % 8192;
    case 10: return 0x7ffff7000000 + (next() % 4096) * 4096;
    case 11: return (uint64_t)"/tmp/raddle-fuzz";
    case 12: return (uint64_t)"/proc/self/maps";
    default: return 0xffff800000000000 + next() % 4096;
    }
}
int main(int argc, char **argv) {
    s = strtoull(argv[1], NULL, 10) * 2654435761u + 88172645463325252ull;
    for (int round = 0; round < 150; round++) {
        for (int i = 0; i < 300; i++) ((uint64_t *)buffer)[next() % 3072] = argument();
        long number = atol(argv[2 + next() % (argc - 2)]);
        syscall(number, argument(), argument(), argument(), argument(), argument(), argument());
    }
    return 0;
}
"#;

/// Calls that would only end the program early.
const LEFT_OUT: &[&str] = &[
    "exit",
    "exit_group",
    "rt_sigreturn",
    "execve",
    "execveat",
    "pause",
];

#[test]
fn random_calls_are_answered_and_repeat() {
    let program = compile_text(
        &scratch(),
        "fuzz-calls.c",
        PROGRAM,
        &["-w", "-pthread", "-O1", "-static"],
    );
    let numbers: Vec<String> = syscall_table()
        .into_iter()
        .filter(|info| info.support.is_some() && !LEFT_OUT.contains(&info.name))
        .map(|info| info.number.to_string())
        .collect();
    let mut calls = 0;
    for seed in 0..400_u64 {
        let text = seed.to_string();
        let arguments: Vec<&str> = std::iter::once(text.as_str())
            .chain(numbers.iter().map(String::as_str))
            .collect();
        let run = || {
            let mut world = world(&program, &arguments, seed);
            let end = Plain::default().run(&mut world, 3_000_000, &mut |_, _| Reaction::GoOn);
            (end, world.run_digest(), world.statistics().syscalls)
        };
        let first = run();
        calls += first.2;
        if seed % 20 == 0 {
            assert_eq!(run(), first, "seed {seed}");
        }
    }
    assert!(calls > 5_000, "the programs ended too early: {calls} calls");
}
