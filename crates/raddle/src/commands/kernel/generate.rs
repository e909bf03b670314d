//! `raddle kernel generate`: test cases of concurrent file-system calls, from a seed.

mod profile;

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use raddle_kernel::generate::{FileSystem, Recipe, generate};

use crate::exit::{Code, Failure};
use crate::message;

/// Write test cases of concurrent file-system calls, from a seed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle kernel generate --profile /boot/vmlinuz --only rename,link,unlink --columns 40 tests\n  raddle kernel generate --fs ext4 --count 100 tests\n  raddle kernel explore --kernel /boot/vmlinuz --module \"brd rd_nr=1 rd_size=8192\" --program /sbin/mke2fs --program /sbin/e2fsck --schedules 200 tests/*.ktest"
)]
pub(crate) struct Generate {
    /// Folder to write the tests into.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// File system: tmpfs, ext4 or btrfs.
    #[arg(long, value_name = "NAME", default_value = "tmpfs", value_parser = ["tmpfs", "ext4", "btrfs"])]
    fs: String,
    /// Seed of all tests.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of the first test.
    #[arg(long, value_name = "N", default_value_t = 0)]
    first: u64,
    /// How many tests.
    #[arg(long, value_name = "N", default_value_t = 10)]
    count: u64,
    /// Threads of each test.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=8))]
    threads: u64,
    /// Calls of each thread.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=50))]
    calls: u64,
    /// Of 100 tests, how many end with the file-system checker.
    #[arg(long, value_name = "PERCENT", default_value_t = 25, value_parser = clap::value_parser!(u64).range(0..=100))]
    fsck: u64,
    /// Choose the threads by what they touch on this kernel: run columns of calls alone, and pair those that meet in its
    /// memory, the best pair first.
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["first", "threads", "fsck"])]
    profile: Option<PathBuf>,
    /// Columns that are profiled.
    #[arg(long, value_name = "N", default_value_t = 40, requires = "profile", value_parser = clap::value_parser!(u64).range(2..=400))]
    columns: u64,
    /// Calls that columns are made of, with commas; default: all that concern files.
    #[arg(
        long,
        value_name = "CALLS",
        value_delimiter = ',',
        requires = "profile"
    )]
    only: Vec<String>,
    /// Folder for boot snapshots; default: `raddle/kernel` in the user's cache folder.
    #[arg(long, value_name = "DIR", requires = "profile")]
    cache: Option<PathBuf>,
}

impl Generate {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let fs = FileSystem::ALL
            .into_iter()
            .find(|fs| fs.name() == self.fs)
            .unwrap_or(FileSystem::Tmpfs);
        if let Some(kernel) = &self.profile {
            return self.run_profiled(kernel, fs);
        }
        let recipe = Recipe {
            fs,
            seed: self.seed,
            threads: self.threads,
            calls: self.calls,
            fsck_percent: self.fsck,
        };
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot make {}", self.folder.display()))?;
        for number in self.first..self.first.saturating_add(self.count) {
            let name = format!("{}-{}-{number:05}.ktest", fs.name(), self.seed);
            let path = self.folder.join(name);
            std::fs::write(&path, generate(recipe, number))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        message::note(&format!(
            "wrote {} tests; explore them with: raddle kernel explore --kernel IMAGE {} {}",
            self.count,
            fs.options(),
            self.folder.join("*.ktest").display()
        ));
        Ok(Code::Clean)
    }
}
