//! Where things are.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the checkout is where it was built")
}

/// The source of a test program, such as `explore/lost.c`.
pub fn test_program(name: &str) -> PathBuf {
    root().join("crates/raddle/tests").join(name)
}

/// The folder that cargo builds in, with what `cargo xtask setup` downloads.
pub fn target() -> PathBuf {
    let folder = build_folder();
    folder.parent().map_or(folder.clone(), Path::to_path_buf)
}

/// The folder with the programs of this build, such as `target/debug`.
pub(crate) fn build_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own file");
    // Tests lie in a folder `deps` beside the programs.
    let folder = test.ancestors().nth(2).expect("it lies in a target folder");
    folder.to_path_buf()
}

/// A folder of the target for files that outlive a test.
pub fn scratch() -> PathBuf {
    let folder = target().join("tmp");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// A folder that lives as long as the value.
pub fn temporary() -> TempDir {
    TempDir::new().expect("there is a writable folder for temporary files")
}

/// Something in the target folder that is made once for all tests, whichever of them comes first.
pub fn once(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let folder = scratch();
    let lock = std::fs::File::create(folder.join(format!("{name}.lock"))).expect("a lock file");
    lock.lock().expect("the lock can be waited for");
    let made = folder.join(name);
    if !made.exists() {
        make(&made);
    }
    made
}
