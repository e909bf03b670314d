//! `raddle cargo-harden build ...`: runs cargo so that the linker hardens what it links.
//!
//! rustc leaves bitcode in its objects (`-Clinker-plugin-lto`, stable) and calls us as the linker; we call clang with
//! lld, which runs link-time optimisation and our plugin. Crates for the host (build scripts, procedural macros) stay as
//! they are: that is why the target is named.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;
use clap::Args;
use raddle_harden::driver::{Language, toolchain};

use super::cc;
use crate::exit::{Code, Failure};

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Without lines neither the report nor the log could name a site. An unoptimised crate in parts would have its lock
/// functions in other parts than those that call them.
const UNLESS_SET: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only"),
    ("CARGO_PROFILE_DEV_CODEGEN_UNITS", "1"),
    ("CARGO_INCREMENTAL", "0"),
];

/// Run cargo with hardening; needs no nightly toolchain.
#[derive(Debug, Args)]
#[command(
    disable_version_flag = true,
    after_help = "Examples:\n  raddle cargo-harden build --release\n  raddle cargo-harden test\n  RADDLE_HARDEN_OPTIONS=--harden-report=/tmp/sites.jsonl raddle cargo-harden build\n\nPrograms end up in target/x86_64-unknown-linux-gnu/."
)]
pub(crate) struct CargoHarden {
    /// Arguments for cargo.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    arguments: Vec<OsString>,
}

impl CargoHarden {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        // Before a long build: is everything there, and are the options right?
        toolchain::check_plugin(&cc::find_toolchain(Language::C)?.plugin)?;
        let (_, rest) = cc::options_of(self.arguments)?;
        let linker = linker_name()?;
        let mut flags: Vec<String> = existing_flags();
        flags.extend([
            "-Clinker-plugin-lto".into(),
            format!("-Clinker={}", linker.display()),
            "-Clinker-flavor=gcc".into(),
        ]);
        let options = std::env::var("RADDLE_HARDEN_OPTIONS").unwrap_or_default();
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .args(with_target(rest))
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
            .env(
                "RADDLE_HARDEN_OPTIONS",
                format!("{options} --harden-bitcode"),
            );
        for (name, value) in UNLESS_SET {
            if std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        let status = command.status().context("cannot start cargo")?;
        Ok(cc::code_of(status))
    }
}

/// A name for ourselves under which we are the C compiler driver.
fn linker_name() -> Result<PathBuf, Failure> {
    let parts = cc::install_parts()?;
    let program = std::env::current_exe()?.canonicalize()?;
    let mut digest = raddle_stdx::Digest::default();
    digest.bytes(program.as_os_str().as_encoded_bytes());
    let folder = parts.folder.join(format!("{:016x}", digest.value()));
    std::fs::create_dir_all(&folder)?;
    let link = folder.join("raddle-cc");
    if std::fs::read_link(&link).ok().as_deref() != Some(&*program) {
        let partial = folder.join(format!("raddle-cc.{}", std::process::id()));
        std::os::unix::fs::symlink(&program, &partial)
            .with_context(|| format!("cannot write {}", partial.display()))?;
        std::fs::rename(&partial, &link)?;
    }
    Ok(link)
}

fn existing_flags() -> Vec<String> {
    if let Ok(encoded) = std::env::var("CARGO_ENCODED_RUSTFLAGS") {
        return encoded.split('\x1f').map(str::to_owned).collect();
    }
    std::env::var("RUSTFLAGS")
        .unwrap_or_default()
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

/// Adds the target behind the cargo command, unless there is one.
fn with_target(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let has_target = arguments
        .iter()
        .any(|argument| argument.to_string_lossy().starts_with("--target="))
        || arguments.iter().any(|argument| argument == "--target");
    if !has_target {
        let at = arguments
            .iter()
            .position(|argument| !argument.to_string_lossy().starts_with(['+', '-']))
            .map_or(arguments.len(), |command| command + 1);
        arguments.insert(at, "--target".into());
        arguments.insert(at + 1, TARGET.into());
    }
    arguments
}
