//! Programs and servers whose runs are compared with serial orders, behind a hub: findings, recordings and the counts of
//! histories are those of local threads.

use std::path::Path;
use std::process::Command;

use raddle_testkit::{raddle, recordings, root, run, temporary};
use serde_json::Value;

use super::Hub;

/// Exit status, what was told, and recordings by name.
type Answer = (Option<i32>, Value, Vec<(String, Vec<u8>)>);

fn asked(folder: &Path, words: &[&str], hub: Option<&Hub>) -> (Answer, String) {
    let output = temporary();
    let mut command = raddle();
    command
        .current_dir(folder)
        .args(["linearize", "--json", "--time", "120", "--output"])
        .arg(output.path());
    if let Some(hub) = hub {
        command.args(["--hub", &hub.url]);
    }
    let ran = run(command.args(words));
    let text = ran
        .stdout
        .replace(&output.path().display().to_string(), "OUT");
    let told = serde_json::from_str(&text);
    let told = told.unwrap_or_else(|error| panic!("{error}: {}", ran.stderr));
    let files = recordings(output.path()).into_iter().map(|path| {
        let name = path.file_name().expect("a name").to_string_lossy();
        (name.into_owned(), std::fs::read(&path).expect("a file"))
    });
    ((ran.code, told, files.collect()), ran.stderr)
}

fn build(folder: &Path, source: &Path, name: &str) {
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-O1", "-pthread", "-DBUGGY", "-I"])
        .arg(root().join("crates/annotations/include"))
        .arg("-o");
    let status = gcc.arg(folder.join(name)).arg(source).status();
    assert!(status.expect("gcc is installed").success(), "{name}");
}

#[track_caller]
fn same(hub: &Hub, folder: &Path, words: &[&str], expected: i32) -> Value {
    let (local, _) = asked(folder, words, None);
    let (remote, told) = asked(folder, words, Some(hub));
    assert_eq!(local.0, Some(expected), "{words:?}: {:#}", local.1);
    assert_eq!(remote, local, "{words:?}: {told}");
    assert!(told.contains("back from"), "{told}");
    assert!(!told.contains("done here"), "{told}");
    local.1
}

#[test]
fn serial_orders_that_need_other_files_are_run_by_the_director() {
    let hub = Hub::start();
    let _worker = hub.worker("one");
    let folder = temporary();
    let folder = folder.path();
    for (name, text) in [("a", "1"), ("b", "2")] {
        std::fs::write(folder.join(name), text).expect("a file");
    }
    build(
        folder,
        &root().join("crates/raddle/tests/hub/first.c"),
        "first",
    );
    let words = ["--schedules", "60", "--", "./first"];
    let (local, _) = asked(folder, &words, None);
    let (remote, told) = asked(folder, &words, Some(&hub));
    assert_eq!(local.0, Some(1), "{:#}", local.1);
    assert_eq!(remote, local, "{told}");
    assert!(told.contains("jobs were done here"), "{told}");
    assert!(told.contains("a serial order asked for"), "{told}");
}

#[test]
fn harnesses_and_servers_have_the_same_answer() {
    let hub = Hub::start();
    let _workers = [hub.worker("one"), hub.worker("two")];
    let folder = temporary();
    let folder = folder.path();
    let sources = root().join("crates/raddle/tests/linearize");
    let server = root().join("corpus/table_server");
    build(folder, &sources.join("queue.c"), "queue");
    build(folder, &server.join("server.c"), "server");
    let told = same(&hub, folder, &["--schedules", "300", "--", "./queue"], 1);
    assert!(told["summary"]["histories"].as_u64() > Some(1), "{told:#}");
    let test = std::fs::read_dir(server.join("tests")).expect("tests");
    let mut tests: Vec<_> = test.map(|entry| entry.expect("a test").path()).collect();
    tests.sort();
    let first = tests.first().expect("a test of the server");
    std::fs::copy(first, folder.join("test.toml")).expect("a copy");
    let told = same(&hub, folder, &["--schedules", "100", "test.toml"], 1);
    assert!(told["summary"]["deviating"].as_u64() > Some(0), "{told:#}");
}
