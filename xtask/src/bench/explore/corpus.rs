//! The programs of the corpus, compiled as their tests do.

use std::path::PathBuf;
use std::process::Command;

use anyhow::ensure;

use crate::shell;

/// Programs whose bugs are hard for at least one scheduler.
pub(super) const HARD: [&str; 10] = [
    "hard/five_handoffs",
    "hard/setters_100",
    "hard/two_stage_100",
    "hard/adjacent_instructions",
    "classic/aba_stack",
    "classic/work_stealing",
    "classic/double_checked",
    "mozilla/four_accesses",
    "rust/spin_lock",
    "timer/sleep_as_join",
];

/// Where programs and recordings go.
pub(in crate::bench) fn folder() -> PathBuf {
    shell::target_folder().join("bench-explore")
}

/// The names of all cases for `raddle explore`, sorted.
pub(in crate::bench) fn all() -> anyhow::Result<Vec<String>> {
    let root = shell::root().join("corpus");
    let mut names = Vec::new();
    for family in std::fs::read_dir(&root)? {
        let family = family?;
        let family_name = family.file_name().to_string_lossy().into_owned();
        // The cases for hardening and for kernels have forms of their own.
        if !family.path().is_dir() || ["harden", "kernel"].contains(&family_name.as_str()) {
            continue;
        }
        for case in std::fs::read_dir(family.path())? {
            let case = case?;
            if case.path().join("case.toml").exists() {
                names.push(format!(
                    "{family_name}/{}",
                    case.file_name().to_string_lossy()
                ));
            }
        }
    }
    names.sort();
    Ok(names)
}

/// Compiles a variant of a case; `extra` flags make another program of it.
pub(in crate::bench) fn build(
    name: &str,
    variant: &str,
    extra: &[&str],
) -> anyhow::Result<PathBuf> {
    let case = shell::root().join("corpus").join(name);
    let description: toml::Table = std::fs::read_to_string(case.join("case.toml"))?.parse()?;
    let language = description.get("language").and_then(toml::Value::as_str);
    let (compiler, standard, extension) = match language.unwrap_or("c") {
        "c++" => ("g++", "-O1 -g -std=c++20 -pthread", "cpp"),
        "rust" => ("rustc", "-O -g", "rs"),
        _ => ("gcc", "-O1 -g -pthread", "c"),
    };
    let flags = description.get("flags").and_then(toml::Value::as_array);
    std::fs::create_dir_all(folder())?;
    let suffix = if extra.is_empty() { "" } else { "-tsan" };
    let program = folder().join(format!("{}-{variant}{suffix}", name.replace('/', "-")));
    let status = Command::new(compiler)
        .args(standard.split(' '))
        .args(flags.into_iter().flatten().filter_map(toml::Value::as_str))
        .args(extra)
        .arg(case.join(format!("{variant}.{extension}")))
        .arg("-o")
        .arg(&program)
        .status()?;
    ensure!(status.success(), "{name} does not compile");
    Ok(program)
}
