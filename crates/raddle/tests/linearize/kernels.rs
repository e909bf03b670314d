//! Calls of a kernel whose results no serial order of them explains.

use std::path::Path;

use raddle_testkit::kernel::{CORPUS, cache, explore, explore_files, kernel, raddle, recording};
use serde_json::Value;

use super::{folder, has_line};

/// Compares a test of the corpus with serial orders.
fn run(folder: &Path, test: &str, schedules: &str) -> (i32, Value, String) {
    let options = ["--linearize", "--json", "--schedules", schedules];
    told(explore(folder, &format!("serial/{test}"), &options))
}

fn told((code, text): (i32, String)) -> (i32, Value, String) {
    // What is told on standard error stands around the document.
    let document = text.find("{\n").and_then(|at| {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter();
        values.next()?.ok()
    });
    (code, document.unwrap_or(Value::Null), text)
}

#[test]
fn a_torn_read_is_an_error_that_no_order_gives() {
    let folder = folder();
    let (code, document, text) = run(folder.path(), "torn", "400");
    assert_eq!(code, 1, "{text}");
    assert!(
        has_line(
            &document,
            "unexpected-error",
            "+ B: ioctl(d, 122, 0) = error -EIO"
        ),
        "{text}"
    );
    let (recording, cache) = (recording(folder.path()), cache());
    let arguments = ["kernel", "replay", "--cache", &cache, &recording];
    let (code, text) = raddle(folder.path(), &arguments);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("the same run as recorded, bit for bit; the same failure"),
        "{text}"
    );
    let (code, document, text) = run(folder.path(), "torn-fixed", "200");
    assert_eq!(code, 0, "{text}");
    assert!(
        document["summary"][0]["histories"].as_u64() > Some(1),
        "{text}"
    );
}

/// What buffers hold is compared: a reader sees one old and one new page.
#[test]
fn a_read_of_two_pages_is_not_atomic() {
    let folder = folder();
    let (code, document, text) = run(folder.path(), "read-write", "400");
    assert_eq!(code, 1, "{text}");
    assert!(
        has_line(
            &document,
            "not-linearizable",
            "+ B: pread64(f, seen, 8192, 0)"
        ),
        "{text}"
    );
}

/// Names on tmpfs: every run has a serial order.
#[test]
fn names_of_tmpfs_change_one_after_the_other() {
    let folder = folder();
    let tests = [
        "rename-rename",
        "rename-exchange",
        "link-unlink",
        "open-truncate",
        "create-unlink",
        "truncate-append",
        "open-numbers",
    ];
    let files = tests.map(|test| format!("{CORPUS}/serial/{test}.ktest"));
    let options = ["--linearize", "--json", "--schedules", "150"];
    let (code, document, text) = told(explore_files(folder.path(), &files, &options));
    assert_eq!(code, 0, "{text}");
    for (test, summary) in tests
        .iter()
        .zip(document["summary"].as_array().expect("one each"))
    {
        // Both orders were seen, at least.
        assert!(summary["histories"].as_u64() > Some(1), "{test}: {text}");
        assert_eq!(summary["undecided"], 0, "{test}: {text}");
    }
}

/// Columns of calls run alone, and those that meet become tests: the same ones each time, in which tmpfs is serial.
#[test]
fn columns_that_meet_become_tests() {
    let folder = folder();
    let (kernel, cache) = (kernel(), cache());
    let generate = |to: &str| {
        let profile = ["kernel", "generate", "--profile"];
        let machine = [kernel.to_str().expect("UTF-8"), "--cache", &cache];
        let recipe = ["--only", "rename,link,unlink,open,truncate", "--calls", "1"];
        let size = ["--columns", "12", "--count", "5", to];
        let arguments = [&profile[..], &machine, &recipe, &size].concat();
        let (code, text) = raddle(folder.path(), &arguments);
        assert_eq!(code, 0, "{text}");
        let files = std::fs::read_dir(folder.path().join(to)).expect("a folder");
        let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
        files.sort();
        files
    };
    let (first, second) = (generate("first"), generate("second"));
    let read = |file: &std::path::PathBuf| std::fs::read_to_string(file).expect("a test");
    assert_eq!(
        first.iter().map(read).collect::<Vec<_>>(),
        second.iter().map(read).collect::<Vec<_>>()
    );
    assert_eq!(first.len(), 5);
    let options = ["--linearize", "--json", "--schedules", "40"];
    let files: Vec<String> = first
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let (code, _, text) = told(explore_files(folder.path(), &files, &options));
    assert_eq!(code, 0, "{text}");
    let arguments = [
        "kernel",
        "generate",
        "--profile",
        "k",
        "--only",
        "reboot",
        "t",
    ];
    let (code, text) = raddle(folder.path(), &arguments);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("no column can be made of `reboot`"), "{text}");
}
