//! Seeded fuzzing of the C front end and the pattern language: no panic, no blow-up.
//!
//! The number of rounds is small, so that every test run has a taste of it; `cargo xtask fuzz-scan` runs longer.

use raddle_scan::fuzz;

/// Inputs per target in a normal test run.
const ROUNDS: u64 = 400;

#[test]
fn the_parser_survives_mutated_and_made_up_source() {
    for seed in 0..ROUNDS {
        fuzz::source(seed);
    }
}

#[test]
fn the_pattern_parser_survives_mutated_patterns() {
    for seed in 0..ROUNDS * 4 {
        fuzz::pattern(seed);
    }
}

#[test]
fn work_grows_with_the_input_and_not_with_its_square() {
    for shape in fuzz::SHAPES {
        let small = fuzz::work(shape, 2_000);
        let large = fuzz::work(shape, 32_000);
        assert!(
            large <= small.max(1) * 16 * 2,
            "{shape}: {small} steps for 2000 repeats, {large} for 32000"
        );
    }
}

#[test]
fn reading_patterns_takes_work_in_proportion_to_their_length() {
    for shape in fuzz::PATTERN_SHAPES {
        let small = fuzz::pattern_work(shape, 2_000);
        let large = fuzz::pattern_work(shape, 32_000);
        assert!(
            large <= small.max(1) * 16 * 2,
            "{shape}: {small} steps for 2000 repeats, {large} for 32000"
        );
    }
}
