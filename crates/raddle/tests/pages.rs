//! Pages of findings in a browser.

use std::path::Path;
use std::process::Command;

use raddle_testkit::{compile, raddle_in, recording, run, temporary, test_program};
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

fn chromium(folder: &Path, file: &str, option: &str) -> (String, String) {
    let mut command = Command::new("chromium");
    command
        .current_dir(folder)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu"])
        .args(["--enable-logging=stderr", option])
        .arg(format!("file://{}", folder.join(file).display()));
    let ran = run(&mut command);
    (ran.stdout, ran.stderr)
}

/// What the page becomes, if the browser has nothing to complain about.
fn loaded(folder: &Path, file: &str) -> String {
    let (page, messages) = chromium(folder, file, "--dump-dom");
    let complaints: Vec<&str> = messages
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    page
}

#[test]
fn a_deadlock_is_drawn_with_its_lanes_and_its_graph() {
    let folder = temporary();
    page(folder.path(), "dead", "dead");
    let shown = loaded(folder.path(), "page.html");
    for part in [
        "<svg class=\"waits\"",
        "thread 2 waits for `right`; it depends on thread 3 (in the circle)",
        "What should have happened",
        "aria-current=\"true\"",
        "class=\"step end",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    chromium(folder.path(), "page.html", "--print-to-pdf=page.pdf");
    let pdf = std::fs::read(folder.path().join("page.pdf")).expect("it was printed");
    assert!(pdf.starts_with(b"%PDF"));
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
        let shown = loaded(folder.path(), "other.html");
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
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
    let shown = loaded(folder.path(), "campaign.html");
    for part in [
        "Findings by kind",
        "class=\"curve curve2\"",
        "What was not explored",
        "raddle replay",
        "&lt;img src=x",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    assert!(!shown.contains("<img"), "{shown}");
    let report = ["report", "one.log", "--form", "mail"];
    let refused = run(&mut raddle_in(folder.path(), &report)).expect(2);
    assert!(
        refused.stderr.contains("leave out --form"),
        "{}",
        refused.stderr
    );
}
