//! Tests of a kernel behind a hub: a worker boots nothing, and the answer is that of local threads.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use raddle_testkit::kernel::{CORPUS, cache, explore, explore_files, kernel, module};
use raddle_testkit::{raddle, recordings, temporary};
use serde_json::Value;

use super::{Hub, Running};

/// What a campaign told and left, without what it cost.
#[derive(Debug, PartialEq)]
struct Answer {
    code: i32,
    told: Value,
    recordings: Vec<(String, Vec<u8>)>,
}

/// Figures that tell what runs cost, and on whom.
const COSTS: [&str; 5] = [
    "instructions",
    "restored_pages",
    "restore_share",
    "detector_share",
    "seconds",
];

fn answer(folder: &Path, code: i32, text: &str) -> Answer {
    let json = std::fs::read_to_string(folder.join("told.json"));
    let json = json.unwrap_or_else(|error| panic!("{error}: {text}"));
    let mut told: Value = serde_json::from_str(&json).expect("JSON");
    for counts in told["summary"].as_array_mut().expect("counts of each test") {
        let counts = counts.as_object_mut().expect("figures");
        for cost in COSTS {
            assert!(counts.remove(cost).is_some(), "{cost} in {counts:?}");
        }
    }
    let files = recordings(folder).into_iter().map(|path| {
        let name = path.file_name().expect("a name").to_string_lossy();
        (name.into_owned(), std::fs::read(&path).expect("a file"))
    });
    Answer {
        code,
        told,
        recordings: files.collect(),
    }
}

/// Local threads and workers of a hub explore the same test; gives what both told, and the words of the second.
fn both(hub: &Hub, test: &str, options: &[&str]) -> ([Answer; 2], String) {
    let mut words = String::new();
    let answers = [&[][..], &["--hub", &hub.url]].map(|more| {
        let folder = temporary();
        let options = [options, &["--report", "json=told.json"], more].concat();
        let (code, text) = explore(folder.path(), test, &options);
        words.clone_from(&text);
        answer(folder.path(), code, &text)
    });
    (answers, words)
}

#[test]
fn tests_of_a_kernel_have_the_same_answer_and_boot_once() {
    let hub = Hub::start();
    let _workers = [hub.worker("one"), hub.worker("two")];
    let cases = [
        ("bugs/torn", &["--schedules", "200"][..]),
        ("bugs/torn-fixed", &["--schedules", "120", "--seed", "5"]),
        ("bugs/watch", &["--schedules", "100", "--races"]),
    ];
    let mut codes = Vec::new();
    for (number, (test, options)) in cases.into_iter().enumerate() {
        let ([local, remote], words) = both(&hub, test, options);
        assert_eq!(remote, local, "{test}: {words}");
        assert!(words.contains("back from"), "{words}");
        assert!(!words.contains("done here"), "{words}");
        if number > 0 {
            // Boot snapshot, kernel, and module are there from the first test.
            assert!(words.contains(": 1 file ("), "{words}");
        }
        codes.push(local.code);
    }
    assert_eq!(codes, [1, 0, 1]);
    for name in ["one", "two"] {
        let log = hub.log(name);
        assert!(log.contains("is ready on thread 1"), "{log}");
    }
}

#[test]
fn a_director_that_was_killed_goes_on_where_it_was() {
    let hub = Hub::start();
    let _worker = hub.worker("one");
    let test = format!("{CORPUS}/bugs/torn.ktest");
    let options = [
        "--schedules",
        "500",
        "--seed",
        "9",
        "--report",
        "json=told.json",
    ];
    let local = temporary();
    let (code, text) = explore(local.path(), "bugs/torn", &options);
    let local = answer(local.path(), code, &text);

    let folder = temporary();
    let mut command = raddle();
    command
        .current_dir(folder.path())
        .args([
            "kernel", "explore", "--time", "120", "--hub", &hub.url, "--kernel",
        ])
        .arg(kernel())
        .args(["--cache", &cache(), "--modules", &module()])
        .args(options)
        .arg(&test)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut director = Running::start(&mut command);
    let begun = Instant::now();
    while !hub.log("one").contains("is ready") {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{}",
            hub.log("one")
        );
        std::thread::park_timeout(Duration::from_millis(20));
    }
    std::thread::park_timeout(Duration::from_millis(300));
    director.kill();

    let options = [&options[..], &["--hub", &hub.url, "--resume"]].concat();
    let (code, text) = explore(folder.path(), "bugs/torn", &options);
    assert_eq!(answer(folder.path(), code, &text), local, "{text}");
    assert!(text.contains("outcomes were there already"), "{text}");
}

#[test]
fn what_no_hub_can_do_is_refused_with_the_reason() {
    let hub = Hub::start();
    let folder = temporary();
    let test = "thread a:\n    getpid() > 0\nthread b:\n    getpid() > 0\n";
    std::fs::write(folder.path().join("t.ktest"), test).expect("a file");
    for (option, words) in [
        ("--exhaustive", "each chosen by the one before"),
        ("--linearize", "on one machine only"),
    ] {
        let options = ["--hub", &hub.url, option];
        let (code, text) = explore_files(folder.path(), &["t.ktest".to_owned()], &options);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(words), "{text}");
    }
}
