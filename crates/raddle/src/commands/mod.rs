//! One module per command; this file only lists and dispatches them.

use clap::Subcommand;

use crate::exit::{Code, Failure};

mod explain;
mod run;
mod scan;
mod table;

/// What the user asked for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Explain(explain::Explain),
    Run(run::Run),
    #[command(hide = true)]
    SystemCalls(table::SystemCalls),
    Scan(scan::Scan),
}

impl Command {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        match self {
            Self::Explain(command) => command.run(),
            Self::Run(command) => command.run(),
            Self::SystemCalls(command) => command.run(),
            Self::Scan(command) => command.run(),
        }
    }
}
