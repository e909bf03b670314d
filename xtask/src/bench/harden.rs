//! `cargo xtask bench harden`: what hardening costs and brings, on programs that Debian has as source packages.
//!
//! Sources are fetched with `apt-get source` into `target/bench` (a private list of package sources, so that the
//! machine's own stays as it is) and built with `raddle cc` of the release profile. All times are ratios of pairs that
//! run one right after the other, so that a busy machine disturbs both.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;

mod programs;

use programs::Program;

/// How much is measured.
#[derive(Debug, Args)]
pub(crate) struct Harden {
    /// Interleaved pairs of runs per ratio.
    #[arg(long, default_value_t = 31)]
    pairs: usize,
    /// Only these programs.
    #[arg(long)]
    only: Vec<String>,
    /// Also build with the setjmp mechanism.
    #[arg(long)]
    setjmp: bool,
}

impl Harden {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        crate::shell::run(
            "cargo",
            &[
                "build",
                "--release",
                "-p",
                "raddle",
                "-p",
                "raddle-harden-plugin",
            ],
        )?;
        let place = Place::new()?;
        let chosen = |program: &&Program| {
            self.only.is_empty() || self.only.iter().any(|name| name == program.name)
        };
        for program in programs::ALL.iter().filter(chosen) {
            self.measure(&place, program)
                .with_context(|| format!("while measuring {}", program.name))?;
        }
        if self.only.is_empty() {
            recovery(&place)?;
        }
        Ok(())
    }

    #[expect(clippy::print_stdout, reason = "the table is the result")]
    fn measure(&self, place: &Place, program: &Program) -> anyhow::Result<()> {
        let folder = program.fetch(place)?;
        println!("## {}", program.name);
        let plain = place.build(program, &folder, "plain", None)?;
        let report = folder.join("sites.jsonl");
        if report.exists() {
            fs::remove_file(&report)?;
        }
        let option = format!("--harden-report={}", report.display());
        let hardened = place.build(program, &folder, "hardened", Some(&option))?;
        println!("{}", last_line(&place.show(&report)?));
        println!(
            "text {} -> {} bytes, compile time {:.1} s -> {:.1} s",
            text_size(&plain.program)?,
            text_size(&hardened.program)?,
            plain.seconds,
            hardened.seconds
        );
        let counting = place.build(program, &folder, "counting", Some("--harden-count-points"))?;
        println!("dynamic: {}", program.points(&counting.program)?);
        self.ratio("survival mode", program, &plain.program, &hardened.program)?;
        let fix = place.build(program, &folder, "fix", Some("--harden-mode=fix"))?;
        self.ratio(
            "fix mode, no site here",
            program,
            &plain.program,
            &fix.program,
        )?;
        if self.setjmp {
            let setjmp = place.build(
                program,
                &folder,
                "setjmp",
                Some("--harden-mechanism=setjmp --harden-caller-levels=0"),
            )?;
            self.ratio(
                "the paper's setjmp",
                program,
                &plain.program,
                &setjmp.program,
            )?;
        }
        Ok(())
    }

    /// The median of the ratios of interleaved pairs.
    #[expect(clippy::print_stdout, reason = "the table is the result")]
    fn ratio(
        &self,
        what: &str,
        program: &Program,
        plain: &Path,
        other: &Path,
    ) -> anyhow::Result<()> {
        let mut ratios = Vec::new();
        for _ in 0..self.pairs {
            let first = program.seconds(plain)?;
            let second = program.seconds(other)?;
            ratios.push(second / first);
        }
        ratios.sort_by(f64::total_cmp);
        let median = ratios[ratios.len() / 2];
        let (low, high) = (ratios[ratios.len() / 4], ratios[ratios.len() * 3 / 4]);
        println!(
            "{what}: time ratio {median:.3} (quartiles {low:.3} to {high:.3}, {} pairs)",
            ratios.len()
        );
        if let (Some(before), Some(after)) =
            (instructions(program, plain), instructions(program, other))
        {
            println!("{what}: instruction ratio {:.3}", after / before);
        }
        Ok(())
    }
}

/// Folders and programs of a measurement.
struct Place {
    raddle: PathBuf,
    work: PathBuf,
}

/// A finished build.
struct Built {
    program: PathBuf,
    seconds: f64,
}

impl Place {
    fn new() -> anyhow::Result<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| crate::shell::root().join("target"), PathBuf::from);
        let work = target.join("bench/harden");
        fs::create_dir_all(&work)?;
        Ok(Self {
            raddle: target.join("release/raddle"),
            work,
        })
    }

    fn show(&self, report: &Path) -> anyhow::Result<String> {
        let output = Command::new(&self.raddle)
            .args(["harden", "--show"])
            .arg(report)
            .output()?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Builds with clang if there are no options of ours, else with `raddle cc`.
    fn build(
        &self,
        program: &Program,
        folder: &Path,
        what: &str,
        options: Option<&str>,
    ) -> anyhow::Result<Built> {
        let output = folder.join(format!("{}-{what}", program.name));
        let mut command = match options {
            None => Command::new(program.plain_compiler()),
            Some(options) => {
                let mut command = Command::new(&self.raddle);
                command.arg(program.driver).env(
                    "RADDLE_HARDEN_OPTIONS",
                    format!("--harden-strict {options}"),
                );
                command
            }
        };
        command
            .args(program.flags)
            .args(program.sources)
            .args(program.libraries)
            .arg("-o")
            .arg(&output)
            .current_dir(folder);
        let start = Instant::now();
        let status = command.status()?;
        anyhow::ensure!(status.success(), "{command:?} ended with {status}");
        Ok(Built {
            program: output,
            seconds: start.elapsed().as_secs_f64(),
        })
    }
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or("")
}

/// The size of all code and constant data, as `size` counts it.
fn text_size(program: &Path) -> anyhow::Result<u64> {
    let output = Command::new("size").arg(program).output()?;
    let text = String::from_utf8(output.stdout)?;
    let number = text
        .lines()
        .nth(1)
        .and_then(|line| line.split_whitespace().next())
        .context("`size` printed no table")?;
    Ok(number.parse()?)
}

/// Instructions of a short run, if valgrind is here.
fn instructions(program: &Program, binary: &Path) -> Option<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(binary)
        .args(program.short_run)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stderr).ok()?;
    let line = text.lines().find(|line| line.contains("Collected"))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Table 5.7: how long a recovery takes, and how long a run from the start would.
#[expect(clippy::print_stdout, reason = "the table is the result")]
fn recovery(place: &Place) -> anyhow::Result<()> {
    println!("## Recovery of the corpus, and a restart beside it");
    let mut cases: Vec<PathBuf> = fs::read_dir("corpus/harden")?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    cases.sort();
    for case in cases {
        let description = fs::read_to_string(case.join("case.toml"))?;
        if description.contains("\"unrecoverable\"") {
            continue;
        }
        let program = place.work.join("recovering");
        let status = Command::new(&place.raddle)
            .args(["cc", "--harden-strict", "-O2", "-pthread"])
            .arg(case.join("buggy.c"))
            .arg("-o")
            .arg(&program)
            .status()?;
        anyhow::ensure!(status.success(), "{} does not compile", case.display());
        let start = Instant::now();
        let output = Command::new(&program).output()?;
        let whole = start.elapsed().as_micros();
        let log = String::from_utf8(output.stderr)?;
        let line = log
            .lines()
            .find(|line| line.contains(" recovered after "))
            .unwrap_or("no recovery in this run");
        let name = case.file_name().unwrap_or_default().to_string_lossy();
        println!("{name}: {}; the whole run took {whole} us", tail_of(line));
    }
    Ok(())
}

fn tail_of(line: &str) -> &str {
    line.split_once("): ").map_or(line, |(_, tail)| tail)
}
