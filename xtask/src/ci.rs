//! Exactly what continuous integration runs.

use crate::{check_install, dist, fuzz, generate, setup, shell, tidy};

pub(crate) fn run() -> anyhow::Result<()> {
    setup::run()?;
    shell::run("cargo", &["fmt", "--all", "--check"])?;
    tidy::run()?;
    shell::run(
        "cargo",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
    )?;
    shell::run(
        "cargo",
        &[
            "doc",
            "--workspace",
            "--no-deps",
            "--document-private-items",
            "--locked",
            "--quiet",
            "--config",
            r#"build.rustdocflags=["-Dwarnings"]"#,
        ],
    )?;
    // With the targets of the tests, whose dependencies have other features: without them, most would be built twice.
    shell::run(
        "cargo",
        &["build", "--workspace", "--all-targets", "--locked"],
    )?;
    generate::run(true)?;
    shell::run(
        "cargo",
        &[
            "nextest",
            "run",
            "--workspace",
            "--locked",
            "--no-fail-fast",
        ],
    )?;
    check_install::run()?;
    dist::check::run()?;
    // The processor against the host's: ten million cases through the fast handlers.
    fuzz::run(&fuzz::FuzzCpu::in_ci())
}
