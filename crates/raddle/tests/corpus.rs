//! Every program of the corpus: `raddle explore` finds the bug of the buggy variant and nothing in the fixed one.
//!
//! One test per case, named by its path; `cargo nextest run --test corpus apache` runs a family.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};

/// Cases whose bug the default schedules do not reach yet, with the reason; their fixed variants are still run.
const NOT_FOUND_YET: &[(&str, &str)] = &[];

/// Bugs that need five preemptions in exact places get more time.
const DEEP: &[&str] = &["hard/five_handoffs", "hard/safe_stack"];

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
    let is_reachable = !NOT_FOUND_YET.iter().any(|(known, _)| *known == name);
    if is_reachable {
        let program = build(case, &description, "buggy", folder.path())?;
        let is_race = description.get("kind").and_then(toml::Value::as_str) == Some("data-race");
        let options: &[&str] = match () {
            () if is_race => &["--schedules", "200"],
            () if DEEP.contains(&name) => &["--until-found", "--time", "900"],
            () => &["--until-found"],
        };
        let (status, output) = explore(&program, options, folder.path())?;
        if status != 1 {
            return Err(format!("the bug was not found (exit {status}):\n{output}").into());
        }
    }
    let program = build(case, &description, "fixed", folder.path())?;
    let (status, output) = explore(&program, &["--schedules", FIXED_SCHEDULES], folder.path())?;
    if status != 0 {
        return Err(format!("the fixed variant is not clean (exit {status}):\n{output}").into());
    }
    Ok(())
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

fn explore(program: &Path, options: &[&str], folder: &Path) -> Result<(i32, String), Failed> {
    let output = Command::new(env!("CARGO_BIN_EXE_raddle"))
        .args(["explore", "--jobs", "1"])
        .args(options)
        .arg("--")
        .arg(program)
        .current_dir(folder)
        .output()?;
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok((output.status.code().unwrap_or(-1), text))
}
