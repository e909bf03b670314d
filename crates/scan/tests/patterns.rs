//! Every file of `test_data` is one test: what its `//~` marks say must be found, and nothing else.

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use raddle_scan::{Level, Options};

fn main() {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("test_data");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let trials = files
        .into_iter()
        .map(|file| {
            let name = file
                .strip_prefix(&root)
                .unwrap_or(&file)
                .display()
                .to_string();
            Trial::test(name, move || check(&file))
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit();
}

fn collect(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "c") {
            out.push(path);
        }
    }
}

fn check(file: &Path) -> Result<(), Failed> {
    let options = Options {
        paths: Vec::new(),
        patterns: raddle_scan::shipped_files(),
        only: Vec::new(),
        jobs: 1,
        level: Level::FULL,
        limit: None,
        config: raddle_config::scan::Scan::default(),
        former: Vec::new(),
    };
    for result in raddle_scan::test_patterns(file, &options)? {
        if !result.passed() {
            return Err(format!(
                "not found: {:?}\nnot expected: {:?}",
                result.missing, result.unexpected
            )
            .into());
        }
    }
    let marks = std::fs::read_to_string(file)?.matches("//~").count();
    let is_buggy = file
        .file_stem()
        .is_some_and(|stem| stem.to_string_lossy().ends_with("buggy"));
    if is_buggy != (marks > 0) {
        return Err("a file called buggy has marks, any other has none".into());
    }
    Ok(())
}
