//! `cargo xtask bench harden`: what hardening costs and brings, on programs that Debian has as source packages.
//!
//! Sources are fetched with `apt-get source` into `target/bench` (a private list of package sources, so that the
//! machine's own stays as it is) and built with `raddle cc` of the release profile. All times are ratios of pairs that
//! run one right after the other, so that a busy machine disturbs both.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use clap::Args;

mod build;
mod locks;
mod packages;
mod programs;
mod recovery;
mod rust;
mod server;
mod tables;
mod workload;

use build::{Built, Layout, Place};
use programs::Program;
use tables::{Median, Sums, share_gone};
use workload::Spent;

/// How much is measured.
#[derive(Debug, Args)]
pub(crate) struct Harden {
    /// Interleaved pairs of runs per layout; 0 measures no time.
    #[arg(long, default_value_t = 31)]
    pairs: usize,
    /// Layouts of code and data per ratio: the first is that of the sources, the others are random.
    #[arg(long, default_value_t = 1)]
    layouts: u64,
    /// Only these: chase, sqlite3, pbzip2, memcached, locks, recovery, ripgrep, coreutils.
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
        if self.has("locks") {
            locks::print(&place)?;
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
                plain.text_size()?,
                hardened.text_size()?
            );
            if let (Some(before), Some(after)) = (plain.seconds, hardened.seconds) {
                println!("compile time {before:.1} s -> {after:.1} s");
            }
            Self::points(place, program, &folder, &hardened)?;
        }
        // No smaller difference than this means anything.
        self.times("the plain build again", program, &folder, [&plain, &plain])?;
        self.ratio("survival mode", program, &folder, [&plain, &hardened])?;
        let fix = place.build(program, &folder, "fix-none", Some("--harden-mode=fix"))?;
        self.ratio("fix mode, no site here", program, &folder, [&plain, &fix])?;
        let site = tables::first_hardened(&hardened.report)?;
        let options = format!("--harden-site={site}");
        let fix = place.build(program, &folder, "fix", Some(&options))?;
        let what = format!("fix mode, {site}");
        self.ratio(&what, program, &folder, [&plain, &fix])?;
        if self.setjmp {
            let options = "--harden-mechanism=setjmp --harden-caller-levels=0";
            let setjmp = place.build(program, &folder, "setjmp", Some(options))?;
            self.ratio("the paper's setjmp", program, &folder, [&plain, &setjmp])?;
            // Setjmp has no inter-procedural recovery: only this is like it.
            let alike = place.build(program, &folder, "alike", Some("--harden-caller-levels=0"))?;
            let what = "survival mode without callers, as setjmp";
            self.ratio(what, program, &folder, [&plain, &alike])?;
        }
        Ok(())
    }

    /// Table 5.4.
    #[expect(clippy::print_stdout, reason = "the table is the result")]
    fn sites(program: &Program, folder: &Path, hardened: &Built<'_>) -> anyhow::Result<()> {
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
        hardened: &Built<'_>,
    ) -> anyhow::Result<()> {
        let count = "--harden-count-points";
        let counting = place.build(program, folder, "counting", Some(count))?;
        let (all, for_locks) = program.workload.points(&counting.binary)?;
        let sums = Sums::of(&hardened.report)?;
        println!(
            "points: static {} ({} pads in callers), dynamic {all}",
            sums.points, sums.pads
        );
        let options = format!("{count} --harden-no-pruning");
        let unpruned = place.build(program, folder, "unpruned", Some(&options))?;
        let (all_before, for_locks_before) = program.workload.points(&unpruned.binary)?;
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

    #[expect(clippy::print_stdout, reason = "the table is the result")]
    fn ratio(
        &self,
        what: &str,
        program: &Program,
        folder: &Path,
        builds: [&Built<'_>; 2],
    ) -> anyhow::Result<()> {
        if fs::read(&builds[0].binary)? == fs::read(&builds[1].binary)? {
            println!("{what}: the same file as the plain build, byte for byte");
            return Ok(());
        }
        self.times(what, program, folder, builds)?;
        if !self.time_only {
            Self::instructions(what, program, builds);
        }
        Ok(())
    }

    /// The median of the ratios of interleaved pairs; of several layouts, the median of their medians.
    #[expect(clippy::print_stdout, reason = "the table is the result")]
    fn times(
        &self,
        what: &str,
        program: &Program,
        folder: &Path,
        builds: [&Built<'_>; 2],
    ) -> anyhow::Result<()> {
        let mut total = Total::default();
        let mut medians = Vec::new();
        let mut ratios = Vec::new();
        for number in 0..self.layouts {
            // Names of one length: that of the command line moves the stack.
            let binaries = ["one", "two"].map(|one| folder.join(format!("{}-{one}", program.name)));
            let layout = Layout::new(program, folder, number)?;
            for (built, binary) in builds.into_iter().zip(&binaries) {
                built.lay_out(&layout, binary)?;
            }
            let binaries = [&*binaries[0], &*binaries[1]];
            ratios = self.pairs_of(program, binaries, number % 2 == 1, &mut total)?;
            medians.extend(tables::median(&ratios).map(|median| median.value));
        }
        medians.sort_by(f64::total_cmp);
        let (sample, of) = if self.layouts > 1 {
            (&medians, "layouts")
        } else {
            (&ratios, "pairs")
        };
        if let Some(Median { value, low, high }) = tables::median(sample) {
            println!(
                "{what}: time ratio {value:.4} (95 % confidence {low:.4} to {high:.4}, {} {of}, {:.4} to {:.4}); {total}",
                sample.len(),
                sample[0],
                sample[sample.len() - 1],
            );
        }
        Ok(())
    }

    /// The ratios of interleaved pairs, sorted. Every other pair runs in the other order, beginning with that if
    /// `turned`: it matters which of two servers starts first.
    fn pairs_of(
        &self,
        program: &Program,
        [plain, other]: [&Path; 2],
        turned: bool,
        total: &mut Total,
    ) -> anyhow::Result<Vec<f64>> {
        let mut ratios = Vec::new();
        for pair in 0..self.pairs {
            let spent = if (pair % 2 == 0) != turned {
                program.workload.pair(plain, other)?
            } else {
                let [second, first] = program.workload.pair(other, plain)?;
                [first, second]
            };
            ratios.push(spent[1].all / spent[0].all);
            total.add(spent);
        }
        ratios.sort_by(f64::total_cmp);
        Ok(ratios)
    }

    #[expect(clippy::print_stdout, reason = "the table is the result")]
    fn instructions(what: &str, program: &Program, builds: [&Built<'_>; 2]) {
        let [before, after] = builds.map(|built| program.workload.instructions(&built.binary));
        if let (Some(before), Some(after)) = (before, after) {
            println!("{what}: instruction ratio {:.4}", after / before);
        }
    }
}

/// What all pairs of a measurement cost.
#[derive(Default)]
struct Total {
    all: [f64; 2],
    user: [f64; 2],
}

impl Total {
    fn add(&mut self, spent: [Spent; 2]) {
        for (which, spent) in spent.into_iter().enumerate() {
            self.all[which] += spent.all;
            self.user[which] += spent.user;
        }
    }
}

impl fmt::Display for Total {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([all, all_after], [user, user_after]) = (self.all, self.user);
        write!(
            formatter,
            "all pairs together {all:.2} s to {all_after:.2} s, {user:.2} s to {user_after:.2} s of them user time"
        )
    }
}
