//! `cargo xtask fuzz-scan`: builds the fuzzers of the scanner optimised and runs them.

use crate::shell;

#[derive(Debug, clap::Args)]
pub(crate) struct FuzzScan {
    /// `source` for the C front end, `pattern` for the pattern language; both without it.
    target: Option<String>,
    /// Inputs per target.
    #[arg(long, default_value_t = 100_000)]
    rounds: u64,
    /// The seed of the first input; the others follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl FuzzScan {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        const TARGETS: &[&str] = &["source", "pattern"];
        if let Some(target) = &self.target {
            anyhow::ensure!(
                TARGETS.contains(&target.as_str()),
                "`{target}` is no target; name one of {}",
                TARGETS.join(", ")
            );
        }
        let (rounds, seed) = (self.rounds.to_string(), self.seed.to_string());
        for target in TARGETS {
            if self.target.as_ref().is_some_and(|wanted| wanted != target) {
                continue;
            }
            let example = format!("fuzz_{target}");
            shell::run(
                "cargo",
                &[
                    "run",
                    "--quiet",
                    "--release",
                    "--package",
                    "raddle-scan",
                    "--example",
                    &example,
                    "--",
                    &rounds,
                    &seed,
                ],
            )?;
        }
        Ok(())
    }
}
