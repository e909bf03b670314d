//! Every program of the corpus: `raddle explore` finds the bug of the buggy variant and nothing in the fixed one.
//!
//! One test per case, named by its path; `cargo nextest run --test corpus apache` runs a family.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};
use raddle_trace::{Enveloped, Recording};

/// Bugs that need five preemptions in exact places get more time.
const DEEP: &[&str] = &["hard/five_handoffs", "hard/safe_stack"];

/// Cases whose order is not as small as it could be, with the preemptions that are left. Orders with one or two
/// preemptions are all tried; of orders with five in exact places there are too many, and taking preemptions away
/// one or two at a time ends before.
const NOT_MINIMAL_YET: &[(&str, u64)] = &[("hard/safe_stack", 10)];

/// Schedules for a fixed variant here; longer campaigns are for `cargo xtask`.
const FIXED_SCHEDULES: &str = "500";

fn main() {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut trials = Vec::new();
    for family in folders(&root) {
        for case in folders(&family) {
            let name = format!("{}/{}", file_name(&family), file_name(&case));
            // The cases for hardening have forced timings and a runner of their own.
            if name.starts_with("harden/") || !case.join("case.toml").exists() {
                continue;
            }
            trials.push(Trial::test(name.clone(), move || check(&name, &case)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn folders(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn check(name: &str, case: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let description: toml::Table = std::fs::read_to_string(case.join("case.toml"))?.parse()?;
    check_buggy(name, case, &description, folder.path())?;
    let program = build(case, &description, "fixed", folder.path())?;
    let (status, output) = explore(&program, &["--schedules", FIXED_SCHEDULES], folder.path())?;
    if status != 0 {
        return Err(format!("the fixed variant is not clean (exit {status}):\n{output}").into());
    }
    Ok(())
}

/// What an expectation file says about the buggy variant.
#[derive(serde::Deserialize)]
struct Expectation {
    name: String,
    kind: String,
    /// The fewest preemptions, reasoned out by hand.
    switches: u64,
}

/// The bug is found, is of the expected kind, needs at most one preemption more than the hand-written minimum,
/// and happens again on replay.
fn check_buggy(
    name: &str,
    case: &Path,
    description: &toml::Table,
    folder: &Path,
) -> Result<(), Failed> {
    let expected: Expectation = description.clone().try_into()?;
    let program = build(case, description, "buggy", folder)?;
    let races = expected.kind == "data-race";
    let options: &[&str] = match () {
        () if races => &["--schedules", "200", "--json"],
        () if DEEP.contains(&name) => &["--until-found", "--time", "900", "--json"],
        () => &["--until-found", "--json"],
    };
    let (status, output) = explore(&program, options, folder)?;
    if status != 1 {
        return Err(format!("the bug was not found (exit {status}):\n{output}").into());
    }
    let findings: serde_json::Value = serde_json::from_str(&output)?;
    let kinds: Vec<&str> = findings["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|finding| finding["kind"].as_str())
        .collect();
    if !kinds.iter().any(|kind| is_expected(&expected.kind, kind)) {
        return Err(format!("expected {}, found {kinds:?}:\n{output}", expected.kind).into());
    }
    if races {
        return Ok(());
    }
    let recordings = recordings(folder)?;
    let mut preemptions = Vec::new();
    for path in &recordings {
        let recording = Recording::parse(&std::fs::read_to_string(path)?)?;
        preemptions.push(recording.preemptions);
        let (status, output) = raddle(&["replay".as_ref(), path.as_os_str()], folder)?;
        if status != 1 || !output.contains("replayed 1 time bit for bit") {
            return Err(format!("the replay went wrong (exit {status}):\n{output}").into());
        }
    }
    let known = NOT_MINIMAL_YET
        .iter()
        .find(|(case, _)| *case == expected.name);
    let most = known.map_or(expected.switches + 1, |(_, most)| *most);
    match preemptions.iter().min() {
        Some(fewest) if *fewest <= most => Ok(()),
        fewest => Err(format!(
            "expected {} preemptions or one more, the smallest finding has {fewest:?}",
            expected.switches
        )
        .into()),
    }
}

/// What crashes natively is often caught earlier here: at the wrong access instead of its consequence.
fn is_expected(expected: &str, found: &str) -> bool {
    const MEMORY: [&str; 4] = [
        "use-after-free",
        "double-free",
        "invalid-free",
        "heap-overflow",
    ];
    found == expected || (expected == "crash" && MEMORY.contains(&found))
}

fn recordings(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "raddle") {
            found.push(path);
        }
    }
    Ok(found)
}

fn build(
    case: &Path,
    description: &toml::Table,
    variant: &str,
    folder: &Path,
) -> Result<PathBuf, Failed> {
    let language = description
        .get("language")
        .and_then(toml::Value::as_str)
        .unwrap_or("c");
    let flags: Vec<&str> = description
        .get("flags")
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(toml::Value::as_str)
        .collect();
    let (compiler, standard, extension): (&str, &[&str], &str) = match language {
        "c++" => ("g++", &["-O1", "-g", "-std=c++20", "-pthread"], "cpp"),
        "rust" => ("rustc", &["-O", "-g"], "rs"),
        _ => ("gcc", &["-O1", "-g", "-pthread"], "c"),
    };
    let program = folder.join(variant);
    let output = Command::new(compiler)
        .args(standard)
        .args(&flags)
        .arg(case.join(format!("{variant}.{extension}")))
        .arg("-o")
        .arg(&program)
        .output()?;
    if !output.status.success() {
        return Err(format!(
            "{variant} does not compile:\n{}",
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    Ok(program)
}

/// Exit status and standard output; what went wrong is on standard error.
fn explore(program: &Path, options: &[&str], folder: &Path) -> Result<(i32, String), Failed> {
    let mut arguments: Vec<&OsStr> = ["explore", "--jobs", "1"].map(OsStr::new).to_vec();
    arguments.extend(options.iter().map(OsStr::new));
    arguments.extend([OsStr::new("--"), program.as_os_str()]);
    raddle(&arguments, folder)
}

fn raddle(arguments: &[&OsStr], folder: &Path) -> Result<(i32, String), Failed> {
    let output = Command::new(env!("CARGO_BIN_EXE_raddle"))
        .args(arguments)
        .current_dir(folder)
        .output()?;
    let status = output.status.code().unwrap_or(-1);
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.is_empty() {
        text = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    Ok((status, text))
}
