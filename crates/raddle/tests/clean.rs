//! The short form of `cargo xtask bench clean`: a handful of the correct programs, of which nothing may be reported.

use raddle_testkit::{compile, raddle_in, root, run, temporary};

#[test]
fn nothing_is_reported_of_correct_programs() {
    let folder = temporary();
    let programs = [
        ("bounded_queue.c", "-O1"),
        ("seqlock.c", "-O1"),
        ("shared_memory.c", "-O1"),
        ("trylock_backoff.c", "-O1"),
        ("pool.cpp", "-std=c++20"),
        ("atomic_wait20.cpp", "-std=c++20"),
    ];
    for (name, flag) in programs {
        let source = root().join("bench/programs/clean").join(name);
        let program = folder.path().join(name.replace('.', "-"));
        let program = compile(&source, &program, &["-g", flag, "-pthread"]);
        let options = [
            "explore",
            "--jobs",
            "1",
            "--races",
            "--schedules",
            "60",
            "--",
        ];
        let (status, text) = run(raddle_in(folder.path(), &options).arg(program)).told();
        assert_eq!(status, 0, "{name}: {text}");
        assert!(text.contains("0 findings"), "{name}: {text}");
    }
}
