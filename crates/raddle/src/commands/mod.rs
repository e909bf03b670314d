//! One module per command; this file only lists and dispatches them.

use clap::Subcommand;

use crate::exit::{Code, Failure};

mod explain;
mod scan;

/// What the user asked for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Explain(explain::Explain),
    Scan(scan::Scan),
}

impl Command {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        match self {
            Self::Explain(command) => command.run(),
            Self::Scan(command) => command.run(),
        }
    }
}
