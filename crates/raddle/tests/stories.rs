//! Programs with a bug of every kind, and the stories that are told of them: blessed files that a reviewer reads in the
//! diff. Each story should let a reader who has not seen the program say what is wrong with it.
//!
//! `stories/NAME.c` is explored, and what is printed is compared with `stories/NAME.story`. What depends on the machine
//! or on chance is left out: addresses, ids, the insides of libraries, the number of the schedule.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stories");

/// The order of systematic delays depends on the program alone.
const OPTIONS: [&str; 8] = [
    "explore",
    "--until-found",
    "--scheduler",
    "delay",
    "--schedules",
    "600",
    "--time",
    "300",
];

fn main() {
    let arguments = Arguments::from_args();
    let mut sources: Vec<PathBuf> = std::fs::read_dir(SOURCES)
        .expect("the programs are there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| compiler(path).is_some())
        .collect();
    sources.sort();
    let trial = |path: PathBuf| Trial::test(stem(&path), move || check(&path));
    libtest_mimic::run(&arguments, sources.into_iter().map(trial).collect()).exit();
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// The compiler of a source, with its options; none for other files.
fn compiler(source: &Path) -> Option<(&'static str, &'static [&'static str])> {
    let is_tests = stem(source).ends_with("_tests");
    match source.extension()?.to_str()? {
        "c" => Some(("gcc", &["-g", "-O0", "-pthread"])),
        "cpp" => Some(("g++", &["-g", "-O0", "-std=c++20", "-pthread"])),
        "rs" if is_tests => Some(("rustc", &["-g", "--edition", "2024", "--test"])),
        "rs" => Some(("rustc", &["-g", "-O", "--edition", "2024"])),
        _ => None,
    }
}

fn check(source: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join(stem(source));
    let (compiler, flags) = compiler(source).ok_or("no source")?;
    let built = Command::new(compiler)
        .current_dir(SOURCES)
        .args(flags)
        .arg("-o")
        .arg(&program)
        .arg(source.file_name().unwrap_or_default())
        .status()?;
    if !built.success() {
        return Err("it does not compile".into());
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_raddle"));
    command.current_dir(folder.path()).args(OPTIONS);
    let right = source.with_extension("output");
    if right.exists() {
        command.arg("--expect-output").arg(right);
    }
    let output = command.arg("--").arg(&program).output()?;
    let told = String::from_utf8_lossy(&output.stdout);
    if output.status.code() != Some(1) {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("nothing was found:\n{told}{errors}").into());
    }
    compare(&normalised(&told), &source.with_extension("story"))
}

fn compare(told: &str, blessed: &Path) -> Result<(), Failed> {
    let expected = std::fs::read_to_string(blessed).unwrap_or_default();
    if told == expected {
        return Ok(());
    }
    let new = blessed.with_extension("story.new");
    std::fs::write(&new, told)?;
    Err(format!(
        "the story differs; read it, and if it is better, move {} to {}:\n{told}",
        new.display(),
        blessed.display()
    )
    .into())
}

/// What was found, without what depends on the machine or on chance.
fn normalised(text: &str) -> String {
    let mut out = String::new();
    let mut is_left_out = false;
    for line in text.lines() {
        let is_continued = line.starts_with("    ") && !line.starts_with("     ");
        is_left_out = is_machine_specific(line) || (is_left_out && is_continued);
        if !is_left_out {
            out.push_str(without_addresses(without_id(line)).trim_end());
            out.push('\n');
        }
    }
    out
}

fn is_machine_specific(line: &str) -> bool {
    const STARTS: [&str; 10] = [
        "  stack of ",
        "  allocated by ",
        "  freed by ",
        "  replay: ",
        "  explain: ",
        "  minimal: ",
        "  seen in schedule ",
        "explored ",
        "test ",
        "2 tests explored ",
    ];
    STARTS.iter().any(|start| line.starts_with(start))
}

/// A headline without the finding's id at its end.
fn without_id(line: &str) -> &str {
    if !line.starts_with("finding ") {
        return line;
    }
    line.rsplit_once("  ").map_or(line, |(head, _)| head)
}

fn without_addresses(line: &str) -> String {
    let mut parts = line.split("0x");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("0x..");
        out.push_str(part.trim_start_matches(|letter: char| letter.is_ascii_hexdigit()));
    }
    out
}
