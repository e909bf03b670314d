//! Runs a program to its first thread, then from that snapshot again and again; prints executions per CPU second,
//! for `cargo xtask bench engine`: `restores none|addr COUNT PROGRAM [ARGUMENT...]`. The line says: executions, CPU
//! seconds, instructions and restored pages of each.
#![expect(clippy::print_stdout, reason = "a measuring tool")]

use std::process::ExitCode;

use raddle_linux::{LinuxWorld, Setup};
use raddle_sched::{End, Plain, Reaction};
use raddle_stdx::cpu_time;
use raddle_world::{SeededChoices, Snapshot, Until, World};
use raddle_x86::Observe;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, mode, count, program @ ..] = &arguments[..] else {
        println!("usage: restores none|addr COUNT PROGRAM [ARGUMENT...]");
        return ExitCode::from(2);
    };
    let count: u64 = count.parse().expect("COUNT is a number");
    let mut world = LinuxWorld::new(setup(program)).expect("the program can be started");
    let snapshot = run_to_second_thread(&mut world);
    if mode == "addr" {
        world.set_observe(Observe::Addr);
    }
    let before = world.statistics();
    let begun = cpu_time();
    let mut digest = None;
    for _ in 0..count {
        world.restore(snapshot);
        let end = Plain::default().run(&mut world, u64::MAX, &mut |_, _| Reaction::GoOn);
        assert!(matches!(end, End::Exited { status: 0 }), "{end:?}");
        let first = *digest.get_or_insert(world.run_digest());
        assert_eq!(
            world.run_digest(),
            first,
            "every run from a snapshot is the same"
        );
    }
    let seconds = (cpu_time() - begun).as_secs_f64();
    let after = world.statistics();
    println!(
        "{count} {seconds:.6} {} {}",
        (after.steps - before.steps) / count,
        (after.restored_pages - before.restored_pages) / count
    );
    ExitCode::SUCCESS
}

fn setup(command: &[String]) -> Setup {
    let words = |words: &[String]| words.iter().map(|word| word.as_bytes().to_vec()).collect();
    Setup {
        program: command[0].as_bytes().to_vec(),
        arguments: words(command),
        environment: Vec::new(),
        directory: b"/".to_vec(),
        stdin: Vec::new(),
        mappings: Vec::new(),
        visible: None,
        elsewhere: None,
        memory_max: 1 << 30,
        processes_max: 64,
        cpus: 4,
        choices: Box::new(SeededChoices::new(0)),
    }
}

fn run_to_second_thread(world: &mut LinuxWorld) -> Snapshot {
    while world.contexts().len() < 2 {
        let first = world.contexts().runnable()[0];
        world.run(first, Until::Sync { steps_max: 1 << 40 });
        world.take_events();
    }
    world.snapshot()
}
