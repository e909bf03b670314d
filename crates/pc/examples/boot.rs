//! Boots a kernel and shows its console, for work on the machine itself:
//! `boot KERNEL INITRAMFS [cpus=2] [steps=MILLIONS] [append=TEXT] [plain] [digest] [where] [registers]`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a measuring tool"
)]

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use raddle_pc::boot::{BootConfig, BootImage, DEFAULT_COMMAND_LINE, KernelImage};
use raddle_pc::machine::{Machine, MachineStop};
use raddle_x86::Reg;

const MEMORY: u64 = 256 << 20;
/// Steps between two looks at the console.
const CHUNK: u64 = 2_000_000;

struct Options {
    words: Vec<String>,
}

impl Options {
    fn has(&self, name: &str) -> bool {
        self.words.iter().any(|word| word == name)
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.words
            .iter()
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    fn number(&self, name: &str, default: u64) -> u64 {
        self.value(name)
            .map_or(default, |text| text.parse().expect("a number"))
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, kernel, initramfs, rest @ ..] = &arguments[..] else {
        eprintln!(
            "usage: boot KERNEL INITRAMFS [cpus=2] [steps=MILLIONS] [append=TEXT] [plain] ..."
        );
        return ExitCode::from(2);
    };
    let options = Options {
        words: rest.to_vec(),
    };
    let mut machine = load(kernel, initramfs, &options);
    let limit = options.number("steps", u64::MAX / 1_000_000) * 1_000_000;
    let start = Instant::now();
    let mut cpu = 0;
    loop {
        let (who, stop) = machine.run_all(cpu, CHUNK);
        cpu = who;
        let text = machine.bus_mut().take_console();
        std::io::stdout().write_all(&text).expect("stdout works");
        let total: u64 = (0..machine.cpus()).map(|cpu| machine.steps(cpu)).sum();
        if options.has("digest") {
            eprintln!("[{total}] {:x}", machine.digest());
        }
        if options.has("where") {
            eprintln!("[{total}] {}", places(&machine));
        }
        match stop {
            MachineStop::Steps if total < limit => continue,
            MachineStop::Hypercall => {
                let cpu = machine.cpu_mut(who);
                let number = cpu.reg(Reg::Rbx);
                println!("[call {number} of processor {who} after {total} steps]");
                if number != 0 {
                    cpu.set_reg(Reg::Rax, 0);
                    continue;
                }
            }
            ref stop => println!("[processor {who}: {stop:x?}]"),
        }
        report(&machine, &options, total, start.elapsed().as_secs_f64());
        return ExitCode::SUCCESS;
    }
}

fn load(kernel: &str, initramfs: &str, options: &Options) -> Machine {
    let image = KernelImage::parse(&std::fs::read(kernel).expect("a kernel")).expect("a kernel");
    let cpus = usize::try_from(options.number("cpus", 2)).expect("a small number");
    let append = options.value("append").unwrap_or_default();
    let config = BootConfig {
        cpus,
        memory: MEMORY,
        command_line: format!("{DEFAULT_COMMAND_LINE} {append}"),
        seed: 1,
    };
    let initramfs = std::fs::read(initramfs).expect("an initial file system");
    let boot = BootImage::new(&image, &initramfs, &config).expect("it can be laid out");
    let mut machine = Machine::new(&boot, cpus, MEMORY).expect("memory can be reserved");
    machine.engine_mut().set_plain(options.has("plain"));
    machine
}

fn report(machine: &Machine, options: &Options, total: u64, seconds: f64) {
    if options.has("registers") {
        for cpu in 0..machine.cpus() {
            println!("{:#x?}", machine.cpu(cpu));
        }
    }
    println!(
        "{}\n{total} steps in {seconds:.2} s: {:.0} MIPS; machine time {} ms",
        places(machine),
        total as f64 / seconds / 1e6,
        machine.now() / 1_000_000
    );
}

fn places(machine: &Machine) -> String {
    (0..machine.cpus())
        .map(|cpu| {
            format!(
                "{cpu}: {:?} {:#x}; ",
                machine.power(cpu),
                machine.cpu(cpu).rip
            )
        })
        .collect()
}
