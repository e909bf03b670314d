//! What the tests of `raddle kernel` share.

use std::path::PathBuf;

use crate::folders::target;

mod known;

pub use crate::command::told_in as raddle;
pub use known::{boot, cache, explore, explore_files, module, on_test, recording};

/// The test cases for kernels and their modules.
pub const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/kernel");

/// The kernel that `cargo xtask setup` downloads.
pub fn kernel() -> PathBuf {
    packaged("kernel")
}

/// A kernel that `cargo xtask setup` unpacks into a folder of the target.
pub fn packaged(folder: &str) -> PathBuf {
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
