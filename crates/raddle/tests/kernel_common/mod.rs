//! What the tests of `raddle kernel` share.

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/kernel");

/// What all tests share: `kernel/` beside the test folder of the target.
pub(crate) fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("the test folder lies in the target folder")
}

/// The kernel that `cargo xtask setup` downloads.
pub(crate) fn kernel() -> PathBuf {
    packaged("kernel")
}

/// A kernel that `cargo xtask setup` unpacks into a folder of the target.
pub(crate) fn packaged(folder: &str) -> PathBuf {
    let boot = target().join(folder).join("boot");
    let entries = std::fs::read_dir(&boot)
        .unwrap_or_else(|_| panic!("no kernel in {}: run `cargo xtask setup`", boot.display()));
    entries
        .map(|entry| entry.expect("the folder can be read").path())
        .find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"))
        })
        .expect("the package has a kernel")
}

/// Runs raddle in a folder: its exit status and what it printed, errors last.
pub(crate) fn raddle(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_raddle"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("raddle starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), text + &errors)
}
