//! The engine's log against the accesses that the generic interpreter makes: fast handlers and translated code must
//! report the same addresses, sizes, kinds, values if they are wanted, instructions and steps.

use std::io;

use raddle_stdx::Prng;

use super::case::{Case, CaseResult};
use super::forms;
use super::machine::Machine;
use super::plan::Plan;
use super::program::Program;
use super::run::{Config, Mismatch, Report};
use super::subject::{Interpreter, Subject};
use crate::engine::Observe;
use crate::log::Record;

const CASES_PER_ENCODING: u64 = 16;
const SALT: u64 = 0x0B5E_47E5_0000_0001;
const MISMATCHES_MAX: usize = 20;

/// Compares the records of single instructions, or of whole programs.
///
/// # Errors
/// If the host refuses memory.
pub fn fuzz_log(config: &Config, observe: Observe, has_programs: bool) -> io::Result<Report> {
    let mut pair = Pair::new(observe)?;
    let mut report = Report::default();
    if has_programs {
        let forms = Program::forms();
        for index in 0..config.cases.div_ceil(CASES_PER_ENCODING) {
            let mut prng = Prng::new(Prng::derive_seed(config.seed ^ SALT, index));
            let program = Program::new(&forms, &mut prng);
            let mut case = program.case(&mut prng);
            for _ in 0..CASES_PER_ENCODING {
                program.fill(&mut case, &mut prng);
                pair.compare(&case, "program", &program.text(), &mut report);
            }
        }
        return Ok(report);
    }
    let wanted = config.form.as_deref().unwrap_or("");
    let forms: Vec<_> = forms::all()
        .into_iter()
        .filter(|code| format!("{code:?}").contains(wanted))
        .collect();
    let per_round = CASES_PER_ENCODING * forms.len().max(1) as u64;
    for round in 0..config.cases.div_ceil(per_round) {
        for (index, code) in forms.iter().enumerate() {
            let family = Prng::derive_seed(config.seed ^ SALT, index as u64);
            let mut prng = Prng::new(Prng::derive_seed(family, round));
            let Some(plan) = Plan::new(*code, &mut prng) else {
                continue;
            };
            let name = format!("{code:?}");
            let mut case = plan.case(&mut prng);
            for _ in 0..CASES_PER_ENCODING {
                plan.fill(&mut case, &mut prng);
                pair.compare(&case, &name, &plan.insn.to_string(), &mut report);
                *report.forms.entry(name.clone()).or_default() += 1;
            }
        }
    }
    Ok(report)
}

struct Pair {
    interpreter: Interpreter,
    machine: Machine,
    expected: CaseResult,
    found: CaseResult,
}

impl Pair {
    fn new(observe: Observe) -> io::Result<Self> {
        let mut pair = Self {
            interpreter: Interpreter::default(),
            machine: Machine::new(observe)?,
            expected: CaseResult::empty(),
            found: CaseResult::empty(),
        };
        pair.interpreter.keep_records();
        pair.machine.keep_records();
        Ok(pair)
    }

    fn compare(&mut self, case: &Case, form: &str, text: &str, report: &mut Report) {
        self.interpreter.execute(case, &mut self.expected);
        self.machine.execute(case, &mut self.found);
        report.cases += 1;
        let (expected, found) = (self.interpreter.records(), self.machine.records());
        // The log counts all iterations of a repeated instruction as its first step.
        let is_same = |(a, b): (&Record, &Record)| {
            let value = b.value.and(a.value);
            let step = b.step;
            Record { step, value, ..*a } == *b
        };
        let is_step_same = |(a, b): (&Record, &Record)| form != "program" || a.step == b.step;
        let pairs = || expected.iter().zip(found);
        if expected.len() == found.len() && pairs().all(is_same) && pairs().all(is_step_same) {
            return;
        }
        report.mismatch_count += 1;
        if report.mismatches.len() < MISMATCHES_MAX {
            report.mismatches.push(Mismatch {
                form: form.to_owned(),
                bytes: String::new(),
                text: text.to_owned(),
                differences: describe(expected, found),
            });
        }
    }
}

/// The first record that differs.
fn describe(expected: &[Record], found: &[Record]) -> String {
    let count = expected.len().max(found.len());
    let at = (0..count).find(|at| expected.get(*at) != found.get(*at));
    let at = at.unwrap_or(0);
    format!(
        "    record {at} of {count}: interpreter {:x?}, engine {:x?}\n",
        expected.get(at),
        found.get(at)
    )
}
