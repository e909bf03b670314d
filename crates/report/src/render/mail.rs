//! Plain text for mailing lists: 75 columns, everything that a maintainer needs to have the bug again.

use std::fmt::Write as _;

use super::choice::choose;
use super::terminal::{notes, shown, wrap, wrap_with};
use super::{Results, line};
use crate::action::sentence;
use crate::evidence::Locks;
use crate::finding::Finding;

/// Columns that survive being quoted a few times.
const WIDTH: usize = 75;

/// One mail a finding.
pub fn document(results: &Results) -> String {
    let findings = results.findings();
    let mails = findings.iter().map(|finding| mail(finding, results));
    let mails: Vec<String> = mails.collect();
    if mails.is_empty() {
        return results.closing.clone();
    }
    mails.join("\n")
}

fn mail(finding: &Finding, results: &Results) -> String {
    let chosen = choose(finding);
    let finding = &shown(finding, &chosen);
    let mut out = format!("Subject: [BUG] {}\n\n", finding.title);
    if !finding.why.is_empty() {
        paragraph(&sentence_of(&finding.why), &mut out);
    }
    if !finding.steps.is_empty() {
        out.push_str("The order in which it happens:\n\n");
        steps(finding, &mut out);
        if chosen.left_out > 0 {
            let count = chosen.left_out;
            line(&mut out, format_args!("  (steps left out: {count})"));
        }
        out.push('\n');
    }
    for note in notes(finding) {
        item(&note, &mut out);
    }
    out.push('\n');
    block("What was printed:", &finding.console, &mut out);
    block("The test:", &finding.test, &mut out);
    if let Some(recording) = &finding.recording {
        out.push_str("To have it again, bit for bit:\n\n");
        line(&mut out, format_args!("  {}\n", recording.command));
    }
    let found = format!(
        "Found by raddle {} ({}, {}).",
        results.version,
        finding.kind,
        finding.short_id()
    );
    paragraph(&found, &mut out);
    out.push_str("Reported-by: NAME <ADDRESS>\n");
    out
}

/// Each step, and below it where that is.
fn steps(finding: &Finding, out: &mut String) {
    for (step, number) in finding.steps.iter().zip(1..) {
        let who = finding.label(step.context);
        wrap(
            &format!("({number}) {who} {}", sentence(finding, step)),
            "  ",
            WIDTH,
            out,
        );
        let mut place = step.place.describe();
        if let Locks::Known(held) = &step.locks
            && !held.is_empty()
        {
            let names: Vec<&str> = held.iter().map(|held| held.name.as_str()).collect();
            write!(place, ", holding {}", names.join(", ")).expect("a string takes everything");
        }
        if !place.is_empty() {
            wrap(&place, "      ", WIDTH, out);
        }
        if let Some(text) = finding.line(&step.place) {
            line(out, format_args!("        {}", text.trim()));
        }
    }
}

fn sentence_of(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    let dot = if text.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    format!("{}{}{dot}", first.unwrap_or_default(), letters.as_str())
}

fn paragraph(text: &str, out: &mut String) {
    wrap_with(text, ["", ""], WIDTH, out);
    out.push('\n');
}

fn item(text: &str, out: &mut String) {
    wrap_with(text, ["- ", "  "], WIDTH, out);
}

fn block(title: &str, text: &str, out: &mut String) {
    if text.trim().is_empty() {
        return;
    }
    line(out, format_args!("{title}\n"));
    for text in text.trim_end().lines() {
        let text = format!("  {text}");
        line(out, format_args!("{}", text.trim_end()));
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::project::Project;
    use crate::samples;

    #[test]
    fn a_mail_has_short_lines_and_all_that_is_needed() {
        let results = Results {
            suite: "raddle".into(),
            cases: Vec::new(),
            rules: Vec::new(),
            counts: serde_json::Value::Null,
            closing: String::new(),
            version: "0.1.0".into(),
            project: Project::new("/", "/"),
        };
        for mut finding in samples::all() {
            finding.test = "thread a:\n    close(3)\n".into();
            let text = mail(&finding, &results);
            assert!(text.starts_with("Subject: [BUG] "), "{text}");
            assert!(text.contains("  thread a:\n      close(3)\n"), "{text}");
            assert!(text.ends_with("Reported-by: NAME <ADDRESS>\n"), "{text}");
            let mut words = text
                .lines()
                .skip(1)
                .filter(|line| line.chars().count() > WIDTH);
            // Only what cannot be broken is longer: source, what was printed, one long word.
            let long = words
                .find(|line| line.trim().split(' ').count() > 2 && line.starts_with(['-', 'T']));
            assert_eq!(long, None, "{text}");
        }
    }
}
