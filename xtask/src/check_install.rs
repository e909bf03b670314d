//! `cargo xtask check-install`: does what README and manual tell a new user, in a clean clone, and hardens a program
//! with what comes out.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use crate::{install, shell};

/// Each way to build that a document names: arguments of cargo, and the program that must then harden.
const WAYS: [(&[&str], &str); 2] = [
    (
        &["run", "--release", "--bin", "raddle", "--", "--version"],
        "target/release/raddle",
    ),
    (
        &["xtask", "install", "--root", "installed"],
        "installed/bin/raddle",
    ),
];

/// What is asked is which files a build leaves where, not how fast they are: most of a release build's time is
/// optimisation.
pub(crate) const QUICK: [(&str, &str); 2] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
];

pub(crate) fn run() -> anyhow::Result<()> {
    anyhow::ensure!(
        Path::new("/usr/lib/llvm-22/include/llvm/Plugins/PassPlugin.h").is_file(),
        "LLVM 22 is not installed, so hardening cannot be checked; `cargo xtask setup` installs it"
    );
    let clone = shell::target_folder().join("clean-clone");
    if clone.exists() {
        fs::remove_dir_all(&clone)?;
    }
    let target = clone.to_string_lossy().into_owned();
    shell::run("git", &["clone", "--quiet", "--local", ".", &target])?;
    for (arguments, program) in WAYS {
        let status = Command::new("cargo")
            .args(arguments)
            .current_dir(&clone)
            .env_remove("CARGO_TARGET_DIR")
            .envs(QUICK)
            .status()
            .context("cannot start cargo")?;
        anyhow::ensure!(
            status.success(),
            "`cargo {}` in a clean clone ended with {status}",
            arguments.join(" ")
        );
        if let Some(trouble) = install::try_hardening(&clone.join(program))? {
            anyhow::bail!(
                "after `cargo {}` in a clean clone, {program} does not harden: {trouble}",
                arguments.join(" ")
            );
        }
    }
    Ok(())
}
