//! Compares our processor with the host's: `cargo xtask fuzz-cpu`.
#![expect(clippy::print_stdout, reason = "a command-line tool")]

use std::process::ExitCode;

use raddle_x86::Observe;
use raddle_x86::fuzz::{
    Config, Report, fuzz_engine, fuzz_engine_programs, fuzz_interpreter, fuzz_interpreter_programs,
    fuzz_log,
};

const USAGE: &str = "usage: fuzz-cpu [--cases N] [--seed S] [--form NAME] [--programs] [--list]\n       [--subject interpreter|engine|engine-addr|engine-value|log|log-value]";

fn main() -> ExitCode {
    let options = match arguments() {
        Ok(parsed) => parsed,
        Err(problem) => {
            println!("{problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let config = &options.config;
    let report = match (options.subject, options.has_programs) {
        (Chosen::Log(observe), has_programs) => fuzz_log(config, observe, has_programs),
        (Chosen::Interpreter, false) => fuzz_interpreter(config),
        (Chosen::Interpreter, true) => fuzz_interpreter_programs(config),
        (Chosen::Engine(observe), false) => fuzz_engine(config, observe),
        (Chosen::Engine(observe), true) => fuzz_engine_programs(config, observe),
    };
    let report = match report {
        Ok(report) => report,
        Err(error) => {
            println!("The native side of the fuzzer cannot start: {error}.");
            return ExitCode::from(2);
        }
    };
    print(&report, options.is_listing);
    if report.mismatch_count == 0 && report.unreachable.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    }
}

/// What is compared with the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chosen {
    Interpreter,
    Engine(Observe),
    /// The engine's log with the accesses of the generic interpreter.
    Log(Observe),
}

struct Options {
    config: Config,
    subject: Chosen,
    /// Random programs instead of single instructions.
    has_programs: bool,
    is_listing: bool,
}

fn arguments() -> Result<Options, String> {
    let mut config = Config {
        cases: 10_000_000,
        seed: 1,
        form: None,
    };
    let (mut is_listing, mut has_programs) = (false, false);
    let mut subject = Chosen::Engine(Observe::None);
    let mut rest = std::env::args().skip(1);
    while let Some(name) = rest.next() {
        match name.as_str() {
            "--list" => {
                is_listing = true;
                continue;
            }
            "--programs" => {
                has_programs = true;
                continue;
            }
            _ => {}
        }
        let value = rest.next().ok_or(format!("`{name}` needs a value"))?;
        let number = || {
            value
                .parse()
                .map_err(|_| format!("`{value}` is not a number"))
        };
        match name.as_str() {
            "--cases" => config.cases = number()?,
            "--seed" => config.seed = number()?,
            "--form" => config.form = Some(value),
            "--subject" => {
                subject = match value.as_str() {
                    "interpreter" => Chosen::Interpreter,
                    "engine" => Chosen::Engine(Observe::None),
                    "log" => Chosen::Log(Observe::Addr),
                    "log-value" => Chosen::Log(Observe::AddrValue),
                    "engine-addr" => Chosen::Engine(Observe::Addr),
                    "engine-value" => Chosen::Engine(Observe::AddrValue),
                    _ => return Err(format!("`{value}` is not a subject")),
                }
            }
            _ => return Err(format!("`{name}` is not an option")),
        }
    }
    Ok(Options {
        config,
        subject,
        has_programs,
        is_listing,
    })
}

fn print(report: &Report, is_listing: bool) {
    for mismatch in &report.mismatches {
        println!("{mismatch}");
    }
    if is_listing {
        for (form, cases) in &report.forms {
            println!("compared {form} {cases}");
        }
        for (form, why) in &report.exempt {
            println!("exempt {form}: {why}");
        }
    }
    for form in &report.unreachable {
        println!("no encoding could be made for {form}");
    }
    let least = report.forms.values().min().copied().unwrap_or(0);
    println!(
        "{} cases of {} forms (at least {least} each), {} of them faults; {} forms exempt; {} mismatches",
        report.cases,
        report.forms.len(),
        report.faults,
        report.exempt.len(),
        report.mismatch_count,
    );
}
