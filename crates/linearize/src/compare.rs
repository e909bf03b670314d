//! What counts as the same result.

use raddle_stdx::glob_matches;
use raddle_trace::{Compare, SerialRules};
use raddle_world::Value;
use regex_lite::Regex;
use thiserror::Error;

use crate::history::Operation;

/// Why rules cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RuleError {
    #[error("the mask `{pattern}` is not a regular expression: {error}")]
    Pattern { pattern: String, error: String },
    #[error("the rule for `{0}` has no reason: say why this deviation is accepted")]
    NoReason(String),
}

/// The rules of a test, ready for use.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    rules: Vec<(String, Compare)>,
    masks: Vec<Regex>,
}

impl Comparison {
    /// # Errors
    /// A mask is no regular expression, or a rule does not say why.
    pub fn new(rules: &SerialRules) -> Result<Self, RuleError> {
        let reasons = rules
            .rules
            .iter()
            .map(|rule| (&rule.operation, &rule.reason));
        let masks = rules.masks.iter().map(|mask| (&mask.pattern, &mask.reason));
        for (what, reason) in reasons.chain(masks) {
            if reason.trim().is_empty() {
                return Err(RuleError::NoReason(what.clone()));
            }
        }
        let compiled = rules.masks.iter().map(|mask| {
            Regex::new(&mask.pattern).map_err(|error| RuleError::Pattern {
                pattern: mask.pattern.clone(),
                error: error.to_string(),
            })
        });
        let rule = |rule: &raddle_trace::SerialRule| (rule.operation.clone(), rule.compare);
        Ok(Self {
            masks: compiled.collect::<Result<_, _>>()?,
            rules: rules.rules.iter().map(rule).collect(),
        })
    }

    /// Whether a serial run does and gives what the concurrent one did.
    pub fn is_same(&self, concurrent: &Operation, serial: &Operation) -> bool {
        concurrent.call == serial.call && self.gives_same(concurrent, serial)
    }

    fn gives_same(&self, concurrent: &Operation, serial: &Operation) -> bool {
        let how = self.how(&concurrent.call.name);
        if how == Compare::Ignore {
            return true;
        }
        if concurrent.ended.is_some() != serial.ended.is_some() {
            return false;
        }
        let (ours, theirs) = (
            self.values(&concurrent.results),
            self.values(&serial.results),
        );
        match how {
            Compare::Equal => ours == theirs,
            Compare::Unordered => sorted(&ours) == sorted(&theirs),
            Compare::ConcurrentInSerial => is_contained(&ours, &theirs),
            Compare::SerialInConcurrent => is_contained(&theirs, &ours),
            Compare::Ignore => true,
        }
    }

    fn how(&self, name: &str) -> Compare {
        let mut rules = self.rules.iter();
        let rule = rules.find(|(pattern, _)| glob_matches(pattern.as_bytes(), name.as_bytes()));
        rule.map(|(_, how)| *how).unwrap_or_default()
    }

    /// Results without what masks cover.
    fn values(&self, results: &[Value]) -> Vec<Value> {
        let masked = |bytes: &Vec<u8>| {
            if self.masks.is_empty() {
                return bytes.clone();
            }
            let text = String::from_utf8_lossy(bytes).into_owned();
            let masked = self
                .masks
                .iter()
                .fold(text, |text, mask| mask.replace_all(&text, "").into_owned());
            masked.into_bytes()
        };
        let value = |value: &Value| match value {
            Value::Number(number) => Value::Number(*number),
            Value::Text(bytes) => Value::Text(masked(bytes)),
            Value::Error(bytes) => Value::Error(masked(bytes)),
        };
        results.iter().map(value).collect()
    }
}

/// The lines of some results: each value that is no text is one.
fn sorted(values: &[Value]) -> Vec<Value> {
    let mut lines: Vec<Value> = Vec::new();
    for value in values {
        match value {
            Value::Text(text) => {
                let parts = text.split(|byte| *byte == b'\n');
                let parts = parts.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
                let parts = parts.filter(|line| !line.is_empty());
                lines.extend(parts.map(|line| Value::Text(line.to_vec())));
            }
            other => lines.push(other.clone()),
        }
    }
    lines.sort();
    lines
}

/// Whether each line is among the others, as often.
fn is_contained(few: &[Value], many: &[Value]) -> bool {
    let mut rest = sorted(many);
    sorted(few).into_iter().all(|line| {
        let at = rest.iter().position(|other| *other == line);
        at.map(|at| rest.remove(at)).is_some()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use raddle_trace::{Mask, SerialRule};

    use super::*;
    use crate::history::Call;

    fn list(text: &str) -> Operation {
        Operation {
            client: Arc::from([0]),
            call: Call {
                name: "list all".into(),
                arguments: vec![],
            },
            results: vec![Value::Text(text.into())],
            begun: 0,
            ended: Some(1),
            effort: crate::history::Effort::default(),
        }
    }

    fn is_same(compare: Compare, concurrent: &str, serial: &str) -> bool {
        let rules = SerialRules {
            slower_than: None,
            state_files: vec![],
            rules: vec![SerialRule {
                operation: "list*".into(),
                compare,
                reason: "a cache".into(),
            }],
            masks: vec![Mask {
                pattern: "[0-9]+ ms".into(),
                reason: "time".into(),
            }],
        };
        let comparison = Comparison::new(&rules).unwrap();
        comparison.is_same(&list(concurrent), &list(serial))
    }

    #[test]
    fn each_rule_lets_through_what_it_says_and_no_more() {
        assert!(is_same(Compare::Equal, "a\nb", "a\nb"));
        assert!(!is_same(Compare::Equal, "a\nb", "b\na"));
        assert!(is_same(Compare::Unordered, "a\r\nb\r\n", "b\na"));
        assert!(!is_same(Compare::Unordered, "a\na", "a"));
        assert!(is_same(Compare::ConcurrentInSerial, "a", "b\na"));
        assert!(!is_same(Compare::ConcurrentInSerial, "b\na", "a"));
        assert!(is_same(Compare::SerialInConcurrent, "b\na", "a"));
        assert!(!is_same(Compare::SerialInConcurrent, "a", "b\na"));
        assert!(is_same(Compare::Ignore, "a", "c"));
    }

    #[test]
    fn what_is_masked_may_differ_and_nothing_else() {
        assert!(is_same(Compare::Equal, "took 3 ms", "took 17 ms"));
        assert!(!is_same(Compare::Equal, "took 3 ms", "gave 3 ms"));
    }

    #[test]
    fn rules_that_make_no_sense_are_refused() {
        let mask = |pattern: &str, reason: &str| {
            let masks = vec![Mask {
                pattern: pattern.into(),
                reason: reason.into(),
            }];
            Comparison::new(&SerialRules {
                masks,
                ..SerialRules::default()
            })
        };
        assert!(matches!(mask("(", "x"), Err(RuleError::Pattern { .. })));
        assert!(matches!(mask("a", " "), Err(RuleError::NoReason(_))));
    }
}
