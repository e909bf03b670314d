//! Where the contexts of a finding were created, those of one place together.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::words::listed;

/// Contexts of one place that are named one by one.
const NAMED_MAX: usize = 4;

/// `thread 2 was created at bank.c:12 main`, for those that the steps, waits and stacks name.
pub(super) fn creations(finding: &Finding) -> Vec<String> {
    let of_steps = finding.steps.iter().map(|step| step.context);
    let of_waits = finding.waits.iter().flat_map(|wait| wait.holder);
    let of_block = finding.block.iter().flat_map(|block| {
        let freed = block.freed.as_ref().map(|moment| moment.context);
        freed.into_iter().chain([block.allocated.context])
    });
    let named: BTreeSet<usize> = of_steps.chain(of_waits).chain(of_block).collect();
    let mut places: Vec<(String, Vec<String>)> = Vec::new();
    for context in named {
        let Some(context) = finding.contexts.get(context) else {
            continue;
        };
        let Some(place) = &context.created else {
            continue;
        };
        let place = place.describe();
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, labels)) => labels.push(context.label.clone()),
            None => places.push((place, vec![context.label.clone()])),
        }
    }
    places.into_iter().map(note).collect()
}

fn note((place, labels): (String, Vec<String>)) -> String {
    match labels.as_slice() {
        [one] => format!("{one} was created at {place}"),
        many if many.len() <= NAMED_MAX => {
            format!("{} were created at {place}", listed(many))
        }
        many => {
            let (first, last) = (&many[0], &many[many.len() - 1]);
            let count = many.len();
            format!("{first} to {last} ({count} of them) were created at {place}")
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::action::Action;
    use crate::evidence::{Context, Step};
    use crate::finding::{Confidence, Severity};
    use crate::place::Place;

    use super::*;

    #[test]
    fn only_those_who_do_something_are_told_and_like_ones_together() {
        let mut finding = Finding::new("hang", Severity::Error, Confidence::Confirmed);
        let place = |line| Place {
            file: "a.c".into(),
            line,
            function: "main".into(),
            ..Place::default()
        };
        for number in 1..9 {
            finding.contexts.push(Context {
                created: (number > 1).then(|| place(if number == 2 { 3 } else { 7 })),
                ..Context::named(format!("thread {number}"))
            });
        }
        let mut of = |contexts: &[usize]| {
            let step = |context: &usize| Step::new(*context, Action::Update, place(9));
            finding.steps = contexts.iter().map(step).collect();
            creations(&finding)
        };
        assert_eq!(of(&[0]), Vec::<String>::new());
        assert_eq!(
            of(&[0, 1, 2, 2, 3]),
            [
                "thread 2 was created at a.c:3 main",
                "thread 3 and thread 4 were created at a.c:7 main"
            ]
        );
        assert_eq!(
            of(&[2, 3, 4, 5, 7]),
            ["thread 3 to thread 8 (5 of them) were created at a.c:7 main"]
        );
    }
}
