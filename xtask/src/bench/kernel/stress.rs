//! The same bug without a scheduler: both threads call again and again, and processors take turns of a fixed length.
#![expect(clippy::print_stdout, reason = "the table is the result")]

use super::super::cpu;
use super::guest::Guest;

/// Bugs that the kernel itself complains about; wrong results have no meaning where calls overlap anyhow.
const BUGS: [&str; 5] = ["open-close", "watch", "refcount", "rcu", "double-free"];
/// Rounds of one loop; a test has at most 2048 statements, repetitions counted.
const ROUNDS: u32 = 600;
/// Lengths of a turn, in instructions.
const TURNS: [u64; 8] = [97, 331, 1_009, 3_001, 10_007, 30_011, 100_003, 300_007];

/// One loop of many rounds for each length of a turn.
pub(super) fn table(guest: &Guest, only: &str) -> anyhow::Result<()> {
    println!(
        "## A loop of {ROUNDS} rounds in the guest instead: processors take turns of so many instructions\n"
    );
    println!("| bug | loops that fail | at turns of | CPU seconds |");
    println!("|---|---|---|---|");
    for bug in BUGS.into_iter().filter(|bug| bug.contains(only)) {
        let text = std::fs::read_to_string(guest.bug(bug))?;
        let path = guest.write(&format!("stress-{bug}.ktest"), &looped(&text))?;
        let before = cpu::of_children();
        let mut failing = Vec::new();
        for turn in TURNS {
            let turn = turn.to_string();
            let options = [
                "--schedules",
                "1",
                "--plain-interrupts",
                "--patience",
                &turn,
            ];
            let options = [&options[..], &["--guest-time", "20000"]].concat();
            if guest.explore(&path, &options)?.failing > 0 {
                failing.push(turn);
            }
        }
        println!(
            "| {bug} | {} of {} | {} | {:.1} |",
            failing.len(),
            TURNS.len(),
            if failing.is_empty() {
                "-".to_owned()
            } else {
                failing.join(", ")
            },
            cpu::of_children() - before
        );
    }
    println!();
    Ok(())
}

/// The test with its threads in loops: the first one prepares each round, nobody expects anything.
fn looped(text: &str) -> String {
    let (setup, threads) = text.split_once("\nthread ").unwrap_or((text, ""));
    let prepare: Vec<&str> = setup
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("ioctl("))
        .map(without_expectation)
        .collect();
    let mut looped = setup.to_owned();
    for (number, thread) in threads.split("\nthread ").enumerate() {
        let mut lines = thread.lines();
        let name = lines.next().unwrap_or_default();
        let own = lines.map(str::trim).filter(|line| !line.is_empty());
        looped.push_str(&format!("\nthread {name}\n    repeat {ROUNDS} {{\n"));
        let first = prepare.iter().copied().filter(|_| number == 0);
        for line in first.chain(own) {
            looped.push_str(&format!("        {}\n", without_expectation(line)));
        }
        looped.push_str("    }\n");
    }
    looped
}

/// A call alone.
fn without_expectation(line: &str) -> &str {
    line.find(')').map_or(line, |end| &line[..=end])
}
