//! `cargo xtask bench replay`: 10,000 replays of 20 findings of the corpus, all of them bit for bit the same.
#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};

use crate::shell;

/// Programs in C whose bugs are found within seconds.
const CASES: [&str; 20] = [
    "aget/progress",
    "apache/cache_lookup",
    "apache/cache_refcount",
    "apache/log_buffer",
    "apache/log_corruption",
    "cherokee/log_message",
    "cherokee/time_string",
    "classic/aba_stack",
    "classic/bluetooth",
    "classic/bounded_buffer_if",
    "classic/dining_philosophers",
    "classic/lost_wakeup",
    "classic/peterson",
    "classic/reader_writer",
    "cobet/atomic_pair",
    "hawknl/shutdown",
    "httrack/global_opt",
    "mysql/binlog_order",
    "mysql/proc_info",
    "sqlite/enter_mutex",
];

const REPLAYS: u32 = 500;

/// Replays each finding many times; `raddle` is the program to use, or the release build.
pub(crate) fn run(raddle: Option<&Path>) -> anyhow::Result<()> {
    let raddle = shell::release_build(raddle)?;
    let folder = shell::target_folder().join("bench-replay");
    println!("| finding | replays, all the same | replays/s |");
    println!("|---|---|---|");
    let mut total = 0;
    for case in CASES {
        let recording = record(&raddle, case, &folder.join(case))?;
        let begun = Instant::now();
        replay(&raddle, &recording)?;
        let rate = u128::from(REPLAYS) * 1000 / begun.elapsed().as_millis().max(1);
        total += REPLAYS;
        println!("| `{case}` | {REPLAYS} | {rate} |");
    }
    println!("\n{total} replays, all bit for bit the same.");
    Ok(())
}

/// Explores the buggy variant of a case until it fails and gives the first recording.
fn record(raddle: &Path, case: &str, folder: &Path) -> anyhow::Result<PathBuf> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    let program = folder.join("buggy");
    let source = shell::root().join("corpus").join(case).join("buggy.c");
    let status = Command::new("gcc")
        .args(["-O1", "-g", "-pthread", "-o"])
        .args([&program, &source])
        .status()?;
    ensure!(status.success(), "{case} does not compile");
    let status = Command::new(raddle)
        .args(["explore", "--until-found", "--concise", "--output"])
        .arg(folder)
        .arg("--")
        .arg(&program)
        .stdout(std::process::Stdio::null())
        .status()?;
    ensure!(status.code() == Some(1), "{case}: the bug was not found");
    let mut found: Vec<_> = std::fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "raddle"))
        .collect();
    found.sort();
    let first = found.into_iter().next();
    first.with_context(|| format!("{case}: no recording was written"))
}

fn replay(raddle: &Path, recording: &Path) -> anyhow::Result<()> {
    let output = Command::new(raddle)
        .args(["replay", "--times", &REPLAYS.to_string()])
        .arg(recording)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        text.contains(&format!("replayed {REPLAYS} times bit for bit")),
        "{}: {}",
        recording.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
