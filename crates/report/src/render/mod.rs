//! One file per output form, and the list of them: to add one, write its file and its row here.

pub mod campaign;
mod choice;
mod creations;
pub mod github;
pub mod html;
pub mod json;
pub mod junit;
pub mod mail;
pub mod markdown;
mod plot;
pub mod project;
pub mod recoveries;
pub mod sarif;
pub mod terminal;

use std::fmt::Write as _;

use serde_json::Value;

use crate::finding::Finding;
use project::Project;
use sarif::Rule;
use terminal::Style;

/// Something that was examined: a program, a test, a tree of sources.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: String,
    pub milliseconds: u64,
    pub findings: Vec<Finding>,
    /// Why nothing was tested, if nothing was.
    pub skipped: Option<String>,
    /// What was examined, as one line.
    pub summary: String,
}

/// All that a command found, and what it says besides.
#[derive(Debug, Clone)]
pub struct Results {
    /// What the cases belong to: the program, the command.
    pub suite: String,
    pub cases: Vec<Case>,
    /// The kinds of findings of this command.
    pub rules: Vec<Rule>,
    /// Counts, for JSON.
    pub counts: Value,
    /// The last words, for people.
    pub closing: String,
    pub version: String,
    pub project: Project,
}

impl Results {
    /// All findings, case by case.
    pub fn findings(&self) -> Vec<Finding> {
        let cases = self.cases.iter();
        cases.flat_map(|case| case.findings.clone()).collect()
    }
}

/// A form in which results can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One line per finding.
    Concise,
    /// All there is to know.
    Json,
    /// For code hosts and editors.
    Sarif,
    /// For build servers.
    Junit,
    /// A page for browsers.
    Html,
    /// Annotations of GitHub Actions.
    Github,
    /// For issue trackers.
    Markdown,
    /// For mailing lists.
    Mail,
}

impl Format {
    /// Every form, with the name that users write.
    pub const ALL: [(&'static str, Self); 9] = [
        ("text", Self::Text),
        ("concise", Self::Concise),
        ("json", Self::Json),
        ("sarif", Self::Sarif),
        ("junit", Self::Junit),
        ("html", Self::Html),
        ("github", Self::Github),
        ("markdown", Self::Markdown),
        ("mail", Self::Mail),
    ];

    /// The results in this form.
    pub fn render(self, results: &Results, style: Style) -> serde_json::Result<String> {
        let findings = results.findings();
        let concise = || findings.iter().map(terminal::concise).collect::<String>();
        let rules = &results.rules;
        match self {
            Self::Text => Ok(terminal::findings(&findings, style) + &results.closing),
            Self::Concise => Ok(concise() + &results.closing),
            Self::Json => json::document(findings, results.counts.clone()),
            Self::Sarif => sarif::document(&findings, rules, &results.version, &results.project),
            Self::Junit => Ok(junit::document(&results.suite, &results.cases)),
            Self::Html => html::document(results),
            Self::Github => Ok(github::document(results)),
            Self::Markdown => Ok(markdown::document(results)),
            Self::Mail => Ok(mail::document(results)),
        }
    }
}

/// Adds a line.
fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes everything");
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn every_form_names_every_finding() {
        let results = Results {
            suite: "raddle".into(),
            cases: vec![Case {
                name: "all".into(),
                milliseconds: 1,
                findings: samples::all(),
                skipped: None,
                summary: "explored".into(),
            }],
            rules: Vec::new(),
            counts: Value::Null,
            closing: "the end\n".into(),
            version: "0.1.0".into(),
            project: Project::new("/project", "/project"),
        };
        for (name, format) in Format::ALL {
            let text = format.render(&results, Style::PLAIN).unwrap();
            for finding in samples::all() {
                assert!(text.contains(&finding.kind), "{name}:\n{text}");
            }
            assert!(text.ends_with('\n'), "{name}");
        }
    }
}
