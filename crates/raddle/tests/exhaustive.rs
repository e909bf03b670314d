//! `raddle explore --exhaustive` against samples of schedules that may switch before any instruction: whatever a sample
//! shows, a search that says it is complete has shown, too.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use raddle_stdx::Prng;
use raddle_stdx::width::{to_u64, to_usize};
use raddle_testkit::{compile, raddle_in, run, temporary, test_program};

/// What thread `T` may do; `V` is a variable, `N` a number.
const OPERATIONS: [&str; 11] = [
    "V = N;",
    "r[T] = r[T] * 4 + V;",
    "x = y + 1;",
    "V++;",
    "atomic_fetch_add(&a, 1);",
    "r[T] = r[T] * 4 + atomic_exchange(&a, N);",
    "pthread_mutex_lock(&m); V = V * 2 + N; pthread_mutex_unlock(&m);",
    "if (x) y = N;",
    "for (int i = 0; i < 2; i++) if (!V) r[T]++;",
    "if (pthread_mutex_trylock(&m) == 0) { V = N; pthread_mutex_unlock(&m); } else r[T] += 2;",
    "{ int e = 0; if (atomic_compare_exchange_strong(&a, &e, N)) V += 2; else r[T] = e; }",
];

/// Two threads of one or two operations each; the exit status tells the last values of everything.
fn source(prng: &mut Prng) -> String {
    let mut text = String::from(
        "#include <pthread.h>\n#include <stdatomic.h>\n\
         static volatile int x, y, r[2];\nstatic _Atomic int a;\n\
         static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n",
    );
    for thread in ["0", "1"] {
        write!(text, "static void *t{thread}(void *arg) {{").expect("it fits");
        for _ in 0..1 + prng.below(2) {
            let operation = OPERATIONS[to_usize(prng.below(to_u64(OPERATIONS.len())))];
            let variable = if prng.chance(1, 2) { "x" } else { "y" };
            let number = (1 + prng.below(3)).to_string();
            let operation = operation.replace('T', thread).replace('V', variable);
            write!(text, " {}", operation.replace('N', &number)).expect("it fits");
        }
        text.push_str(" return arg; }\n");
    }
    text + "int main(void) {\n\
            pthread_t t[2];\n\
            pthread_create(&t[0], 0, t0, 0);\n\
            pthread_create(&t[1], 0, t1, 0);\n\
            pthread_join(t[0], 0);\n\
            pthread_join(t[1], 0);\n\
            return 1 + ((x + 3 * y + 7 * a + 11 * r[0] + 17 * r[1]) & 127);\n}\n"
}

fn build(folder: &Path, source: &Path, level: &str) -> PathBuf {
    compile(source, &folder.join("program"), &["-g", level, "-pthread"])
}

fn explore(folder: &Path, program: &Path, options: &[&str]) -> String {
    let base = ["explore", "--jobs", "1", "--explain-time", "1", "--concise"];
    let mut command = raddle_in(folder, &base);
    run(command.args(options).arg("--").arg(program)).told().1
}

/// Exit statuses that were seen besides that of the default order.
fn statuses(text: &str) -> BTreeSet<String> {
    let found = text.split("exit status ").skip(1);
    found
        .filter_map(|rest| Some(rest.split_once(" instead of")?.0.to_owned()))
        .collect()
}

fn is_complete(text: &str) -> bool {
    text.contains(" interleavings at this granularity explored:")
}

#[test]
fn a_complete_search_has_seen_whatever_a_sample_shows() {
    let mut complete = 0;
    for seed in 0..8 {
        let folder = temporary();
        let path = folder.path().join("program.c");
        let text = source(&mut Prng::new(seed));
        std::fs::write(&path, &text).expect("it can be written");
        let level = if seed % 2 == 0 { "-O0" } else { "-O1" };
        let program = build(folder.path(), &path, level);
        let search = ["--exhaustive", "--schedules", "1200", "--time", "60"];
        let searched = explore(folder.path(), &program, &search);
        if !is_complete(&searched) {
            continue;
        }
        complete += 1;
        let sample = ["--every-instruction", "--schedules", "600", "--time", "60"];
        for scheduler in ["random", "pos"] {
            let options = [&sample[..], &["--scheduler", scheduler]].concat();
            let sampled = explore(folder.path(), &program, &options);
            let lost = &statuses(&sampled) - &statuses(&searched);
            assert!(
                lost.is_empty(),
                "{lost:?} with {level} of\n{text}\n{searched}"
            );
        }
    }
    assert!(complete >= 4, "only {complete} searches came to their end");
}

/// A loop that counts in memory is no loop that waits: the search goes through all its turns.
#[test]
fn a_bounded_loop_is_searched_to_its_end() {
    let folder = temporary();
    for level in ["-O0", "-O2"] {
        let program = build(folder.path(), &test_program("liveness/retries.c"), level);
        let options = ["--exhaustive", "--until-found", "--time", "100"];
        let text = explore(folder.path(), &program, &options);
        assert!(
            text.contains("Assertion `misses < 4' failed"),
            "{level}: {text}"
        );
    }
}
