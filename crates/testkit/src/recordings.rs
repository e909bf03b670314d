//! The recordings that raddle leaves in a folder.

use std::path::{Path, PathBuf};

/// All recordings of programs and of kernels in a folder, by name.
pub fn recordings(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder exists");
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|ending| ending == "raddle" || ending == "kraddle")
        })
        .collect();
    found.sort();
    found
}

/// The names of the recordings of failures: data races have recordings, too.
pub fn failures(folder: &Path) -> Vec<String> {
    let names = recordings(folder).into_iter();
    let names = names.filter_map(|path| path.file_name()?.to_str().map(str::to_owned));
    names.filter(|name| !name.contains("-DR-")).collect()
}

/// The name of the first recording of a failure.
#[track_caller]
pub fn recording(folder: &Path) -> String {
    let mut all = failures(folder).into_iter();
    all.next().expect("a recording was written")
}
