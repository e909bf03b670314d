//! The form for people: what, where, why, how sure, and what to do next.

use super::choice::{Chosen, choose};
use super::creations::creations;
use crate::action::sentence;
use crate::evidence::{Held, Locks, Moment, Search, Step};
use crate::finding::{Confidence, Finding, Severity};
use crate::place::Frame;
use crate::serial::SerialOrders;
use crate::words::{counted, printable, short_function};

/// Frames of a stack in a note.
const FRAMES_SHOWN: usize = 8;
/// Lines of what a guest printed that are shown.
const CONSOLE_LINES: usize = 24;

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

/// All findings, one after the other.
pub fn findings(findings: &[Finding], style: Style) -> String {
    let numbered = findings.iter().zip(1..);
    numbered
        .map(|(one, number)| finding(one, number, findings.len(), style))
        .collect()
}

/// One finding, as a block of lines that ends with an empty one.
pub fn finding(finding: &Finding, number: usize, total: usize, style: Style) -> String {
    let chosen = choose(finding);
    let finding = &shown(finding, &chosen);
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
    steps(finding, style, &mut out);
    if !finding.why.is_empty() {
        wrap(&finding.why, "      ", style.width, &mut out);
    }
    out.push('\n');
    excerpts(finding, style, &mut out);
    match chosen.left_out {
        0 => {}
        1 => out.push_str("  1 more step is left out; `--json` has all\n"),
        count => out.push_str(&format!(
            "  {count} more steps are left out; `--json` has all\n"
        )),
    }
    for note in notes(finding) {
        wrap(&note, "  ", style.width, &mut out);
    }
    console(finding, &mut out);
    out.push_str(&format!(
        "  {} ({})",
        confidence(finding.confidence),
        finding.severity.word()
    ));
    if let Some(object) = finding.objects.first() {
        out.push_str(&format!(", object {object}"));
    }
    out.push('\n');
    if let Some(recording) = &finding.recording {
        out.push_str(&format!("  replay:    {}\n", recording.command));
    }
    out.push_str(&format!("  explain:   raddle explain {}\n\n", finding.kind));
    out
}

/// One finding on one line.
pub fn concise(finding: &Finding) -> String {
    let chosen = choose(finding);
    let finding = &shown(finding, &chosen);
    let place = match finding.steps.first() {
        Some(step) if !step.place.file.is_empty() => {
            format!("{}:{}: ", step.place.short_file(), step.place.line)
        }
        _ => String::new(),
    };
    format!(
        "{place}{}: {} [{}] {}\n",
        finding.severity.word(),
        finding.title,
        finding.kind,
        finding.short_id()
    )
}

/// The same finding with the chosen steps only, and without anything that a terminal would obey: names and messages are
/// the guest's.
pub(super) fn shown(finding: &Finding, chosen: &Chosen) -> Finding {
    let text = |text: &mut String| *text = printable(text).into_owned();
    let line = |line: &mut String| *line = printable(line).replace('\n', " ");
    let mut shown = Finding {
        steps: Vec::new(),
        edges: Vec::new(),
        expected: None,
        ..finding.clone()
    };
    let steps = chosen.steps.iter().map(|index| &finding.steps[*index]);
    shown.steps = steps.cloned().collect();
    for step in &mut shown.steps {
        step.object.iter_mut().for_each(line);
        line(&mut step.place.file);
        line(&mut step.place.function);
        if let Locks::Known(held) = &mut step.locks {
            held.iter_mut().for_each(|held| line(&mut held.name));
        }
    }
    for context in &mut shown.contexts {
        line(&mut context.label);
        if let Some(place) = &mut context.created {
            line(&mut place.file);
            line(&mut place.function);
        }
    }
    for frame in shown.stacks.iter_mut().flatten() {
        line(&mut frame.place.file);
        line(&mut frame.place.function);
    }
    let sources = std::mem::take(&mut shown.sources);
    for (mut file, mut lines) in sources {
        line(&mut file);
        lines.values_mut().for_each(line);
        shown.sources.insert(file, lines);
    }
    line(&mut shown.kind);
    line(&mut shown.title);
    line(&mut shown.fingerprint);
    shown.objects.iter_mut().for_each(line);
    if let Some(recording) = &mut shown.recording {
        line(&mut recording.command);
    }
    text(&mut shown.why);
    text(&mut shown.console);
    text(&mut shown.test);
    shown.notes.iter_mut().for_each(text);
    if let Some(serial) = &mut shown.serial {
        for compared in &mut serial.differences {
            line(&mut compared.operation);
            line(&mut compared.seen);
            compared.expected.iter_mut().for_each(line);
        }
    }
    shown
}

pub(super) fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::StaticLow => "found by reading code, with little support",
        Confidence::StaticHigh => "found by reading code, well supported",
        Confidence::Predicted => "predicted",
        Confidence::Confirmed => "confirmed",
    }
}

/// What is known besides the steps, one line each.
pub(super) fn notes(finding: &Finding) -> Vec<String> {
    let mut notes = stack_notes(finding);
    notes.extend(finding.serial.iter().flat_map(SerialOrders::lines));
    notes.extend(further_notes(finding));
    notes
}

/// The notes for those who show serial orders in their own way.
pub(super) fn notes_beside_orders(finding: &Finding) -> Vec<String> {
    let mut notes = stack_notes(finding);
    notes.extend(further_notes(finding));
    notes
}

fn stack_notes(finding: &Finding) -> Vec<String> {
    let mut notes = Vec::new();
    for step in finding
        .steps
        .iter()
        .filter(|step| !step.action.is_passing())
    {
        let what = format!("stack of {}", finding.label(step.context));
        notes.extend(stack_note(finding, &what, step.stack));
    }
    if let Some(block) = &finding.block {
        let note = |verb: &str, moment: &Moment| {
            let what = format!("{verb} by {}", finding.label(moment.context));
            stack_note(finding, &what, moment.stack)
        };
        notes.extend(note("allocated", &block.allocated));
        notes.extend(block.freed.as_ref().and_then(|freed| note("freed", freed)));
    }
    notes
}

fn further_notes(finding: &Finding) -> Vec<String> {
    let mut notes = finding.notes.clone();
    notes.extend(creations(finding));
    notes.extend(finding.search.iter().flat_map(search_notes));
    notes
}

/// `stack of thread 2: a < b < c`.
fn stack_note(finding: &Finding, what: &str, stack: Option<usize>) -> Option<String> {
    let frames = finding.stacks.get(stack?)?;
    // What a library does deep inside, and how a thread gets started, is of no interest.
    let is_own = |frame: &Frame| !frame.is_library;
    let from = frames.iter().position(is_own);
    let from = from.map_or(0, |own| own.saturating_sub(2));
    let last = frames.iter().rposition(is_own);
    let to = last.map_or(frames.len(), |last| last + 1);
    let shown: Vec<String> = frames[from..to]
        .iter()
        .take(FRAMES_SHOWN)
        .map(|frame| frame.place.describe())
        .collect();
    (!shown.is_empty()).then(|| format!("{what}: {}", shown.join(" < ")))
}

/// How big the order is that is left, and what is unusual about it.
fn search_notes(search: &Search) -> Vec<String> {
    let size = if search.replays_same < search.replays {
        "the replay of this run did not fail in the same way".to_owned()
    } else {
        let left = if search.is_minimal {
            "minimal"
        } else {
            "not yet minimal, since the search was cut short"
        };
        format!(
            "{left}: {}, {} in all; found in schedule {}, reproduced in {} of {} replays",
            counted(search.preemptions, "preemption"),
            counted(search.switches, "context switch"),
            search.schedule,
            search.replays_same,
            search.replays,
        )
    };
    let mut notes = vec![size];
    if search.torn > 0 {
        notes.push(format!(
            "{} of the switches come{} between the read and the write of one instruction without LOCK, which is not atomic on a machine with several processors",
            search.torn,
            if search.torn == 1 { "s" } else { "" }
        ));
    }
    if search.clock_jumps > 0 {
        notes.push(format!(
            "needs {} of the clock: a timer or time-out comes while others could still run, as on a machine that is busy for that long",
            counted(search.clock_jumps, "jump")
        ));
    }
    notes
}

/// What a kernel said, line by line. What a program printed, the user sees when it is replayed.
fn console(finding: &Finding, out: &mut String) {
    let lines: Vec<&str> = finding
        .console
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    if lines.is_empty() || !finding.kind.starts_with("kernel-") {
        return;
    }
    out.push_str("  the kernel says:\n");
    for line in lines.iter().take(CONSOLE_LINES) {
        out.push_str(&format!("    {line}\n"));
    }
    if lines.len() > CONSOLE_LINES {
        let more = lines.len() - CONSOLE_LINES;
        out.push_str(&format!("    ({more} more lines)\n"));
    }
}

/// What is known of the locks of a step.
fn locks(step: &Step) -> String {
    let name = |held: &Held| held.name.clone();
    match step.locks.known() {
        None => String::new(),
        Some([]) => "no locks".into(),
        Some(held) => {
            let names: Vec<String> = held.iter().map(name).collect();
            format!("holds {}", names.join(", "))
        }
    }
}

fn steps(finding: &Finding, style: Style, out: &mut String) {
    let rows: Vec<(String, String, String)> = finding
        .steps
        .iter()
        .zip(1..)
        .map(|(step, number)| {
            let who = finding.label(step.context);
            let what = format!("  ({number}) {who} {}", sentence(finding, step));
            let function = short_function(&step.place.function);
            let place = match (step.place.short_file(), step.place.line) {
                ("", _) => function,
                (file, line) => format!("{file}:{line}  {function}"),
            };
            (what, place, locks(step))
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
        let row = if style.width < Style::PLAIN.width && length > style.width {
            format!("{what}\n      {place}  {locks}")
        } else {
            format!("{what:first$}  {place:second$}  {locks}")
        };
        out.push_str(row.trim_end());
        out.push('\n');
    }
}

fn excerpts(finding: &Finding, style: Style, out: &mut String) {
    // The same line may be several steps; each line is shown once, in order of file and line.
    let steps = &finding.steps;
    let mut lines: Vec<(&str, u32, &str, Vec<usize>)> = Vec::new();
    for (step, number) in steps.iter().zip(1..) {
        let place = &step.place;
        let Some(text) = finding.line(place) else {
            continue;
        };
        let known = lines
            .iter_mut()
            .find(|known| known.0 == place.file && known.1 == place.line);
        match known {
            Some(known) => known.3.push(number),
            None => lines.push((&place.file, place.line, text, vec![number])),
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
            let place = steps.iter().find(|step| step.place.file == **name);
            let shown = place.map_or(*name, |step| step.place.short_file());
            out.push_str(&format!("  {shown}\n"));
            file = name;
        }
        let marks: Vec<String> = marks.iter().map(|mark| format!("({mark})")).collect();
        let arrow = style.paint("1", &format!("  ◀ {}", marks.join(" ")));
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

pub(super) fn wrap(text: &str, indent: &str, width: usize, out: &mut String) {
    wrap_with(text, [indent, &format!("{indent}  ")], width.max(40), out);
}

/// Words in lines; the first begins with one text, all others with another.
pub(super) fn wrap_with(text: &str, [first, others]: [&str; 2], width: usize, out: &mut String) {
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
            out.push_str(line.trim_end());
            out.push('\n');
            others.clone_into(&mut line);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    out.push_str(&line);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Action;
    use crate::evidence::{Context, Value};
    use crate::finding::RecordingFile;
    use crate::place::{Place, Word};

    fn step(action: Action, value: u64, line: u32, locks: &[&str]) -> Step {
        let value = Value {
            bits: Word(value),
            size: 4,
        };
        let place = Place {
            file: "bank.c".into(),
            line,
            column: 1,
            function: "deposit".into(),
        };
        Step {
            object: Some("balance".into()),
            after: Some(value),
            locks: Locks::named(locks.iter().map(|lock| (*lock).to_owned())),
            ..Step::new(0, action, place)
        }
    }

    fn sample() -> Finding {
        let mut finding = Finding {
            title: "atomicity violation on `balance`".into(),
            objects: vec!["balance".into()],
            contexts: vec![Context::named("thread 2")],
            steps: vec![
                step(Action::Read { in_call: false }, 100, 31, &[]),
                step(Action::Write { in_call: false }, 150, 33, &["lock"]),
            ],
            why: "the write at (2) is lost".into(),
            fingerprint: "1c9e0000".into(),
            recording: Some(RecordingFile {
                file: "bank.raddle".into(),
                command: "raddle replay bank.raddle".into(),
            }),
            ..Finding::new(
                "atomicity-violation",
                Severity::Error,
                Confidence::Confirmed,
            )
        };
        for step in finding.steps.clone() {
            finding.quote(&step.place, |_| Some("    balance = old + amount;".into()));
        }
        finding
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
        hostile.steps[0].object = Some("\u{1b}[2J".into());
        hostile.contexts[0].label = "thread \u{1b}[2J".into();
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
