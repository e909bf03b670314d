//! What a measurement printed, kept as a file of `bench/` with what it takes to have it again.

use std::io::{BufRead, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::shell;

/// Set for the process that measures.
const MEASURES: &str = "XTASK_BENCH_MEASURES";

/// Whether this process is the one whose output is kept.
pub(super) fn is_measuring() -> bool {
    std::env::var_os(MEASURES).is_some()
}

/// Measures in a process of its own, shows what it prints, and keeps it if all went well.
pub(super) fn keep() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut child = Command::new(std::env::current_exe()?)
        .args(&arguments)
        .env(MEASURES, "1")
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the measurement")?;
    let mut text = String::new();
    let mut shown = std::io::stdout();
    for line in BufReader::new(child.stdout.take().context("it is piped")?).lines() {
        let line = line? + "\n";
        shown.write_all(line.as_bytes())?;
        text += &line;
    }
    let status = child.wait()?;
    ensure!(status.success(), "the measurement ended with {status}");
    let path = file(&arguments);
    let head = heading(&arguments, &date()?, &commit()?);
    std::fs::create_dir_all(path.parent().context("it lies in a folder")?)?;
    std::fs::write(&path, head + &text).with_context(|| format!("{}", path.display()))
}

/// The words that say what is measured: those before the first option, and the choice of a part.
fn subject(arguments: &[String]) -> Vec<&str> {
    let mut words = arguments.iter().map(String::as_str).skip(1);
    let mut found: Vec<&str> = words
        .by_ref()
        .take_while(|word| !word.starts_with('-'))
        .collect();
    let part = arguments.iter().skip_while(|word| *word != "--only").nth(1);
    found.extend(part.map(String::as_str));
    found
}

fn file(arguments: &[String]) -> PathBuf {
    let name = subject(arguments).join("-").replace([' ', '/'], "-");
    shell::root().join("bench").join(name + ".md")
}

fn heading(arguments: &[String], date: &str, commit: &str) -> String {
    let title = subject(arguments).join(" ");
    // Where a file lay on this machine helps no reader.
    let short = |word: &String| word.rsplit('/').next().unwrap_or_default().to_owned();
    let command: Vec<String> = arguments.iter().map(short).collect();
    let command = command.join(" ");
    format!("# {title}\n\n`cargo xtask {command}`, {date}, commit {commit}.\n\n")
}

fn date() -> anyhow::Result<String> {
    said("date", &["-u", "+%Y-%m-%d"])
}

/// The commit that was measured, and whether the tree differed from it.
fn commit() -> anyhow::Result<String> {
    let commit = said("git", &["rev-parse", "--short=12", "HEAD"])?;
    let changes = said("git", &["status", "--porcelain", "--untracked-files=no"])?;
    let changed = if changes.is_empty() {
        ""
    } else {
        " with changes"
    };
    Ok(commit + changed)
}

fn said(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(shell::root())
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    ensure!(
        output.status.success(),
        "{program} ended with {}",
        output.status
    );
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_file_is_named_after_what_is_measured() {
        let name = |line: &str| {
            let path = file(&words(line));
            path.file_name()
                .map(|name| name.to_string_lossy().into_owned())
        };
        assert_eq!(name("bench engine").as_deref(), Some("engine.md"));
        assert_eq!(
            name("bench kernel throughput --speed 3000").as_deref(),
            Some("kernel-throughput.md")
        );
        assert_eq!(
            name("bench harden --reuse --only locks").as_deref(),
            Some("harden-locks.md")
        );
        assert_eq!(
            heading(&words("bench engine"), "2026-01-02", "abc"),
            "# engine\n\n`cargo xtask bench engine`, 2026-01-02, commit abc.\n\n"
        );
    }
}
