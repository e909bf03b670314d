//! Which steps a reader of a terminal gets to see: the data has all of them.

use crate::action::Action;
use crate::evidence::{Edge, EdgeKind, Step};
use crate::finding::{Confidence, Finding};

/// Steps shown at the beginning and at the end of each stretch of one context.
const HEAD: usize = 2;
const TAIL: usize = 3;
/// Steps shown at most of a run, besides those with which it ends.
const RUN_MAX: usize = 20;
/// Steps of one call of a library function that are too many to be shown.
const INSIDES_MAX: usize = 3;
/// Ways in which contexts end or stand still that are shown.
const ENDS_MAX: usize = 12;
/// Steps shown at most where they are no run but a list, the most important first.
const LIST_MAX: usize = 12;

/// The numbers of the steps to show, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) steps: Vec<usize>,
    pub(super) left_out: u64,
}

/// Chooses the steps of a finding.
pub(super) fn choose(finding: &Finding) -> Chosen {
    let steps = &finding.steps;
    let all = 0..steps.len();
    let chosen: Vec<usize> = if finding.confidence < Confidence::Predicted {
        all.collect()
    } else if is_run(finding) {
        of_run(steps)
    } else {
        all.take(LIST_MAX).collect()
    };
    let left_out = u64::try_from(steps.len() - chosen.len()).unwrap_or(u64::MAX);
    Chosen {
        steps: chosen,
        left_out: left_out + finding.steps_dropped,
    }
}

/// Whether the steps are in the order of time.
fn is_run(finding: &Finding) -> bool {
    let is_switch = |edge: &Edge| edge.kind == EdgeKind::Switch;
    let has_time = |step: &Step| step.global_step.is_some();
    finding.edges.iter().any(is_switch) || finding.steps.iter().any(has_time)
}

/// The last steps of a run, shortened where one context does many things in a row, and how it ends.
fn of_run(steps: &[Step]) -> Vec<usize> {
    // What the system does to a context is why the run fails.
    let is_fault = |action: &Action| matches!(action, Action::Fault { .. });
    let is_passing = |index: &usize| {
        let action = &steps[*index].action;
        action.is_passing() && !is_fault(action)
    };
    // What a handler does is as good as another context's doing.
    let is_handler = |index: usize| matches!(steps[index].action, Action::Handle { .. });
    let (passing, ends): (Vec<usize>, Vec<usize>) = (0..steps.len()).partition(is_passing);
    let mut stretches: Vec<Vec<usize>> = Vec::new();
    for index in passing {
        match stretches.last_mut() {
            Some(stretch)
                if steps[stretch[0]].context == steps[index].context && !is_handler(index) =>
            {
                stretch.push(index);
            }
            _ => stretches.push(vec![index]),
        }
    }
    let mut shown: Vec<usize> = stretches
        .iter()
        .map(|stretch| without_insides(steps, stretch))
        .flat_map(|one| shorten(&one))
        .collect();
    shown.drain(..shown.len().saturating_sub(RUN_MAX));
    shown.extend(ends.into_iter().take(ENDS_MAX));
    shown.sort_unstable();
    shown
}

/// What one call of a library function does inside is one step to its caller: the last change that it makes, or else the
/// last thing that it reads.
fn without_insides(steps: &[Step], stretch: &[usize]) -> Vec<usize> {
    let call = |index: &usize| {
        let step = &steps[*index];
        step.via.as_ref().map(|via| (via, &step.place))
    };
    let calls = stretch.chunk_by(|one, next| call(one).is_some() && call(one) == call(next));
    let told = calls.flat_map(|inside| {
        let changes = |index: &&usize| !matches!(steps[**index].action, Action::Read { .. });
        let last = inside.iter().rev().find(changes).or(inside.last());
        if inside.len() < INSIDES_MAX {
            inside.to_vec()
        } else {
            last.copied().into_iter().collect()
        }
    });
    told.collect()
}

fn shorten(stretch: &[usize]) -> Vec<usize> {
    if stretch.len() <= HEAD + TAIL {
        return stretch.to_vec();
    }
    let tail = &stretch[stretch.len() - TAIL..];
    stretch[..HEAD].iter().chain(tail).copied().collect()
}

#[cfg(test)]
mod tests {
    use crate::action::Want;
    use crate::finding::Severity;
    use crate::place::Place;

    use super::*;

    fn finding(contexts: impl IntoIterator<Item = usize>, action: &Action) -> Finding {
        let step = |context| Step {
            global_step: Some(1),
            ..Step::new(context, action.clone(), Place::default())
        };
        Finding {
            steps: contexts.into_iter().map(step).collect(),
            ..Finding::new("deadlock", Severity::Error, Confidence::Confirmed)
        }
    }

    #[test]
    fn long_stretches_lose_their_middle_and_long_runs_their_beginning() {
        let one = choose(&finding([0; 8], &Action::Update));
        assert_eq!(one.steps, [0, 1, 5, 6, 7]);
        assert_eq!(one.left_out, 3);
        let turns = choose(&finding((0..30).map(|n| n % 2), &Action::Update));
        assert_eq!(turns.steps, (10..30).collect::<Vec<_>>());
    }

    #[test]
    fn what_a_library_call_does_inside_is_one_step() {
        let mut run = finding([0; 5], &Action::Read { in_call: false });
        for step in &mut run.steps[..4] {
            step.via = Some("std::sync::mpsc::Sender::send".into());
        }
        run.steps[2].action = Action::AtomicUpdate;
        assert_eq!(choose(&run).steps, [2, 4]);
        run.steps[1].place.line = 9;
        assert_eq!(choose(&run).steps, [0, 1, 2, 3, 4], "three calls");
    }

    #[test]
    fn how_a_run_ends_is_never_left_out_for_what_came_before() {
        let mut run = finding((0..40).map(|n| n % 2), &Action::Update);
        let waits = finding(0..20, &Action::Blocked { on: Want::Lock });
        run.steps.extend(waits.steps);
        run.steps_dropped = 7;
        let chosen = choose(&run);
        assert_eq!(chosen.steps, (20..52).collect::<Vec<_>>());
        assert_eq!(chosen.left_out, 60 - 32 + 7);
    }

    #[test]
    fn a_list_is_cut_at_its_end_and_a_static_finding_not_at_all() {
        let mut list = finding([0; 30], &Action::Update);
        list.steps
            .iter_mut()
            .for_each(|step| step.global_step = None);
        assert_eq!(choose(&list).steps, (0..12).collect::<Vec<_>>());
        list.confidence = Confidence::StaticLow;
        assert_eq!(choose(&list).steps.len(), 30);
    }
}
