//! One module per command; this file only lists and dispatches them.

use std::ffi::OsString;
use std::path::Path;

use clap::Subcommand;

use crate::exit::{Code, Failure};

mod campaign;
mod cargo_harden;
mod cargo_test;
mod cc;
mod dap;
mod doctor;
mod explain;
mod explore;
mod harden;
mod kernel;
mod kind;
mod linearize;
mod log;
mod manual;
mod predict;
mod replay;
mod report;
mod run;
mod scan;
mod table;

/// What the user asked for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Explain(explain::Explain),
    Run(Box<run::Run>),
    Explore(Box<explore::Explore>),
    Predict(Box<predict::Predict>),
    Linearize(Box<linearize::Linearize>),
    Replay(replay::Replay),
    Log(log::Log),
    Dap(dap::Dap),
    Doctor(doctor::Doctor),
    Completions(manual::Completions),
    ManPages(manual::ManPages),
    Report(report::Report),
    #[command(hide = true)]
    SystemCalls(table::SystemCalls),
    Scan(scan::Scan),
    Harden(harden::Harden),
    Kernel(kernel::Kernel),
    Cc(cc::Cc),
    #[command(name = "c++")]
    Cpp(cc::Cpp),
    CargoHarden(cargo_harden::CargoHarden),
    CargoTest(Box<cargo_test::CargoTest>),
    CargoPredict(Box<predict::CargoPredict>),
}

impl Command {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        match self {
            Self::Explain(command) => command.run(),
            Self::Explore(command) => command.run(),
            Self::Predict(command) => command.run(),
            Self::Linearize(command) => command.run(),
            Self::Replay(command) => command.run(),
            Self::Log(command) => command.run(),
            Self::Dap(command) => command.run(),
            Self::Doctor(command) => command.run(),
            Self::Completions(command) => command.run(),
            Self::ManPages(command) => command.run(),
            Self::Report(command) => command.run(),
            Self::Run(command) => command.run(),
            Self::SystemCalls(command) => command.run(),
            Self::Scan(command) => command.run(),
            Self::Harden(command) => command.run(),
            Self::Kernel(command) => command.run(),
            Self::Cc(command) => command.run(),
            Self::Cpp(command) => command.run(),
            Self::CargoHarden(command) => command.run(),
            Self::CargoTest(command) => command.run(),
            Self::CargoPredict(command) => command.run(),
        }
    }
}

/// A program that is called `raddle-cc` or `raddle-c++` is that command: some build systems want one word.
pub(crate) fn under_other_names(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let name = arguments
        .first()
        .and_then(|path| Path::new(path).file_name()?.to_str());
    if let Some(command @ ("cc" | "c++")) = name.and_then(|name| name.strip_prefix("raddle-")) {
        let command = OsString::from(command);
        arguments.insert(1, command);
    }
    arguments
}
