//! The command line of raddle: the only crate that knows clap, the terminal and the environment.
//!
//! `main` parses, dispatches to one module per command in [`commands`], and turns results into exit codes
//! ([`exit::Code`]); messages to the user go through [`message`].

use std::process::ExitCode;

use clap::Parser;

mod commands;
mod coverage;
mod diff_lines;
mod event_json;
mod event_text;
mod exit;
mod gdb;
mod git;
mod hub;
mod interrupt;
mod keep;
mod message;
mod openmp;
mod output;
mod program_options;
mod project;
mod report_options;
mod sealed;
mod suppressed;
mod units;
mod watch;

/// A worker makes and drops thousands of small tables a second, which this allocator is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Find, explain, reproduce and survive concurrency bugs.
#[derive(Debug, Parser)]
#[command(name = "raddle", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse_from(commands::under_other_names(std::env::args_os()));
    match arguments.command.run() {
        Ok(code) => code.into(),
        Err(failure) => {
            message::error(&failure.error);
            failure.code.into()
        }
    }
}
