//! Boots a kernel and shows its console: `boot KERNEL INITRAMFS [CPUS] [EXTRA COMMAND LINE]`; for work on the machine.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool")]

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use raddle_pc::boot::{BootConfig, BootImage, DEFAULT_COMMAND_LINE, KernelImage};
use raddle_pc::machine::{Machine, MachineStop};
use raddle_x86::Reg;

const MEMORY: u64 = 256 << 20;
/// Steps between two looks at the console.
const CHUNK: u64 = 2_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, kernel, initramfs, rest @ ..] = &arguments[..] else {
        eprintln!("usage: boot KERNEL INITRAMFS [CPUS] [EXTRA]");
        return ExitCode::from(2);
    };
    let cpus = rest.first().map_or(2, |text| text.parse().expect("a number"));
    let extra = rest.get(1).map_or("", String::as_str);
    let limit: u64 = rest
        .get(2)
        .map_or(u64::MAX, |text| text.parse::<u64>().expect("a number") * 1_000_000);
    let symbols = Symbols::beside(kernel);
    let image = KernelImage::parse(&std::fs::read(kernel).expect("a kernel")).expect("a kernel");
    let config = BootConfig {
        cpus,
        memory: MEMORY,
        command_line: format!("{DEFAULT_COMMAND_LINE} {extra}"),
        seed: 1,
    };
    let initramfs = std::fs::read(initramfs).expect("an initial file system");
    let boot = BootImage::new(&image, &initramfs, &config).expect("it can be laid out");
    let mut machine = Machine::new(&boot, cpus, MEMORY).expect("memory can be reserved");
    if std::env::var_os("PLAIN").is_some() {
        machine.engine_mut().set_plain(true);
    }
    let start = Instant::now();
    let mut cpu = 0;
    loop {
        let (who, stop) = machine.run_all(cpu, CHUNK);
        cpu = who;
        let text = machine.bus_mut().take_console();
        std::io::stdout().write_all(&text).expect("stdout works");
        std::io::stdout().flush().expect("stdout works");
        let total: u64 = (0..cpus).map(|cpu| machine.steps(cpu)).sum();
        if std::env::var_os("TRACE").is_some() {
            eprintln!("[{} M] {}", total / 1_000_000, state(&machine, &symbols));
        }
        match stop {
            MachineStop::Steps if total < limit => continue,
            MachineStop::Hypercall => {
                let cpu = machine.cpu_mut(who);
                println!(
                    "[hypercall {} of processor {who}: {:#x}, after {total} steps]",
                    cpu.reg(Reg::Rcx),
                    cpu.reg(Reg::Rbx)
                );
                if cpu.reg(Reg::Rcx) != 0 {
                    cpu.set_reg(Reg::Rax, 0);
                    continue;
                }
            }
            ref stop => println!("[processor {who}: {stop:x?}]"),
        }
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{}\n{total} steps in {seconds:.2} s: {:.0} MIPS; machine time {} ms",
            state(&machine, &symbols),
            total as f64 / seconds / 1e6,
            machine.now() / 1_000_000
        );
        return ExitCode::SUCCESS;
    }
}

fn state(machine: &Machine, symbols: &Symbols) -> String {
    (0..machine.cpus())
        .map(|cpu| {
            let rip = machine.cpu(cpu).rip;
            format!("{cpu}: {:?} {rip:#x} {}; ", machine.power(cpu), symbols.name(rip))
        })
        .collect()
}

/// System.map of the same version.
struct Symbols(Vec<(u64, String)>);

impl Symbols {
    fn beside(kernel: &str) -> Self {
        let text = std::fs::read_to_string(kernel.replace("vmlinuz", "System.map")).unwrap_or_default();
        let mut all: Vec<(u64, String)> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let addr = u64::from_str_radix(words.next()?, 16).ok()?;
                Some((addr, words.nth(1)?.to_owned()))
            })
            .collect();
        all.sort();
        Self(all)
    }

    fn name(&self, addr: u64) -> String {
        match self.0.partition_point(|(start, _)| *start <= addr) {
            0 => String::new(),
            index => format!("{}+{:#x}", self.0[index - 1].1, addr - self.0[index - 1].0),
        }
    }
}
