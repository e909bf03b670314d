//! The test runner for patterns: C files say with `//~ name` at the end of a line what must be found there.
//!
//! A finding must have a step on a marked line, and no finding may be without a mark, except for notes of patterns
//! after which the file's folder is not named.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use raddle_report::Severity;

use crate::scan::{Options, ScanError, scan};

/// A mark in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expectation {
    pub line: u32,
    pub pattern: String,
}

/// What became of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestResult {
    pub file: PathBuf,
    /// Marked but not found.
    pub missing: Vec<Expectation>,
    /// Found but not marked, with the line of the first step.
    pub unexpected: Vec<Expectation>,
    pub found: usize,
}

impl TestResult {
    pub fn passed(&self) -> bool {
        self.missing.is_empty() && self.unexpected.is_empty()
    }
}

/// Runs the patterns of `options` over each `.c` file below `folder`, one file at a time.
pub fn test_patterns(folder: &Path, options: &Options) -> Result<Vec<TestResult>, ScanError> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    files.iter().map(|file| test_file(file, options)).collect()
}

fn collect(folder: &Path, out: &mut Vec<PathBuf>) {
    if folder.is_file() {
        out.push(folder.to_path_buf());
        return;
    }
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "c") {
            out.push(path);
        }
    }
}

fn test_file(file: &Path, options: &Options) -> Result<TestResult, ScanError> {
    let text = String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned();
    let wanted = expectations(&text);
    let report = scan(
        &Options {
            paths: vec![file.to_path_buf()],
            limit: None,
            ..options.clone()
        },
        &|_, _, _| {},
    )?;
    let mut met = BTreeSet::new();
    let mut unexpected = Vec::new();
    for finding in &report.findings {
        let marks: Vec<&Expectation> = wanted
            .iter()
            .filter(|mark| {
                mark.pattern == finding.kind
                    && finding
                        .steps
                        .iter()
                        .any(|step| step.place.line == mark.line)
            })
            .collect();
        // Patterns that only take note of something say so beside others; in their own folders they must be silent.
        let is_aside = finding.severity == Severity::Note && !is_in_folder_of(file, &finding.kind);
        if marks.is_empty() && !is_aside {
            unexpected.push(Expectation {
                line: finding.steps.first().map_or(0, |step| step.place.line),
                pattern: finding.kind.clone(),
            });
        }
        met.extend(marks);
    }
    let missing = wanted
        .iter()
        .filter(|mark| !met.contains(mark))
        .cloned()
        .collect();
    Ok(TestResult {
        file: file.to_path_buf(),
        missing,
        unexpected,
        found: report.findings.len(),
    })
}

/// Whether a file lies in the folder that is named after a pattern.
fn is_in_folder_of(file: &Path, pattern: &str) -> bool {
    let folder = file.parent().and_then(Path::file_name);
    folder.is_some_and(|folder| folder == pattern)
}

fn expectations(text: &str) -> Vec<Expectation> {
    let mut out = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some((_, marks)) = line.split_once("//~") else {
            continue;
        };
        for pattern in marks.split_whitespace() {
            out.push(Expectation {
                line: crate::front::lex::index(number + 1),
                pattern: pattern.trim_end_matches([',', ':']).to_owned(),
            });
        }
    }
    out
}
