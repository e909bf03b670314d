//! The report: one line per site, and what ends the regions of those that are left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use raddle_harden::analysis::held;
use raddle_harden::analysis::interproc::{Body, Program};
use raddle_harden::analysis::model::SiteKind;
use raddle_harden::analysis::plan::{self, Plan};
use raddle_harden::record::{Hardening, Line, ModuleRecord, Outcome, SiteRecord};

use super::{Decision, Decisions};
use crate::extract::{Candidate, Extracted};

/// Appends the lines of a module to the report file.
pub(super) fn write(
    path: &str,
    extracted: &[Extracted],
    program: &Program,
    decisions: &Decisions,
    words: &Words,
    summary: ModuleRecord,
) -> std::io::Result<()> {
    let mut text = String::new();
    let nested = held::nested(&program.bodies);
    for (index, (function, sites)) in extracted.iter().zip(&decisions.sites).enumerate() {
        let name = &function.name;
        for (number, (candidate, decision)) in function.candidates.iter().zip(sites).enumerate() {
            let said = words.get(&(index, number)).cloned().unwrap_or_default();
            let (outcome, ended_by) = match decision {
                Decision::Skip => continue,
                Decision::Pruned(reason) | Decision::Watch(reason) => {
                    (Outcome::Pruned(*reason), said)
                }
                Decision::Harden { plan, levels } => {
                    let how = Hardening {
                        trusts: said,
                        ..hardening(plan.as_deref(), *levels)
                    };
                    (Outcome::Hardened(how), Vec::new())
                }
            };
            let line = Line::Site(SiteRecord {
                module: summary.module.clone(),
                function: name.clone(),
                file: candidate.place.file.clone(),
                line: candidate.place.line,
                kind: candidate.site.kind,
                outcome,
                nested: nested[index].contains(&candidate.site.at),
                ended_by,
            });
            text.push_str(&serde_json::to_string(&line)?);
            text.push('\n');
        }
    }
    text.push_str(&serde_json::to_string(&Line::Module(summary))?);
    text.push('\n');
    // One write, so that parallel compilations do not mix their lines.
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)?
        .write_all(text.as_bytes())
}

/// What ends the regions of sites that are left alone, and which functions the hardened ones count on; by function and
/// candidate.
pub(super) type Words = BTreeMap<(usize, usize), Vec<String>>;

pub(super) fn words(extracted: &[Extracted], program: &Program, decisions: &Decisions) -> Words {
    let mut found = Words::new();
    for (index, (function, sites)) in extracted.iter().zip(&decisions.sites).enumerate() {
        for (number, (candidate, decision)) in function.candidates.iter().zip(sites).enumerate() {
            let said = match decision {
                Decision::Harden {
                    plan: Some(plan), ..
                } => trusted(function, plan),
                _ => ended_by(function, &program.bodies[index], candidate, decision),
            };
            if !said.is_empty() {
                found.insert((index, number), said);
            }
        }
    }
    found
}

fn trusted(function: &Extracted, plan: &Plan) -> Vec<String> {
    let names: BTreeSet<String> = plan
        .trusted
        .iter()
        .filter_map(|&call| function.insts[call].callee_name())
        .collect();
    names.into_iter().collect()
}

/// What ends the region of a deadlock site that is left alone, in words.
fn ended_by(
    function: &Extracted,
    body: &Body,
    candidate: &Candidate,
    decision: &Decision,
) -> Vec<String> {
    let is_left = matches!(decision, Decision::Pruned(_) | Decision::Watch(_));
    if candidate.site.kind != SiteKind::Deadlock || !is_left || !body.is_supported {
        return Vec::new();
    }
    let ends: BTreeSet<String> = plan::ended_by(&body.function, &body.idom, &candidate.site)
        .into_iter()
        .map(|inst| function.insts[inst].in_words())
        .collect();
    ends.into_iter().collect()
}

fn hardening(plan: Option<&Plan>, levels: usize) -> Hardening {
    let own = plan.map(|plan| Hardening {
        region: plan.length,
        reads: plan.reads,
        points: plan.points.len(),
        needs_paths: plan.needs_paths,
        gives_back: plan.acquires.len(),
        restores: plan.cells.len() + plan.slots.len(),
        logs: plan.logs.len() + plan.calls.len(),
        trusts: Vec::new(),
        from_callers: false,
    });
    Hardening {
        from_callers: levels > 0,
        ..own.unwrap_or_default()
    }
}
