//! Fuzzes the C front end: `fuzz_source ROUNDS FIRST_SEED`. Every seed is one made-up or mutated file; the program
//! ends with the first that panics, whose number is then the last one printed.

use raddle_scan::fuzz;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds: u64 = arguments.next().unwrap_or_else(|| "10000".into()).parse()?;
    let first: u64 = arguments.next().unwrap_or_else(|| "1".into()).parse()?;
    Ok(fuzz::SOURCE.run(first, rounds, report)?)
}

#[expect(clippy::print_stdout, reason = "the result of this program")]
fn report(text: &str) {
    println!("{text}");
}
