//! One line per failure site: what the plugin writes while compiling and what `--report` shows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::analysis::model::SiteKind;
use crate::analysis::plan::Pruned;

/// A failure site and what was done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteRecord {
    pub module: String,
    pub function: String,
    pub file: String,
    pub line: u32,
    pub kind: SiteKind,
    pub outcome: Outcome,
    /// Of a lock: it can be reached with another lock held, in this function or up the chain of callers in sight.
    #[serde(default)]
    pub nested: bool,
    /// Of a lock that is left alone: what ends its region.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended_by: Vec<String>,
}

/// Hardened or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Hardened(Hardening),
    Pruned(Pruned),
}

/// How a site was hardened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardening {
    /// Instructions in the region.
    pub region: usize,
    /// Shared reads among them that matter; for deadlocks, lock acquisitions.
    pub reads: usize,
    pub points: usize,
    /// A single dominating point would lose what the region is for.
    pub needs_paths: bool,
    pub gives_back: usize,
    pub restores: usize,
    /// Writes and calls that are undone from the log.
    #[serde(default)]
    pub logs: usize,
    /// Functions of other objects that must turn out to be harmless.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusts: Vec<String>,
    /// Calls in callers from which it may be re-executed.
    pub from_callers: bool,
}

/// What a module adds up to, beside its sites.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleRecord {
    pub module: String,
    /// Distinct re-execution points inserted.
    pub points: usize,
    /// Those among them that serve deadlocks only.
    pub lock_points: usize,
    /// Landing pads in callers.
    pub pads: usize,
    pub functions: usize,
    pub functions_unsupported: usize,
}

/// A line of the report file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    Site(SiteRecord),
    Module(ModuleRecord),
}

/// Why a report file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the report is not one of ours: {source}")]
pub struct ReportError {
    pub line: usize,
    pub source: serde_json::Error,
}

/// Reads a whole report file.
pub fn parse(text: &str) -> Result<Vec<Line>, ReportError> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|source| ReportError {
                line: number + 1,
                source,
            })
        })
        .collect()
}

/// The report as text: one line per site, sorted, then the sums.
pub fn render(lines: &[Line]) -> String {
    let mut text = String::new();
    let mut sites: Vec<&SiteRecord> = lines.iter().filter_map(as_site).collect();
    sites.sort_by(|a, b| {
        (&a.file, a.line, a.kind, &a.function).cmp(&(&b.file, b.line, b.kind, &b.function))
    });
    for site in &sites {
        let _infallible = writeln!(
            text,
            "{}:{}: {} in {}: {}",
            site.file,
            site.line,
            kind_name(site.kind),
            site.function,
            outcome_text(site)
        );
    }
    text.push_str(&summary(&sites, lines));
    text
}

fn as_site(line: &Line) -> Option<&SiteRecord> {
    match line {
        Line::Site(site) => Some(site),
        Line::Module(_) => None,
    }
}

fn outcome_text(site: &SiteRecord) -> String {
    match &site.outcome {
        Outcome::Pruned(reason) => {
            let mut text = format!("left as it is ({})", reason_text(*reason));
            if !site.ended_by.is_empty() {
                let _infallible = write!(text, "; its region ends at {}", site.ended_by.join(", "));
            }
            text
        }
        Outcome::Hardened(how) => {
            let what = if site.kind == SiteKind::Deadlock {
                "lock"
            } else {
                "shared read"
            };
            let mut text = format!(
                "hardened, region of {} instructions with {} {what}{}",
                how.region,
                how.reads,
                if how.reads == 1 { "" } else { "s" }
            );
            if how.needs_paths {
                let _infallible = write!(text, ", {} points by path", how.points);
            }
            if how.gives_back > 0 {
                let _infallible = write!(text, ", gives back {}", how.gives_back);
            }
            if how.restores > 0 {
                let _infallible = write!(text, ", restores {}", how.restores);
            }
            if how.logs > 0 {
                let _infallible = write!(text, ", logs {}", how.logs);
            }
            if !how.trusts.is_empty() {
                let _infallible = write!(text, ", if harmless: {}", how.trusts.join(", "));
            }
            if how.from_callers {
                text.push_str(", from callers");
            }
            text
        }
    }
}

fn summary(sites: &[&SiteRecord], lines: &[Line]) -> String {
    let mut counts: BTreeMap<SiteKind, (usize, usize)> = BTreeMap::new();
    for site in sites {
        let (found, hardened) = counts.entry(site.kind).or_default();
        *found += 1;
        *hardened += usize::from(is_hardened(site));
    }
    let (mut points, mut pads, mut functions, mut unsupported) = (0, 0, 0, 0);
    for line in lines {
        if let Line::Module(module) = line {
            points += module.points;
            pads += module.pads;
            functions += module.functions;
            unsupported += module.functions_unsupported;
        }
    }
    let parts: Vec<String> = counts
        .iter()
        .map(|(kind, (found, hardened))| format!("{} {hardened} of {found}", kind_name(*kind)))
        .collect();
    let by_path = sites
        .iter()
        .filter(|site| matches!(&site.outcome, Outcome::Hardened(how) if how.needs_paths))
        .count();
    let nested: Vec<&&SiteRecord> = sites
        .iter()
        .filter(|site| site.kind == SiteKind::Deadlock && site.nested)
        .collect();
    let nested_hardened = nested.iter().filter(|site| is_hardened(site)).count();
    let trusting = sites
        .iter()
        .filter(|site| matches!(&site.outcome, Outcome::Hardened(how) if !how.trusts.is_empty()))
        .count();
    let trusting = if trusting == 0 {
        String::new()
    } else {
        format!("; {trusting} more if other objects promise that functions are harmless")
    };
    let nested = if nested.is_empty() {
        String::new()
    } else {
        format!(
            "; of {} locks that are taken while another may be held, {nested_hardened} hardened",
            nested.len()
        )
    };
    format!(
        "hardened sites: {}{nested}{trusting}; {points} re-execution points, {pads} pads in callers; a single dominating point would lose {by_path}; {unsupported} of {functions} functions not touched\n",
        if parts.is_empty() {
            "none".to_owned()
        } else {
            parts.join(", ")
        }
    )
}

/// Hardened in any case, not only if another object keeps a promise.
fn is_hardened(site: &SiteRecord) -> bool {
    matches!(&site.outcome, Outcome::Hardened(how) if how.trusts.is_empty())
}

/// The name of a kind, as users read it.
pub fn kind_name(kind: SiteKind) -> &'static str {
    match kind {
        SiteKind::Assertion => "assertion",
        SiteKind::Dereference => "dereference",
        SiteKind::Output => "output",
        SiteKind::Deadlock => "deadlock",
        SiteKind::Oracle => "oracle",
    }
}

fn reason_text(reason: Pruned) -> &'static str {
    match reason {
        Pruned::NoSharedRead => "no shared read to repeat in its region",
        Pruned::NoLockInRegion => "no lock to release in its region",
        Pruned::NoOracle => "output without an oracle",
        Pruned::AlreadyChecked => "checked before",
        Pruned::NotSelected => "not selected",
        Pruned::TooManyPoints => {
            "many points by path; --harden-regions=longest or fix mode hardens it"
        }
        Pruned::UnsupportedFunction => "function cannot be changed safely",
        Pruned::AlwaysFails => "reached unconditionally",
        Pruned::NoCallerToReexecute => "no caller to re-execute",
    }
}
