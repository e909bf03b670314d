//! Files that are made from code, so that they cannot say anything else.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::shell;

/// Each generated file with the raddle command that prints it.
const FILES: &[(&str, &[&str])] = &[("docs/src/reference/system-calls.md", &["system-calls"])];

/// Writes the files, or only compares them.
pub(crate) fn run(is_check: bool) -> anyhow::Result<()> {
    // As the tests have it built: another choice of packages gives dependencies other features, and builds them anew.
    shell::run(
        "cargo",
        &["build", "--quiet", "--workspace", "--all-targets"],
    )?;
    for (path, arguments) in FILES {
        let text = print(arguments)?;
        if !is_check {
            if let Some(folder) = Path::new(path).parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, text).with_context(|| format!("cannot write {path}"))?;
            continue;
        }
        let present = fs::read_to_string(path).unwrap_or_default();
        anyhow::ensure!(
            present == text,
            "{path} is not what the code says: run `cargo xtask gen`"
        );
    }
    Ok(())
}

fn print(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(shell::target_folder().join("debug/raddle"))
        .args(arguments)
        .output()
        .context("cannot run the raddle that was just built")?;
    anyhow::ensure!(
        output.status.success(),
        "`raddle {}` failed:\n{}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}
