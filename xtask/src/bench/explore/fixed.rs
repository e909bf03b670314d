//! Long campaigns on all fixed variants of the corpus: nothing may be found.
#![expect(clippy::print_stdout, reason = "the table is the result")]

use anyhow::ensure;

use super::{Explore, corpus};
use crate::bench::cpu;

const SCHEDULES: u64 = 10_000;

pub(super) fn fixed(bench: &Explore) -> anyhow::Result<()> {
    println!("## {SCHEDULES} schedules of each fixed variant\n");
    println!("| program | schedules | findings | CPU seconds |");
    println!("|---|---|---|---|");
    let names = corpus::all()?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (mut programs, mut findings) = (0, 0);
    let begun = cpu::of_children();
    for name in bench.programs(&names) {
        let program = corpus::build(name, "fixed", &[])?;
        let before = cpu::of_children();
        let count = SCHEDULES.to_string();
        let summary = bench.explore(&program, &["--schedules", &count, "--time", "3600"])?;
        let schedules = summary.number("schedules");
        ensure!(
            schedules == SCHEDULES,
            "{name}: only {schedules} schedules were run"
        );
        let found = summary.number("findings");
        let seconds = cpu::of_children() - before;
        println!("| {name} | {schedules} | {found} | {seconds:.1} |");
        programs += 1;
        findings += found;
    }
    let seconds = cpu::of_children() - begun;
    println!(
        "\n{programs} programs, {} schedules, {findings} findings, {seconds:.0} CPU seconds with compilation.\n",
        programs * SCHEDULES
    );
    ensure!(findings == 0, "there are findings in fixed variants");
    Ok(())
}
