//! Runs the `k_*` functions of a freestanding program on the bare engine and prints millions of instructions per
//! CPU second, for `cargo xtask bench engine`: `kernels FILE none|addr|value`.
#![expect(clippy::print_stdout, reason = "a measuring tool")]

use std::process::ExitCode;

use object::{Object, ObjectSegment, ObjectSymbol};
use raddle_mem::{AddressSpace, Backing, Frames, GuestAddr, PAGE_SIZE, Perm, Vma};
use raddle_stdx::cpu_time;
use raddle_x86::{Cpu, Engine, Exit, Fault, Memory, Observe, Reg, Slice};

/// Where a kernel returns to: nothing is mapped there.
const DONE: u64 = 0x66_6000;
const STACK_TOP: u64 = 0x7000_0000;
const REPEATS: usize = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let (Some(path), Some(mode)) = (arguments.get(1), arguments.get(2)) else {
        println!("usage: kernels FILE none|addr|value");
        return ExitCode::from(2);
    };
    let observe = match mode.as_str() {
        "addr" => Observe::Addr,
        "value" => Observe::AddrValue,
        _ => Observe::None,
    };
    let data = std::fs::read(path).expect("the program can be read");
    let file = object::File::parse(&*data).expect("the program is an ELF file");
    for symbol in file.symbols() {
        let Ok(name) = symbol.name() else { continue };
        if !name.starts_with("k_") {
            continue;
        }
        let best = (0..REPEATS)
            .map(|_| run(&file, symbol.address(), observe))
            .min_by(|a, b| a.seconds.total_cmp(&b.seconds))
            .expect("there is at least one repeat");
        println!(
            "{name} {} {:.6} {:x}",
            best.steps, best.seconds, best.result
        );
    }
    ExitCode::SUCCESS
}

struct Measured {
    steps: u64,
    seconds: f64,
    result: u64,
}

fn run(file: &object::File<'_>, entry: u64, observe: Observe) -> Measured {
    let mut frames = Frames::new(1 << 30).expect("memory can be reserved");
    let mut space = AddressSpace::default();
    let mut map = |start: u64, bytes: u64, perm| {
        let end = GuestAddr(start + bytes + PAGE_SIZE as u64 - 1).page();
        let vma = Vma {
            start: GuestAddr(start).page(),
            end,
            perm,
            shared: false,
            backing: Backing::Anonymous,
            label: "".into(),
        };
        space.map(&mut frames, vma);
    };
    map(STACK_TOP - (1 << 20), 1 << 20, Perm::RW);
    for segment in file.segments() {
        map(segment.address(), segment.size(), Perm::RWX);
    }
    for segment in file.segments() {
        let bytes = segment.data().expect("segments have data");
        let at = GuestAddr(segment.address());
        space
            .write(&mut frames, at, bytes)
            .expect("the segment is mapped");
    }
    let mut cpu = Cpu::default();
    cpu.rip = entry;
    cpu.set_reg(Reg::Rsp, STACK_TOP - 8);
    let top = GuestAddr(STACK_TOP - 8);
    space
        .write(&mut frames, top, &DONE.to_le_bytes())
        .expect("the stack is mapped");
    let mut engine = Engine::default();
    engine.set_observe(observe);
    let slice = Slice {
        steps: 20_000,
        tsc: 0,
        skip_point: false,
    };
    let (begun, mut steps) = (cpu_time().as_secs_f64(), 0);
    loop {
        engine.clear_log();
        let memory = Memory {
            frames: &mut frames,
            space: &mut space,
        };
        let outcome = engine.run(&mut cpu, memory, slice);
        steps += outcome.steps;
        match outcome.exit {
            Exit::StepsDone | Exit::LogFull => {}
            Exit::Fault(Fault::Memory(fault)) if fault.addr.0 == DONE => break,
            other => panic!("the kernel ended with {other:?} at {:#x}", cpu.rip),
        }
    }
    Measured {
        steps,
        seconds: cpu_time().as_secs_f64() - begun,
        result: cpu.reg(Reg::Rax),
    }
}
