//! The tables of the COBET paper, made anew: how a tree synchronises, how deep it calls, and what its four patterns
//! report per file system and per module, with what each analysis brings.

use anyhow::Context as _;

use super::scan::{LEVELS, Scan, example, hundredths};

/// The patterns of the paper, in the order of its tables.
const PATTERNS: &[&str] = &[
    "misused-test-and-set",
    "unsynchronised-thread-creation",
    "misused-atomics",
    "stop-finished-thread",
];
/// The file systems of Tables 2 and 3. Linux 6.1 has all of them.
const FILE_SYSTEMS: &[&str] = &[
    "fs/btrfs",
    "fs/ext4",
    "fs/nfs",
    "fs/proc",
    "fs/reiserfs",
    "fs/sysfs",
    "fs/udf",
];
/// The modules of Table 5; FireWire has a new stack since.
const MODULES: &[&str] = &[
    "drivers/bluetooth",
    "drivers/firewire",
    "drivers/mtd",
    "net/atm",
    "net/ax25",
    "net/netfilter",
    "net/rds",
];

#[expect(clippy::print_stdout, reason = "the tables are the result")]
pub(super) fn run(scan: &Scan, whole: bool) -> anyhow::Result<()> {
    let all = if whole { "." } else { "fs" };
    println!("Table 1: statements of synchronisation in {all}\n");
    let found = statistics(scan, all)?;
    println!("| mechanism | statements |\n|---|---|");
    let statements = found["statements"].as_object();
    for (name, count) in statements.context("the measuring program counts statements")? {
        println!("| {name} | {count} |");
    }
    println!("\nTable 2: call sequences of the file systems\n");
    println!("| file system | lines | sequences | longest | average |\n|---|---|---|---|---|");
    for folder in FILE_SYSTEMS {
        let found = statistics(scan, folder)?;
        println!(
            "| {folder} | {} | {} | {} | {} |",
            found["lines"], found["sequences"], found["longest"], found["average"]
        );
    }
    println!("\nTable 3: reports on the file systems\n");
    reports(scan, FILE_SYSTEMS)?;
    println!("\nTable 4: what each analysis brings, on fs (reports, CPU seconds)\n");
    ablation(scan)?;
    println!("\nTable 5: reports on drivers and network modules\n");
    reports(scan, MODULES)
}

fn statistics(scan: &Scan, folder: &str) -> anyhow::Result<serde_json::Value> {
    let program = example("statistics")?;
    let output = std::process::Command::new(&program)
        .arg(folder)
        .current_dir(&scan.tree)
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    anyhow::ensure!(
        output.status.success(),
        "the statistics of {folder} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

#[expect(clippy::print_stdout, reason = "the tables are the result")]
fn reports(scan: &Scan, folders: &[&str]) -> anyhow::Result<()> {
    println!("| pattern | {} |", folders.join(" | "));
    println!("|---|{}", "---|".repeat(folders.len()));
    let mut measured = Vec::new();
    for folder in folders {
        measured.push(scan.measure("full", "all", folder)?);
    }
    for pattern in PATTERNS {
        let row: Vec<String> = measured
            .iter()
            .map(|one| one.value["patterns"][pattern].to_string())
            .collect();
        println!("| {pattern} | {} |", row.join(" | "));
    }
    let times: Vec<String> = measured
        .iter()
        .map(super::scan::Measured::seconds)
        .collect();
    println!("| CPU seconds, all patterns | {} |", times.join(" | "));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the tables are the result")]
fn ablation(scan: &Scan) -> anyhow::Result<()> {
    let names: Vec<&str> = LEVELS.iter().map(|(_, name)| *name).collect();
    println!("| pattern | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(LEVELS.len()));
    for pattern in PATTERNS {
        let mut row = Vec::new();
        for (level, _) in LEVELS {
            let measured = scan.measure(level, pattern, "fs")?;
            let time = hundredths(measured.number("cpu_ms") / 10);
            row.push(format!("{}, {time}", measured.number("reports")));
        }
        println!("| {pattern} | {} |", row.join(" | "));
    }
    Ok(())
}
