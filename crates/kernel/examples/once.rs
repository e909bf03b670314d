//! Boots and runs one test in the default order; for work on the crate.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a tool"
)]
use raddle_kernel::*;
use raddle_pc::boot::*;
use raddle_sched::{DelayBounded, drive};
use raddle_world::World;
use std::time::Instant;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let image = KernelImage::parse(&std::fs::read(&args[1]).unwrap()).unwrap();
    let cpus = 2;
    let memory = 256 << 20;
    let config = BootConfig {
        cpus,
        memory,
        command_line: DEFAULT_COMMAND_LINE.to_owned(),
        seed: 1,
    };
    let initramfs = guest::initramfs(None, &[]);
    let boot = BootImage::new(&image, &initramfs, &config).unwrap();
    let t = Instant::now();
    let mut world = match world::KernelWorld::boot(&boot, cpus, memory, &mut |p| {
        print!("{}", String::from_utf8_lossy(p.console))
    }) {
        Ok(w) => w,
        Err(e) => {
            println!("{e}");
            return;
        }
    };
    println!(
        "\nbooted in {:?}: {:?} steps {}",
        t.elapsed(),
        world.info(),
        world.machine().steps(0) + world.machine().steps(1)
    );
    let _ = world.snapshot();
    for path in &args[2..] {
        world.restore(raddle_world::Snapshot(0));
        let text = std::fs::read_to_string(path).unwrap();
        let case = match test_case::TestCase::parse(path, &text, &mut |name| {
            std::fs::read(name).map_err(|e| e.to_string())
        }) {
            Ok(c) => c,
            Err(e) => {
                println!("{e}");
                continue;
            }
        };
        let t = Instant::now();
        let before = world.machine().steps(0) + world.machine().steps(1);
        match world.begin_test(&case.program.encode(0).unwrap(), 5_000_000_000) {
            Ok(()) => {}
            Err(e) => {
                println!("{path}: {e} {}", world.console().test_text());
                if let world::TestFailure::Setup { results } = e {
                    for r in results {
                        println!(
                            "   {} {:?} {}",
                            case.statements[r.statement].text,
                            r.kind,
                            test_case::TestCase::show_result(r.value)
                        );
                    }
                }
                continue;
            }
        }
        let setup = world.machine().steps(0) + world.machine().steps(1) - before;
        let snap = world.snapshot();
        let mut sched = DelayBounded::new(Vec::new());
        let limits = raddle_trace::Limits {
            patience: 100_000,
            steps: 100_000_000,
        };
        println!("== {path}: setup {setup} steps {:?}", t.elapsed());
        let t = Instant::now();
        let n = 50;
        for i in 0..n {
            world.restore(snap);
            world.set_observe(i == 0);
            let mut events = 0;
            let d = drive(&mut world, &mut sched, limits, &mut |_, e| {
                events += e.len()
            });
            if i == 0 || i == n - 1 {
                let sd = world.state_digest();
                println!(
                    "  {:?} end {:?} test+check steps {} switches {} events {events} digest {:x} state {:x}",
                    d.end,
                    world.end(),
                    d.steps,
                    d.switches,
                    world.run_digest(),
                    sd
                );
                if i == 0 {
                    for r in world.results() {
                        println!(
                            "   {} {:?} {}",
                            case.statements[r.statement].text,
                            r.kind,
                            test_case::TestCase::show_result(r.value)
                        );
                    }
                    println!("{}", world.console().test_text());
                }
            }
        }
        println!("  {n} runs in {:?}", t.elapsed());
        if let Some(text) = world.failed_checks().first() {
            println!("{text}");
        }
    }
}
