//! What the tests of the hardening commands share: compiling, running with a limit, failing without LLVM.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a surprise ends the test"
)]

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The program under test.
pub(crate) fn raddle() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_raddle"));
    command
        .env_remove("RADDLE_HARDEN_OPTIONS")
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
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

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Runs a command that must succeed; returns its standard output.
pub(crate) fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?} ended with {}:\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// `raddle cc` or `raddle c++` with hardening that must work.
pub(crate) fn compile(driver: &str, arguments: &[&str]) {
    succeed(raddle().arg(driver).arg("--harden-strict").args(arguments));
}

/// A folder for the files of one test.
#[derive(Debug)]
pub(crate) struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    pub(crate) fn open() -> Self {
        require_llvm();
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where a file of this name is, as an argument.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Compiles without us; `plain` is the program.
    pub(crate) fn plain(&self, options: &[&str], source: &str) -> PathBuf {
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
    pub(crate) fn harden(
        &self,
        driver: &str,
        options: &[&str],
        sources: &[&str],
        name: &str,
    ) -> PathBuf {
        let program = self.path(name);
        let output = ["-pthread", "-o", &program];
        compile(driver, &[options, sources, &output].concat());
        program.into()
    }

    /// Compiles and hardens one source in this folder; the list of its sites.
    pub(crate) fn sites(&self, options: &[&str], source: &str) -> String {
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
        std::fs::remove_file(report).unwrap();
        shown
    }
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ended {
    /// Exit status, or the negative signal, or `None` for a program that had to be ended.
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program for at most `limit`; a program that hangs is ended.
pub(crate) fn run(program: &Path, settings: &[(&str, &str)], limit: Duration) -> Ended {
    use std::os::unix::process::ExitStatusExt as _;
    let mut child = Command::new(program)
        .envs(settings.iter().copied())
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code().or(status.signal().map(|signal| -signal));
        }
        if start.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut stdout)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    Ended {
        status,
        stdout,
        stderr,
    }
}

/// A number from the environment, for longer runs than continuous integration affords.
pub(crate) fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}
