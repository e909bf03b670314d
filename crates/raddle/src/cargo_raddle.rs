//! `cargo raddle test` and `cargo raddle predict`: cargo finds this program by its name; the work is done by `raddle`, which lies beside it.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: cargo raddle test|predict [FILTER] [OPTIONS] [-- CARGO ARGUMENTS]";
const HELP: &str = "\
Explore the tests of a Rust workspace, each by itself.

Usage: cargo raddle COMMAND [FILTER] [OPTIONS] [-- CARGO ARGUMENTS]

Commands:
  test     Find the interleavings in which tests fail
  predict  Predict from runs in which tests pass what another interleaving could do

`cargo raddle COMMAND --help` tells the options.

Examples:
  cargo raddle test
  cargo raddle test queue:: --time 60 --output recordings
  cargo raddle predict -- --release
";

#[expect(clippy::print_stderr, reason = "this is a program of its own")]
fn main() -> ExitCode {
    // Cargo passes the name of the subcommand first.
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "raddle") {
        arguments.remove(0);
    }
    let command = match arguments.first().and_then(|first| first.to_str()) {
        Some("test") => "cargo-test",
        Some("predict") => "cargo-predict",
        Some("--help" | "-h" | "help") => {
            let written = std::io::stdout().write_all(HELP.as_bytes());
            return ExitCode::from(if written.is_ok() { 0 } else { 2 });
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    arguments[0] = command.into();
    let program = beside().unwrap_or_else(|| PathBuf::from("raddle"));
    let error = Command::new(&program).args(arguments).exec();
    eprintln!(
        "cargo-raddle: cannot start {}: {error}; install raddle beside cargo-raddle",
        program.display()
    );
    ExitCode::from(2)
}

fn beside() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let program = own.parent()?.join("raddle");
    program.exists().then_some(program)
}
