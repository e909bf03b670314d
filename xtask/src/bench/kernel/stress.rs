//! The same bug without a scheduler: both threads call again and again, on our machine, where processors take turns of
//! a fixed length, and under QEMU's translator with a host thread for each processor.
#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use super::super::cpu;
use super::guest::Guest;

/// Bugs that the kernel itself complains about; wrong results have no meaning where calls overlap anyhow.
const BUGS: [&str; 5] = ["open-close", "watch", "refcount", "rcu", "double-free"];
/// Rounds of one loop; a test has at most 2048 statements, repetitions counted.
const ROUNDS: u32 = 600;
/// Lengths of a turn, in instructions.
const TURNS: [u64; 8] = [97, 331, 1_009, 3_001, 10_007, 30_011, 100_003, 300_007];

/// Loops under QEMU: each boots the kernel.
const QEMU_LOOPS: usize = 8;
/// How often the loop of one boot is made.
const QEMU_TIMES: u32 = 100;
const QEMU: &str = "qemu-system-x86_64";
/// Seconds of one loop under QEMU at most.
const QEMU_SECONDS: &str = "300";
/// The kernel ends at the first complaint.
const QEMU_COMMAND_LINE: &str = "console=ttyS0 panic=-1 oops=panic panic_on_warn=1 mitigations=off";

/// One loop of many rounds for each length of a turn, and several under QEMU.
pub(super) fn table(guest: &Guest, only: &str) -> anyhow::Result<()> {
    println!(
        "## A loop of {ROUNDS} rounds in the guest instead: processors take turns of so many instructions; QEMU makes {} rounds after each boot\n",
        ROUNDS * QEMU_TIMES
    );
    println!(
        "| bug | loops that fail | at turns of | CPU seconds | QEMU TCG: loops that fail | CPU seconds |"
    );
    println!("|---|---|---|---|---|---|");
    let has_qemu = Command::new(QEMU).arg("--version").output().is_ok();
    for bug in BUGS.into_iter().filter(|bug| bug.contains(only)) {
        let text = std::fs::read_to_string(guest.bug(bug))?;
        let path = guest.write(&format!("stress-{bug}.ktest"), &looped(&text))?;
        let ours = on_our_machine(guest, &path)?;
        let theirs = if has_qemu {
            under_qemu(guest, &path)?
        } else {
            "not installed | -".to_owned()
        };
        println!("| {bug} | {ours} | {theirs} |");
    }
    println!();
    Ok(())
}

fn on_our_machine(guest: &Guest, test: &Path) -> anyhow::Result<String> {
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
        if guest.explore(test, &options)?.failing > 0 {
            failing.push(turn);
        }
    }
    Ok(format!(
        "{} of {} | {} | {:.1}",
        failing.len(),
        TURNS.len(),
        if failing.is_empty() {
            "-".to_owned()
        } else {
            failing.join(", ")
        },
        cpu::of_children() - before
    ))
}

fn under_qemu(guest: &Guest, test: &Path) -> anyhow::Result<String> {
    let archive = guest.initramfs(test, QEMU_TIMES)?;
    let before = cpu::of_children();
    let mut failing = 0;
    for _ in 0..QEMU_LOOPS {
        let output = Command::new("timeout")
            .args([QEMU_SECONDS, QEMU, "-accel", "tcg,thread=multi"])
            .args(["-smp", "2", "-m", "256", "-nographic", "-no-reboot"])
            .args(["-append", QEMU_COMMAND_LINE, "-kernel"])
            .arg(guest.kernel())
            .arg("-initrd")
            .arg(&archive)
            .output()
            .context("cannot start QEMU")?;
        let console = String::from_utf8_lossy(&output.stdout);
        let has_failed = console.contains("Kernel panic - not syncing");
        ensure!(
            has_failed || console.contains("raddle: the test ended"),
            "{} did not come to its end under QEMU:\n{console}",
            test.display()
        );
        failing += usize::from(has_failed);
    }
    Ok(format!(
        "{failing} of {QEMU_LOOPS} | {:.1}",
        cpu::of_children() - before
    ))
}

/// The test with its threads in loops: the first one prepares each round, and nothing is expected of it.
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
