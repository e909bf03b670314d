//! A short deterministic slice of the fuzzer.

use super::*;
use crate::engine::Observe;

/// Enough for every form to get two encodings with 64 states each.
const SLICE: Config = Config {
    cases: 150_000,
    seed: 1,
    form: None,
};

fn check(report: &Report) {
    let texts: Vec<String> = report.mismatches.iter().map(ToString::to_string).collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
    assert!(report.unreachable.is_empty(), "{:?}", report.unreachable);
    assert!(report.forms.len() > 1000, "{}", report.forms.len());
}

#[test]
fn the_generic_interpreter_agrees_with_the_host_on_every_form() {
    check(&fuzz_interpreter(&SLICE).unwrap());
}

#[test]
fn the_engine_agrees_with_the_host_on_every_form() {
    check(&fuzz_engine(&SLICE, Observe::None).unwrap());
}

#[test]
fn the_observing_engine_agrees_with_the_host_on_every_form() {
    for observe in [Observe::Addr, Observe::AddrValue] {
        check(&fuzz_engine(&SLICE, observe).unwrap());
    }
}

#[test]
fn programs_end_in_the_same_state_as_on_the_host() {
    let config = Config {
        cases: 20_000,
        ..SLICE
    };
    let reports = [
        fuzz_interpreter_programs(&config).unwrap(),
        fuzz_engine_programs(&config, Observe::None).unwrap(),
        fuzz_engine_programs(&config, Observe::Addr).unwrap(),
        fuzz_engine_programs(&config, Observe::AddrValue).unwrap(),
    ];
    reports.iter().for_each(check_programs);
}

fn check_programs(report: &Report) {
    let texts: Vec<String> = report.mismatches.iter().map(ToString::to_string).collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
    assert!(
        report.faults < report.cases / 4,
        "most programs must run to their end"
    );
}

#[test]
fn the_log_shows_the_accesses_of_the_generic_interpreter() {
    let config = Config {
        cases: 20_000,
        ..SLICE
    };
    for observe in [Observe::Addr, Observe::AddrValue] {
        for has_programs in [false, true] {
            let report = fuzz_log(&config, observe, has_programs).unwrap();
            let texts: Vec<String> = report.mismatches.iter().map(ToString::to_string).collect();
            assert!(texts.is_empty(), "{}", texts.join("\n"));
        }
    }
}

/// An interpreter with one fault: the carry flag after additions.
struct Broken(Interpreter);

impl Subject for Broken {
    fn execute(&mut self, case: &Case, result: &mut CaseResult) {
        self.0.execute(case, result);
        result.rflags ^= 1;
    }
}

#[test]
fn a_wrong_flag_is_found_and_described() {
    let config = Config {
        cases: 64,
        seed: 1,
        form: Some(String::from("Add_rm32_r32")),
    };
    let mut native = Native::new().unwrap();
    let report = fuzz(&config, &mut native, &mut Broken(Interpreter::default()));
    assert_eq!(report.mismatch_count, 64);
    assert!(report.mismatches[0].differences.contains("rflags"));
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let config = Config {
        cases: 1,
        seed: 7,
        form: Some(String::from("Xadd")),
    };
    let first = fuzz_interpreter(&config).unwrap();
    assert_eq!(first, fuzz_interpreter(&config).unwrap());
}
