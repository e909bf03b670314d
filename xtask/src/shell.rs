//! Running commands so that a failure names the command.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest
        .parent()
        .expect("xtask lives below the root")
        .to_path_buf()
}

/// Where cargo builds, and where everything that is downloaded or measured is kept.
pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The raddle to measure: the given one, or one that is built now.
pub(crate) fn release_build(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given.to_path_buf());
    }
    run("cargo", &["build", "--release", "--bin", "raddle"])?;
    Ok(released())
}

/// The raddle that [`release_build`] has built.
pub(crate) fn released() -> PathBuf {
    target_folder().join("release/raddle")
}

/// Builds an example program for measurements.
pub(crate) fn release_example(package: &str, name: &str) -> anyhow::Result<PathBuf> {
    let options = ["build", "--release", "-p", package, "--example", name];
    run("cargo", &options)?;
    Ok(target_folder().join("release/examples").join(name))
}

/// Runs a command with its output shown; an unsuccessful end is an error.
#[expect(clippy::print_stderr, reason = "the user sees which step runs")]
pub(crate) fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    eprintln!("xtask: {program} {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start `{program}`"))?;
    anyhow::ensure!(
        status.success(),
        "`{program} {}` ended with {status}",
        arguments.join(" ")
    );
    Ok(())
}

/// Whether `program` can be found on the search path.
pub(crate) fn has(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    })
}
