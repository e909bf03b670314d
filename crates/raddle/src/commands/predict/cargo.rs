//! `cargo raddle predict [FILTER]`: predicts for each test of a workspace.

use std::ffi::OsString;

use clap::Args;

use super::{Analyses, predict_cases};
use crate::commands::cargo_test::{Wanted, cases};
use crate::commands::explore::ExploreOptions;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::program_options::Surroundings;

/// Build the tests of a Rust workspace and predict for each of them what other interleavings could do.
#[derive(Debug, Args)]
#[command(
    name = "cargo-predict",
    after_help = "Examples:\n  cargo raddle predict\n  cargo raddle predict queue:: --only conmem\n  cargo raddle predict -- -p my-crate --release"
)]
pub(crate) struct CargoPredict {
    /// Only tests whose name contains this.
    filter: Option<String>,
    #[command(flatten)]
    analyses: Analyses,
    #[command(flatten)]
    options: ExploreOptions,
    #[command(flatten)]
    surroundings: Surroundings,
    /// Arguments for `cargo test`, such as `-p NAME`, `--lib` or `--release`.
    #[arg(last = true, value_name = "CARGO ARGUMENTS")]
    cargo: Vec<OsString>,
}

impl CargoPredict {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let interrupt = Interrupt::listen()?;
        let wanted = Wanted {
            filter: self.filter.as_deref(),
            surroundings: &self.surroundings,
            cargo: &self.cargo,
            seed: self.options.seed(),
        };
        let cases = cases(&wanted, &interrupt)?;
        let how = (&self.analyses, &self.options);
        predict_cases(how, "cargo raddle predict", cases, &interrupt)
    }
}
