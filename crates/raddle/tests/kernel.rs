//! `raddle kernel` from the outside, on the packaged kernel that `cargo xtask setup` downloads.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use raddle_testkit::kernel::{
    CORPUS, boot, cache, explore, explore_files, kernel, raddle, recording,
};
use raddle_testkit::raddle_path;
use raddle_testkit::schema::{FINDINGS, SARIF, checked};
use tempfile::TempDir;

/// Explores a test that is given as text.
fn explore_text(folder: &Path, text: &str, extra: &[&str]) -> (i32, String) {
    std::fs::write(folder.join("t.ktest"), text).expect("it can be written");
    explore_files(folder, &["t.ktest".to_owned()], extra)
}

/// A known bug is found, with these words in the report, and replays; its fixed twin is clean.
#[track_caller]
fn check(bug: &str, words: &[&str]) {
    let folder = TempDir::new().expect("a folder");
    let (code, text) = explore(
        folder.path(),
        &format!("bugs/{bug}"),
        &["--schedules", "2000", "--until-found"],
    );
    assert_eq!(code, 1, "{text}");
    for word in words {
        assert!(text.contains(word), "no `{word}` in:\n{text}");
    }
    let (recording, cache) = (recording(folder.path()), cache());
    let arguments = [
        "kernel", "replay", "--times", "2", "--cache", &cache, &recording,
    ];
    let (code, text) = raddle(folder.path(), &arguments);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("the same run as recorded, bit for bit; the same failure"),
        "{text}"
    );
    let (code, text) = explore(
        folder.path(),
        &format!("bugs/{bug}-fixed"),
        &["--schedules", "300"],
    );
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("0 findings"), "{text}");
}

#[test]
fn null_dereference() {
    check(
        "open-close",
        &["NULL pointer dereference", "open_close_call", "Oops"],
    );
}

#[test]
fn list_corruption() {
    check("watch", &["list_del corruption"]);
}

#[test]
fn torn_read() {
    check("torn", &["gave -EIO"]);
}

#[test]
fn wrong_error_value() {
    check("error-value", &["gave -ENOENT"]);
}

#[test]
fn reference_count() {
    check("refcount", &["refcount_t: addition on 0"]);
}

#[test]
fn rcu_misuse() {
    check("rcu", &["kernel-warning", "holds an RCU read side"]);
}

#[test]
fn double_free() {
    check("double-free", &["double"]);
}

/// The thread dies with the console lock: only a panic gets the report out.
#[test]
fn oops_under_the_console_lock() {
    let words = [
        "BUG: kernel NULL pointer dereference",
        "in draw_cursor",
        "Oops",
        "RIP: 0010:draw_cursor",
    ];
    check("console", &words);
}

#[test]
fn a_report_of_the_allocator() {
    let words = [
        "BUG raddle_widget: Poison overwritten",
        "an object of raddle_widget, allocated in poison_call, freed in poison_call",
        "kernel-sanitizer",
    ];
    check("poison", &words);
}

#[test]
fn lost_wake_up() {
    check("lost-wakeup", &["never returns"]);
}

#[test]
fn interrupt_against_thread() {
    check("timer", &["`ioctl(d, 162, 0) == 0` gave -EIO"]);
}

/// The timer's interrupt is to blame; if it runs only when no other context can, nothing fails.
#[test]
fn only_some_contexts_can_be_let_run() {
    let folder = TempDir::new().expect("a folder");
    let explored = |contexts: &str| {
        let options = ["--schedules", "400", "--concise", "--contexts", contexts];
        explore(folder.path(), "bugs/timer", &options)
    };
    let (code, text) = explored("cpus,0xec");
    assert_eq!(code, 1, "{text}");
    for contexts in ["cpus", "cpus,0xfb"] {
        let (code, text) = explored(contexts);
        assert_eq!(code, 0, "{text}");
    }
    // The second thread has to run in the end, or the test would not.
    let (code, text) = explored("0");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("somebody outside of --contexts"), "{text}");
    let (code, text) = explored("0xec");
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("add `cpus`"), "{text}");
}

/// Who waits in a loop without PAUSE is passed over at once if the loop fits into the window, otherwise when its
/// patience is at its end.
#[test]
fn a_loop_without_pause_is_noticed_if_it_fits_into_the_window() {
    let folder = TempDir::new().expect("a folder");
    let explored = |test: &str, window: &[&str]| {
        let schedules = ["--schedules", "100", "--json"];
        let (code, text) = explore(folder.path(), test, &[&schedules, window].concat());
        assert_eq!(code, 0, "{text}");
        // Progress is told on standard error, which comes behind the document.
        let document = text.split("\nraddle: ").next().expect("it has a beginning");
        let told: serde_json::Value = serde_json::from_str(document).expect("JSON");
        let times = |heuristic: usize| told["summary"][0]["liveness"][heuristic].as_u64();
        let [Some(looping), Some(starving)] = [2, 3].map(times) else {
            panic!("no counts in {text}");
        };
        (looping, starving)
    };
    // The first run is made before there are points to look at.
    for (test, window) in [("short", &[][..]), ("long", &["--loop-window", "100"])] {
        let (looping, starving) = explored(&format!("loops/{test}"), window);
        assert!(looping > 10 && starving <= 1, "{looping} {starving}");
    }
    for (test, window) in [("short", &["--loop-window", "0"][..]), ("long", &[])] {
        let (looping, starving) = explored(&format!("loops/{test}"), window);
        assert!(looping == 0 && starving > 10, "{looping} {starving}");
    }
}

/// A loop that counts in memory, with the same registers each time, goes on alone to its end: nothing waits there. SKI's
/// rule takes it for waiting, so that the one preemption that fails is never followed to its end.
#[test]
fn a_loop_that_counts_in_memory_is_not_set_aside() {
    let folder = TempDir::new().expect("a folder");
    let explored = |extra: &[&str]| {
        let options = [&["--schedules", "600", "--until-found"][..], extra].concat();
        explore(folder.path(), "loops/counting", &options)
    };
    let (code, text) = explored(&[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("`ioctl(d, 105, 0) == 0` gave -EIO"), "{text}");
    let (code, text) = explored(&["--liveness", "ski"]);
    assert_eq!(code, 0, "{text}");
    for words in ["share of the schedules: H1 ", "so often per schedule: H1 "] {
        assert!(text.contains(words), "{text}");
    }
}

/// What was found under SKI's rule replays, and a loop that does wait is told by H3 as long as it fits into the window.
#[test]
fn liveness_can_be_inferred_as_ski_does() {
    let folder = TempDir::new().expect("a folder");
    let ski = ["--liveness", "ski", "--schedules", "100", "--json"];
    for (test, expected) in [("short", 2), ("long", 3)] {
        let (code, text) = explore(folder.path(), &format!("loops/{test}"), &ski);
        assert_eq!(code, 0, "{text}");
        let document = text.split("\nraddle: ").next().expect("it has a beginning");
        let told: serde_json::Value = serde_json::from_str(document).expect("JSON");
        let summary = &told["summary"][0];
        for table in ["liveness_percent", "liveness_per_schedule"] {
            let figure = |index: usize| summary[table][index].as_f64().expect("a figure");
            let others = if expected == 2 { 3 } else { 2 };
            assert!(
                figure(expected) > 0.0 && figure(others) < figure(expected),
                "{text}"
            );
            assert!(figure(4) >= figure(expected), "{text}");
        }
    }
    let ski = ["--liveness", "ski", "--schedules", "2000", "--until-found"];
    let (code, text) = explore(folder.path(), "bugs/lost-wakeup", &ski);
    assert_eq!(code, 1, "{text}");
    let (recording, cache) = (recording(folder.path()), cache());
    let (code, text) = raddle(
        folder.path(),
        &["kernel", "replay", "--cache", &cache, &recording],
    );
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("the same run as recorded"), "{text}");
}

/// All interleavings that switch in the function with the bug: the bug is among them, and its fixed twin has none. Neither
/// is told as a proof, since processors are switched nowhere else.
#[test]
fn all_interleavings_of_a_function_are_explored() {
    let folder = TempDir::new().expect("a folder");
    let all = ["--exhaustive", "--focus", "double_free_call"];
    let (code, text) = explore(folder.path(), "bugs/double-free", &all);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("interleavings at this granularity explored"),
        "{text}"
    );
    let (code, text) = explore(folder.path(), "bugs/double-free-fixed", &all);
    assert_eq!(code, 0, "{text}");
    for words in [
        "0 findings",
        "there may be others",
        "only in the code that was named",
    ] {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
    assert!(!text.contains("; all "), "{text}");
    // The whole test is too large, and that is said.
    let some = ["--exhaustive", "--schedules", "12"];
    let (code, text) = explore(folder.path(), "bugs/double-free-fixed", &some);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains(" of about ") && !text.contains("; all "),
        "{text}"
    );
}

#[test]
fn a_race_that_fails_nothing_is_seen_as_a_race() {
    let folder = TempDir::new().expect("a folder");
    let schedules = ["--schedules", "40", "--races"];
    let (code, text) = explore(folder.path(), "bugs/counter", &schedules);
    assert_eq!(code, 0, "one that may be on purpose is no failure: {text}");
    assert!(
        text.contains("data race between counter_call and counter_call"),
        "{text}"
    );
    assert!(text.contains("in a module, perhaps benign: "), "{text}");
    // A project can say that a function synchronises.
    let config = "version = 1\n[kernel]\nmore-locks = [\"counter_c*\"]\n";
    std::fs::write(folder.path().join("raddle.toml"), config).expect("it can be written");
    let (_, text) = explore(folder.path(), "bugs/counter", &schedules);
    assert!(!text.contains("counter_call and counter_call"), "{text}");
    std::fs::remove_file(folder.path().join("raddle.toml")).expect("it can be removed");
    let (_, text) = explore(folder.path(), "bugs/counter-fixed", &schedules);
    assert!(!text.contains("counter_call and counter_call"), "{text}");
}

#[test]
fn workers_do_not_change_what_is_found() {
    let folder = TempDir::new().expect("a folder");
    let figures = |jobs: &str| {
        let (_, text) = explore(
            folder.path(),
            "bugs/torn",
            &[
                "--schedules",
                "400",
                "--json",
                "--report",
                "sarif=out.sarif",
                "-j",
                jobs,
            ],
        );
        // What was found is told on standard error, too, which comes behind the document.
        let document = text.split("\nraddle: ").next().expect("it has a beginning");
        let value = checked(FINDINGS, document);
        let locks = &value["findings"][0]["steps"][0]["locks"];
        assert!(locks["known"].is_array(), "{locks}");
        let sarif = std::fs::read_to_string(folder.path().join("out.sarif"));
        let sarif = checked(SARIF, &sarif.expect("it was written"));
        let flows = &sarif["runs"][0]["results"][0]["codeFlows"][0]["threadFlows"];
        assert!(!flows.as_array().expect("a list").is_empty());
        let summary = &value["summary"][0];
        ["distinct", "failing", "first_failing", "steps", "points"]
            .map(|key| summary[key].to_string())
    };
    assert_eq!(figures("1"), figures("2"));
}

/// A report of a race names the kernel's own variables, as far as the kernel carries their names.
#[test]
fn a_race_is_on_a_variable_with_a_name() {
    let folder = TempDir::new().expect("a folder");
    let schedules = ["--races", "--schedules", "60"];
    let (code, text) = explore(folder.path(), "calls/epoll-add-add", &schedules);
    assert_eq!(code, 0, "{text}");
    let access = "writes 8 bytes of loop_check_gen at 0xffffffff";
    assert!(text.contains(access), "{text}");
    assert!(text.contains("object loop_check_gen"), "{text}");
    // What a per-CPU variable consists of, the kernel says in its types.
    let (_, text) = explore(folder.path(), "calls/futex-wait-wake", &schedules);
    let access = " bytes of runqueues.ttwu_pending of CPU ";
    assert!(text.contains(access), "{text}");
}

/// What is written before a flag and touched behind it is not judged by its form.
#[test]
fn a_message_behind_a_flag_is_not_called_harmful() {
    let folder = TempDir::new().expect("a folder");
    let schedules = ["--races", "--schedules", "150"];
    let judged = |test: &str, status: i32| {
        let (code, text) = explore(folder.path(), test, &schedules);
        assert_eq!(code, status, "{text}");
        let (_, report) = text
            .split_once("data race between publish_call and publish_call")
            .unwrap_or_else(|| panic!("the flag itself is a race:\n{text}"));
        report.lines().take(40).collect::<Vec<_>>().join("\n")
    };
    let early = judged("bugs/publish", 1);
    assert!(early.contains("probably harmful: both write"), "{early}");
    let behind = judged("bugs/publish-fixed", 0);
    assert!(
        behind.contains("perhaps benign: one aligned word that hands over"),
        "{behind}"
    );
    assert!(
        behind.contains("ordered by what was read before"),
        "{behind}"
    );
}

/// What programs have, kernels have: decisions in some functions only, and feedback from who read whose write.
#[test]
fn decisions_can_be_concentrated_and_guided() {
    let folder = TempDir::new().expect("a folder");
    let explored = |options: &[&str]| {
        let schedules = ["--schedules", "300", "--concise"];
        explore(folder.path(), "bugs/torn", &[&schedules, options].concat())
    };
    let (code, text) = explored(&["--focus", "torn_call"]);
    assert_eq!(code, 1, "{text}");
    let (code, text) = explored(&["--focus", "kernel_init_freeable"]);
    assert_eq!(code, 0, "nothing happens there: {text}");
    let (code, text) = explored(&["--focus", "no_such_function"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("no_such_function"), "{text}");
    let (code, text) = explored(&["--scheduler", "reads-from", "--timing"]);
    assert_eq!(code, 1, "{text}");
}

/// A race is a finding with a recording, like any other.
#[test]
fn a_race_is_replayed_and_decides_the_exit_status_unless_told_otherwise() {
    let folder = TempDir::new().expect("a folder");
    let options = ["--races", "--schedules", "60", "--no-fail-on-races"];
    let (code, text) = explore(folder.path(), "bugs/publish", &options);
    assert_eq!(code, 0, "{text}");
    let recordings = std::fs::read_dir(folder.path()).expect("a folder");
    let recordings = recordings.map(|entry| entry.expect("an entry").path());
    let ours = text
        .lines()
        .find(|line| line.contains("publish_call and publish_call"));
    let id = ours.and_then(|line| line.split_whitespace().last());
    let id = id.expect("the race has a name");
    let recording = recordings
        .map(|path| path.display().to_string())
        .find(|path| path.contains(id))
        .unwrap_or_else(|| panic!("no recording of {id}:\n{text}"));
    let cache = cache();
    let arguments = ["kernel", "replay", "--cache", &cache, &recording];
    let (code, text) = raddle(folder.path(), &arguments);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("the same run as recorded, bit for bit; the same failure"),
        "{text}"
    );
    assert!(
        text.contains("data race between publish_call and publish_call"),
        "{text}"
    );
}

/// A thread that waits for the lock of the address space after its last call does so on the stack of that call.
#[test]
fn what_a_processor_does_after_its_thread_puts_others_in_order() {
    let folder = TempDir::new().expect("a folder");
    let schedules = ["--races", "--schedules", "300"];
    let (code, text) = explore(folder.path(), "calls/mmap-fault-unmap", &schedules);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("native_apic_mem_write"), "{text}");
    assert!(!text.contains("__list_del_entry_valid"), "{text}");
}

/// Every access of a schedule is the same, however often it is run and by how many workers.
#[test]
fn the_same_schedule_gives_the_same_trace() {
    let folder = TempDir::new().expect("a folder");
    let found = ["--schedules", "2000", "--until-found", "--concise"];
    explore(folder.path(), "bugs/torn", &found);
    let (recording, cache) = (recording(folder.path()), cache());
    let traces = ["1", "3"].map(|workers| {
        let arguments = [
            "kernel",
            "replay",
            "--times",
            "24",
            "--traced-on",
            workers,
            "--cache",
            &cache,
            &recording,
        ];
        let (code, text) = raddle(folder.path(), &arguments);
        assert_eq!(code, 0, "{text}");
        let (_, trace) = text.split_once("the same ").expect("a digest");
        let accesses = trace.split(' ').next().and_then(|word| word.parse().ok());
        assert!(accesses.is_some_and(|count: u64| count > 5_000), "{text}");
        trace.to_owned()
    });
    assert_eq!(traces[0], traces[1]);
}

#[test]
fn a_damaged_snapshot_is_noticed_and_made_again() {
    let folder = TempDir::new().expect("a folder");
    // Those of other tests and of an older agent may be there as well: all are damaged, and the one that is used is
    // made again.
    let (code, text) = boot(&kernel(), Path::new(&cache()));
    assert_eq!(code, 0, "{text}");
    let sources: Vec<PathBuf> = std::fs::read_dir(cache())
        .expect("the cache exists")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|end| end == "boot"))
        .collect();
    let damaged = |source: &PathBuf| folder.path().join(source.file_name().expect("a file"));
    for source in &sources {
        let mut bytes = std::fs::read(source).expect("it can be read");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xFF;
        std::fs::write(damaged(source), &bytes).expect("it can be written");
    }
    let (code, text) = boot(&kernel(), folder.path());
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("its checksum is wrong"), "{text}");
    assert!(text.contains("booted in"), "{text}");
    let is_made_again = |source: &&PathBuf| {
        let bytes = std::fs::read(source).expect("it can be read");
        std::fs::read(damaged(source)).expect("it can be read") == bytes
    };
    let same = sources.iter().filter(is_made_again).count();
    assert_eq!(same, 1, "two boots give the same bytes");
}

#[test]
fn what_is_no_kernel_is_refused() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("text");
    std::fs::write(&path, "hello").expect("it can be written");
    let boot = |path: &Path| boot(path, folder.path());
    let (code, text) = boot(&path);
    assert_eq!(code, 2);
    assert!(text.contains("this is not a Linux kernel"), "{text}");
    let (code, text) = boot(&raddle_path());
    assert_eq!(code, 2);
    assert!(text.contains("not an x86-64 kernel"), "{text}");
    let (code, text) = boot(&folder.path().join("nowhere"));
    assert_eq!(code, 2);
    assert!(text.contains("cannot read"), "{text}");
}

#[test]
fn mistakes_in_a_test_are_pointed_at() {
    let folder = TempDir::new().expect("a folder");
    let explore = |text: &str| explore_text(folder.path(), text, &["--schedules", "20"]);
    let (code, text) = explore("thread a:\n    wirte(1, \"x\", 1)\n");
    assert_eq!(code, 2);
    assert!(
        text.contains("t.ktest:2:5: `wirte` is not a system call"),
        "{text}"
    );
    let (code, text) = explore("setup:\n    chdir(\"/nowhere\") == 0\nthread a:\n    getpid()\n");
    assert_eq!(code, 2);
    assert!(
        text.contains("t.ktest:2: the set-up failed: `chdir(\"/nowhere\") == 0` gave -ENOENT"),
        "{text}"
    );
    let three = "thread a:\n getpid()\nthread b:\n getpid()\nthread c:\n getpid()\n";
    let (code, text) = explore(three);
    assert_eq!(code, 2);
    assert!(text.contains("--cpus 3"), "{text}");
}

/// What does not end in any order is a mistake of the test, and is not tried a thousand times.
#[test]
fn a_test_that_never_ends_is_refused() {
    let folder = TempDir::new().expect("a folder");
    let text = "thread a:\n    getpid()\nthread b:\n    pause()\n";
    let (code, text) = explore_text(folder.path(), text, &["--guest-time", "100"]);
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("t.ktest: the test never ends: `pause()` does not return within 100 ms"),
        "{text}"
    );
}

#[test]
fn a_bundle_has_all_that_a_replay_needs() {
    let folder = TempDir::new().expect("a folder");
    let (code, text) = explore(
        folder.path(),
        "bugs/torn",
        &["--schedules", "2000", "--until-found", "--concise"],
    );
    assert_eq!(code, 1, "{text}");
    let recording = recording(folder.path());
    let arguments = ["kernel", "bundle", &recording, "--output", "bundle"];
    let (code, text) = raddle(folder.path(), &arguments);
    assert_eq!(code, 0, "{text}");
    let has = |name: &str| folder.path().join("bundle").join(name).is_file();
    assert!(has("README.md") && has("test.ktest") && has("raddle_bugs.ko"));
    let (code, text) = raddle(
        folder.path(),
        &["kernel", "replay", "bundle", "--cache", &cache()],
    );
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("bit for bit"), "{text}");
    replays_without_the_word_kernel(folder.path(), &recording);
}

/// `raddle replay` sees what kind of recording it is given.
#[track_caller]
fn replays_without_the_word_kernel(folder: &Path, recording: &str) {
    let cache = cache();
    for given in [recording, "bundle"] {
        let arguments = ["replay", "--times", "2", "--cache", &cache, given];
        let (code, text) = raddle(folder, &arguments);
        assert_eq!(code, 1, "{text}");
        assert!(text.contains("replayed 2 times"), "{text}");
        assert!(text.contains("bit for bit; the same failure"), "{text}");
    }
    let (code, text) = raddle(folder, &["replay", "--trace", "--cache", &cache, recording]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("torn_call"), "{text}");
    let (code, text) = raddle(folder, &["replay", "--relaxed", recording]);
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("--relaxed is for recordings of programs"),
        "{text}"
    );
}

/// All tests end well in so many schedules each.
#[track_caller]
fn pass(folder: &Path, tests: &[String], schedules: &str) {
    let (code, text) = explore_files(folder, tests, &["--concise", "--schedules", schedules]);
    assert_eq!(code, 0, "{text}");
    let explored = format!("explored {schedules} schedules");
    assert_eq!(text.matches(&explored).count(), tests.len(), "{text}");
}

#[test]
fn templates_pass() {
    let folder = TempDir::new().expect("a folder");
    let mut tests = Vec::new();
    for name in [
        "pipe", "inotify", "fs", "socket", "futex", "epoll", "tmpfs", "procfs",
    ] {
        let file = format!("{name}.ktest");
        let (code, text) = raddle(
            folder.path(),
            &["kernel", "new-test", "--template", name, &file],
        );
        assert_eq!(code, 0, "{text}");
        tests.push(file);
    }
    pass(folder.path(), &tests, "2");
}

/// The pairs of system calls, cut into parts so that the parts can run at the same time.
fn calls_pass(part: usize) {
    let mut tests: Vec<String> = std::fs::read_dir(format!("{CORPUS}/calls"))
        .expect("the corpus exists")
        .map(|entry| entry.expect("the folder can be read").path())
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    assert!(tests.len() >= 44, "the corpus is complete");
    tests.sort();
    let folder = TempDir::new().expect("a folder");
    let tests: Vec<String> = tests.into_iter().skip(part).step_by(2).collect();
    pass(folder.path(), &tests, "48");
}

#[test]
fn even_calls_pass() {
    calls_pass(0);
}

#[test]
fn odd_calls_pass() {
    calls_pass(1);
}

#[test]
fn a_finding_survives_a_kill() {
    let folder = TempDir::new().expect("a folder");
    // It fails in every order, and is kept before anybody makes it small.
    let test = "thread a:\n    getpid() == -1\nthread b:\n    getpid()\n";
    std::fs::write(folder.path().join("t.ktest"), test).expect("it can be written");
    let cache = cache();
    let mut child = Command::new(raddle_path())
        .current_dir(folder.path())
        .args(["kernel", "explore", "--cache", &cache, "--kernel"])
        .arg(kernel())
        .arg("t.ktest")
        .stderr(Stdio::piped())
        .spawn()
        .expect("raddle starts");
    let stderr = BufReader::new(child.stderr.take().expect("it has one"));
    let kept = stderr
        .lines()
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("kept as it was found: ")?.1.to_owned()));
    child.kill().expect("it runs");
    child.wait().expect("it is ours");
    let kept = kept.expect("a call that gives something else is a failure");
    let recording = kept.rsplit(' ').next().expect("it has words");
    let arguments = ["kernel", "replay", "--cache", &cache, recording];
    let (code, text) = raddle(folder.path(), &arguments);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("the same run as recorded, bit for bit; the same failure"),
        "{text}"
    );
}
