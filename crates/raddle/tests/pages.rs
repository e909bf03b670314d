//! Pages of findings in a browser, as people use them.

use std::path::Path;

use raddle_testkit::browser::{Browser, Key};
use raddle_testkit::harden::{self, Workshop};
use raddle_testkit::kernel::{explore as explore_kernel, recording as kernel_recording};
use raddle_testkit::{compile, raddle_in, recording, root, run, temporary, test_program};
use serde_json::Value;

/// Explores a program and has its page written.
fn page(folder: &Path, source: &str, name: &str) {
    let source = test_program(&format!("explore/{source}.c"));
    let flags = ["-g", "-O0", "-pthread"];
    compile(&source, &folder.join(name), &flags);
    let mut command = raddle_in(folder, &["explore", "--schedules", "600", "--time", "600"]);
    command
        .args(["--races", "--report", "html=page.html", "--json", "--"])
        .arg(format!("./{name}"));
    let ran = run(&mut command).expect(1);
    std::fs::write(folder.join("findings.json"), &ran.stdout).expect("it can be written");
}

/// A browser that shows a page which it does not complain about.
fn opened(folder: &Path, file: &str) -> Browser {
    let browser = Browser::start();
    browser.open(&folder.join(file));
    assert_eq!(browser.complaints(), [""; 0]);
    browser
}

/// What the page becomes.
fn loaded(folder: &Path, file: &str) -> String {
    shown(&opened(folder, file))
}

fn shown(browser: &Browser) -> String {
    text_of(browser, "document.documentElement.outerHTML")
}

fn text_of(browser: &Browser, expression: &str) -> String {
    let value = browser.evaluate(&format!("return {expression};"));
    value
        .as_str()
        .unwrap_or_else(|| panic!("{expression}: {value}"))
        .to_owned()
}

fn number_of(browser: &Browser, selector: &str) -> u64 {
    let value = browser.evaluate(&format!(
        "return document.querySelectorAll('{selector}').length;"
    ));
    value.as_u64().expect("a number")
}

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

/// Nothing is wrong for people who do not see it, nor see its colours, in light and dark, wide and narrow.
fn is_accessible(browser: &Browser) {
    for (width, is_dark) in [(1280, false), (1280, true), (420, false), (420, true)] {
        browser.look(width, is_dark);
        assert_eq!(browser.inaccessible(), [""; 0], "{width} dark: {is_dark}");
    }
    browser.look(1280, false);
}

#[test]
fn a_deadlock_is_drawn_with_its_lanes_and_its_graph() {
    let folder = temporary();
    page(folder.path(), "dead", "dead");
    let browser = opened(folder.path(), "page.html");
    contains(
        &shown(&browser),
        &[
            "<svg class=\"waits\"",
            "thread 2 waits for `right`; it depends on thread 3 (in the circle)",
            "What should have happened",
            "aria-current=\"true\"",
            "class=\"step end",
        ],
    );
    is_accessible(&browser);
    // %PDF in base64.
    assert!(browser.print().starts_with("JVBERi"));
}

/// Keys go from step to step and from run to run, the mouse selects and unfolds, and what is known of a step follows.
#[test]
fn a_story_is_walked_by_keys_and_by_mouse() {
    let folder = temporary();
    page(folder.path(), "lost", "lost");
    let browser = opened(folder.path(), "page.html");
    let current = "document.querySelector('[aria-current]').getAttribute('aria-label')";
    let details = "document.querySelector('.details h3').textContent";
    let at_end = text_of(&browser, current);
    browser.press(&[Key::Up]);
    let before_it = text_of(&browser, current);
    assert_ne!(at_end, before_it);
    let told = text_of(&browser, details);
    let number = told
        .trim_start_matches('(')
        .split(')')
        .next()
        .expect("a number");
    contains(&before_it, &[&format!("step {number},")]);
    browser.press(&[Key::Down]);
    assert_eq!(text_of(&browser, current), at_end);
    browser.press(&[Key::Letter('k')]);
    assert_eq!(text_of(&browser, current), before_it);
    // The run beside it has its own steps.
    let runs = number_of(&browser, ".lanes");
    assert!(runs >= 2, "{runs}");
    browser.press(&[Key::Letter('n')]);
    let other = "document.activeElement.closest('.run').querySelector('h3').textContent";
    contains(&text_of(&browser, other), &["What should have happened"]);
    browser.press(&[Key::Letter('p')]);
    contains(&text_of(&browser, other), &["What happened"]);
    browser.click(".lanes .step");
    contains(&text_of(&browser, details), &["(1)"]);
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Steps that do not matter are folded, and unfold by mouse and by key.
#[test]
fn folded_steps_unfold() {
    let folder = temporary();
    page(folder.path(), "marathon", "marathon");
    let browser = opened(folder.path(), "page.html");
    let (folds, steps) = (number_of(&browser, ".fold"), number_of(&browser, ".step"));
    assert!(folds > 0);
    browser.click(".fold");
    assert!(number_of(&browser, ".step") > steps);
    browser.press(&[Key::Letter('e')]);
    let left = number_of(&browser, ".fold");
    assert!(left < folds, "{left} of {folds}");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// The same page from JSON and from the recording; a race has both of its sides.
#[test]
fn pages_are_made_of_json_and_of_recordings() {
    let folder = temporary();
    page(folder.path(), "freed", "freed");
    let recording = recording(folder.path());
    for (input, part) in [
        ("findings.json", "The two sides"),
        (&recording, "use after free"),
    ] {
        let report = ["report", input, "-o", "other.html"];
        run(&mut raddle_in(folder.path(), &report)).expect(0);
        let browser = opened(folder.path(), "other.html");
        contains(&shown(&browser), &[part]);
        is_accessible(&browser);
    }
}

/// Serial orders are a table, differences another, and nothing of them stands among the notes.
#[test]
fn serial_orders_are_drawn_as_a_table() {
    let folder = temporary();
    let source = root().join("crates/raddle/tests/linearize/map.c");
    let headers = root().join("crates/annotations/include");
    let headers = format!("-I{}", headers.display());
    let flags = ["-g", "-O1", "-pthread", "-DBUGGY", &headers];
    compile(&source, &folder.path().join("map"), &flags);
    let options = [
        "linearize",
        "--schedules",
        "400",
        "--report",
        "html=page.html",
    ];
    let mut command = raddle_in(folder.path(), &options);
    run(command.args(["--", "./map"])).expect(1);
    let browser = opened(folder.path(), "page.html");
    let tables = "[...document.querySelectorAll('.orders caption')].map((one) => one.textContent).join('; ')";
    let captions = text_of(&browser, tables);
    contains(
        &captions,
        &[
            "Does a serial order give the same?",
            "Seen, beside the serial order",
        ],
    );
    let differing =
        "[...document.querySelectorAll('.orders .not')].map((one) => one.textContent).join('; ')";
    contains(&text_of(&browser, differing), &["✗ differs"]);
    let notes = "[...document.querySelectorAll('.finding > ul:not(.badges) li')].map((one) => one.textContent).join('; ')";
    assert!(!text_of(&browser, notes).contains("serial order"));
    is_accessible(&browser);
}

/// What was found by reading code: where it stands in the source.
#[test]
fn a_pattern_in_source_is_drawn_with_its_places() {
    let folder = temporary();
    let source = root().join("crates/scan/test_data/double-lock/buggy.c");
    std::fs::copy(source, folder.path().join("buggy.c")).expect("it can be copied");
    let options = [
        "scan",
        "--only",
        "double-lock",
        "--report",
        "html=page.html",
        ".",
    ];
    run(&mut raddle_in(folder.path(), &options)).expect(1);
    let browser = opened(folder.path(), "page.html");
    contains(&shown(&browser), &["Where in the source", "buggy.c"]);
    is_accessible(&browser);
}

/// A recording of a kernel is replayed for its page, which has what the kernel printed.
#[test]
fn a_recording_of_a_kernel_is_drawn() {
    let folder = temporary();
    let wanted = ["--schedules", "2000", "--until-found"];
    let (code, text) = explore_kernel(folder.path(), "bugs/double-free", &wanted);
    assert_eq!(code, 1, "{text}");
    let recording = kernel_recording(folder.path());
    let report = ["report", &recording, "-o", "page.html"];
    let mut command = raddle_in(folder.path(), &report);
    run(command.env("XDG_CACHE_HOME", folder.path())).expect(0);
    let browser = opened(folder.path(), "page.html");
    contains(
        &shown(&browser),
        &[
            "What was printed",
            "CPU 0",
            &format!("raddle kernel replay {recording}"),
        ],
    );
    is_accessible(&browser);
}

#[test]
fn names_of_a_guest_are_no_markup() {
    let folder = temporary();
    page(
        folder.path(),
        "lost",
        "<img src=x onerror=document.title=1>",
    );
    let text = std::fs::read_to_string(folder.path().join("page.html")).expect("it was written");
    assert!(!text.contains("<img"));
    let shown = loaded(folder.path(), "page.html");
    assert!(!shown.contains("<img"), "{shown}");
    assert!(shown.contains("&lt;img src=x"), "{shown}");
}

/// The log of a campaign becomes a page with its curves, and the same campaign has the same log but for times.
#[test]
fn a_campaign_is_drawn_from_its_log() {
    let folder = temporary();
    let source = test_program("explore/lost.c");
    let name = "<img src=x onerror=document.title=1>";
    compile(
        &source,
        &folder.path().join(name),
        &["-g", "-O0", "-pthread"],
    );
    let log = |file: &str, jobs: &str| {
        let options = ["explore", "--schedules", "300", "--time", "600", "-j", jobs];
        let mut command = raddle_in(folder.path(), &options);
        command.args(["--log", file, "--"]).arg(format!("./{name}"));
        run(&mut command).expect(1);
        let text = std::fs::read_to_string(folder.path().join(file)).expect("it was written");
        let lines = text.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).expect("a line is JSON");
            for timed in ["milliseconds", "time", "summary"] {
                line.as_object_mut().expect("an object").remove(timed);
            }
            if let Some(last) = line["last"].as_object_mut() {
                last.remove("milliseconds");
            }
            line
        });
        lines.collect::<Vec<Value>>()
    };
    let lines = log("one.log", "1");
    assert_eq!(lines, log("two.log", "2"));
    let is = |what: &str| lines.iter().filter(|line| line["line"] == what).count();
    assert!(is("generation") > 2, "{lines:#?}");
    assert!(is("failure") > 0, "{lines:#?}");
    assert_eq!((is("begin"), is("end")), (1, 1));
    let end = &lines[lines.len() - 1];
    assert_eq!(end["last"]["schedules"], 300);
    let report = ["report", "one.log", "-o", "campaign.html"];
    run(&mut raddle_in(folder.path(), &report)).expect(0);
    let browser = Browser::start();
    browser.open_drawn(&folder.path().join("campaign.html"));
    assert_eq!(browser.complaints(), [""; 0]);
    let shown = shown(&browser);
    contains(
        &shown,
        &[
            "Findings by kind",
            "class=\"curve curve2\"",
            "What was not explored",
            "raddle replay",
            "&lt;img src=x",
        ],
    );
    is_accessible(&browser);
    assert!(!shown.contains("<img"), "{shown}");
    let report = ["report", "one.log", "--form", "mail"];
    let refused = run(&mut raddle_in(folder.path(), &report)).expect(2);
    assert!(
        refused.stderr.contains("leave out --form"),
        "{}",
        refused.stderr
    );
}

/// What a hardened program wrote, among lines of its own, becomes a page.
#[test]
fn what_was_survived_is_drawn_from_the_log() {
    let workshop = Workshop::open();
    let source = workshop.write(
        "late.c",
        "#include <assert.h>\n#include <pthread.h>\n#include <unistd.h>\nstatic int ready;\nstatic void *work(void *unused) {\n    usleep(3000);\n    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);\n    return unused;\n}\nint main(void) {\n    pthread_t thread;\n    pthread_create(&thread, NULL, work, NULL);\n    assert(__atomic_load_n(&ready, __ATOMIC_ACQUIRE));\n    pthread_join(thread, NULL);\n    return 0;\n}\n",
    );
    let program = workshop.harden("cc", &["-g", "-O1"], &[&source], "late");
    let ended = harden::run(&program, &[], std::time::Duration::from_secs(30));
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let log = format!("the server starts\n{}the server ends\n", ended.stderr);
    workshop.write("server.log", &log);
    let folder = workshop.folder();
    let report = ["report", "server.log", "-o", "survived.html"];
    let told = run(&mut raddle_in(folder, &report)).expect(0);
    assert!(told.stderr.contains("with 1 place"), "{}", told.stderr);
    let browser = Browser::start();
    browser.open_drawn(&folder.join("survived.html"));
    assert_eq!(browser.complaints(), [""; 0]);
    contains(
        &shown(&browser),
        &[
            "1 failure recovered from",
            "late.c:13",
            "assertion",
            "late.c:13 (main)' -- PROGRAM",
        ],
    );
    is_accessible(&browser);
}
