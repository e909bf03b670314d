//! The kernel under test, its module of known races, and raddle run on them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::shell;

/// What raddle is run with.
#[derive(Debug)]
pub(in crate::bench) struct Guest {
    raddle: PathBuf,
    kernel: PathBuf,
    folder: PathBuf,
}

/// Figures of one test.
#[derive(Debug, Deserialize)]
pub(super) struct Summary {
    pub(super) schedules: u64,
    pub(super) failing: u64,
    pub(super) first_failing: Option<u64>,
    pub(super) decisions: u64,
    pub(super) points: u64,
    pub(super) shared_places: u64,
    pub(super) steps: u64,
    pub(super) instructions: u64,
    pub(super) restored_pages: u64,
    pub(super) restore_share: f64,
    pub(super) detector_share: f64,
    pub(super) liveness: [u64; 4],
    pub(super) liveness_places: [u64; 4],
    pub(super) liveness_schedules: [u64; 4],
    pub(super) liveness_schedules_any: u64,
}

/// A test of a file system in RAM.
#[derive(Debug)]
pub(super) struct FileSystem {
    pub(super) name: String,
    /// Without and with the checker that runs after the test.
    pub(super) plain: PathBuf,
    pub(super) checked: PathBuf,
    /// What its machine needs.
    pub(super) options: Vec<String>,
}

impl Guest {
    pub(in crate::bench) fn new(raddle: PathBuf, kernel: Option<&Path>) -> anyhow::Result<Self> {
        let kernel = match kernel {
            Some(kernel) => kernel.to_path_buf(),
            None => packaged()?,
        };
        let folder = shell::target_folder().join("bench-kernel");
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        let guest = Self {
            raddle,
            kernel,
            folder,
        };
        guest.build_module()?;
        Ok(guest)
    }

    /// Builds the modules of known races and of loops for this kernel.
    fn build_module(&self) -> anyhow::Result<()> {
        let into = self.module();
        std::fs::create_dir_all(&into)?;
        for entry in std::fs::read_dir(shell::root().join("corpus/kernel/module"))? {
            let path = entry?.path();
            if let Some(name) = path.file_name() {
                std::fs::copy(&path, into.join(name))?;
            }
        }
        let name = self.kernel.file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        let release = name.split_once('-').map_or("", |(_, release)| release);
        let headers = format!("KDIR=/usr/src/linux-headers-{release}");
        let into = into.display().to_string();
        shell::run("make", &["-s", "-C", &into, &headers])
    }

    fn module(&self) -> PathBuf {
        self.folder.join("module")
    }

    pub(super) fn bug(&self, name: &str) -> PathBuf {
        shell::root().join(format!("corpus/kernel/bugs/{name}.ktest"))
    }

    pub(in crate::bench) fn call(&self, name: &str) -> PathBuf {
        shell::root().join(format!("corpus/kernel/calls/{name}.ktest"))
    }

    pub(super) fn loop_test(&self, name: &str) -> PathBuf {
        shell::root().join(format!("corpus/kernel/loops/{name}.ktest"))
    }

    /// Writes a test of our own.
    pub(super) fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.raddle);
        command.args(["kernel", name, "--cache"]);
        command.arg(self.folder.join("cache"));
        command
    }

    /// Explores a test on one worker.
    pub(super) fn explore(&self, test: &Path, options: &[&str]) -> anyhow::Result<Summary> {
        #[derive(Deserialize)]
        struct Document {
            summary: [Summary; 1],
        }
        let mut command = self.command("explore");
        // Tests of file systems take their modules from the kernel's package.
        if !options.contains(&"--module") {
            command.arg("--modules").arg(self.module());
        }
        let output = command
            .args(["--json", "--timing", "-j1", "--time", "36000", "--kernel"])
            .arg(&self.kernel)
            .arg("--output")
            .arg(self.folder.join("recordings"))
            .args(options)
            .arg(test)
            .output()
            .context("cannot start raddle")?;
        let document: Document = serde_json::from_slice(&output.stdout).with_context(|| {
            let errors = String::from_utf8_lossy(&output.stderr);
            format!("{}: {errors}", test.display())
        })?;
        let [summary] = document.summary;
        Ok(summary)
    }

    pub(in crate::bench) fn kernel(&self) -> &Path {
        &self.kernel
    }

    /// The initial file system that runs a test of the module on other machines.
    pub(super) fn initramfs(&self, test: &Path, rounds: u32) -> anyhow::Result<PathBuf> {
        let archive = self.folder.join("alone.cpio");
        let output = self
            .command("initramfs")
            .args(["--rounds", &rounds.to_string(), "--modules"])
            .arg(self.module())
            .arg("--kernel")
            .arg(&self.kernel)
            .arg("--output")
            .arg(&archive)
            .arg(test)
            .output()
            .context("cannot start raddle")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{errors}");
        Ok(archive)
    }

    /// A recording of a known bug.
    pub(super) fn recording(&self, bug: &str) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join("recordings");
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        self.explore(&self.bug(bug), &["--until-found", "--schedules", "5000"])?;
        let found = std::fs::read_dir(&folder)?.next();
        let found = found.with_context(|| format!("`{bug}` was not found"))??;
        Ok(found.path())
    }

    /// Replays a recording and compares the traces; gives what raddle says.
    pub(super) fn retrace(
        &self,
        recording: &Path,
        times: u64,
        workers: u64,
    ) -> anyhow::Result<String> {
        let (times, workers) = (times.to_string(), workers.to_string());
        let output = self
            .command("replay")
            .args(["--times", &times, "--traced-on", &workers])
            .arg(recording)
            .output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{text}");
        let told = text.trim().rsplit_once(": ").map_or("", |(_, told)| told);
        Ok(told.to_owned())
    }

    /// The tests of file systems: their first lines say what the machine needs, and the last part of a checker's work
    /// is a program that the check section runs.
    pub(super) fn file_systems(&self) -> anyhow::Result<Vec<FileSystem>> {
        let Ok(entries) = std::fs::read_dir(shell::root().join("corpus/kernel/fs")) else {
            return Ok(Vec::new());
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        let mut tests = Vec::new();
        for checked in paths {
            let text = std::fs::read_to_string(&checked)?;
            let Some(name) = checked.file_stem().and_then(|stem| stem.to_str()) else {
                continue;
            };
            let (test, check) = text.split_once("\ncheck:").unwrap_or((&text, ""));
            let check: Vec<&str> = check
                .lines()
                .filter(|line| !line.trim_start().starts_with("run("))
                .collect();
            let plain = self.write(
                &format!("{name}-plain.ktest"),
                &format!("{test}\ncheck:{}\n", check.join("\n")),
            )?;
            tests.push(FileSystem {
                name: name.to_owned(),
                options: machine_options(&text),
                plain,
                checked,
            });
        }
        Ok(tests)
    }
}

/// The options that a comment `# Run with ...` names.
pub(in crate::bench) fn machine_options(text: &str) -> Vec<String> {
    let Some(line) = text.lines().find_map(|l| l.strip_prefix("# Run with ")) else {
        return Vec::new();
    };
    let quoted = line.split('"').enumerate();
    quoted
        .flat_map(|(index, part)| {
            if index % 2 == 1 {
                vec![part.to_owned()]
            } else {
                part.split_whitespace().map(str::to_owned).collect()
            }
        })
        .collect()
}

pub(in crate::bench) fn packaged() -> anyhow::Result<PathBuf> {
    let boot = shell::target_folder().join("kernel/boot");
    let entries = std::fs::read_dir(&boot)
        .with_context(|| format!("no kernel in {}: run `cargo xtask setup`", boot.display()))?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"))
        })
        .context("the package has no kernel")
}
