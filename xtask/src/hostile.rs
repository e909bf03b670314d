//! The long form of the tests that attack raddle and of those that let the world fail around it.

use clap::Args;

use crate::shell;

/// Which tests, and how often the random ones among them are repeated.
#[derive(Debug, Args)]
pub(crate) struct Hostile {
    /// Rounds of each random test.
    #[arg(long, default_value_t = 500)]
    rounds: u64,
}

impl Hostile {
    /// Runs some tests of the command line, as nextest's filters name them; the short form is part of all tests.
    pub(crate) fn run(&self, tests: &str) -> anyhow::Result<()> {
        let rounds = format!("RADDLE_ROUNDS={}", self.rounds);
        let cargo = [rounds.as_str(), "cargo", "nextest", "run", "--locked"];
        let which = ["-p", "raddle", "--no-fail-fast", "-E", tests];
        shell::run("env", &[&cargo[..], &which].concat())
    }
}
