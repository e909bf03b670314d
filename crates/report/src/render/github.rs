//! Workflow commands of GitHub Actions: each finding becomes an annotation at the line where it shows.

use std::fmt::Write as _;

use super::project::Project;
use super::{Results, terminal};
use crate::evidence::Step;
use crate::finding::{Finding, Severity};
use crate::place::Place;

/// One command a finding, and the last words as a notice if there is nothing to annotate.
pub fn document(results: &Results) -> String {
    let findings = results.findings();
    let mut out: String = findings
        .iter()
        .map(|finding| annotation(finding, &results.project))
        .collect();
    if out.is_empty() {
        let closing = results.closing.trim_end();
        writeln!(out, "::notice::{}", message(closing)).expect("a string takes everything");
    }
    out
}

fn annotation(finding: &Finding, project: &Project) -> String {
    let level = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let place = annotated(finding).and_then(|place| {
        let file = project.relative_path(&place.file)?;
        Some(format!("file={},line={},", property(&file), place.line))
    });
    let title = format!("{} {}", finding.kind, finding.short_id());
    let text = terminal::finding(finding, 1, 1, terminal::Style::PLAIN);
    format!(
        "::{level} {}title={}::{}\n",
        place.unwrap_or_default(),
        property(&title),
        message(text.trim_end())
    )
}

/// The last place of the user's own source: where a run fails, or the second site of a pattern.
fn annotated(finding: &Finding) -> Option<&Place> {
    let has_line = |step: &&Step| !step.place.file.is_empty() && step.place.line > 0;
    let step = finding.steps.iter().rev().find(has_line)?;
    Some(&step.place)
}

/// The text of a command.
fn message(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A value between commas.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Context;
    use crate::finding::Confidence;
    use crate::{action::Action, samples};

    #[test]
    fn a_finding_is_annotated_where_it_shows_and_cannot_give_commands() {
        let mut finding = Finding {
            title: "lost 100 %\n::warning::mine".into(),
            fingerprint: "1c9effff".into(),
            ..Finding::new("wrong-exit", Severity::Error, Confidence::Confirmed)
        };
        let context = finding.context(Context::named("thread 2"));
        let place = samples::place("/project/src/a,b.c", 7, "deposit");
        finding.steps.push(Step::new(context, Action::Crash, place));
        let text = annotation(&finding, &Project::new("/project", "/project"));
        assert!(
            text.starts_with("::error file=src/a%2Cb.c,line=7,title=wrong-exit WE-1c9e::finding 1"),
            "{text}"
        );
        assert!(text.contains("lost 100 %25"), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
