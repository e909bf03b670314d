//! The loop over forms, encodings and states.

use std::collections::BTreeMap;
use std::fmt;

use iced_x86::Code;
use raddle_stdx::Prng;

use super::case::CaseResult;
use super::compare::{Mask, differences};
use super::forms::{self, Exempt};
use super::machine::Machine;
use super::native::Native;
use super::plan::Plan;
use super::program::Program;
use super::subject::{Interpreter, Subject};
use crate::engine::Observe;

/// States tried with one encoding.
const CASES_PER_ENCODING: u64 = 64;
/// States tried with one program.
const CASES_PER_PROGRAM: u64 = 16;
/// Keeps the programs apart from the single instructions of the same seed.
const PROGRAM_SALT: u64 = 0x5EED_0F00_D000_0001;
/// Mismatches kept of programs.
const PROGRAM_MISMATCHES: usize = 10;
/// Mismatches kept per form.
const MISMATCHES_PER_FORM: u64 = 2;

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Cases in total; every form gets at least one encoding's worth.
    pub cases: u64,
    pub seed: u64,
    /// Only forms whose name contains this.
    pub form: Option<String>,
}

/// A case on which host and subject disagree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    pub form: String,
    pub bytes: String,
    pub text: String,
    pub differences: String,
}

/// What was run, and what was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Cases per form, by name.
    pub forms: BTreeMap<String, u64>,
    /// Implemented forms that are not compared, with the reason.
    pub exempt: BTreeMap<String, &'static str>,
    /// Forms for which no encoding could be made.
    pub unreachable: Vec<String>,
    pub cases: u64,
    pub faults: u64,
    pub mismatch_count: u64,
    /// The first few per form.
    pub mismatches: Vec<Mismatch>,
}

/// Runs the generic interpreter against the host.
///
/// # Errors
/// If the host refuses the memory or signal handlers that the native side needs.
pub fn fuzz_interpreter(config: &Config) -> std::io::Result<Report> {
    let mut native = Native::new()?;
    Ok(fuzz(config, &mut native, &mut Interpreter::default()))
}

/// Runs the engine with its fast handlers against the host.
///
/// # Errors
/// As for [`fuzz_interpreter`].
pub fn fuzz_engine(config: &Config, observe: Observe) -> std::io::Result<Report> {
    let mut native = Native::new()?;
    Ok(fuzz(config, &mut native, &mut Machine::new(observe)?))
}

/// Runs random programs on the generic interpreter and on the host.
///
/// # Errors
/// As for [`fuzz_interpreter`].
pub fn fuzz_interpreter_programs(config: &Config) -> std::io::Result<Report> {
    let mut native = Native::new()?;
    Ok(fuzz_programs(
        config,
        &mut native,
        &mut Interpreter::default(),
    ))
}

/// Runs random programs on the engine and on the host.
///
/// # Errors
/// As for [`fuzz_interpreter`].
pub fn fuzz_engine_programs(config: &Config, observe: Observe) -> std::io::Result<Report> {
    let mut native = Native::new()?;
    let mut machine = Machine::new(observe)?;
    Ok(fuzz_programs(config, &mut native, &mut machine))
}

fn fuzz_programs(config: &Config, oracle: &mut dyn Subject, subject: &mut dyn Subject) -> Report {
    let forms = Program::forms();
    let mut report = Report::default();
    let (mut native, mut ours) = (CaseResult::empty(), CaseResult::empty());
    for index in 0..config.cases.div_ceil(CASES_PER_PROGRAM) {
        let mut prng = Prng::new(Prng::derive_seed(config.seed ^ PROGRAM_SALT, index));
        let program = Program::new(&forms, &mut prng);
        let mut case = program.case(&mut prng);
        for _ in 0..CASES_PER_PROGRAM {
            program.fill(&mut case, &mut prng);
            oracle.execute(&case, &mut native);
            subject.execute(&case, &mut ours);
            report.cases += 1;
            let is_fault = matches!(native.ending, super::Ending::Fault { .. });
            report.faults += u64::from(is_fault);
            let mask = Program::mask(is_fault);
            let Some(differences) = differences(&case, mask, &native, &ours) else {
                continue;
            };
            report.mismatch_count += 1;
            if report.mismatches.len() < PROGRAM_MISMATCHES {
                report.mismatches.push(Mismatch {
                    form: String::from("program"),
                    bytes: hex(&case.code),
                    text: program.text(),
                    differences,
                });
            }
            break;
        }
    }
    report.forms.insert(String::from("program"), report.cases);
    report
}

/// Runs `subject` against `oracle`.
pub fn fuzz(config: &Config, oracle: &mut dyn Subject, subject: &mut dyn Subject) -> Report {
    let is_wanted = |code: &Code| {
        let name = format!("{code:?}");
        config.form.as_ref().is_none_or(|part| name.contains(part))
    };
    let forms: Vec<Code> = forms::all().into_iter().filter(is_wanted).collect();
    let mut report = Report::default();
    for (code, why) in forms::exempt() {
        report.exempt.insert(format!("{code:?}"), reason(why));
    }
    let per_round = CASES_PER_ENCODING * forms.len().max(1) as u64;
    let rounds = config.cases.div_ceil(per_round);
    let mut run = Run {
        oracle,
        subject,
        native: CaseResult::empty(),
        ours: CaseResult::empty(),
        per_form: vec![(0, 0); forms.len()],
    };
    for round in 0..rounds {
        for (index, code) in forms.iter().enumerate() {
            let family = Prng::derive_seed(config.seed, index as u64);
            let mut prng = Prng::new(Prng::derive_seed(family, round));
            run.batch(index, *code, &mut prng, &mut report);
        }
    }
    for (code, (cases, _)) in forms.iter().zip(&run.per_form) {
        if *cases == 0 {
            report.unreachable.push(format!("{code:?}"));
        } else {
            report.forms.insert(format!("{code:?}"), *cases);
        }
    }
    report
}

fn reason(why: Exempt) -> &'static str {
    match why {
        Exempt::OwnAnswer => "the answer is ours by design",
        Exempt::LeavesProcess => "it would leave the test process",
        Exempt::NotDecoded => "the decoder never gives it",
        Exempt::VendorDecoding => "vendors decode it differently",
    }
}

struct Run<'a> {
    oracle: &'a mut dyn Subject,
    subject: &'a mut dyn Subject,
    native: CaseResult,
    ours: CaseResult,
    /// Cases and mismatches of each form.
    per_form: Vec<(u64, u64)>,
}

impl Run<'_> {
    fn batch(&mut self, index: usize, code: Code, prng: &mut Prng, report: &mut Report) {
        let Some(plan) = Plan::new(code, prng) else {
            return;
        };
        let mask = Mask::of(&plan.insn);
        let mut case = plan.case(prng);
        for _ in 0..CASES_PER_ENCODING {
            let operand = plan.fill(&mut case, prng);
            self.oracle.execute(&case, &mut self.native);
            self.subject.execute(&case, &mut self.ours);
            report.cases += 1;
            let is_fault = matches!(self.native.ending, super::Ending::Fault { .. });
            report.faults += u64::from(is_fault);
            self.per_form[index].0 += 1;
            mask.forgive((&case, operand), &mut self.native, &self.ours);
            let Some(differences) = differences(&case, mask, &self.native, &self.ours) else {
                continue;
            };
            report.mismatch_count += 1;
            self.per_form[index].1 += 1;
            if self.per_form[index].1 <= MISMATCHES_PER_FORM {
                report.mismatches.push(Mismatch {
                    form: format!("{code:?}"),
                    bytes: hex(&case.code),
                    text: format!("{}", plan.insn),
                    differences,
                });
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let parts: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    parts.join(" ")
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} ({})", self.form, self.text, self.bytes)?;
        write!(f, "{}", self.differences)
    }
}
