//! `raddle cc` and `raddle c++`: clang that hardens what it compiles.
//!
//! A failing compilation is repeated without hardening, so that our troubles never break a build; what the user sees
//! then is the plain compiler's own verdict, and a warning if only the hardening failed.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

use anyhow::Context as _;
use clap::Args;
use raddle_harden::driver::config::{self, Options};
use raddle_harden::driver::parts::{self, Parts};
use raddle_harden::driver::{Invocation, Language, Step, Toolchain, toolchain};
use raddle_harden::invariant;
use raddle_harden::settings::VARIABLE;
use raddle_report::render::json;

use crate::exit::{Code, Failure};
use crate::{message, project};

/// More options of ours, separated by spaces, for builds that cannot pass any.
const OPTIONS: &str = "RADDLE_HARDEN_OPTIONS";

const HELP: &str = "Examples:
  CC=\"raddle cc\" CXX=\"raddle c++\" make
  raddle cc -O2 -pthread server.c -o server
  raddle cc --harden-site=queue.c:120 -c queue.c

Options of ours begin with --harden-; they also come from RADDLE_HARDEN_OPTIONS:
  --harden-site=FILE:LINE     fix mode: only this site (repeatable)
  --harden-finding=FILE       fix mode: the places of a raddle finding (JSON)
  --harden-oracles=FILE       check what a file of [[invariant]] tables says of values that are read (repeatable)
  --harden-report=FILE        append one JSON line per site; `raddle harden --show FILE` prints it
  --harden-config=FILE        a raddle.toml; without it, the one of the nearest folder above
  --harden-pointer-bound=N    pointers below N are invalid (10000)
  --harden-caller-levels=N    re-execute up to N callers (3; 0 turns it off)
  --harden-regions=longest    repeat all that can be repeated (default in fix mode); cheap is for survival mode
  --harden-assertion=NAME     a function whose call is a failure (repeatable)
  --harden-output=NAME        an output function (repeatable)
  --harden-harmless=NAME      a function that changes nothing others can see: it does not end regions (repeatable)
  --harden-undo=WHICH         writes that may be taken back: proven (default: guarded by a lock of the region), plain (all
                              ordinary ones; you vouch that nobody looks before the next unlock), never
  --harden-volatile-is-io     volatile reads end regions
  --harden-strict             trouble is an error, not a plain compilation";

/// Compile C as clang does, hardened against concurrency failures.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true, after_help = HELP)]
pub(crate) struct Cc {
    /// Arguments for the compiler.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Compile C++ as clang does, hardened against concurrency failures.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true, after_help = HELP)]
pub(crate) struct Cpp {
    /// Arguments for the compiler.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Cc {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        drive(Language::C, self.arguments)
    }
}

impl Cpp {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        drive(Language::Cpp, self.arguments)
    }
}

/// Finds LLVM and the plugin of the running program.
pub(super) fn find_toolchain(language: Language) -> Result<Toolchain, Failure> {
    let search: Vec<PathBuf> = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default();
    let program = std::env::current_exe()
        .and_then(|program| program.canonicalize())
        .context("cannot find the running program")?;
    Ok(toolchain::find(language, &search, &program)?)
}

/// Writes the runtime into the user's cache, or into the temporary folder if there is none.
pub(super) fn install_parts() -> Result<Parts, Failure> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .map(|cache| cache.join("raddle"));
    if let Some(cache) = &cache
        && let Ok(parts) = parts::install(cache)
    {
        return Ok(parts);
    }
    let temporary = std::env::temp_dir().join("raddle");
    let parts = parts::install(&temporary)
        .with_context(|| format!("cannot write the runtime below {}", temporary.display()))?;
    Ok(parts)
}

/// Merges options, findings and the project's configuration.
pub(super) fn finish_options(options: &mut Options) -> Result<(), Failure> {
    for path in &options.findings {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
        let findings = json::read(&text).with_context(|| format!("cannot use {path}"))?;
        for finding in &findings {
            config::add_finding(&mut options.settings, finding);
        }
    }
    for path in &options.oracles {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
        let found = invariant::read(&text).with_context(|| format!("cannot use {path}"))?;
        options.settings.invariants.extend(found);
    }
    let project = project::read(options.config.as_ref().map(Path::new))?;
    config::add_config(&mut options.settings, &project.config.harden);
    if let Some(report) = &options.settings.report {
        let absolute = std::path::absolute(report).context("the report has no place")?;
        options.settings.report = Some(absolute.to_string_lossy().into_owned());
    }
    Ok(())
}

/// Options from the environment come first, so that the command line may override them.
pub(super) fn options_of(arguments: Vec<OsString>) -> Result<(Options, Vec<OsString>), Failure> {
    let mut options = Options::default();
    let from_environment = std::env::var(OPTIONS).unwrap_or_default();
    let words = from_environment.split_whitespace().map(OsString::from);
    let stray = config::take_options(words.collect(), &mut options)?;
    if let Some(stray) = stray.first() {
        return Err(anyhow::anyhow!(
            "{OPTIONS} holds `{}`; only options that begin with --harden- belong there",
            stray.display()
        )
        .into());
    }
    let rest = config::take_options(arguments, &mut options)?;
    finish_options(&mut options)?;
    Ok((options, rest))
}

fn drive(language: Language, arguments: Vec<OsString>) -> Result<Code, Failure> {
    let (mut options, rest) = options_of(arguments)?;
    let toolchain = find_toolchain(language)?;
    let mut invocation = Invocation::parse(rest);
    invocation.is_lto |= options.links_bitcode;
    if invocation.step == Step::Plain {
        let status = Command::new(&toolchain.clang)
            .args(&invocation.arguments)
            .status()
            .with_context(|| format!("cannot start {}", toolchain.clang.display()))?;
        return Ok(code_of(status));
    }
    options.settings.strip_debug = !invocation.has_debug && !options.links_bitcode;
    let parts = install_parts()?;
    let input = read_input(&invocation)?;
    let hardened = invocation.hardened(&toolchain, &parts.include, &parts.archives);
    let settings = serde_json::to_string(&options.settings)?;
    let first = run(&toolchain, hardened, Some(&settings), input.as_deref())?;
    if !first.status.success() {
        toolchain::check_plugin(&toolchain.plugin)?;
    }
    if first.status.success() || options.is_strict {
        std::io::stderr().write_all(&first.stderr)?;
        return Ok(code_of(first.status));
    }
    let plain = invocation.plain(&toolchain, &parts.include, &parts.archives);
    let second = run(&toolchain, plain, None, input.as_deref())?;
    std::io::stderr().write_all(&second.stderr)?;
    if second.status.success() {
        warn_of(&invocation, &first.stderr);
    }
    Ok(code_of(second.status))
}

fn warn_of(invocation: &Invocation, trouble: &[u8]) {
    let trouble = String::from_utf8_lossy(trouble);
    let reason = trouble
        .lines()
        .find(|line| line.starts_with("raddle-harden: "))
        .or_else(|| trouble.lines().next())
        .unwrap_or("no message");
    message::warning(&format!(
        "{} was compiled without hardening, because that failed ({}); --harden-strict makes this an error",
        invocation.output, reason
    ));
}

/// The standard input, if the compiler reads it: it may be needed twice.
fn read_input(invocation: &Invocation) -> Result<Option<Vec<u8>>, Failure> {
    if !invocation.reads_stdin {
        return Ok(None);
    }
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text)?;
    Ok(Some(text))
}

fn run(
    toolchain: &Toolchain,
    arguments: Vec<OsString>,
    settings: Option<&str>,
    input: Option<&[u8]>,
) -> Result<Output, Failure> {
    let mut command = Command::new(&toolchain.clang);
    command.args(arguments).stderr(Stdio::piped());
    if let Some(settings) = settings {
        command.env(VARIABLE, settings);
    }
    command.stdin(if input.is_some() {
        Stdio::piped()
    } else {
        Stdio::inherit()
    });
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {}", toolchain.clang.display()))?;
    if let (Some(input), Some(mut pipe)) = (input, child.stdin.take()) {
        // A compiler that stops reading has its own message to give.
        let _closed_early = pipe.write_all(input);
    }
    Ok(child.wait_with_output()?)
}

/// The compiler's status; a signal is an ordinary failure.
pub(super) fn code_of(status: ExitStatus) -> Code {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Code::Guest(code.unwrap_or(1))
}
