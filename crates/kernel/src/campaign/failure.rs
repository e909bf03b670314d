//! What counts as wrong in a run of a kernel.

use raddle_detect::NotSerial;
use raddle_report::SerialOrders;
use raddle_stdx::Digest;
use serde::{Deserialize, Serialize};

use super::serial::SerialRuns;
use super::session::OUT_OF_MEMORY;
use crate::program::ResultKind;
use crate::test_case::TestCase;
use crate::world::{KernelWorld, RunEnd, Splat};

/// A run that went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// The kernel complained about itself.
    Splat(Splat),
    /// Threads did not come to their ends; the statements they are at.
    Stuck { statements: Vec<usize> },
    /// A call gave what the test does not allow.
    WrongResult { statement: usize, value: i64 },
    /// The test's own program found something wrong.
    Check { text: String },
    /// The machine was reset without a word.
    Reset,
    /// No serial order of the calls gives what this run gave.
    NotSerial(Box<NotSerial>),
}

impl Failure {
    /// Looks at a run that has ended.
    pub(super) fn of_run(world: &mut KernelWorld) -> Option<Self> {
        let splats = world.console().splats();
        if let Some(splat) = splats.into_iter().min_by_key(|splat| splat.kind) {
            return Some(Self::Splat(splat));
        }
        match world.end() {
            Some(RunEnd::Unsupported(_)) => return None,
            Some(RunEnd::Reset | RunEnd::Crashed) => return Some(Self::Reset),
            Some(RunEnd::Fatal(text)) => return Some(Self::Check { text: text.clone() }),
            Some(RunEnd::Stuck) | None => {
                let statements = world.progress().into_iter().flatten().collect();
                return Some(Self::Stuck { statements });
            }
            Some(RunEnd::Finished { status }) if *status != 0 => {
                let text = world.failed_checks().first().cloned();
                return Some(Self::Check {
                    text: text.unwrap_or_else(|| format!("the test ended with status {status}")),
                });
            }
            Some(RunEnd::Finished { .. }) => {}
        }
        if let Some(text) = world.failed_checks().first() {
            return Some(Self::Check { text: text.clone() });
        }
        world
            .results()
            .iter()
            .find(|result| result.kind == ResultKind::NotAsExpected)
            .map(|result| Self::WrongResult {
                statement: result.statement,
                value: result.value,
            })
    }

    /// The rule that it is reported under.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Splat(splat) => splat.kind.rule(),
            Self::Stuck { .. } => "kernel-stuck",
            Self::WrongResult { .. } => "kernel-wrong-result",
            Self::Check { .. } => "kernel-check",
            Self::Reset => "kernel-reset",
            Self::NotSerial(how) => how.kind(),
        }
    }

    /// Equal for the same bug.
    pub fn fingerprint(&self) -> String {
        let mut digest = Digest::default();
        digest.bytes(self.rule().as_bytes());
        match self {
            Self::Splat(splat) => match splat.faulting_function() {
                Some(function) => digest.bytes(function.as_bytes()),
                None => {
                    digest.bytes(splat.title.as_bytes());
                    digest.bytes(splat.function().unwrap_or_default().as_bytes());
                }
            },
            Self::Stuck { statements } => {
                for statement in statements {
                    digest.word(*statement as u64);
                }
            }
            Self::WrongResult { statement, value } => {
                digest.word(*statement as u64);
                // Error numbers name a bug; other wrong values are whatever lay in memory.
                digest.word(value.min(&0).cast_unsigned());
            }
            Self::Check { text } => digest.bytes(text.as_bytes()),
            Self::Reset => {}
            Self::NotSerial(how) => digest.bytes(how.what.as_bytes()),
        }
        format!("{:016x}", digest.value())
    }

    /// One line.
    pub fn title(&self, test: Option<&TestCase>) -> String {
        let statement = |number: &usize| {
            test.and_then(|test| test.statements.get(*number))
                .map_or_else(
                    || format!("statement {number}"),
                    |s| format!("`{}`", s.text),
                )
        };
        match self {
            Self::Splat(splat) => match splat.function() {
                // Many headlines have it already.
                Some(function) if !splat.title.contains(function) => {
                    format!("{}, in {function}", splat.title)
                }
                _ => splat.title.clone(),
            },
            Self::Stuck { statements } if statements.is_empty() => {
                "the test does not come to its end".to_owned()
            }
            Self::Stuck { statements } => {
                let all: Vec<String> = statements.iter().map(statement).collect();
                format!("{} never returns", all.join(" and "))
            }
            Self::WrongResult {
                statement: number,
                value,
            } => {
                let is_assertion = test
                    .and_then(|test| test.statements.get(*number))
                    .is_some_and(|statement| statement.text.starts_with("assert"));
                if is_assertion {
                    format!("{} does not hold", statement(number))
                } else {
                    format!(
                        "{} gave {}",
                        statement(number),
                        TestCase::show_result(*value)
                    )
                }
            }
            Self::Check { text } => text.clone(),
            Self::Reset => "the kernel reset the machine without a word".to_owned(),
            Self::NotSerial(how) => how.title.clone(),
        }
    }

    /// What serial orders say about it, if they were asked.
    pub(super) fn serial(&self) -> Option<SerialOrders> {
        match self {
            Self::NotSerial(how) => Some(how.serial.clone()),
            _ => None,
        }
    }

    /// What the kernel itself says is broken, if it says so.
    pub(super) fn object(&self) -> Option<String> {
        match self {
            Self::Splat(splat) => splat.object(),
            _ => None,
        }
    }

    /// One sentence on why that is wrong, with what was seen of the serial orders.
    pub(super) fn why(&self, serial: Option<&SerialRuns>) -> String {
        let serial = SerialRuns::says(serial, &self.fingerprint());
        match self {
            Self::Splat(splat) if splat.title.starts_with(OUT_OF_MEMORY) => format!(
                "in this order the calls need more memory at once than the guest has: if they may, give it more with --memory; {serial}"
            ),
            Self::Splat(_) => {
                format!("the kernel's own check failed in this order of the processors; {serial}")
            }
            Self::Stuck { .. } => {
                format!("a thread waits for something that never comes; {serial}")
            }
            Self::WrongResult { .. } => format!("the test does not allow this result; {serial}"),
            Self::Check { .. } => {
                format!("the check after the test found a state that it does not allow; {serial}")
            }
            Self::Reset => format!(
                "a kernel resets the machine only after a fault that it could not handle; {serial}"
            ),
            Self::NotSerial(how) => how.why.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::SplatKind;

    /// A guest that is too small in some orders only is told apart from a kernel that gives up.
    #[test]
    fn a_panic_for_want_of_memory_names_the_option() {
        let panic = |title: &str| {
            Failure::Splat(Splat {
                kind: SplatKind::Panic,
                title: title.to_owned(),
                lines: Vec::new(),
            })
        };
        let small =
            panic("Kernel panic - not syncing: Out of memory: compulsory panic_on_oom is enabled");
        assert!(small.why(None).contains("--memory"), "{}", small.why(None));
        let other = panic("Kernel panic - not syncing: Fatal exception");
        assert!(!other.why(None).contains("--memory"), "{}", other.why(None));
    }
}
