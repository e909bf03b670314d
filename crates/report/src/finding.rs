//! A finding with its evidence: plain data, shared by dynamic and static analyses.
//!
//! The analysis that finds something fills in what is known and leaves the rest unknown; how it reads, and how much of
//! it is shown, is up to the renderers. Contexts and stacks stand once in a finding and are named by their numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::evidence::{Block, Context, Edge, Run, Search, Step, Wait};
use crate::place::{Frame, Place};
use crate::serial::SerialOrders;

/// Version of the JSON form; raised when a field changes meaning or goes away.
pub const SCHEMA_VERSION: u32 = 2;

/// One thing that is wrong, with everything a reader needs to believe it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// Kebab-case rule name, as `raddle explain` knows it.
    pub kind: String,
    pub severity: Severity,
    pub confidence: Confidence,
    /// One line: what, on which object, where.
    pub title: String,
    /// One sentence: why this order or this code is wrong.
    pub why: String,
    /// Stable across unrelated edits; the key for de-duplication, suppression and baselines.
    pub fingerprint: String,
    /// The shared objects involved, most important first.
    pub objects: Vec<String>,
    /// Who takes part; steps name them by their numbers in this list.
    pub contexts: Vec<Context>,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// Steps before the first of `steps` that were not kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub steps_dropped: u64,
    /// How steps depend on each other.
    #[serde(default)]
    pub edges: Vec<Edge>,
    /// Who waits for whom where a run cannot go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
    /// A run nearby that does not fail, to hold beside this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Run>,
    /// The heap block that is involved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Block>,
    /// What serial orders of its operations say about the run, where they were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<SerialOrders>,
    /// What the program or the kernel printed in the failing run; of long texts the end.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub console: String,
    /// The test that was run, as its author wrote it, for tests of kernels.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub test: String,
    /// How the run was found and made small, for dynamic findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// What replays it, for dynamic findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<RecordingFile>,
    /// Further facts for the reader, one line each (call paths, bound variables, hints).
    #[serde(default)]
    pub notes: Vec<String>,
    /// Call stacks, innermost frame first; steps name them by their numbers in this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Vec<Frame>>,
    /// Lines of source that places point to: file, line, text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, BTreeMap<u32, String>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Finding {
    /// A finding of which nothing but this is known yet.
    pub fn new(kind: impl Into<String>, severity: Severity, confidence: Confidence) -> Self {
        Self {
            kind: kind.into(),
            severity,
            confidence,
            title: String::new(),
            why: String::new(),
            fingerprint: String::new(),
            objects: Vec::new(),
            contexts: Vec::new(),
            steps: Vec::new(),
            steps_dropped: 0,
            edges: Vec::new(),
            waits: Vec::new(),
            expected: None,
            block: None,
            serial: None,
            console: String::new(),
            test: String::new(),
            search: None,
            recording: None,
            notes: Vec::new(),
            stacks: Vec::new(),
            sources: BTreeMap::new(),
        }
    }

    /// The short name that users see and type: the rule's initials and four digits of the fingerprint.
    pub fn short_id(&self) -> String {
        let initials: String = self
            .kind
            .split('-')
            .filter_map(|word| word.chars().next())
            .map(|letter| letter.to_ascii_uppercase())
            .collect();
        let digits: String = self.fingerprint.chars().take(4).collect();
        format!("{initials}-{digits}")
    }

    /// The number of a context; one that is not there yet is added.
    pub fn context(&mut self, context: Context) -> usize {
        number_of(&mut self.contexts, context)
    }

    /// The number of a stack; one that is not there yet is added. Nothing for an empty one.
    pub fn stack(&mut self, stack: Vec<Frame>) -> Option<usize> {
        (!stack.is_empty()).then(|| number_of(&mut self.stacks, stack))
    }

    /// Keeps the text of the line that a place names, if `read` has it.
    pub fn quote(&mut self, place: &Place, read: impl FnOnce(&Place) -> Option<String>) {
        let known = self.sources.get(&place.file);
        if place.line == 0 || known.is_some_and(|lines| lines.contains_key(&place.line)) {
            return;
        }
        if let Some(text) = read(place) {
            let lines = self.sources.entry(place.file.clone()).or_default();
            lines.insert(place.line, text);
        }
    }

    /// The text of the line that a place names.
    pub fn line(&self, place: &Place) -> Option<&str> {
        let text = self.sources.get(&place.file)?.get(&place.line)?;
        Some(text)
    }

    /// The label of a context.
    pub fn label(&self, context: usize) -> &str {
        let context = self.contexts.get(context);
        context.map_or("somebody", |context| &context.label)
    }
}

fn number_of<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    let known = list.iter().position(|known| *known == item);
    known.unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}

/// How bad it is if it is real.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    Note,
    Warning,
    Error,
}

impl Severity {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// How sure we are that it is real.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Found by reading code, with little support.
    StaticLow,
    /// Found by reading code, with support from all analyses.
    StaticHigh,
    /// Follows from an observed run, but was not itself observed.
    Predicted,
    /// Happened, and happens again on replay.
    Confirmed,
}

/// A recording that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecordingFile {
    pub file: String,
    /// The command that replays it.
    pub command: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_id_takes_initials_and_four_digits() {
        let finding = Finding {
            fingerprint: "1c9effff".into(),
            ..Finding::new(
                "atomicity-violation",
                Severity::Error,
                Confidence::Predicted,
            )
        };
        assert_eq!(finding.short_id(), "AV-1c9e");
    }

    #[test]
    fn stacks_and_contexts_stand_once_and_lines_are_read_once() {
        let mut finding = Finding::new("crash", Severity::Error, Confidence::Confirmed);
        let place = Place {
            file: "a.c".into(),
            line: 3,
            ..Place::default()
        };
        let stack = || vec![Frame::own(place.clone())];
        assert_eq!(finding.stack(stack()), Some(0));
        assert_eq!(finding.stack(stack()), Some(0));
        assert_eq!(finding.stack(Vec::new()), None);
        assert_eq!(finding.context(Context::named("thread 2")), 0);
        assert_eq!(finding.context(Context::named("thread 3")), 1);
        assert_eq!(finding.context(Context::named("thread 2")), 0);
        finding.quote(&place, |_| Some("x++;".into()));
        finding.quote(&place, |_| unreachable!("the line is known"));
        assert_eq!(finding.line(&place), Some("x++;"));
    }
}
