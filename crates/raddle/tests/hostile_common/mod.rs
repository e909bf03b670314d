//! What the tests of attacks and faults share: raddle with a limit on its time, and small programs.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Far beyond what any of these runs takes; what is still running then hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// How often random tests are repeated: `cargo xtask attack` and `faults` ask for more.
pub(crate) fn rounds(few: u64) -> u64 {
    let asked = std::env::var("RADDLE_ROUNDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(few)
}

pub(crate) fn raddle(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_raddle"));
    command.current_dir(folder).args(arguments);
    command
}

/// What a command did: its exit status (none if a signal ended it) and what it wrote.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// It ended by itself in one of the ways that the manual tells, and not by a fault of ours.
    #[track_caller]
    pub(crate) fn expect_orderly(self, what: &str) -> Self {
        assert!(
            matches!(self.code, Some(0..=4 | 125 | 130)),
            "{what}: {:?}\n{}\n{}",
            self.code,
            self.stdout,
            self.stderr
        );
        assert!(!self.stderr.contains("panicked"), "{what}: {}", self.stderr);
        self
    }
}

/// Runs a command to its end; one that hangs is a failure of the test.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> Ran {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let output = wait(child, command);
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[track_caller]
fn wait(child: Child, command: &Command) -> Output {
    let id = child.id().to_string();
    let begun = Instant::now();
    // Its output is read by another thread, so that a full pipe does not stop it.
    let reader = std::thread::spawn(move || child.wait_with_output());
    while !reader.is_finished() {
        if begun.elapsed() > LIMIT {
            drop(Command::new("kill").args(["-9", &id]).status());
            panic!("{command:?} hangs");
        }
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let output = reader.join().expect("the reader does not panic");
    output.expect("its output can be read")
}

/// Compiles a small program.
pub(crate) fn compile(folder: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let file = folder.join(format!("{name}.c"));
    std::fs::write(&file, source).expect("the source can be written");
    let program = folder.join(name);
    let status = Command::new("gcc")
        .args(["-g", "-O0", "-pthread"])
        .args(flags)
        .arg("-o")
        .arg(&program)
        .arg(&file)
        .status()
        .expect("gcc is installed");
    assert!(status.success());
    program
}

/// The source of a program that fails in some interleavings.
pub(crate) const LOST: &str = include_str!("../explore/lost.c");
