//! The log of campaigns: a file with one JSON object in each line, written while they run.
//!
//! A campaign begins with a line `begin`; a line `generation` follows for each generation of schedules, a line `failure`
//! when a failure of a new kind is seen, and a line `end` with what is known then. A log that was broken off has
//! everything up to there. Several campaigns (the tests of a program) follow each other in one file.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The form of the lines.
pub const VERSION: u32 = 1;

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Line {
    Begin(Begin),
    Generation(Generation),
    Failure(Failure),
    End(End),
}

/// A campaign begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// The form of the lines, see [`VERSION`].
    pub version: u32,
    /// What is explored.
    pub name: String,
    pub seed: u64,
}

/// How far a campaign is after a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Generation {
    /// Since the campaign began.
    pub milliseconds: u64,
    pub schedules: u64,
    /// Schedules that differ.
    pub distinct: u64,
    /// Runs that differ in who read whose write.
    pub classes: u64,
    /// Communication points, and those at which a context was interrupted.
    pub points: u64,
    pub interrupted: u64,
    /// Different failures.
    pub failures: u64,
}

/// A failure of a kind that was not seen before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub milliseconds: u64,
    pub kind: String,
    pub title: String,
}

/// A campaign is over.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct End {
    pub milliseconds: u64,
    pub last: Generation,
    /// Schedules that failed, and the number of the first of them.
    pub failing: u64,
    pub first_failing: Option<u64>,
    /// Instructions of all schedules.
    #[serde(default)]
    pub steps: u64,
    /// Digests of the reads-from classes, if they were asked for: the same in all campaigns of one subject.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub classes: BTreeSet<u64>,
    /// Findings as they are reported, explained.
    pub findings: Vec<FindingLine>,
    pub time: TimeSplit,
    /// What was not explored, and why; a sentence each.
    pub not_explored: Vec<String>,
    /// What was explored, as the command says it.
    pub summary: String,
}

/// A finding in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingLine {
    pub id: String,
    pub kind: String,
    pub title: String,
    /// How to have it again.
    pub command: Option<String>,
}

/// Where the time of the schedules went, of all workers together, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TimeSplit {
    pub restore: u64,
    pub run: u64,
    pub detect: u64,
    pub plan: u64,
}

/// A campaign as its lines tell it.
#[derive(Debug, Clone, PartialEq)]
pub struct Campaign {
    pub begin: Begin,
    pub generations: Vec<Generation>,
    pub failures: Vec<Failure>,
    /// None if the log was broken off.
    pub end: Option<End>,
}

/// Why a log cannot be read.
#[derive(Debug, Error)]
pub enum LogError {
    #[error("line {number} is no line of a campaign's log: {error}")]
    NoLine {
        number: usize,
        error: serde_json::Error,
    },
    #[error("line {number} tells of a campaign that has not begun: is the begin of the file lost?")]
    NotBegun { number: usize },
    #[error("line {number} has the form {found}; this raddle reads {VERSION}")]
    OtherVersion { number: usize, found: u32 },
}

/// Whether a text looks like a log of campaigns.
pub fn is_log(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    matches!(serde_json::from_str(first), Ok(Line::Begin(_)))
}

/// Reads a log. A last line without an end is left out: its campaign was killed while it wrote.
///
/// # Errors
/// If the text is no log.
pub fn read(text: &str) -> Result<Vec<Campaign>, LogError> {
    let mut campaigns: Vec<Campaign> = Vec::new();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for (line, number) in whole.lines().zip(1..) {
        let line: Line =
            serde_json::from_str(line).map_err(|error| LogError::NoLine { number, error })?;
        if let Line::Begin(begin) = line {
            if begin.version != VERSION {
                let found = begin.version;
                return Err(LogError::OtherVersion { number, found });
            }
            campaigns.push(Campaign {
                begin,
                generations: Vec::new(),
                failures: Vec::new(),
                end: None,
            });
            continue;
        }
        let not_begun = LogError::NotBegun { number };
        let campaign = campaigns.last_mut().ok_or(not_begun)?;
        match line {
            Line::Generation(generation) => campaign.generations.push(generation),
            Line::Failure(failure) => campaign.failures.push(failure),
            Line::End(end) => campaign.end = Some(end),
            Line::Begin(_) => {}
        }
    }
    Ok(campaigns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(name: &str) -> String {
        format!("{{\"line\":\"begin\",\"version\":1,\"name\":\"{name}\",\"seed\":0}}\n")
    }

    fn line(line: &Line) -> String {
        serde_json::to_string(line).unwrap() + "\n"
    }

    #[test]
    fn campaigns_follow_each_other_and_may_be_broken_off() {
        let generation = Generation {
            milliseconds: 5,
            schedules: 16,
            ..Generation::default()
        };
        let end = End {
            milliseconds: 9,
            ..End::default()
        };
        let text = begin("a")
            + &line(&Line::Generation(generation))
            + &line(&Line::End(end.clone()))
            + &begin("b")
            + "{\"line\":\"gener";
        assert!(is_log(&text));
        let read = read(&text).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].generations, [generation]);
        assert_eq!(read[0].end, Some(end));
        assert_eq!((read[1].begin.name.as_str(), &read[1].end), ("b", &None));
    }

    #[test]
    fn what_is_no_log_is_refused_with_its_line() {
        let said = |text: &str| read(text).unwrap_err().to_string();
        let wrong = said(&(begin("a") + "{}\n"));
        assert!(wrong.starts_with("line 2 is no line"), "{wrong}");
        let headless = said(&line(&Line::End(End::default())));
        assert!(headless.contains("has not begun"), "{headless}");
        let newer = said(&begin("a").replace("\"version\":1", "\"version\":9"));
        assert_eq!(newer, "line 1 has the form 9; this raddle reads 1");
        assert!(!is_log("{\"findings\":[]}"));
    }
}
