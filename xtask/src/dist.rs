//! `cargo xtask dist`: what people download. Static programs, a Debian package, shell completions, man pages, checksums
//! and a list of everything that was built in.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use clap::Args;

use crate::{install, shell};

mod bill_of_materials;
pub(crate) mod check;
mod debian;

/// Build static programs, a Debian package, completions, man pages, checksums and a bill of materials.
#[derive(Debug, Args)]
pub(crate) struct Dist {
    /// The folder that the files are put into; by default `dist` in the target folder.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// The host's own target: naming it keeps the flags for static programs away from build scripts and macros.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What was made, by use.
pub(crate) struct Made {
    /// The folder of the static programs with all that belongs to them.
    pub(crate) programs: PathBuf,
    pub(crate) package: PathBuf,
}

impl Dist {
    #[expect(clippy::print_stderr, reason = "the user is told what was made")]
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let out = match &self.out {
            Some(out) => std::path::absolute(out)?,
            None => shell::target_folder().join("dist"),
        };
        make(&out, &[])?;
        eprintln!("xtask: made, in {}:", out.display());
        let sums = fs::read_to_string(out.join(SUMS))?;
        eprint!("{sums}");
        Ok(())
    }
}

const SUMS: &str = "SHA256SUMS";

/// Makes everything in `out`, which is emptied first; `profile` are variables that change how cargo builds.
pub(crate) fn make(out: &Path, profile: &[(&str, &str)]) -> anyhow::Result<Made> {
    if out.exists() {
        fs::remove_dir_all(out).with_context(|| format!("cannot empty {}", out.display()))?;
    }
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("raddle-{version}-x86_64-linux");
    let programs = out.join(&name);
    fs::create_dir_all(&programs).with_context(|| format!("cannot make {}", programs.display()))?;

    let built = static_programs(profile)?;
    for program in install::PROGRAMS {
        fs::copy(built.join(program), programs.join(program))?;
    }
    let raddle = programs.join(install::PROGRAMS[0]);
    complete(&raddle, &programs)?;
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"] {
        fs::copy(shell::root().join(file), programs.join(file))?;
    }
    let moment = last_commit()?;
    let package = debian::package(&programs, &plugin(profile)?, out, version, &moment)?;
    bill_of_materials::write(&out.join(format!("raddle-{version}.cdx.json")), version)?;
    archive(out, &name, &moment)?;
    sums(out)?;
    Ok(Made { programs, package })
}

/// Programs that need no library of the machine they run on.
fn static_programs(profile: &[(&str, &str)]) -> anyhow::Result<PathBuf> {
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "--locked", "--target", TARGET]);
    for program in install::PROGRAMS {
        command.args(["--bin", program]);
    }
    let mut flags = OsString::from("-C target-feature=+crt-static");
    // Messages of panics name source files: by their place in the project, not on the machine that built them.
    for (folder, stands_for) in [(Some(shell::root()), "raddle"), (cargo_home(), "cargo")] {
        if let Some(folder) = folder {
            flags.push(" --remap-path-prefix=");
            flags.push(folder);
            flags.push(format!("={stands_for}"));
        }
    }
    command.env("RUSTFLAGS", flags);
    build(command, profile)?;
    Ok(shell::target_folder().join(TARGET).join("release"))
}

fn cargo_home() -> Option<PathBuf> {
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
}

/// The library that compilers load, which is never static; empty without LLVM, as `raddle cc` then says.
fn plugin(profile: &[(&str, &str)]) -> anyhow::Result<PathBuf> {
    let mut command = Command::new("cargo");
    command.args([
        "build",
        "--release",
        "--locked",
        "-p",
        "raddle-harden-plugin",
    ]);
    build(command, profile)?;
    Ok(shell::target_folder().join("release").join(install::PLUGIN))
}

fn build(mut command: Command, profile: &[(&str, &str)]) -> anyhow::Result<()> {
    let status = command
        .current_dir(shell::root())
        .env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo")
        .envs(profile.iter().copied())
        .stdin(Stdio::null())
        .status()
        .context("cannot start cargo")?;
    anyhow::ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Writes the texts that raddle has about itself: completions of three shells, and man pages.
fn complete(raddle: &Path, programs: &Path) -> anyhow::Result<()> {
    let (shells, pages) = (programs.join("completions"), programs.join("man"));
    fs::create_dir_all(&shells)?;
    for shell in ["bash", "fish", "zsh"] {
        let text = output(Command::new(raddle).args(["completions", shell]))?;
        fs::write(shells.join(format!("raddle.{shell}")), text)?;
    }
    fs::create_dir_all(&pages)?;
    output(Command::new(raddle).arg("man-pages").arg(&pages))?;
    Ok(())
}

/// The time of the last commit in seconds: files of one commit are the same whenever they are made.
fn last_commit() -> anyhow::Result<String> {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"])
        .current_dir(shell::root());
    let text = String::from_utf8(output(&mut git)?)?;
    Ok(text.trim().to_owned())
}

fn archive(out: &Path, name: &str, moment: &str) -> anyhow::Result<()> {
    let mut tar = Command::new("tar");
    tar.args([
        "--create",
        "--gzip",
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
    ])
    .arg(format!("--mtime=@{moment}"))
    .arg("--file")
    .arg(out.join(format!("{name}.tar.gz")))
    .arg("--directory")
    .arg(out)
    .arg(name);
    output(&mut tar)?;
    Ok(())
}

/// Checksums of all files beside each other, in the form that `sha256sum --check` reads.
fn sums(out: &Path) -> anyhow::Result<()> {
    let mut names: Vec<String> = fs::read_dir(out)?
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let text = output(Command::new("sha256sum").args(&names).current_dir(out))?;
    fs::write(out.join(SUMS), text)?;
    Ok(())
}

/// Runs a command and takes what it prints; an unsuccessful end is an error with its words.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let done = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    anyhow::ensure!(
        done.status.success(),
        "{command:?} ended with {}: {}",
        done.status,
        String::from_utf8_lossy(&done.stderr).trim()
    );
    Ok(done.stdout)
}
