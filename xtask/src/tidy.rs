//! The rules that no lint knows. Each check collects all its complaints, so that one run shows them all.

use std::fs;
use std::path::Path;

use anyhow::Context;

mod call_numbers;
mod console;
mod dependencies;
mod layers;
mod links;
mod manifest;
mod rules;
mod sizes;

/// Words that must not stay, each with what to do instead.
const BANNED: &[(&str, &str)] = &[
    (concat!("FIX", "ME"), "mend it before it lands"),
    (
        concat!("#[ig", "nore"),
        "fix the test, delete it, or assert the wrong behaviour with the reason",
    ),
];

pub(crate) fn run() -> anyhow::Result<()> {
    let mut complaints = layers::check()?;
    let paths = tracked_files()?;
    complaints.extend(manifest::check(&paths)?);
    complaints.extend(dependencies::check()?);
    let all = paths.iter().cloned().collect();
    let read = |path: String| fs::read_to_string(&path).ok().map(|text| (path, text));
    let files: Vec<(String, String)> = paths.into_iter().filter_map(read).collect();
    for (path, text) in &files {
        check_file(path, text, &mut complaints);
    }
    complaints.extend(sizes::stale(&files));
    complaints.extend(rules::check(&files));
    complaints.extend(links::check(&files, &all));
    anyhow::ensure!(
        complaints.is_empty(),
        "tidy found:\n{}",
        complaints.join("\n")
    );
    Ok(())
}

fn tracked_files() -> anyhow::Result<Vec<String>> {
    let output = std::process::Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("cannot run git")?;
    Ok(String::from_utf8(output.stdout)?
        .lines()
        .map(str::to_owned)
        .collect())
}

fn check_file(path: &str, text: &str, complaints: &mut Vec<String>) {
    let is_rust = Path::new(path)
        .extension()
        .is_some_and(|extension| extension == "rs");
    let is_generated_test = path.contains("/test_data/") || path.starts_with("corpus/");
    if is_generated_test {
        return;
    }
    if is_rust {
        complaints.extend(sizes::check(path, text));
        complaints.extend(call_numbers::check(path, text));
        if !text.starts_with("//!") {
            complaints.push(format!(
                "{path}: begin with `//!` and say what this file is"
            ));
        }
        for (word, instead) in BANNED {
            if text.contains(word) {
                complaints.push(format!("{path}: contains `{word}`: {instead}"));
            }
        }
    }
    if Path::new(path)
        .extension()
        .is_some_and(|extension| extension == "md")
    {
        check_titles(path, text, complaints);
        complaints.extend(console::check(path, text));
    }
}

fn check_titles(path: &str, text: &str, complaints: &mut Vec<String>) {
    let mut in_code = false;
    let mut titles = 0;
    for line in text.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        }
        titles += usize::from(!in_code && line.starts_with("# "));
    }
    let is_summary = path.ends_with("SUMMARY.md");
    if titles != 1 && !is_summary {
        complaints.push(format!("{path}: has {titles} titles; a document has one"));
    }
}
