//! `raddle harden IN.bc -o OUT.bc`: hardens bitcode; `--show` prints a report that compilations wrote.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use raddle_harden::driver::Language;
use raddle_harden::record;
use raddle_harden::settings::VARIABLE;

use super::cc;
use crate::exit::{Code, Failure};
use crate::message;

/// Harden LLVM bitcode against concurrency failures.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  raddle harden in.bc -o out.bc\n  raddle harden in.bc -o out.bc --report\n  raddle harden in.bc -o out.bc --site queue.c:120\n  raddle harden --show sites.jsonl\n  raddle harden stats 4711\n\nFor whole builds see `raddle cc` and `raddle cargo-harden`."
)]
pub(crate) struct Harden {
    /// Bitcode or textual IR to read.
    #[arg(required_unless_present = "show")]
    input: Option<PathBuf>,
    /// Bitcode to write.
    #[arg(short, required_unless_present = "show")]
    output: Option<PathBuf>,
    /// Fix mode: harden only this site (repeatable).
    #[arg(long, value_name = "FILE:LINE")]
    site: Vec<String>,
    /// Fix mode: harden the places of a raddle finding.
    #[arg(long, value_name = "FILE")]
    finding: Vec<String>,
    /// List every site and what was done about it.
    #[arg(long)]
    report: bool,
    /// Volatile reads end regions.
    #[arg(long)]
    volatile_is_io: bool,
    /// Further options as `raddle cc` takes them: --harden-...
    #[arg(last = true)]
    options: Vec<OsString>,
    /// Print the report file that `raddle cc --harden-report=FILE` wrote.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["input", "output"])]
    show: Option<PathBuf>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the counters of a hardened program that was started with RADDLE_HARDEN_STATS=FILE.
    Stats {
        /// Its process, or the file.
        #[arg(value_name = "PID|FILE")]
        of: String,
    },
}

impl Harden {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        if let Some(Action::Stats { of }) = &self.action {
            return stats(of);
        }
        if let Some(path) = &self.show {
            return show(path);
        }
        let mut words: Vec<OsString> = Vec::new();
        words.extend(
            self.site
                .iter()
                .map(|site| format!("--harden-site={site}").into()),
        );
        words.extend(
            self.finding
                .iter()
                .map(|path| format!("--harden-finding={path}").into()),
        );
        if self.volatile_is_io {
            words.push("--harden-volatile-is-io".into());
        }
        words.extend(self.options);
        let (mut options, stray) = cc::options_of(words)?;
        if let Some(stray) = stray.first() {
            return Err(anyhow::anyhow!("`{}` is not an option of ours", stray.display()).into());
        }
        let (Some(input), Some(output)) = (self.input, self.output) else {
            return Err(anyhow::anyhow!("give an input and, with -o, an output").into());
        };
        options.settings.yields_bitcode = true;
        let listing = PathBuf::from(format!("{}.sites", output.display()));
        if self.report {
            options.settings.report = Some(
                std::path::absolute(&listing)?
                    .to_string_lossy()
                    .into_owned(),
            );
        }
        let toolchain = cc::find_toolchain(Language::C)?;
        let mut plugin = OsString::from("-load-pass-plugin=");
        plugin.push(&toolchain.plugin);
        let status = Command::new(&toolchain.opt)
            .arg(plugin)
            .arg("-passes=raddle-harden")
            .arg(&input)
            .arg("-o")
            .arg(&output)
            .env(VARIABLE, serde_json::to_string(&options.settings)?)
            .status()
            .with_context(|| format!("cannot start {}", toolchain.opt.display()))?;
        if !status.success() {
            return Err(anyhow::anyhow!(
                "{} could not be hardened; what went wrong is said above by opt",
                input.display()
            )
            .into());
        }
        if self.report {
            show(&listing)?;
            std::fs::remove_file(&listing)?;
        }
        Ok(Code::Clean)
    }
}

fn show(path: &std::path::Path) -> Result<Code, Failure> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines = record::parse(&text).with_context(|| path.display().to_string())?;
    message::result(&record::render(&lines))?;
    Ok(Code::Clean)
}

/// The counters of a program, from the file that its environment names.
fn stats(of: &str) -> Result<Code, Failure> {
    let path = if of.bytes().all(|byte| byte.is_ascii_digit()) {
        stats_file(of)?
    } else {
        PathBuf::from(of)
    };
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let mut shown = String::new();
    for line in text.lines() {
        let counter = line
            .strip_prefix("raddle_harden_")
            .and_then(|line| line.split_once("_total "))
            .with_context(|| format!("{} holds no counters of ours", path.display()))?;
        shown.push_str(&format!("{}: {}\n", counter.0.replace('_', " "), counter.1));
    }
    message::result(&shown)?;
    Ok(Code::Clean)
}

fn stats_file(process: &str) -> Result<PathBuf, Failure> {
    const VARIABLE: &str = "RADDLE_HARDEN_STATS=";
    let environment = std::fs::read(format!("/proc/{process}/environ"))
        .with_context(|| format!("cannot read the environment of process {process}"))?;
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let file = environment
        .split('\0')
        .find_map(|variable| variable.strip_prefix(VARIABLE))
        .with_context(|| {
            format!("process {process} was started without RADDLE_HARDEN_STATS=FILE, so it keeps no counters")
        })?;
    let file = PathBuf::from(file);
    Ok(if file.is_absolute() {
        file
    } else {
        PathBuf::from(format!("/proc/{process}/cwd")).join(file)
    })
}
