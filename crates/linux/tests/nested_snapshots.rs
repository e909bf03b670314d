//! Nested snapshots, and runs that are observed.

use std::path::PathBuf;

use raddle_linux::LinuxWorld;
use raddle_sched::{End, Plain, Reaction};
use raddle_testkit::{compile, root, scratch, world};
use raddle_world::{Snapshot, Until, World};
use raddle_x86::Observe;

/// Compiles a program of the benchmarks.
fn program(name: &str) -> PathBuf {
    let source = root().join(format!("bench/programs/{name}.c"));
    let program = scratch().join(format!("{name}-{}", std::process::id()));
    compile(&source, &program, &["-O2", "-pthread"])
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
    let end = Plain::default().run(world, u64::MAX, &mut |_, _| Reaction::GoOn);
    assert_eq!(end, End::Exited { status: 0 });
    (world.run_digest(), world.state_digest())
}

#[test]
fn nested_snapshots_come_back_in_any_order() {
    let program = program("small_test");
    let mut world = world(&program, &[], 1);
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
    let mut plain = world(&program, &[], 5);
    let mut observed = world(&program, &[], 5);
    observed.set_observe(Observe::AddrValue);
    observed.set_hooks(raddle_config::hooks::standard());
    observed.set_tracing(true);
    assert_eq!(run_on(&mut plain), run_on(&mut observed));
}
