//! `lockstep PROGRAM [ARGUMENT...]`: compares our machine with the host's processor, instruction by instruction.
#![expect(clippy::print_stdout, reason = "a tool for developers")]

use std::io::Write;

use clap::Parser;
use raddle_linux::{LinuxWorld, Setup};
use raddle_lockstep::Pair;
use raddle_world::SeededChoices;

/// Run a program on raddle's machine and on the host processor in lock-step.
#[derive(Debug, Parser)]
struct Arguments {
    /// Stop after this many instructions.
    #[arg(long, default_value_t = u64::MAX)]
    steps: u64,
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The program, by its whole path, and its arguments.
    #[arg(required = true, trailing_var_arg = true)]
    program: Vec<String>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let world = LinuxWorld::new(Setup {
        program: arguments.program[0].as_bytes().to_vec(),
        arguments: arguments
            .program
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .collect(),
        environment: vec![b"PATH=/usr/bin:/bin".to_vec(), b"LC_ALL=C".to_vec()],
        directory: b"/".to_vec(),
        stdin: Vec::new(),
        mappings: Vec::new(),
        visible: None,
        elsewhere: None,
        memory_max: 4 << 30,
        processes_max: 1000,
        cpus: 4,
        choices: Box::new(SeededChoices::new(arguments.seed)),
    })?;
    let mut pair = Pair::new(world)?;
    let result = pair.run(arguments.steps);
    std::io::stdout().write_all(pair.output())?;
    let report = result?;
    println!(
        "{}: {} instructions equal, {} given to the host, {} of other processes not compared; memory compared {} times; {} signals",
        report.end,
        report.compared,
        report.given,
        report.alone,
        report.memory_checks,
        report.signals
    );
    Ok(())
}
