//! A booted kernel and the modules of known races and of loops, made once for all tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use raddle_stdx::Digest;

use super::{CORPUS, kernel, raddle};
use crate::command::succeed;
use crate::folders::{once, target};
use crate::recordings::recordings;

/// The folder with boot snapshots, with the one that most tests want.
#[track_caller]
pub fn cache() -> String {
    let folder = once("kernel-cache", |folder| {
        let unfinished = folder.with_extension("new");
        let (code, text) = boot(&kernel(), &unfinished);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("is up on processors 0-1"), "{text}");
        std::fs::rename(unfinished, folder).expect("the cache can be moved");
    });
    folder.to_string_lossy().into_owned()
}

/// The folder with the modules of known races and of loops, built for this kernel.
pub fn module() -> String {
    let sources = module_sources();
    let mut digest = Digest::default();
    for path in &sources {
        digest.bytes(&std::fs::read(path).expect("it can be read"));
    }
    let name = format!("kernel-module-{:016x}", digest.value());
    let folder = once(&name, |folder| {
        let kernel = kernel();
        let release = kernel
            .file_name()
            .and_then(|name| name.to_str()?.strip_prefix("vmlinuz-"))
            .expect("the kernel's name has its release");
        let unfinished = folder.with_extension("new");
        std::fs::create_dir_all(&unfinished).expect("a folder");
        for path in &sources {
            let name = path.file_name().expect("a file");
            std::fs::copy(path, unfinished.join(name)).expect("a copy");
        }
        succeed(
            Command::new("make")
                .arg("-C")
                .arg(&unfinished)
                .arg(format!("KDIR=/usr/src/linux-headers-{release}")),
        );
        std::fs::rename(unfinished, folder).expect("the module can be moved");
    });
    folder.to_string_lossy().into_owned()
}

fn module_sources() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(format!("{CORPUS}/module")).expect("the module's source");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    paths.sort();
    paths
}

/// Boots with snapshots in a folder.
pub fn boot(kernel: &Path, cache: &Path) -> (i32, String) {
    let (kernel, cache) = (kernel.to_string_lossy(), cache.to_string_lossy());
    let arguments = [
        "kernel", "boot", "--quiet", "--kernel", &*kernel, "--cache", &*cache,
    ];
    raddle(&target(), &arguments)
}

/// Explores tests of a folder.
#[track_caller]
pub fn explore_files(folder: &Path, tests: &[String], extra: &[&str]) -> (i32, String) {
    on_files(&["kernel", "explore"], folder, tests, extra)
}

/// Runs a command on tests of a folder.
#[track_caller]
fn on_files(command: &[&str], folder: &Path, tests: &[String], extra: &[&str]) -> (i32, String) {
    let (kernel, cache) = (kernel(), cache());
    let mut arguments = command.to_vec();
    arguments.extend([
        "--kernel",
        kernel.to_str().expect("a path"),
        "--cache",
        &cache,
        "--time",
        "120",
    ]);
    if !extra.contains(&"-j") {
        arguments.push("-j1");
    }
    arguments.extend(extra);
    arguments.extend(tests.iter().map(String::as_str));
    raddle(folder, &arguments)
}

/// Explores a test of the corpus, with these modules.
pub fn explore(folder: &Path, test: &str, extra: &[&str]) -> (i32, String) {
    on_test(&["kernel", "explore"], folder, test, extra)
}

/// Runs a command, such as `kernel predict`, on a test of the corpus, with these modules.
#[track_caller]
pub fn on_test(command: &[&str], folder: &Path, test: &str, extra: &[&str]) -> (i32, String) {
    let module = module();
    let test = format!("{CORPUS}/{test}.ktest");
    let extra = [&["--modules", &module], extra].concat();
    on_files(command, folder, &[test], &extra)
}

/// The path of the recording that an exploration left in a folder.
#[track_caller]
pub fn recording(folder: &Path) -> String {
    let mut all = recordings(folder).into_iter();
    let path = all.next().expect("a recording was written");
    path.to_string_lossy().into_owned()
}
