//! What the tests of the hardening commands share: compiling, running with a limit, failing without LLVM.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::command::{finished_within, text};
pub use crate::command::{number, succeed};
pub use crate::folders::root;
use crate::folders::{scratch, temporary};

/// The program under test.
pub fn raddle() -> Command {
    let mut command = crate::command::raddle();
    command
        .env_remove("RADDLE_HARDEN_OPTIONS")
        .env("XDG_CACHE_HOME", scratch());
    command
}

/// A test that cannot run must not look like one that passed.
fn require_llvm() {
    for part in ["include/llvm/Plugins/PassPlugin.h", "bin/clang"] {
        let path = Path::new("/usr/lib/llvm-22").join(part);
        assert!(
            path.is_file(),
            "{} is missing: the tests of hardening need LLVM 22 (clang-22, lld-22, llvm-22, llvm-22-dev); \
             `cargo xtask setup` installs it",
            path.display()
        );
    }
}

/// `raddle cc` or `raddle c++` with hardening that must work.
pub fn compile(driver: &str, arguments: &[&str]) {
    succeed(raddle().arg(driver).arg("--harden-strict").args(arguments));
}

/// A folder for the files of one test.
#[derive(Debug)]
pub struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    pub fn open() -> Self {
        require_llvm();
        Self {
            folder: temporary(),
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where a file of this name is, as an argument.
    pub fn path(&self, name: &str) -> String {
        self.folder()
            .join(name)
            .to_str()
            .expect("paths of tests are text")
            .to_owned()
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("the folder can be written");
        path
    }

    /// Compiles without us; `plain` is the program.
    pub fn plain(&self, options: &[&str], source: &str) -> PathBuf {
        let program = self.folder().join("plain");
        succeed(
            Command::new("/usr/lib/llvm-22/bin/clang")
                .args(options)
                .args(["-pthread", "-isystem"])
                .arg(root().join("crates/harden-rt/rt"))
                .args([source, "-o"])
                .arg(&program),
        );
        program
    }

    /// Compiles and hardens to a program of this name.
    pub fn harden(&self, driver: &str, options: &[&str], sources: &[&str], name: &str) -> PathBuf {
        let program = self.path(name);
        let output = ["-pthread", "-o", &program];
        compile(driver, &[options, sources, &output].concat());
        program.into()
    }

    /// Compiles and hardens one source in this folder; the list of its sites.
    pub fn sites(&self, options: &[&str], source: &str) -> String {
        let report = self.path("sites.jsonl");
        succeed(
            raddle()
                .current_dir(self.folder())
                .args(["cc", "--harden-strict", "-c"])
                .arg(format!("--harden-report={report}"))
                .args(options)
                .args([source, "-o", &self.path("sites.o")]),
        );
        let shown = succeed(raddle().args(["harden", "--show", &report]));
        std::fs::remove_file(report).expect("it was written");
        shown
    }
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ended {
    /// Exit status, or the negative signal, or `None` for a program that had to be ended.
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a program for at most `limit`; a program that hangs is ended.
pub fn run(program: &Path, settings: &[(&str, &str)], limit: Duration) -> Ended {
    use std::os::unix::process::ExitStatusExt as _;
    let mut command = Command::new(program);
    command
        .envs(settings.iter().copied())
        .env("RUST_BACKTRACE", "0");
    let (output, is_late) = finished_within(&mut command, limit);
    let status = output.status;
    let status = status.code().or(status.signal().map(|signal| -signal));
    Ended {
        status: status.filter(|_| !is_late),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}
