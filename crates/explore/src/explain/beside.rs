//! A run to hold beside the failing one, and what tells the bug from others: the read that the two do not share.

use std::collections::{BTreeMap, BTreeSet};

use raddle_campaign::{Symptom as _, follow};
use raddle_detect::Failure;
use raddle_report::evidence::Run;
use raddle_report::{Action, Edge, EdgeKind, Finding, Step};
use raddle_stdx::Digest;
use raddle_trace::Schedule;

use crate::judge::Rules;
use crate::session::Session;
use crate::steps::{self, Story, quote_steps};

/// Puts a run that does not fail beside the failing one: the same order without its last deviation, or else the default
/// order. Nothing if both fail, too, or if the time is used up.
pub(super) fn add_expected(
    session: &mut Session,
    schedule: &Schedule,
    rules: &Rules,
    finding: &mut Finding,
) {
    let Some(last) = schedule.len().checked_sub(1) else {
        return;
    };
    let candidates = [
        (
            schedule.without(last..last + 1),
            "the same order without its last deviation",
        ),
        (
            Schedule::default(),
            "the default order, in which nobody is interrupted",
        ),
    ];
    for (candidate, title) in candidates {
        let outcome = follow(session, &candidate, rules);
        if session.leave.is_over() {
            return;
        }
        if outcome.failure.is_none() {
            let observed = steps::observe(session, &candidate, rules);
            let (story, _) = steps::tell(session, &candidate, rules, (&observed, None));
            if !session.leave.is_over() {
                let title = format!("{title}: nothing goes wrong");
                finding.expected = Some(in_terms_of(finding, story, title));
                quote_steps(finding);
            }
            return;
        }
    }
}

/// A run with the contexts and stacks of a finding.
fn in_terms_of(finding: &mut Finding, story: Story, title: String) -> Run {
    let contexts: Vec<usize> = story
        .contexts
        .into_iter()
        .map(|context| {
            let mut known = finding.contexts.iter();
            let known = known.position(|known| known.path == context.path);
            known.unwrap_or_else(|| finding.context(context))
        })
        .collect();
    let stacks: Vec<Option<usize>> = story
        .stacks
        .into_iter()
        .map(|stack| finding.stack(stack))
        .collect();
    let step = |step: Step| Step {
        context: contexts[step.context],
        stack: step.stack.and_then(|stack| stacks[stack]),
        ..step
    };
    Run {
        title,
        steps: story.steps.into_iter().map(step).collect(),
        edges: story.edges,
    }
}

/// The last read of the failing run that finds what was there at its start, although another context writes the
/// place before it is read in the run beside.
pub(super) fn early_read(finding: &Finding) -> Option<String> {
    let beside = finding.expected.as_ref()?;
    let same = |one: &Step, other: &Step| one.object == other.object && one.place == other.place;
    let sources: BTreeMap<usize, usize> = reads_from(&beside.edges).collect();
    let served: BTreeSet<usize> = reads_from(&finding.edges).map(|(to, _)| to).collect();
    let steps = finding.steps.iter().enumerate().rev();
    // What a library reads for its own sake explains nothing.
    let mut unserved = steps
        .filter(|(number, step)| is_read(step) && step.via.is_none() && !served.contains(number));
    unserved.find_map(|(number, read)| {
        let is_own = |step: &Step| step.object == read.object && !matches!(step.action, Action::Read { .. });
        if finding.steps[..number].iter().any(is_own) {
            return None;
        }
        let (_, from) = sources.iter().find(|(to, _)| same(&beside.steps[**to], read))?;
        let write = &beside.steps[*from];
        if write.context == read.context {
            return None;
        }
        let object = read.object.as_deref()?;
        Some(format!(
            "{} reads {object} before {} writes it at {}; in the run that goes well it comes after that",
            finding.label(read.context),
            finding.label(write.context),
            write.place.describe()
        ))
    })
}

/// Each read that sees a write of another context, with that write.
fn reads_from(edges: &[Edge]) -> impl Iterator<Item = (usize, usize)> {
    let edges = edges.iter().filter(|edge| edge.kind == EdgeKind::ReadsFrom);
    edges.map(|edge| (edge.to, edge.from))
}

fn is_read(step: &Step) -> bool {
    matches!(
        step.action,
        Action::Read { .. } | Action::Update | Action::AtomicUpdate
    )
}

/// Equal for two runs that show the same bug, for failures that say nothing of where it is: a wrong status and a wrong
/// output are the same whatever went wrong before. It is made of the first read of the failing run that reads from a
/// place from which the run beside it never reads.
pub(super) fn fingerprint(failure: &Failure, finding: &Finding) -> Option<String> {
    if !failure.is_vague() {
        return None;
    }
    let beside = finding.expected.as_ref();
    let known: BTreeSet<ReadsFrom<'_>> =
        beside.map_or_else(BTreeSet::new, |run| reads(&run.steps, &run.edges).collect());
    let mut own = reads(&finding.steps, &finding.edges);
    let new = own.find(|read| beside.is_some() && !known.contains(read));
    // Where all reads are alike, what was used last is the best that there is.
    let (object, function, image) = match &new {
        Some(read) => (read.object.clone(), read.reader.0, read.image),
        None => {
            let object = whole(finding.objects.first()?);
            (object, "", image(finding.steps.first()?))
        }
    };
    let mut digest = Digest::default();
    for part in [failure.kind(), image, &object, function] {
        digest.bytes(part.as_bytes());
        digest.word(0);
    }
    Some(format!("{:016x}", digest.value()))
}

/// A read, and whose write it sees, in words that are the same in every run.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ReadsFrom<'a> {
    object: String,
    /// The program or library that reads.
    image: &'a str,
    /// Function and line.
    reader: (&'a str, u32),
    /// Nothing if it is a write of its own, or what was there at the start.
    writer: Option<(&'a str, u32)>,
}

fn reads<'a>(steps: &'a [Step], edges: &'a [Edge]) -> impl Iterator<Item = ReadsFrom<'a>> {
    let place = |step: &'a Step| (step.place.function.as_str(), step.place.line);
    let steps_read = steps.iter().enumerate().filter(|(_, step)| is_read(step));
    steps_read.map(move |(number, step)| {
        let is_source = |edge: &&Edge| edge.to == number && edge.kind == EdgeKind::ReadsFrom;
        // Edges are sorted by their ends.
        let from = edges.partition_point(|edge| edge.to < number);
        let source = edges[from..].iter().take_while(|edge| edge.to == number);
        let source = source.into_iter().find(is_source);
        ReadsFrom {
            object: step.object.as_deref().map(whole).unwrap_or_default(),
            image: image(step),
            reader: place(step),
            writer: source.and_then(|edge| steps.get(edge.from)).map(place),
        }
    })
}

/// The file's own name of the program or library that makes a step.
fn image(step: &Step) -> &str {
    let code = step.code.as_ref();
    let name = code.and_then(|code| code.image.rsplit('/').next());
    name.unwrap_or_default()
}

/// The name of an object without its elements and without where in it: which element a run stumbles on is chance.
fn whole(name: impl AsRef<str>) -> String {
    let mut out = String::new();
    let mut depth = 0_usize;
    let name = name.as_ref();
    let end = name.find(['+']).unwrap_or(name.len());
    for letter in name[..end].chars() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(letter),
            _ => {}
        }
    }
    if out.starts_with("memory at ") {
        "memory".into()
    } else {
        out
    }
}

#[cfg(test)]
mod tests {
    use raddle_report::finding::{Confidence, Severity};
    use raddle_report::place::Code;
    use raddle_report::{Context, Place, Word};

    use super::*;

    const EXIT: Failure = Failure::WrongExit {
        status: 1,
        expected: 0,
    };

    fn step(context: usize, action: Action, object: &str, function: &str) -> Step {
        let place = Place {
            file: "bank.c".into(),
            line: 7,
            column: 0,
            function: function.into(),
        };
        Step {
            object: Some(object.into()),
            code: Some(Code {
                image: "/x/bank".into(),
                offset: Word(0),
            }),
            ..Step::new(context, action, place)
        }
    }

    fn reads_from(from: usize, to: usize) -> Edge {
        Edge {
            kind: EdgeKind::ReadsFrom,
            from,
            to,
        }
    }

    /// Two threads that add to the same object; the second one sees the first one's work, or not.
    fn run(object: &str, first: usize, sees: bool) -> (Vec<Step>, Vec<Edge>) {
        let read = Action::Read { in_call: false };
        let write = Action::Write { in_call: false };
        let steps = vec![
            step(first, read.clone(), object, "add"),
            step(first, write, object, "add"),
            step(3 - first, read, object, "total"),
        ];
        (steps, if sees { vec![reads_from(1, 2)] } else { vec![] })
    }

    fn finding(object: &str, first: usize) -> Finding {
        let (steps, edges) = run(object, first, true);
        let title = String::new();
        let failing = run(object, first, false);
        let mut finding = Finding::new("wrong-exit", Severity::Error, Confidence::Confirmed);
        finding.contexts = ["one", "two", "three"].map(Context::named).to_vec();
        (finding.steps, finding.edges) = failing;
        finding.expected = Some(Run {
            title,
            steps,
            edges,
        });
        finding
    }

    #[test]
    fn two_bugs_of_one_program_have_two_names_and_one_bug_has_one() {
        let name = |finding: &Finding| fingerprint(&EXIT, finding).unwrap();
        let one = name(&finding("`balance`", 1));
        assert_eq!(one, name(&finding("`balance`", 2)), "whoever came first");
        assert_ne!(one, name(&finding("`audit`", 1)));
        assert_eq!(
            name(&finding("`rows[3].sum`", 1)),
            name(&finding("`rows[12].sum`", 1))
        );
        let mut shop = finding("`balance`", 1);
        for step in &mut shop.steps {
            step.code.as_mut().unwrap().image = "/x/shop".into();
        }
        assert_ne!(one, name(&shop), "another program");
    }

    #[test]
    fn a_read_that_comes_too_early_is_told_with_the_write_that_it_misses() {
        let mut early = finding("`balance`", 1);
        assert_eq!(early_read(&early), None, "it was written before");
        early
            .steps
            .retain(|step| step.action == Action::Read { in_call: false });
        early.edges.clear();
        let told = early_read(&early).expect("somebody wrote it");
        assert!(
            told.contains("reads `balance` before two writes it at bank.c:7"),
            "{told}"
        );
    }

    #[test]
    fn failures_that_say_where_they_are_keep_their_names() {
        let failure = Failure::Assertion {
            message: "a.c:3: Assertion `x'".into(),
        };
        assert_eq!(fingerprint(&failure, &finding("`x`", 1)), None);
    }

    #[test]
    fn names_of_objects_lose_what_is_chance() {
        assert_eq!(whole("`rows[3].sum`"), "`rows.sum`");
        assert_eq!(whole("`block(a.c:12)+16`"), "`block(a.c:12)");
        assert_eq!(whole("memory at 0x1234"), "memory");
    }
}
