//! A short deterministic slice of the fuzzer.

use super::*;

#[test]
fn every_form_agrees_with_the_host() {
    let config = Config {
        cases: 1,
        seed: 1,
        form: None,
    };
    let report = fuzz_interpreter(&config).unwrap();
    let texts: Vec<String> = report.mismatches.iter().map(ToString::to_string).collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
    assert!(report.unreachable.is_empty(), "{:?}", report.unreachable);
    assert!(report.forms.len() > 1000, "{}", report.forms.len());
}
