//! Pages of findings in a browser.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/explore");

/// Explores a program and has its page written.
fn page(folder: &Path, source: &str, name: &str) {
    let status = Command::new("gcc")
        .args(["-g", "-O0", "-pthread", "-o"])
        .arg(folder.join(name))
        .arg(format!("{SOURCES}/{source}.c"))
        .status()
        .expect("the compiler is installed");
    assert!(status.success());
    let output = Command::new(env!("CARGO_BIN_EXE_raddle"))
        .current_dir(folder)
        .args(["explore", "--schedules", "600", "--time", "600", "--races"])
        .args(["--report", "html=page.html", "--json", "--"])
        .arg(format!("./{name}"))
        .output()
        .expect("raddle starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    std::fs::write(folder.join("findings.json"), &output.stdout).expect("it can be written");
}

fn chromium(folder: &Path, file: &str, option: &str) -> (String, String) {
    let output = Command::new("chromium")
        .current_dir(folder)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu"])
        .args(["--enable-logging=stderr", option])
        .arg(format!("file://{}", folder.join(file).display()))
        .output()
        .expect("chromium is installed: `cargo xtask setup` does so");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
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
    let folder = TempDir::new().expect("a folder");
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
    let folder = TempDir::new().expect("a folder");
    page(folder.path(), "freed", "freed");
    let recording = std::fs::read_dir(folder.path())
        .expect("the folder is there")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .find(|name| {
            Path::new(name)
                .extension()
                .is_some_and(|ending| ending == "raddle")
        })
        .expect("a recording");
    for (input, part) in [
        ("findings.json", "The two sides"),
        (&recording, "use after free"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_raddle"))
            .current_dir(folder.path())
            .args(["report", input, "-o", "other.html"])
            .output()
            .expect("raddle starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let shown = loaded(folder.path(), "other.html");
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
}

#[test]
fn names_of_a_guest_are_no_markup() {
    let folder = TempDir::new().expect("a folder");
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
