//! One module per command; this file only lists and dispatches them.

use clap::Subcommand;

use crate::exit::{Code, Failure};

mod explain;
mod explore;
mod replay;
mod run;
mod scan;
mod table;

/// What the user asked for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Explain(explain::Explain),
    Explore(explore::Explore),
    Replay(replay::Replay),
    Run(run::Run),
    #[command(hide = true)]
    SystemCalls(table::SystemCalls),
    Scan(scan::Scan),
}

impl Command {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        match self {
            Self::Explain(command) => command.run(),
            Self::Explore(command) => command.run(),
            Self::Replay(command) => command.run(),
            Self::Run(command) => command.run(),
            Self::SystemCalls(command) => command.run(),
            Self::Scan(command) => command.run(),
        }
    }
}
