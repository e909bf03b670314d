//! Fuzzes the parser of the pattern language: `fuzz_pattern ROUNDS FIRST_SEED`. Every seed is one mutated pattern file;
//! the program ends with the first that panics.

use raddle_scan::fuzz;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds: u64 = arguments.next().unwrap_or_else(|| "10000".into()).parse()?;
    let first: u64 = arguments.next().unwrap_or_else(|| "1".into()).parse()?;
    for seed in first..first.saturating_add(rounds) {
        if seed % 1000 == 0 {
            report(&format!("seed {seed}"));
        }
        fuzz::pattern(seed);
    }
    for shape in fuzz::PATTERN_SHAPES {
        let (small, large) = (
            fuzz::pattern_work(shape, 2_000),
            fuzz::pattern_work(shape, 64_000),
        );
        if large > small.max(1) * 32 * 2 {
            return Err(
                format!("`{shape}`: {small} steps for 2000 repeats, {large} for 64000").into(),
            );
        }
    }
    report(&format!(
        "{rounds} pattern files and {} repeated shapes: no panic, no blow-up",
        fuzz::PATTERN_SHAPES.len()
    ));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the result of this program")]
fn report(text: &str) {
    println!("{text}");
}
