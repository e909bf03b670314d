//! `cargo xtask bench harden`: what hardening costs and brings, on programs that Debian has as source packages.
//!
//! Sources are fetched with `apt-get source` into `target/bench` (a private list of package sources, so that the
//! machine's own stays as it is) and built with `raddle cc` of the release profile. All times are ratios of pairs that
//! run one right after the other, so that a busy machine disturbs both.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use clap::Args;

use super::cpu;

mod packages;
mod programs;
mod recovery;
mod rust;
mod server;
mod tables;
mod workload;

use programs::Program;
use tables::{Median, Sums, share_gone};

/// How much is measured.
#[derive(Debug, Args)]
pub(crate) struct Harden {
    /// Interleaved pairs of runs per ratio; 0 measures no time.
    #[arg(long, default_value_t = 31)]
    pairs: usize,
    /// Only these: chase, sqlite3, pbzip2, memcached, recovery, ripgrep, coreutils.
    #[arg(long)]
    only: Vec<String>,
    /// Also build with the setjmp mechanism.
    #[arg(long)]
    setjmp: bool,
    /// Only time: no tables of sites and points, no instructions.
    #[arg(long)]
    time_only: bool,
    /// Measure the programs that an earlier run built; build only what is missing.
    #[arg(long)]
    reuse: bool,
}

impl Harden {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        if !self.reuse {
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
        }
        let place = Place::new(self.reuse)?;
        for program in programs::ALL.iter().filter(|one| self.has(one.name)) {
            self.measure(&place, program)
                .with_context(|| format!("while measuring {}", program.name))?;
        }
        if self.has("recovery") {
            recovery::print(&place)?;
        }
        if self.has("ripgrep") {
            rust::ripgrep(&place)?;
        }
        if self.has("coreutils") {
            packages::coreutils(&place)?;
        }
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|one| one == name)
    }

    #[expect(clippy::print_stdout, reason = "the table is the result")]
    fn measure(&self, place: &Place, program: &Program) -> anyhow::Result<()> {
        let folder = program.fetch(place)?;
        println!("## {}", program.name);
        let plain = place.build(program, &folder, "plain", None)?;
        let hardened = place.build(program, &folder, "hardened", Some(""))?;
        if !self.time_only {
            Self::sites(program, &folder, &hardened)?;
            println!(
                "text {} -> {} bytes",
                text_size(&plain.program)?,
                text_size(&hardened.program)?
            );
            if let (Some(before), Some(after)) = (plain.seconds, hardened.seconds) {
                println!("compile time {before:.1} s -> {after:.1} s");
            }
            Self::points(place, program, &folder, &hardened)?;
        }
        self.noise(program, &plain.program)?;
        self.ratio("survival mode", program, &plain.program, &hardened.program)?;
        let fix = place.build(program, &folder, "fix", Some("--harden-mode=fix"))?;
        self.ratio(
            "fix mode, no site here",
            program,
            &plain.program,
            &fix.program,
        )?;
        if self.setjmp {
            let options = "--harden-mechanism=setjmp --harden-caller-levels=0";
            let setjmp = place.build(program, &folder, "setjmp", Some(options))?;
            self.ratio(
                "the paper's setjmp",
                program,
                &plain.program,
                &setjmp.program,
            )?;
        }
        Ok(())
    }

    /// Table 5.4.
    #[expect(clippy::print_stdout, reason = "the table is the result")]
    fn sites(program: &Program, folder: &Path, hardened: &Built) -> anyhow::Result<()> {
        let sums = Sums::of(&hardened.report)?;
        let kloc = program.kloc(folder)?;
        println!(
            "| assertion | output | oracle | dereference | deadlock | hardened | KLoC | hardened per KLoC |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        println!(
            "| {} | {} | {kloc:.1} | {:.1} |",
            sums.cells(),
            sums.hardened(),
            f64::from(sums.hardened()) / kloc
        );
        println!("left as they are: {:?}", sums.left);
        Ok(())
    }

    /// Tables 5.5 and 5.6.
    #[expect(clippy::print_stdout, reason = "the table is the result")]
    fn points(
        place: &Place,
        program: &Program,
        folder: &Path,
        hardened: &Built,
    ) -> anyhow::Result<()> {
        let count = "--harden-count-points";
        let counting = place.build(program, folder, "counting", Some(count))?;
        let (all, for_locks) = program.workload.points(&counting.program)?;
        let sums = Sums::of(&hardened.report)?;
        println!(
            "points: static {} ({} pads in callers), dynamic {all}",
            sums.points, sums.pads
        );
        let options = format!("{count} --harden-no-pruning");
        let unpruned = place.build(program, folder, "unpruned", Some(&options))?;
        let (all_before, for_locks_before) = program.workload.points(&unpruned.program)?;
        let before = Sums::of(&unpruned.report)?;
        let of = |sums: &Sums| {
            let for_locks = f64::from(sums.lock_points);
            (f64::from(sums.points) - for_locks, for_locks)
        };
        let ((others, locks), (others_before, locks_before)) = (of(&sums), of(&before));
        println!(
            "pruned points: non-deadlock static {}, dynamic {}; deadlock static {}, dynamic {}",
            share_gone(others, others_before),
            share_gone(all - for_locks, all_before - for_locks_before),
            share_gone(locks, locks_before),
            share_gone(for_locks, for_locks_before)
        );
        Ok(())
    }

    /// What a copy of the plain build measures beside it: no smaller difference means anything.
    fn noise(&self, program: &Program, plain: &Path) -> anyhow::Result<()> {
        let copy = plain.with_extension("copy");
        fs::copy(plain, &copy)?;
        self.times("a copy of the plain build", program, plain, &copy)
    }

    fn ratio(
        &self,
        what: &str,
        program: &Program,
        plain: &Path,
        other: &Path,
    ) -> anyhow::Result<()> {
        self.times(what, program, plain, other)?;
        if !self.time_only {
            Self::instructions(what, program, plain, other);
        }
        Ok(())
    }

    /// The median of the ratios of interleaved pairs. Every other pair runs in the other order.
    #[expect(clippy::print_stdout, reason = "the table is the result")]
    fn times(
        &self,
        what: &str,
        program: &Program,
        plain: &Path,
        other: &Path,
    ) -> anyhow::Result<()> {
        let mut ratios = Vec::new();
        let (mut all, mut user) = ([0.0; 2], [0.0; 2]);
        for pair in 0..self.pairs {
            let spent = if pair % 2 == 0 {
                program.workload.pair(plain, other)?
            } else {
                let [second, first] = program.workload.pair(other, plain)?;
                [first, second]
            };
            ratios.push(spent[1].all / spent[0].all);
            for (which, spent) in spent.into_iter().enumerate() {
                all[which] += spent.all;
                user[which] += spent.user;
            }
        }
        ratios.sort_by(f64::total_cmp);
        if let Some(Median { value, low, high }) = tables::median(&ratios) {
            println!(
                "{what}: time ratio {value:.4} (95 % confidence {low:.4} to {high:.4}, {} pairs); \
                 all pairs together {:.2} s to {:.2} s, {:.2} s to {:.2} s of them user time",
                ratios.len(),
                all[0],
                all[1],
                user[0],
                user[1]
            );
        }
        Ok(())
    }

    #[expect(clippy::print_stdout, reason = "the table is the result")]
    fn instructions(what: &str, program: &Program, plain: &Path, other: &Path) {
        if let (Some(before), Some(after)) = (
            program.workload.instructions(plain),
            program.workload.instructions(other),
        ) {
            println!("{what}: instruction ratio {:.4}", after / before);
        }
    }
}

/// Folders and programs of a measurement.
struct Place {
    raddle: PathBuf,
    work: PathBuf,
    /// What is there is not built again.
    reuse: bool,
}

/// A finished build.
struct Built {
    program: PathBuf,
    report: PathBuf,
    /// Processor time of the compilation, if it was made now.
    seconds: Option<f64>,
}

impl Place {
    fn new(reuse: bool) -> anyhow::Result<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| crate::shell::root().join("target"), PathBuf::from);
        let work = target.join("bench/harden");
        fs::create_dir_all(&work)?;
        Ok(Self {
            raddle: target.join("release/raddle"),
            work,
            reuse,
        })
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
        let report = folder.join(format!("{what}.jsonl"));
        if self.reuse && output.exists() {
            return Ok(Built {
                program: output,
                report,
                seconds: None,
            });
        }
        if report.exists() {
            fs::remove_file(&report)?;
        }
        let mut command = match options {
            None => Command::new(program.plain_compiler()),
            Some(options) => {
                let mut command = Command::new(&self.raddle);
                let options = format!(
                    "--harden-strict --harden-report={} {options}",
                    report.display()
                );
                command
                    .arg(program.driver)
                    .env("RADDLE_HARDEN_OPTIONS", options);
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
        let before = cpu::of_children();
        let status = command.status()?;
        anyhow::ensure!(status.success(), "{command:?} ended with {status}");
        Ok(Built {
            program: output,
            report,
            seconds: Some(cpu::of_children() - before),
        })
    }
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
