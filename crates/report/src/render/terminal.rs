//! The form for people: what, where, why, how sure, and what to do next.

use crate::finding::{Confidence, Finding, Severity, Step};
use crate::words::printable;

/// How to write to this terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    pub colour: bool,
    /// Columns; lines are laid out for it but never cut.
    pub width: usize,
}

impl Style {
    /// For files and pipes.
    pub const PLAIN: Style = Style {
        colour: false,
        width: 100,
    };

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// One finding, as a block of lines that ends with an empty one.
pub fn finding(finding: &Finding, number: usize, total: usize, style: Style) -> String {
    let finding = &shown(finding);
    let mut out = String::new();
    let colour = match finding.severity {
        Severity::Error => "1;31",
        Severity::Warning => "1;33",
        Severity::Note => "1;36",
    };
    let head = format!("finding {number} of {total}: {}", finding.title);
    let id = finding.short_id();
    let gap = style
        .width
        .saturating_sub(head.chars().count() + id.len())
        .max(2);
    out.push_str(&style.paint(colour, &head));
    out.push_str(&" ".repeat(gap));
    out.push_str(&id);
    out.push_str("\n\n");
    steps(&finding.steps, style, &mut out);
    if !finding.why.is_empty() {
        wrap(&finding.why, "      ", style.width, &mut out);
    }
    out.push('\n');
    excerpts(&finding.steps, style, &mut out);
    for note in &finding.notes {
        wrap(note, "  ", style.width, &mut out);
    }
    out.push_str(&format!(
        "  {} ({})",
        confidence(finding.confidence),
        severity(finding.severity)
    ));
    if let Some(object) = finding.objects.first() {
        out.push_str(&format!(", object {object}"));
    }
    out.push('\n');
    if let Some(replay) = &finding.replay {
        out.push_str(&format!("  replay:    {replay}\n"));
    }
    out.push_str(&format!("  explain:   raddle explain {}\n\n", finding.kind));
    out
}

/// One finding on one line.
pub fn concise(finding: &Finding) -> String {
    let finding = &shown(finding);
    let place = match finding.steps.first() {
        Some(step) if !step.place.file.is_empty() => {
            format!("{}:{}: ", step.place.file, step.place.line)
        }
        _ => String::new(),
    };
    format!(
        "{place}{}: {} [{}] {}\n",
        severity(finding.severity),
        finding.title,
        finding.kind,
        finding.short_id()
    )
}

/// The same finding without anything that a terminal would obey: names and messages are the guest's.
fn shown(finding: &Finding) -> Finding {
    let text = |text: &String| printable(text).into_owned();
    let one_line = |line: &String| text(line).replace('\n', " ");
    let step = |step: &Step| {
        let mut step = step.clone();
        step.context = one_line(&step.context);
        step.action = one_line(&step.action);
        step.place.file = one_line(&step.place.file);
        step.place.function = one_line(&step.place.function);
        step.locks = step.locks.iter().map(one_line).collect();
        if let Some(excerpt) = &mut step.excerpt {
            excerpt.lines = excerpt.lines.iter().map(one_line).collect();
        }
        step
    };
    Finding {
        kind: one_line(&finding.kind),
        severity: finding.severity,
        confidence: finding.confidence,
        title: one_line(&finding.title),
        objects: finding.objects.iter().map(one_line).collect(),
        steps: finding.steps.iter().map(step).collect(),
        why: text(&finding.why),
        notes: finding.notes.iter().map(text).collect(),
        fingerprint: one_line(&finding.fingerprint),
        replay: finding.replay.as_ref().map(one_line),
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::StaticLow => "found by reading code, with little support",
        Confidence::StaticHigh => "found by reading code, well supported",
        Confidence::Predicted => "predicted",
        Confidence::Confirmed => "confirmed",
    }
}

fn steps(steps: &[Step], style: Style, out: &mut String) {
    let rows: Vec<(String, String, String)> = steps
        .iter()
        .enumerate()
        .map(|(number, step)| {
            let what = format!("  ({}) {} {}", number + 1, step.context, step.action);
            let place = if step.place.file.is_empty() {
                step.place.function.clone()
            } else {
                format!(
                    "{}:{}  {}",
                    step.place.file, step.place.line, step.place.function
                )
            };
            let locks = if step.locks.is_empty() {
                "no locks".to_owned()
            } else {
                format!("holds {}", step.locks.join(", "))
            };
            (what, place, locks)
        })
        .collect();
    // Columns align where most rows fit; a long row pushes only itself.
    let limit = style.width / 2 + 10;
    let column = |texts: Vec<usize>| {
        texts
            .into_iter()
            .filter(|length| *length <= limit)
            .max()
            .unwrap_or(0)
    };
    let first = column(rows.iter().map(|row| row.0.chars().count()).collect());
    let second = column(rows.iter().map(|row| row.1.chars().count()).collect());
    for (what, place, locks) in rows {
        // On a narrow terminal the place goes below what happens there.
        let length = first.max(what.chars().count()) + place.chars().count() + locks.len() + 4;
        if style.width < Style::PLAIN.width && length > style.width {
            out.push_str(&format!("{what}\n      {place}  {locks}\n"));
        } else {
            out.push_str(&format!("{what:first$}  {place:second$}  {locks}\n"));
        }
    }
}

fn excerpts(steps: &[Step], style: Style, out: &mut String) {
    // The same line may be several steps; each line is shown once, in order of file and line.
    let mut lines: Vec<(&str, u32, &str, Vec<usize>)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let Some(excerpt) = &step.excerpt else {
            continue;
        };
        for (line, text) in (excerpt.first_line..).zip(&excerpt.lines) {
            let is_step = line == step.place.line;
            let known = lines
                .iter_mut()
                .find(|known| known.0 == step.place.file && known.1 == line);
            match known {
                Some(known) if is_step => known.3.push(number + 1),
                Some(_) => {}
                None => {
                    let marks = if is_step {
                        vec![number + 1]
                    } else {
                        Vec::new()
                    };
                    lines.push((&step.place.file, line, text, marks));
                }
            }
        }
    }
    if lines.is_empty() {
        return;
    }
    lines.sort_by_key(|line| {
        let first = lines_order(steps, line.0);
        (first, line.1)
    });
    let margin = lines
        .iter()
        .map(|line| line.1.to_string().len())
        .max()
        .unwrap_or(1)
        .max(5);
    let mut file = "";
    for (name, line, text, marks) in &lines {
        if *name != file {
            out.push_str(&format!("  {name}\n"));
            file = name;
        }
        let marks: Vec<String> = marks.iter().map(|mark| format!("({mark})")).collect();
        let arrow = if marks.is_empty() {
            String::new()
        } else {
            style.paint("1", &format!("  ◀ {}", marks.join(" ")))
        };
        out.push_str(&format!("{line:margin$} │ {text}{arrow}\n"));
    }
    out.push('\n');
}

/// Files appear in the order of the first step in each.
fn lines_order(steps: &[Step], file: &str) -> usize {
    steps
        .iter()
        .position(|step| step.place.file == file)
        .unwrap_or(usize::MAX)
}

fn wrap(text: &str, indent: &str, width: usize, out: &mut String) {
    let width = width.max(40);
    let mut line = indent.to_owned();
    for word in text.split_whitespace() {
        let is_first = line.len() == indent.len();
        if !is_first && line.chars().count() + 1 + word.chars().count() > width {
            out.push_str(line.trim_end());
            out.push('\n');
            line = format!("{indent}  ");
            line.push_str(word);
            continue;
        }
        if !is_first {
            line.push(' ');
        }
        line.push_str(word);
    }
    out.push_str(&line);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Excerpt, Place};

    fn step(action: &str, line: u32, locks: &[&str]) -> Step {
        Step {
            context: "thread 2".into(),
            action: action.into(),
            place: Place {
                file: "bank.c".into(),
                line,
                column: 1,
                function: "deposit".into(),
            },
            locks: locks.iter().map(|lock| (*lock).to_owned()).collect(),
            excerpt: Some(Excerpt {
                first_line: line,
                lines: vec!["    balance = old + amount;".into()],
            }),
        }
    }

    fn sample() -> Finding {
        Finding {
            kind: "atomicity-violation".into(),
            severity: Severity::Error,
            confidence: Confidence::Confirmed,
            title: "atomicity violation on `balance`".into(),
            objects: vec!["balance".into()],
            steps: vec![
                step("reads balance = 100", 31, &[]),
                step("writes balance = 150", 33, &["lock"]),
            ],
            why: "the write at (2) is lost".into(),
            notes: vec![],
            fingerprint: "1c9e0000".into(),
            replay: Some("raddle replay bank.raddle".into()),
        }
    }

    #[test]
    fn a_finding_has_its_parts_in_order() {
        let text = finding(&sample(), 1, 1, Style::PLAIN);
        let parts = [
            "finding 1 of 1: atomicity violation",
            "AV-1c9e",
            "(1) thread 2 reads balance = 100",
            "no locks",
            "holds lock",
            "the write at (2) is lost",
            "33 │     balance = old + amount;  ◀ (2)",
            "confirmed",
            "replay:    raddle replay bank.raddle",
            "explain:   raddle explain atomicity-violation",
        ];
        let mut from = 0;
        for part in parts {
            let at = text[from..].find(part);
            assert!(
                at.is_some(),
                "`{part}` is missing or out of order in\n{text}"
            );
            from += at.unwrap();
        }
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn names_of_a_guest_do_not_steer_the_terminal() {
        let mut hostile = sample();
        hostile.title = "assertion failed: \u{1b}]0;owned\u{7}\nraddle: nothing found".into();
        hostile.steps[0].action = "reads \u{1b}[2J".into();
        for text in [concise(&hostile), finding(&hostile, 1, 1, Style::PLAIN)] {
            assert!(!text.contains(['\u{1b}', '\u{7}']), "{text}");
            assert!(text.contains("\\u{1b}]0;owned"), "{text}");
            assert!(!text.contains("\nraddle: nothing found"), "{text}");
        }
    }

    #[test]
    fn concise_is_one_line_that_makes_sense_alone() {
        let text = concise(&sample());
        assert_eq!(
            text,
            "bank.c:31: error: atomicity violation on `balance` [atomicity-violation] AV-1c9e\n"
        );
    }

    #[test]
    fn a_narrow_terminal_has_the_place_below_the_action() {
        let style = Style {
            colour: false,
            width: 60,
        };
        let text = finding(&sample(), 1, 1, style);
        assert!(
            text.lines().any(|line| line.starts_with("      bank.c:31")),
            "{text}"
        );
    }

    #[test]
    fn colour_only_on_request() {
        let style = Style {
            colour: true,
            width: 80,
        };
        assert!(finding(&sample(), 1, 1, style).contains("\u{1b}[1;31m"));
    }
}
