//! Every program of the corpus: `raddle explore` finds the bug of the buggy variant and nothing in the fixed one.
//!
//! One test per case, named by its path; `cargo nextest run --test corpus apache` runs a family.

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use raddle_testkit::{corpus, raddle_in, recordings, root, run, told_in};
use raddle_trace::{Enveloped, Recording};

/// Bugs that need five preemptions in exact places get more time.
const DEEP: &[&str] = &["hard/five_handoffs", "hard/safe_stack"];

/// Schedules for a fixed variant here; longer campaigns are for `cargo xtask`.
const FIXED_SCHEDULES: &str = "500";

fn main() {
    let arguments = Arguments::from_args();
    let root = root().join("corpus");
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
    check_buggy(name, case, folder.path())?;
    let program = corpus::build(name, "fixed", folder.path());
    let (status, output) = explore(&program, &["--schedules", FIXED_SCHEDULES], folder.path());
    if status != 0 {
        return Err(format!("the fixed variant is not clean (exit {status}):\n{output}").into());
    }
    Ok(())
}

/// What an expectation file says about the buggy variant.
#[derive(serde::Deserialize)]
struct Expectation {
    kind: String,
    /// The fewest preemptions, reasoned out by hand.
    switches: u64,
}

/// The bug is found, is of the expected kind, needs at most one preemption more than the hand-written minimum,
/// and happens again on replay.
fn check_buggy(name: &str, case: &Path, folder: &Path) -> Result<(), Failed> {
    let expected: Expectation = corpus::description(case).try_into()?;
    let program = corpus::build(name, "buggy", folder);
    let races = expected.kind == "data-race";
    let options: &[&str] = match () {
        () if races => &["--schedules", "200", "--json"],
        () if DEEP.contains(&name) => &["--until-found", "--time", "900", "--json"],
        () => &["--until-found", "--json"],
    };
    let (status, output) = explore(&program, options, folder);
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
    let mut preemptions = Vec::new();
    for path in recordings(folder) {
        let recording = Recording::parse(&std::fs::read_to_string(&path)?)?;
        preemptions.push(recording.preemptions);
        let (status, output) = told_in(folder, &["replay", &path.to_string_lossy()]);
        if status != 1 || !output.contains("replayed 1 time bit for bit") {
            return Err(format!("the replay went wrong (exit {status}):\n{output}").into());
        }
    }
    match preemptions.iter().min() {
        Some(fewest) if *fewest <= expected.switches + 1 => Ok(()),
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

/// Exit status and standard output; what went wrong is on standard error.
fn explore(program: &Path, options: &[&str], folder: &Path) -> (i32, String) {
    let mut command = raddle_in(folder, &["explore", "--jobs", "1"]);
    let ran = run(command.args(options).arg("--").arg(program));
    let is_silent = ran.stdout.is_empty();
    let text = if is_silent { ran.stderr } else { ran.stdout };
    (ran.code.unwrap_or(-1), text)
}
