//! Nested snapshots, and runs that are observed.

#![expect(clippy::unwrap_used, reason = "a test fails where its set-up fails")]

use std::process::Command;

use raddle_linux::{End, LinuxWorld, Plain, Reaction, RunLimits, Setup};
use raddle_world::{SeededChoices, Snapshot, Until, World};
use raddle_x86::Observe;

/// Compiles a program of the benchmarks once per test.
fn program(name: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let out = std::env::temp_dir().join(format!("raddle-{name}-{}", std::process::id()));
    let status = Command::new("gcc")
        .args(["-O2", "-pthread", "-o"])
        .arg(&out)
        .arg(format!("{root}/benches/engine/{name}.c"))
        .status()
        .unwrap();
    assert!(status.success());
    out.to_str().unwrap().to_owned()
}

fn world(program: &str, seed: u64) -> LinuxWorld {
    LinuxWorld::new(Setup {
        program: program.as_bytes().to_vec(),
        arguments: vec![program.as_bytes().to_vec()],
        environment: Vec::new(),
        directory: b"/".to_vec(),
        stdin: Vec::new(),
        mappings: Vec::new(),
        visible: None,
        memory_max: 1 << 30,
        processes_max: 64,
        cpus: 4,
        choices: Box::new(SeededChoices::new(seed)),
    })
    .unwrap()
}

/// Runs until a second thread exists.
fn to_second_thread(world: &mut LinuxWorld) -> Snapshot {
    while world.contexts().iter().count() < 2 {
        let first = world.contexts().runnable()[0];
        world.run(first, Until::Sync { steps_max: 1 << 40 });
    }
    world.snapshot()
}

fn run_on(world: &mut LinuxWorld) -> (u64, u64) {
    let end = Plain::default().run(world, RunLimits::default(), &mut |_| Reaction::GoOn);
    assert_eq!(end, End::Exited { status: 0 });
    (world.run_digest(), world.state_digest())
}

#[test]
fn nested_snapshots_come_back_in_any_order() {
    let program = program("small_test");
    let mut world = world(&program, 1);
    let outer = to_second_thread(&mut world);
    let whole = run_on(&mut world);
    world.restore(outer);
    for steps in [1000, 20_000] {
        let who = *world.contexts().runnable().last().unwrap();
        world.run(who, Until::Steps(steps));
        let here = world.state_digest();
        let inner = world.snapshot();
        run_on(&mut world);
        world.restore(inner);
        assert_eq!(world.state_digest(), here);
    }
    world.restore(outer);
    assert_eq!(run_on(&mut world), whole);
}

#[test]
fn observation_does_not_change_the_run() {
    let program = program("small_test");
    let mut plain = world(&program, 5);
    let mut observed = world(&program, 5);
    observed.set_observe(Observe::AddrValue);
    observed.set_hooks(raddle_config::hooks::standard());
    observed.set_tracing(true);
    assert_eq!(run_on(&mut plain), run_on(&mut observed));
}
