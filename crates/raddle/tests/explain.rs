//! `raddle explain`: every kind that needs no kernel has a program that shows it, by the commands that are printed.

use std::path::Path;
use std::process::Command;

use raddle_testkit::{raddle_in, raddle_path, run, temporary};

fn explained(arguments: &[&str]) -> String {
    let ran = run(raddle_in(temporary().path(), &["explain"]).args(arguments)).expect(0);
    ran.stdout
}

/// Runs the commands that an explanation names, in an empty folder; what the last one printed.
fn as_printed(kind: &str, folder: &Path) -> (Option<i32>, String) {
    let text = explained(&[kind]);
    let (_, commands) = text
        .split_once("An example that can be run:\n")
        .unwrap_or_else(|| panic!("{kind} has no example: {text}"));
    let folder_of_raddle = raddle_path();
    let folder_of_raddle = folder_of_raddle.parent().expect("a folder");
    let path = std::env::var("PATH").expect("a path");
    let mut shell = Command::new("sh");
    shell
        .args(["-ec", commands])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", folder_of_raddle.display()));
    let ran = run(&mut shell);
    (ran.code, ran.stdout + &ran.stderr)
}

#[test]
fn every_example_shows_its_kind() {
    let kinds = explained(&["--list"]);
    let kinds = kinds.lines().filter(|kind| !kind.starts_with("kernel-"));
    let mut count = 0;
    for kind in kinds {
        let folder = temporary();
        let (status, text) = as_printed(kind, folder.path());
        assert_eq!(status, Some(1), "{kind}: {text}");
        assert!(
            text.contains(&format!("raddle explain {kind}")),
            "{kind}: {text}"
        );
        count += 1;
    }
    assert!(count > 40, "{count}");
}

#[test]
fn kinds_of_kernels_have_no_example() {
    let folder = temporary();
    let mut explain = raddle_in(folder.path(), &["explain", "--example", "kernel-oops"]);
    let ran = run(&mut explain).expect(2);
    assert!(
        ran.stderr.contains("takes a kernel with such a bug"),
        "{}",
        ran.stderr
    );
}
