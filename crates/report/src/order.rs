//! The order of steps as vector clocks: what synchronisation makes certain, not what merely happened.

use crate::evidence::EdgeKind;
use crate::finding::Finding;

/// Numbers in all clocks of a finding at most: beyond that they would be most of it.
const NUMBERS_MAX: usize = 1 << 20;

/// Fills in the clocks of all steps, from the order of each context's own steps and from edges of the kind
/// [`EdgeKind::HappensBefore`].
pub fn set_clocks(finding: &mut Finding) {
    let width = finding.contexts.len();
    if finding.steps.len().saturating_mul(width) > NUMBERS_MAX {
        return;
    }
    let mut edges: Vec<(usize, usize)> = finding
        .edges
        .iter()
        .filter(|edge| edge.kind == EdgeKind::HappensBefore)
        .map(|edge| (edge.to, edge.from))
        .collect();
    edges.sort_unstable();
    let mut coming = edges.into_iter().peekable();
    let mut own: Vec<Vec<u64>> = vec![vec![0; width]; width];
    for index in 0..finding.steps.len() {
        let context = finding.steps[index].context;
        let mut clock = std::mem::take(&mut own[context]);
        while let Some((_, from)) = coming.next_if(|(to, _)| *to == index) {
            for (mine, other) in clock.iter_mut().zip(&finding.steps[from].clock) {
                *mine = (*mine).max(*other);
            }
        }
        clock[context] += 1;
        own[context].clone_from(&clock);
        finding.steps[index].clock = clock;
    }
}

#[cfg(test)]
mod tests {
    use crate::action::Action;
    use crate::evidence::{Context, Edge, Step};
    use crate::finding::{Confidence, Severity};
    use crate::place::Place;

    use super::*;

    #[test]
    fn only_synchronisation_orders_steps_of_different_contexts() {
        let mut finding = Finding::new("crash", Severity::Error, Confidence::Confirmed);
        finding.contexts = vec![Context::named("a"), Context::named("b")];
        let step = |context, action| Step::new(context, action, Place::default());
        finding.steps = vec![
            step(0, Action::Lock),
            step(0, Action::Unlock),
            step(1, Action::Lock),
            step(0, Action::Update),
            step(1, Action::Update),
        ];
        let edge = |kind, from, to| Edge { kind, from, to };
        finding.edges = vec![
            edge(EdgeKind::HappensBefore, 1, 2),
            edge(EdgeKind::Switch, 3, 4),
            edge(EdgeKind::ReadsFrom, 3, 4),
        ];
        set_clocks(&mut finding);
        let clocks: Vec<&[u64]> = finding.steps.iter().map(|s| s.clock.as_slice()).collect();
        assert_eq!(clocks, [&[1, 0][..], &[2, 0], &[2, 1], &[3, 0], &[2, 2]]);
    }
}
