//! Why a pattern does not match in a function: how far its best candidates came, and what stopped them.

use super::Engine;
use super::bound::{Bound, Partial};
use super::join::{Job, lookup_statement, single};
use super::syntax::Matcher;
use crate::analyse::program::{EventId, FnId};
use crate::front::lex::index;
use crate::pdl::ast::{Condition, Name, Pattern, StmtKind};
use crate::pdl::print;

/// How far a pattern came in a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// The statement that was matched, if one was.
    pub(crate) place: Option<EventId>,
    pub(crate) text: String,
}

/// Candidates that are told for one stage.
const TOLD_MAX: usize = 4;
/// Partners that are tried for one candidate.
const PARTNERS_MAX: usize = 400;

impl Engine<'_> {
    /// What became of `pattern` in the function, stage by stage.
    pub(crate) fn why(&self, pattern: &Pattern, id: FnId) -> Vec<Step> {
        let job = Job::new(self, pattern);
        let sub = &pattern.subs[0];
        if !job.may_match(sub, id) {
            return vec![told(
                "the function has no call or lock operation of the kind that the first sub-pattern begins with",
            )];
        }
        if !job.is_possible(id) {
            return vec![told(
                "no path of the function shows what the conditions ask for",
            )];
        }
        let mut base = job.empty();
        if let Name::Variable(variable) = &sub.functions[0].name {
            base.variables[*variable] = Some(Bound::Function(id));
        }
        if let Some(text) = self.stopped(pattern, &base) {
            return vec![told(&text)];
        }
        let body = &sub.functions[0].body;
        let matcher = Matcher::new(self, id, 0);
        let candidates = match single(body) {
            Some(stmt) => (0..index(self.program.events(id).len()))
                .flat_map(|event| matcher.at(stmt, event, &base))
                .collect(),
            None => matcher.body(body, base.clone()),
        };
        if candidates.is_empty() {
            return vec![self.first_missing(pattern, &matcher, &base)];
        }
        let passed: Vec<Partial> = candidates
            .iter()
            .filter(|candidate| self.stopped(pattern, candidate).is_none())
            .cloned()
            .collect();
        if passed.is_empty() {
            return self.furthest(pattern, &candidates);
        }
        let mut steps = Vec::new();
        for candidate in passed.iter().take(TOLD_MAX) {
            steps.push(Step {
                place: candidate.trace.last().map(|(_, place)| *place),
                text: "the first sub-pattern matches".to_owned(),
            });
            steps.extend(self.why_no_partner(&job, candidate));
        }
        steps
    }

    /// The statement of the first sub-pattern that nothing fits.
    fn first_missing(&self, pattern: &Pattern, matcher: &Matcher<'_, '_>, base: &Partial) -> Step {
        let body = &pattern.subs[0].functions[0].body;
        for count in (1..body.len()).rev() {
            let found = matcher.body(&body[..count], base.clone());
            let next = body[count..]
                .iter()
                .find(|stmt| !matches!(stmt.kind, StmtKind::Exclude(_)));
            if let (Some(partial), Some(next)) = (found.first(), next) {
                return Step {
                    place: partial.trace.last().map(|(_, place)| *place),
                    text: format!(
                        "nothing after this fits `{}`, or what is excluded lies between",
                        print::statement(pattern, next)
                    ),
                };
            }
        }
        let first = body.first().map(|stmt| print::statement(pattern, stmt));
        told(&format!(
            "nothing fits `{}`",
            first.as_deref().unwrap_or("_")
        ))
    }

    /// The candidates that the last of the conditions stopped.
    fn furthest(&self, pattern: &Pattern, candidates: &[Partial]) -> Vec<Step> {
        let rank = |partial: &Partial| self.first_violated(pattern, partial);
        let furthest = candidates.iter().filter_map(rank).max();
        let mut steps: Vec<Step> = Vec::new();
        for candidate in candidates {
            if rank(candidate) != furthest {
                continue;
            }
            let step = Step {
                place: candidate.trace.last().map(|(_, place)| *place),
                text: self.stopped(pattern, candidate).unwrap_or_default(),
            };
            if steps.len() < TOLD_MAX && !steps.contains(&step) {
                steps.push(step);
            }
        }
        steps
    }

    fn first_violated(&self, pattern: &Pattern, partial: &Partial) -> Option<usize> {
        let mut conditions = pattern.conditions.iter();
        conditions.position(|condition| self.check(condition, partial) == Some(false))
    }

    /// What stops a partial match, with the values that were compared.
    fn stopped(&self, pattern: &Pattern, partial: &Partial) -> Option<String> {
        let number = self.first_violated(pattern, partial)?;
        let condition = &pattern.conditions[number];
        let mut text = format!("stopped by `{}`", print::condition(pattern, condition));
        let mut values = Vec::new();
        self.compared_values(pattern, condition, partial, &mut values);
        if !values.is_empty() {
            text.push_str(&format!(": {}", values.join(", ")));
        }
        let mut bound = Vec::new();
        for (name, value) in pattern.variables.iter().zip(&partial.variables) {
            match value {
                Some(Bound::Function(_)) | None => {}
                Some(value) => bound.push(format!("${name} = {}", self.show(value))),
            }
        }
        if !bound.is_empty() {
            text.push_str(&format!(" ({})", bound.join(", ")));
        }
        Some(text)
    }

    fn compared_values(
        &self,
        pattern: &Pattern,
        condition: &Condition,
        partial: &Partial,
        out: &mut Vec<String>,
    ) {
        match condition {
            Condition::Not(inner) => self.compared_values(pattern, inner, partial, out),
            Condition::And(parts) | Condition::Or(parts) => {
                for part in parts {
                    self.compared_values(pattern, part, partial, out);
                }
            }
            Condition::Test(test) => {
                if test.compare.is_some()
                    && let Some(value) = self.value_of(test, partial)
                {
                    out.push(format!("{} is {value}", print::test(pattern, test)));
                }
            }
        }
    }

    /// Why a match of the first sub-pattern has no partner, or that it has.
    fn why_no_partner(&self, job: &Job<'_, '_, '_>, first: &Partial) -> Vec<Step> {
        let pattern = job.pattern;
        let mut states = vec![first.clone()];
        for number in 1..pattern.subs.len() {
            let mut next = Vec::new();
            for state in &states {
                job.partners(number, state, &mut next);
            }
            if next.is_empty() {
                let mut candidates = Vec::new();
                for state in &states {
                    self.partners_unchecked(job, number, state, &mut candidates);
                }
                if candidates.is_empty() {
                    return vec![told(&format!(
                        "nothing in the program fits sub-pattern {}",
                        number + 1
                    ))];
                }
                let mut steps = self.furthest(pattern, &candidates);
                if steps.is_empty() {
                    steps.push(told(
                        "the other place cannot run at the same time: a lock that may be held excludes it",
                    ));
                }
                return steps;
            }
            states = next;
        }
        vec![told(
            "the whole pattern matches; a finding that is not shown is below the limits (`--all`) or suppressed",
        )]
    }

    fn partners_unchecked(
        &self,
        job: &Job<'_, '_, '_>,
        number: usize,
        state: &Partial,
        out: &mut Vec<Partial>,
    ) {
        let sub = &job.pattern.subs[number];
        let base_for = |id: FnId| {
            let mut base = state.clone();
            if let Name::Variable(variable) = &sub.functions[0].name {
                base.variables[*variable] = Some(Bound::Function(id));
            }
            base
        };
        if let Some(functions) = job.linked_functions(sub, state) {
            for id in functions {
                let matcher = Matcher::new(self, id, number);
                out.extend(matcher.body(&sub.functions[0].body, base_for(id)));
            }
        } else if let (Some(stmt), Some(keys)) =
            (lookup_statement(sub), job.linked_keys(sub, state))
        {
            for key in keys {
                let places = job.places(stmt, key, state);
                for place in places.into_iter().take(PARTNERS_MAX) {
                    let matcher = Matcher::new(self, place.function, number);
                    out.extend(matcher.at(stmt, place.event, &base_for(place.function)));
                }
            }
        }
    }
}

fn told(text: &str) -> Step {
    Step {
        place: None,
        text: text.to_owned(),
    }
}
