//! Boots to the guest's first call, then runs the rest again and again from a snapshot, cut by a random scheduler:
//! `throughput KERNEL INITRAMFS RUNS [none|addr|value]`. The guest ends a run with call number 0.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a measuring tool"
)]

use std::process::ExitCode;
use std::time::Instant;

use raddle_pc::boot::{BootConfig, BootImage, DEFAULT_COMMAND_LINE, KernelImage};
use raddle_pc::machine::{Bounds, Keep, Machine, MachineStop};
use raddle_stdx::Prng;
use raddle_x86::{Observe, Reg};

const MEMORY: u64 = 256 << 20;
const TURN_MAX: u64 = 20_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, kernel, initramfs, runs, rest @ ..] = &arguments[..] else {
        eprintln!("usage: throughput KERNEL INITRAMFS RUNS [none|addr|value]");
        return ExitCode::from(2);
    };
    let observe = match rest.first().map(String::as_str) {
        Some("addr") => Observe::Addr,
        Some("value") => Observe::AddrValue,
        _ => Observe::None,
    };
    let runs: u64 = runs.parse().expect("a number");
    let image = KernelImage::parse(&std::fs::read(kernel).expect("a kernel")).expect("a kernel");
    let config = BootConfig {
        cpus: 2,
        memory: MEMORY,
        command_line: format!("{DEFAULT_COMMAND_LINE} quiet"),
        seed: 1,
    };
    let initramfs = std::fs::read(initramfs).expect("an initial file system");
    let boot = BootImage::new(&image, &initramfs, &config).expect("it can be laid out");
    let mut machine = Machine::new(&boot, 2, MEMORY).expect("memory can be reserved");
    let (_, stop) = machine.run_all(0, u64::MAX);
    assert_eq!(stop, MachineStop::Hypercall);
    machine.bus_mut().take_console();
    let snapshot = machine.snapshot();
    machine.set_observe(observe, Keep::Kernel);
    let start = Instant::now();
    let (mut steps, mut accesses, mut digests) = (0, 0, Vec::new());
    for run in 0..runs {
        machine.restore(snapshot);
        let before = machine.now();
        accesses += one(&mut machine, run % 16);
        steps += machine.now() - before;
        digests.push(machine.register_digest(0) ^ machine.register_digest(1).rotate_left(1));
    }
    let seconds = start.elapsed().as_secs_f64();
    for (run, digest) in digests.iter().enumerate() {
        assert_eq!(
            *digest,
            digests[run % 16],
            "run {run} is another than run {}",
            run % 16
        );
    }
    let per_run = |count: u64| count / runs;
    println!(
        "{runs} runs in {seconds:.2} s: {:.0}/s; per run {} steps, {} pages, {} accesses; {:.0} MIPS",
        runs as f64 / seconds,
        per_run(steps),
        per_run(machine.restored_pages()),
        per_run(accesses),
        steps as f64 / seconds / 1e6
    );
    ExitCode::SUCCESS
}

fn one(machine: &mut Machine, seed: u64) -> u64 {
    let mut prng = Prng::new(seed);
    let mut accesses = 0;
    let mut cpu = 0;
    loop {
        if !machine.is_runnable(cpu) {
            cpu = 1 - cpu;
            if !machine.is_runnable(cpu) {
                assert!(machine.skip_to_timer(), "somebody waits for a timer");
                continue;
            }
        }
        let bounds = Bounds {
            stop_at_pause: true,
            ..Bounds::steps(1 + prng.below(TURN_MAX))
        };
        let ran = machine.run(cpu, bounds);
        accesses += machine.take_accesses().len() as u64;
        match ran.stop {
            MachineStop::Hypercall if machine.cpu(cpu).reg(Reg::Rbx) == 0 => return accesses,
            MachineStop::Steps | MachineStop::Idle | MachineStop::Pause => cpu = 1 - cpu,
            MachineStop::LogFull => {}
            stop => panic!("processor {cpu}: {stop:x?}"),
        }
    }
}
