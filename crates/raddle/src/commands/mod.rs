//! One module per command; this file only lists and dispatches them.

use std::ffi::OsString;
use std::path::Path;

use clap::Subcommand;

use crate::exit::{Code, Failure};

mod campaign;
mod cargo_harden;
mod cargo_test;
mod cc;
mod corpus;
mod coverage;
mod dap;
mod doctor;
mod explain;
mod explore;
mod harden;
mod hub;
pub(crate) mod kernel;
mod kind;
mod linearize;
mod log;
mod manual;
mod mcp;
mod predict;
mod replay;
mod report;
mod run;
mod scan;
mod table;
mod worker;

pub(crate) use explore::oracle::judge;

/// What the user asked for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Explain(explain::Explain),
    Run(Box<run::Run>),
    Explore(Box<explore::Explore>),
    Predict(Box<predict::Predict>),
    Coverage(coverage::Coverage),
    Linearize(Box<linearize::Linearize>),
    Replay(replay::Replay),
    Log(log::Log),
    Dap(dap::Dap),
    Mcp(mcp::Mcp),
    Doctor(doctor::Doctor),
    Completions(manual::Completions),
    ManPages(manual::ManPages),
    Report(report::Report),
    #[command(hide = true)]
    SystemCalls(table::SystemCalls),
    Scan(scan::Scan),
    Harden(harden::Harden),
    Kernel(kernel::Kernel),
    Campaign(corpus::Campaign),
    Hub(hub::RunHub),
    Worker(worker::RunWorker),
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
            Self::Coverage(command) => command.run(),
            Self::Linearize(command) => command.run(),
            Self::Replay(command) => command.run(),
            Self::Log(command) => command.run(),
            Self::Dap(command) => command.run(),
            Self::Mcp(command) => command.run(),
            Self::Doctor(command) => command.run(),
            Self::Completions(command) => command.run(),
            Self::ManPages(command) => command.run(),
            Self::Report(command) => command.run(),
            Self::Run(command) => command.run(),
            Self::SystemCalls(command) => command.run(),
            Self::Scan(command) => command.run(),
            Self::Harden(command) => command.run(),
            Self::Kernel(command) => command.run(),
            Self::Campaign(command) => command.run(),
            Self::Hub(command) => command.run(),
            Self::Worker(command) => command.run(),
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
    if names_kernel_tests(&arguments) {
        arguments.insert(1, OsString::from("kernel"));
    }
    arguments
}

/// `raddle predict TEST.ktest` means `raddle kernel predict TEST.ktest`: a file of that name is no program.
fn names_kernel_tests(arguments: &[OsString]) -> bool {
    let is_predict = arguments.get(1).is_some_and(|command| command == "predict");
    let options = arguments.iter().take_while(|argument| *argument != "--");
    let ending = |argument: &OsString| Path::new(argument).extension() == Some("ktest".as_ref());
    is_predict && options.skip(2).any(ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_kernels_are_told_from_programs() {
        let given =
            |line: &str| under_other_names(line.split(' ').map(OsString::from)).join(" ".as_ref());
        assert_eq!(
            given("raddle predict --kernel k a.ktest"),
            "raddle kernel predict --kernel k a.ktest"
        );
        for same in [
            "raddle predict -- ./x a.ktest",
            "raddle explore a.ktest",
            "raddle predict -- x",
        ] {
            assert_eq!(given(same), same);
        }
        assert_eq!(given("/usr/bin/raddle-cc x.c"), "/usr/bin/raddle-cc cc x.c");
    }
}
