//! A finding with its evidence: plain data, shared by dynamic and static analyses.

use serde::{Deserialize, Serialize};

/// Version of the JSON form; raised when a field changes meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// One thing that is wrong, with everything a reader needs to believe it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Kebab-case rule name, as `raddle explain` knows it.
    pub kind: String,
    pub severity: Severity,
    pub confidence: Confidence,
    /// One line: what, on which object, where.
    pub title: String,
    /// The shared objects involved, most important first.
    pub objects: Vec<String>,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// One sentence: why this order or this code is wrong.
    pub why: String,
    /// Further facts, one line each (call paths, bound variables, hints).
    pub notes: Vec<String>,
    /// Stable across unrelated edits; the key for de-duplication, suppression and baselines.
    pub fingerprint: String,
    /// Command that replays it, for dynamic findings.
    pub replay: Option<String>,
}

impl Finding {
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
}

/// How bad it is if it is real.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    Note,
    Warning,
    Error,
}

/// How sure we are that it is real.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

/// One numbered line of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Who: a thread, CPU, interrupt, or for static findings the sub-pattern.
    pub context: String,
    /// What it does: `reads balance = 100`.
    pub action: String,
    pub place: Place,
    /// Locks held at this step; empty means none.
    pub locks: Vec<String>,
    /// The source around the place.
    pub excerpt: Option<Excerpt>,
}

/// Where in the source something is; unknown parts are empty or zero.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Place {
    pub file: String,
    /// One-based; 0 if unknown.
    pub line: u32,
    /// One-based; 0 if unknown.
    pub column: u32,
    pub function: String,
}

/// Consecutive source lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    /// One-based number of the first line.
    pub first_line: u32,
    pub lines: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_id_takes_initials_and_four_digits() {
        let finding = Finding {
            kind: "atomicity-violation".into(),
            severity: Severity::Error,
            confidence: Confidence::Predicted,
            title: String::new(),
            objects: vec![],
            steps: vec![],
            why: String::new(),
            notes: vec![],
            fingerprint: "1c9effff".into(),
            replay: None,
        };
        assert_eq!(finding.short_id(), "AV-1c9e");
    }
}
