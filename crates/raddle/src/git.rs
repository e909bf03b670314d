//! What git tells about a working tree that may be a stranger's.
//!
//! The configuration of a repository can name commands that git runs by itself: filters, text converters, external
//! diffs, file-system monitors, hooks, remote helpers. A source tree is data: all of them are switched off.

use std::process::{Command, Output};

use anyhow::{Context, bail};

/// Settings that stand above those of the repository.
const SETTINGS: [&str; 6] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.attributesFile=/dev/null",
    "diff.external=",
    "protocol.allow=never",
];

/// The unified diff, without context, between a revision and the working tree.
pub(crate) fn changes_since(revision: &str) -> anyhow::Result<String> {
    let changes = diff(revision, &["--no-color", "--unified=0"])?;
    Ok(String::from_utf8_lossy(&changes).into_owned())
}

/// The files below the current folder that differ between a revision and the working tree, as paths from it.
pub(crate) fn changed_files(revision: &str) -> anyhow::Result<Vec<String>> {
    let names = diff(
        revision,
        &["--relative", "--name-only", "-z", "--no-renames"],
    )?;
    let names = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    Ok(names
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect())
}

/// What a file, by its path from the current folder, held in a revision; none if it was not there.
pub(crate) fn text_at(revision: &str, file: &str) -> anyhow::Result<Option<Vec<u8>>> {
    let output = git(&[], &["cat-file", "blob", &format!("{revision}:./{file}")])?;
    Ok(output.status.success().then_some(output.stdout))
}

fn diff(revision: &str, options: &[&str]) -> anyhow::Result<Vec<u8>> {
    if revision.starts_with('-') {
        bail!("`{revision}` is no git revision: `--diff` takes what `git diff` takes");
    }
    let plain = [
        "diff",
        "--no-ext-diff",
        "--no-textconv",
        "--ignore-submodules=all",
    ];
    let arguments = [&plain[..], options, &[revision, "--"]].concat();
    let output = git(&without_filters()?, &arguments)?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        bail!(
            "git cannot compare with `{revision}`: {}; `--diff` takes what `git diff` takes",
            words.lines().next().unwrap_or_default()
        );
    }
    Ok(output.stdout)
}

/// Settings that take the command away from every filter that the repository's configuration defines. To read the
/// configuration runs nothing.
fn without_filters() -> anyhow::Result<Vec<String>> {
    let wanted = [
        "config",
        "--null",
        "--name-only",
        "--get-regexp",
        "^filter\\.",
    ];
    let output = git(&[], &wanted)?;
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(|name| {
            let value = if name.ends_with(".required") {
                "false"
            } else {
                ""
            };
            format!("{name}={value}")
        })
        .collect())
}

fn git(settings: &[String], arguments: &[&str]) -> anyhow::Result<Output> {
    let mut command = Command::new("git");
    let settings = settings.iter().map(String::as_str);
    for setting in SETTINGS.into_iter().chain(settings) {
        command.args(["-c", setting]);
    }
    command
        .args(arguments)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("GIT_EXTERNAL_DIFF")
        .output()
        .context("cannot run git, which --diff needs")
}
