//! A package of Rust with tests that are explored and predicted.

use std::path::Path;

use crate::command::{cargo_raddle, run};

/// A racing counter with an assertion in the way of Rust's tests.
const COUNTER: &str = r#"
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

fn count_twice(add: fn(&AtomicU32)) -> u32 {
    let counter = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| add(&counter));
        }
    });
    counter.load(SeqCst)
}

#[test]
fn racy() {
    assert_eq!(count_twice(|counter| counter.store(counter.load(SeqCst) + 1, SeqCst)), 2);
}

#[test]
fn fixed() {
    assert_eq!(count_twice(|counter| drop(counter.fetch_add(1, SeqCst))), 2);
}

#[test]
fn alone() {
    assert_eq!(1 + 1, 2);
}
"#;

/// Writes a package with one racy, one fixed and one plain test to a folder.
#[track_caller]
pub fn counter_package(folder: &Path) {
    let manifest =
        "[package]\nname = \"counter\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    std::fs::create_dir_all(folder.join("src")).expect("the folder can be written");
    std::fs::write(folder.join("Cargo.toml"), manifest).expect("the folder can be written");
    std::fs::write(folder.join("src/lib.rs"), COUNTER).expect("the folder can be written");
}

/// `cargo raddle` in the folder of a package; exit status and what it printed.
#[track_caller]
pub fn cargo_raddle_in(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = cargo_raddle();
    command
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .arg("raddle")
        .args(arguments);
    run(&mut command).told()
}
