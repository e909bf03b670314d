//! A multi-threaded Rust program from crates.io, hardened by `raddle cargo-harden`: it must print what the plain build
//! prints, also when one check in a hundred fails for no reason and is recovered from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::Place;
use super::tables::Sums;

/// It searches folders with several threads.
const CRATE: &str = "ripgrep";
const VERSION: &str = "14.1.1";
const PROGRAM: &str = "rg";
const RUNS: usize = 20;

#[expect(clippy::print_stdout, reason = "the comparison is the result")]
pub(super) fn ripgrep(place: &Place) -> anyhow::Result<()> {
    println!("## {CRATE} {VERSION}");
    let plain = install(place, "plain", None)?;
    let hardened = install(place, "hardened", Some("--harden-inject"))?;
    let sums = Sums::of(&report(place, "hardened"))?;
    println!("| assertion | output | oracle | dereference | deadlock | points, pads |");
    println!("|---|---|---|---|---|---|");
    println!("| {} | {}, {} |", sums.cells(), sums.points, sums.pads);
    println!("left as they are: {:?}", sums.left);
    let expected = search(&plain, "0", None)?;
    anyhow::ensure!(expected.len() > 100, "only {} lines", expected.len());
    let log = place.work.join("ripgrep.log");
    for every in ["0", "100"] {
        if log.exists() {
            fs::remove_file(&log)?;
        }
        for _ in 0..RUNS {
            let found = search(&hardened, every, Some(&log))?;
            anyhow::ensure!(
                found == expected,
                "the hardened {PROGRAM} prints something else"
            );
        }
        let recovered = fs::read_to_string(&log)?
            .matches(" recovered after ")
            .count();
        println!(
            "{RUNS} runs, {}: {} lines as the plain build, {recovered} recoveries",
            if every == "0" {
                "nothing injected"
            } else {
                "one check in a hundred fails"
            },
            expected.len()
        );
    }
    Ok(())
}

fn report(place: &Place, what: &str) -> PathBuf {
    place.work.join(format!("{CRATE}-{what}.jsonl"))
}

/// `cargo install` of one build; the program.
fn install(place: &Place, what: &str, options: Option<&str>) -> anyhow::Result<PathBuf> {
    let folder = place.work.join(format!("{CRATE}-{what}"));
    let program = folder.join("bin").join(PROGRAM);
    if place.reuse && program.exists() {
        return Ok(program);
    }
    let mut command = match options {
        None => Command::new("cargo"),
        Some(options) => {
            let report = report(place, what);
            if report.exists() {
                fs::remove_file(&report)?;
            }
            let mut command = Command::new(&place.raddle);
            command.arg("cargo-harden").env(
                "RADDLE_HARDEN_OPTIONS",
                format!(
                    "--harden-strict --harden-report={} {options}",
                    report.display()
                ),
            );
            command
        }
    };
    command
        .args([
            "install",
            CRATE,
            "--version",
            VERSION,
            "--locked",
            "--force",
        ])
        .arg("--root")
        .arg(&folder)
        .arg("--target-dir")
        .arg(place.work.join(format!("{CRATE}-{what}-target")))
        .env_remove("CARGO_TARGET_DIR");
    let status = command.status()?;
    anyhow::ensure!(status.success(), "{command:?} ended with {status}");
    Ok(program)
}

/// The lines that it finds in our own sources, sorted: threads print in any order.
fn search(program: &Path, inject: &str, log: Option<&Path>) -> anyhow::Result<Vec<String>> {
    let log = log.map_or_else(|| "none".into(), |path| path.as_os_str().to_owned());
    let output = Command::new(program)
        .args([
            "--threads=4",
            "--no-heading",
            "--line-number",
            "fn [a-z]+_[a-z]+\\(",
            "crates",
        ])
        .current_dir(crate::shell::root())
        .env("RADDLE_HARDEN_INJECT", inject)
        .env("RADDLE_HARDEN_LOG", log)
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    anyhow::ensure!(
        output.status.success(),
        "{PROGRAM} ended with {}",
        output.status
    );
    let text = String::from_utf8(output.stdout)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    Ok(lines)
}
