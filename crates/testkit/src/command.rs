//! Running raddle and other commands.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::folders::build_folder;

/// Far beyond what any command of these takes; what is still running then hangs.
const LIMIT: Duration = Duration::from_secs(1200);

/// The program under test.
pub fn raddle_path() -> PathBuf {
    built("raddle")
}

/// What was built beside the tests: cargo says where, and puts it there.
fn built(name: &str) -> PathBuf {
    std::env::var_os(format!("CARGO_BIN_EXE_{name}"))
        .map_or_else(|| build_folder().join(name), PathBuf::from)
}

/// The program under test, as a command.
pub fn raddle() -> Command {
    Command::new(raddle_path())
}

/// `cargo raddle`, as a command.
pub fn cargo_raddle() -> Command {
    Command::new(built("cargo-raddle"))
}

/// The program under test in a folder.
pub fn raddle_in(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = raddle();
    command.current_dir(folder).args(arguments);
    command
}

/// Runs raddle in a folder.
#[track_caller]
pub fn output_in(folder: &Path, arguments: &[&str]) -> Output {
    finished(&mut raddle_in(folder, arguments))
}

/// Runs raddle in a folder: its exit status and what it printed, errors last.
#[track_caller]
pub fn told_in(folder: &Path, arguments: &[&str]) -> (i32, String) {
    run(&mut raddle_in(folder, arguments)).told()
}

/// Output as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a command did: its exit status (none if a signal ended it) and what it wrote.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// It ended with this status.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// It ended by itself in one of the ways that the manual tells, and not by a fault of ours.
    #[track_caller]
    pub fn expect_orderly(self, what: &str) -> Self {
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

    /// The exit status (-1 if a signal ended it) and everything that it wrote, errors last.
    pub fn told(self) -> (i32, String) {
        (self.code.unwrap_or(-1), self.stdout + &self.stderr)
    }
}

/// Runs a command to its end; one that hangs is a failure of the test.
#[track_caller]
pub fn run(command: &mut Command) -> Ran {
    let output = finished(command);
    Ran {
        code: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

/// Runs a command that must succeed; returns its standard output.
#[track_caller]
pub fn succeed(command: &mut Command) -> String {
    let output = finished(command);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "{command:?} ended with {}:\n{stdout}{stderr}",
        output.status
    );
    stdout
}

#[track_caller]
fn finished(command: &mut Command) -> Output {
    let (output, is_late) = finished_within(command, LIMIT);
    assert!(!is_late, "{command:?} hangs");
    output
}

/// Runs a command to its end, or ends it when its time is up; whether it had to be ended.
#[track_caller]
#[expect(
    clippy::disallowed_methods,
    reason = "another thread reads what it writes while the clock decides whether it hangs"
)]
pub(crate) fn finished_within(command: &mut Command, limit: Duration) -> (Output, bool) {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}; `cargo xtask setup` installs it"));
    let id = child.id();
    let (sender, receiver) = channel();
    // Its output is read while it runs, so that a full pipe does not stop it.
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let (output, is_late) = match receiver.recv_timeout(limit) {
        Ok(output) => (output, false),
        Err(_) => {
            send(id, "-KILL");
            (receiver.recv().expect("the reader does not panic"), true)
        }
    };
    (output.expect("its output can be read"), is_late)
}

/// Sends a signal to a process that the test has started.
#[track_caller]
pub fn send(process: u32, signal: &str) {
    let sent = Command::new("kill")
        .args([signal, &process.to_string()])
        .status();
    assert!(sent.expect("kill is installed").success());
}

/// A number from the environment, for longer runs than continuous integration affords.
pub fn number<N: std::str::FromStr>(name: &str, otherwise: N) -> N {
    let asked = std::env::var_os(name);
    asked
        .and_then(|text| text.to_str()?.parse().ok())
        .unwrap_or(otherwise)
}
