//! Tables 5.5 and 5.7 for the corpus: points, recovery time, and how long the rest of the same run takes. Nothing is
//! restarted: the rest is what a restart would have to repeat at least.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context as _;

use super::Place;
use super::tables::Sums;

/// Runs per program, of which the median is shown.
const RUNS: usize = 11;

/// One hardened corpus program.
struct Case {
    name: String,
    source: PathBuf,
    /// `--harden-site=...` of fix mode.
    site: String,
}

/// Microseconds and retries of a recovery, and microseconds of the rest of the run.
struct Recovery {
    time: u128,
    retries: u128,
    rest: u128,
}

#[expect(clippy::print_stdout, reason = "the table is the result")]
pub(super) fn print(place: &Place) -> anyhow::Result<()> {
    println!("## Tables 5.5 and 5.7: the corpus");
    println!(
        "| program | points static, dynamic (survival) | points static, dynamic (fix) | recovery us | retries | rest of the run us |"
    );
    println!("|---|---|---|---|---|---|");
    for case in cases()? {
        let survival = points(place, &case, "--harden-mode=survival")?;
        let fix = points(place, &case, &case.site)?;
        let program = build(place, &case, &["--harden-mode=survival"])?;
        let mut runs: Vec<Recovery> = (0..RUNS)
            .map(|_| one(&program))
            .collect::<anyhow::Result<_>>()?;
        let mut median = |of: fn(&Recovery) -> u128| {
            runs.sort_by_key(of);
            of(&runs[RUNS / 2])
        };
        println!(
            "| {} | {survival} | {fix} | {} | {} | {} |",
            case.name,
            median(|run| run.time),
            median(|run| run.retries),
            median(|run| run.rest)
        );
    }
    Ok(())
}

fn cases() -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(crate::shell::root().join("corpus/harden"))? {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        if fs::read_to_string(folder.join("case.toml"))?.contains("\"unrecoverable\"") {
            continue;
        }
        let source = folder.join("buggy.c");
        let text = fs::read_to_string(&source)?;
        let line = text
            .lines()
            .position(|line| line.contains("SITE"))
            .with_context(|| format!("{} names no SITE", source.display()))?;
        cases.push(Case {
            site: format!("--harden-site={name}/buggy.c:{}", line + 1),
            name: name.into_owned(),
            source,
        });
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

fn build(place: &Place, case: &Case, options: &[&str]) -> anyhow::Result<PathBuf> {
    let program = place.work.join("recovering");
    let status = Command::new(&place.raddle)
        .args(["cc", "--harden-strict", "-O2", "-pthread"])
        .args(options)
        .arg(&case.source)
        .arg("-o")
        .arg(&program)
        .status()?;
    anyhow::ensure!(status.success(), "{} does not compile", case.name);
    Ok(program)
}

/// Static and dynamic points in one mode.
fn points(place: &Place, case: &Case, mode: &str) -> anyhow::Result<String> {
    let report = place.work.join("recovering.jsonl");
    if report.exists() {
        fs::remove_file(&report)?;
    }
    let option = format!("--harden-report={}", report.display());
    let program = build(place, case, &[mode, "--harden-count-points", &option])?;
    let sums = Sums::of(&report)?;
    let output = Command::new(&program)
        .env("RADDLE_HARDEN_SUMMARY", "1")
        .output()?;
    let log = String::from_utf8(output.stderr)?;
    let dynamic = log
        .lines()
        .find(|line| line.contains(" points passed"))
        .and_then(|line| line.split(" points passed").next()?.rsplit(' ').next())
        .context("no summary")?;
    Ok(format!("{}, {dynamic}", sums.points))
}

fn one(program: &Path) -> anyhow::Result<Recovery> {
    let start = Instant::now();
    let output = Command::new(program).output()?;
    let whole = start.elapsed().as_micros();
    let log = String::from_utf8(output.stderr)?;
    let line = log
        .lines()
        .find(|line| line.contains(" recovered after "))
        .context("no recovery in this run")?;
    let mut words = line
        .split(" recovered after ")
        .nth(1)
        .unwrap_or("")
        .split(' ');
    let retries = words.next().unwrap_or("").parse()?;
    let time = words.nth(1).unwrap_or("").parse()?;
    Ok(Recovery {
        time,
        retries,
        rest: whole.saturating_sub(time),
    })
}
