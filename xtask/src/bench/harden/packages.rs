//! Whole packages, built with `raddle cc` by their own build systems and tested by their own tests, beside a plain
//! build of the same: hardening must change nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::Place;
use super::programs;

/// Builds coreutils twice and runs `make check` in both.
#[expect(clippy::print_stdout, reason = "the comparison is the result")]
pub(super) fn coreutils(place: &Place) -> anyhow::Result<()> {
    println!("## make check of coreutils");
    let compiler = format!("{} cc", place.raddle.display());
    let plain = check(place, "plain", "clang-22")?;
    let hardened = check(place, "hardened", &compiler)?;
    println!("plain: {}", counts(&plain));
    println!("hardened: {}", counts(&hardened));
    let mut differences = 0;
    for (test, result) in &hardened {
        if plain.get(test).is_some_and(|before| before != result) {
            println!("{test}: {} plain, {result} hardened", plain[test]);
            differences += 1;
        }
    }
    anyhow::ensure!(differences == 0, "{differences} tests end differently");
    Ok(())
}

fn counts(results: &BTreeMap<String, String>) -> String {
    let mut sums: BTreeMap<&str, u32> = BTreeMap::new();
    for result in results.values() {
        *sums.entry(result).or_default() += 1;
    }
    sums.iter()
        .map(|(result, count)| format!("{result} {count}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Result of each test.
fn check(place: &Place, what: &str, compiler: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let folder = place.work.join(format!("coreutils-{what}"));
    if !folder.join("configure").exists() {
        programs::fetch_debian(place, "coreutils", &folder)?;
    }
    let make = |targets: &[&str]| -> anyhow::Result<()> {
        Command::new("make")
            .args(["-k", "-j2"])
            .args(targets)
            .current_dir(&folder)
            .env("FORCE_UNSAFE_CONFIGURE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        Ok(())
    };
    if !folder.join("Makefile").exists() {
        programs::shell(
            &folder,
            &format!(
                "FORCE_UNSAFE_CONFIGURE=1 ./configure CC='{compiler}' CFLAGS=-O2 --disable-nls >/dev/null"
            ),
        )?;
    }
    make(&[])?;
    make(&["check"])?;
    let mut results = BTreeMap::new();
    for log in ["tests", "gnulib-tests"] {
        collect(&folder.join(log), &folder, &mut results)?;
    }
    anyhow::ensure!(results.len() > 500, "only {} results", results.len());
    Ok(results)
}

/// Reads the `.trs` files that automake's tests leave.
fn collect(
    folder: &Path,
    root: &Path,
    results: &mut BTreeMap<String, String>,
) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, root, results)?;
        } else if path.extension().is_some_and(|extension| extension == "trs") {
            let text = fs::read_to_string(&path)?;
            if let Some(result) = text
                .lines()
                .find_map(|line| line.strip_prefix(":test-result: "))
            {
                let name = path.strip_prefix(root).unwrap_or(&path);
                results.insert(name.display().to_string(), result.to_owned());
            }
        }
    }
    Ok(())
}
