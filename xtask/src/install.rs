//! `cargo xtask install`: builds raddle and puts its programs, and the library that compilers load, where they find
//! each other: `ROOT/bin` and `ROOT/lib/raddle`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use clap::Args;

use crate::shell;

/// Install `raddle`, `cargo-raddle` and the hardening plugin.
#[derive(Debug, Args)]
pub(crate) struct Install {
    /// Where to; by default where cargo installs programs (`$CARGO_INSTALL_ROOT`, `$CARGO_HOME` or `~/.cargo`).
    #[arg(long)]
    root: Option<PathBuf>,
}

pub(crate) const PROGRAMS: [&str; 2] = ["raddle", "cargo-raddle"];
pub(crate) const PLUGIN: &str = "libraddle_harden_plugin.so";
/// How compilers and build systems that want one word call `raddle cc` and `raddle c++`.
pub(crate) const LINKS: [&str; 2] = ["raddle-cc", "raddle-c++"];

impl Install {
    #[expect(clippy::print_stderr, reason = "the user is told what was installed")]
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let root = match &self.root {
            Some(root) => std::path::absolute(root)?,
            None => default_root()?,
        };
        // Programs are chosen, not a package: so this shares its dependencies with `cargo run --release --bin raddle`.
        shell::run(
            "cargo",
            &[
                "build",
                "--release",
                "--locked",
                "--bin",
                PROGRAMS[0],
                "--bin",
                PROGRAMS[1],
            ],
        )?;
        let built = shell::target_folder().join("release");
        let (bin, lib) = (root.join("bin"), root.join("lib/raddle"));
        fs::create_dir_all(&bin)?;
        fs::create_dir_all(&lib)?;
        for name in PROGRAMS {
            copy(&built.join(name), &bin.join(name))?;
        }
        copy(&built.join("deps").join(PLUGIN), &lib.join(PLUGIN))?;
        for name in LINKS {
            link(Path::new(PROGRAMS[0]), &bin.join(name))?;
        }
        let installed = bin.join(PROGRAMS[0]);
        eprintln!("xtask: installed {}", installed.display());
        match try_hardening(&installed)? {
            None => eprintln!("xtask: `raddle cc` compiled and ran a program"),
            Some(reason) => eprintln!(
                "xtask: everything but hardening works; `raddle cc` says:\n{reason}\n\
                 xtask: install what it names, then run `cargo xtask install` again"
            ),
        }
        Ok(())
    }
}

fn default_root() -> anyhow::Result<PathBuf> {
    let given = ["CARGO_INSTALL_ROOT", "CARGO_HOME"]
        .iter()
        .find_map(std::env::var_os)
        .map(PathBuf::from);
    match given {
        Some(root) => Ok(root),
        None => Ok(PathBuf::from(
            std::env::var_os("HOME").context("HOME is not set; give --root")?,
        )
        .join(".cargo")),
    }
}

/// Under another name first: a running program, or a compiler that has the library open, keeps its own file.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let partial = to.with_extension("partial");
    fs::copy(from, &partial)
        .with_context(|| format!("cannot copy {} to {}", from.display(), partial.display()))?;
    fs::rename(&partial, to)?;
    Ok(())
}

fn link(target: &Path, at: &Path) -> anyhow::Result<()> {
    let partial = at.with_extension("partial");
    if partial.is_symlink() {
        fs::remove_file(&partial)?;
    }
    std::os::unix::fs::symlink(target, &partial)?;
    fs::rename(&partial, at)?;
    Ok(())
}

/// A program whose only read of a shared pointer is hardened, compiled and run; the compiler's words if that fails.
pub(crate) fn try_hardening(raddle: &Path) -> anyhow::Result<Option<String>> {
    let folder = shell::target_folder().join("install-trial");
    fs::create_dir_all(&folder)?;
    let source = folder.join("trial.c");
    fs::write(
        &source,
        "int number = 7;\nint *shared = &number;\nint main(void) { return *(int *volatile)shared - 7; }\n",
    )?;
    let (program, report) = (folder.join("trial"), folder.join("trial.jsonl"));
    if report.exists() {
        fs::remove_file(&report)?;
    }
    let compiled = Command::new(raddle)
        .args(["cc", "--harden-strict", "-O1"])
        .arg(format!("--harden-report={}", report.display()))
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output()?;
    if !compiled.status.success() {
        return Ok(Some(
            String::from_utf8_lossy(&compiled.stderr).trim().to_owned(),
        ));
    }
    anyhow::ensure!(
        report.is_file(),
        "`raddle cc` compiled a program without its plugin"
    );
    let status = Command::new(&program).status()?;
    anyhow::ensure!(
        status.success(),
        "a program of `raddle cc` ended with {status}"
    );
    Ok(None)
}
