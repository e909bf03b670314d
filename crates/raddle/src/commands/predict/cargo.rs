//! `cargo raddle predict [FILTER]`: predicts for each test of a workspace.

use clap::Args;

use super::{Analyses, How, predict_cases, site_names};
use crate::commands::cargo_test::Wanted;
use crate::commands::explore::ExploreOptions;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;

/// Build the tests of a Rust workspace and predict for each of them what other interleavings could do.
#[derive(Debug, Args)]
#[command(
    name = "cargo-predict",
    after_help = "Examples:\n  cargo raddle predict\n  cargo raddle predict queue:: --only conmem\n  cargo raddle predict -- -p my-crate --release"
)]
pub(crate) struct CargoPredict {
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    analyses: Analyses,
    #[command(flatten)]
    options: ExploreOptions,
}

impl CargoPredict {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        self.analyses.refuse_hub()?;
        let interrupt = Interrupt::listen()?;
        let cases = self.wanted.cases(self.options.seed(), &interrupt)?;
        let how = How {
            sites: site_names(&self.wanted.project()?),
            analyses: &self.analyses,
            options: &self.options,
        };
        predict_cases(&how, "cargo raddle predict", cases, &interrupt)
    }
}
