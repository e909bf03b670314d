//! Runs a program to its first thread, then from that snapshot again and again; prints executions per CPU second,
//! for `cargo xtask bench engine`: `restores PROGRAM none|addr COUNT`.
#![expect(clippy::print_stdout, reason = "a measuring tool")]

use std::process::ExitCode;

use raddle_linux::{End, LinuxWorld, Plain, RunLimits, Setup};
use raddle_world::{SeededChoices, Snapshot, Until, World};
use raddle_x86::Observe;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, program, mode, count] = &arguments[..] else {
        println!("usage: restores PROGRAM none|addr COUNT");
        return ExitCode::from(2);
    };
    let count: u64 = count.parse().expect("COUNT is a number");
    let mut world = LinuxWorld::new(setup(program)).expect("the program can be started");
    let snapshot = run_to_second_thread(&mut world);
    if mode == "addr" {
        world.set_observe(Observe::Addr);
    }
    let before = world.statistics();
    let begun = cpu_seconds();
    let mut digest = None;
    for _ in 0..count {
        world.restore(snapshot);
        let end = Plain::default().run(&mut world, RunLimits::default(), &mut |_| true);
        assert!(matches!(end, End::Exited { status: 0 }), "{end:?}");
        let first = *digest.get_or_insert(world.run_digest());
        assert_eq!(
            world.run_digest(),
            first,
            "every run from a snapshot is the same"
        );
    }
    let seconds = cpu_seconds() - begun;
    let after = world.statistics();
    println!(
        "{count} {seconds:.6} {} {}",
        (after.steps - before.steps) / count,
        (after.restored_pages - before.restored_pages) / count
    );
    ExitCode::SUCCESS
}

fn setup(program: &str) -> Setup {
    Setup {
        program: program.as_bytes().to_vec(),
        arguments: vec![program.as_bytes().to_vec()],
        environment: Vec::new(),
        directory: b"/".to_vec(),
        stdin: Vec::new(),
        mappings: Vec::new(),
        memory_max: 1 << 30,
        processes_max: 64,
        cpus: 4,
        choices: Box::new(SeededChoices::new(0)),
    }
}

fn run_to_second_thread(world: &mut LinuxWorld) -> Snapshot {
    while world.contexts().iter().count() < 2 {
        let first = world
            .contexts()
            .runnable()
            .next()
            .expect("the program runs");
        world.run(first, Until::Sync { steps_max: 1 << 40 });
        world.take_events();
    }
    world.snapshot()
}

/// CPU time of this process so far (nanoseconds on the processor).
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux tells CPU times");
    let nanoseconds: f64 = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0.0);
    nanoseconds / 1e9
}
