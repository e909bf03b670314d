//! Markdown for issue trackers.

use std::fmt::Write as _;

use super::Results;
use super::choice::choose;
use super::terminal::{confidence, notes, shown};
use crate::action::sentence;
use crate::evidence::Locks;
use crate::finding::Finding;

/// All findings, each a section.
pub fn document(results: &Results) -> String {
    let findings = results.findings();
    let sections: String = findings.iter().map(section).collect();
    match results.closing.trim_end() {
        "" => sections,
        closing => sections + &fenced("text", closing),
    }
}

fn section(finding: &Finding) -> String {
    let chosen = choose(finding);
    let finding = &shown(finding, &chosen);
    let mut out = format!("## {}\n\n", plain(&finding.title));
    let about = format!(
        "`{}` `{}`, {} ({})\n\n",
        finding.short_id(),
        finding.kind,
        confidence(finding.confidence),
        finding.severity.word()
    );
    out.push_str(&about);
    if !finding.why.is_empty() {
        writeln!(out, "{}\n", plain(&finding.why)).expect("a string takes everything");
    }
    steps(finding, &mut out);
    if chosen.left_out > 0 {
        let count = chosen.left_out;
        writeln!(out, "Steps left out: {count}.\n").expect("a string takes everything");
    }
    for note in notes(finding) {
        writeln!(out, "- {}", plain(&note)).expect("a string takes everything");
    }
    out.push('\n');
    if !finding.console.trim().is_empty() {
        let folded = fenced("text", finding.console.trim_end());
        write!(
            out,
            "<details><summary>What it printed</summary>\n\n{folded}\n</details>\n\n"
        )
        .expect("a string takes everything");
    }
    if !finding.test.is_empty() {
        out.push_str("The test:\n\n");
        out.push_str(&fenced("text", finding.test.trim_end()));
        out.push('\n');
    }
    if let Some(recording) = &finding.recording {
        out.push_str("To have it again:\n\n");
        out.push_str(&fenced("sh", &recording.command));
        out.push('\n');
    }
    out
}

/// The steps as a table: who, what, where, which locks.
fn steps(finding: &Finding, out: &mut String) {
    if finding.steps.is_empty() {
        return;
    }
    out.push_str("| | who | what | where | source | locks |\n|---|---|---|---|---|---|\n");
    for (step, number) in finding.steps.iter().zip(1..) {
        let locks = match &step.locks {
            Locks::Unknown => String::new(),
            Locks::Known(held) if held.is_empty() => "none".to_owned(),
            Locks::Known(held) => {
                let names: Vec<String> = held.iter().map(|held| code(&held.name)).collect();
                names.join(", ")
            }
        };
        let source = finding.line(&step.place).map(|line| code(line.trim()));
        let cells = [
            number.to_string(),
            plain(finding.label(step.context)),
            plain(&sentence(finding, step)),
            code(&step.place.describe()),
            source.unwrap_or_default(),
            locks,
        ];
        writeln!(
            out,
            "| {} |",
            cells.map(|cell| cell.replace('|', "\\|")).join(" | ")
        )
        .expect("a string takes everything");
    }
    out.push('\n');
}

/// Words of ours with names of the guest's: nothing in them is markup, but what stands between backquotes is code.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let is_paired = text.matches('`').count().is_multiple_of(2);
    for (number, part) in text.split('`').enumerate() {
        if number % 2 == 1 && is_paired {
            out.push_str(&code(part));
            continue;
        }
        if number > 0 && !is_paired {
            out.push_str("\\`");
        }
        for letter in part.chars() {
            match letter {
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '&' => out.push_str("&amp;"),
                '\\' | '*' | '_' | '[' | ']' | '#' | '~' | '!' | '@' => {
                    out.push('\\');
                    out.push(letter);
                }
                '\n' => out.push(' '),
                letter => out.push(letter),
            }
        }
    }
    out
}

/// A name as code, whatever backquotes it has itself.
fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(text) + 1);
    let pad = if text.contains('`') { " " } else { "" };
    format!("{fence}{pad}{}{pad}{fence}", text.replace('\n', " "))
}

/// Lines as code, between fences that are longer than any in them.
fn fenced(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let text = crate::words::printable(text);
    format!("{fence}{language}\n{text}\n{fence}\n")
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|letter| letter != '`').map(str::len);
    runs.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_guests_are_no_markup() {
        assert_eq!(plain("reads `x` = <b>"), "reads `x` = &lt;b&gt;");
        assert_eq!(plain("a *b* [c](d) @all"), "a \\*b\\* \\[c\\](d) \\@all");
        assert_eq!(code("a`b"), "`` a`b ``");
        assert_eq!(fenced("sh", "```\nrm"), "````sh\n```\nrm\n````\n");
        assert_eq!(plain("an odd ` mark"), "an odd \\` mark");
    }
}
