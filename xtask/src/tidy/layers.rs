//! Crates depend on exactly the crates that this table names: a new edge is an architectural change, and an edge that
//! nothing needs any more is taken away.

use std::collections::BTreeSet;
use std::fs;

use anyhow::Context;

use super::manifest::Manifest;

/// Each crate with the crates of ours that it names in `[dependencies]`, lower layers first.
const LAYERS: &[(&str, &[&str])] = &[
    ("stdx", &[]),
    ("annotations", &[]),
    ("calls", &[]),
    ("config", &["stdx"]),
    ("protocol", &[]),
    ("symbols", &["stdx"]),
    ("code", &["stdx", "symbols"]),
    ("mem", &["stdx"]),
    ("x86", &["stdx", "mem"]),
    ("world", &["stdx", "x86"]),
    (
        "linux",
        &[
            "stdx", "calls", "protocol", "mem", "x86", "world", "symbols", "config",
        ],
    ),
    ("lockstep", &["calls", "mem", "x86", "world", "linux"]),
    ("pc", &["stdx", "mem", "x86"]),
    ("report", &[]),
    ("trace", &["stdx", "config", "protocol", "world"]),
    ("sched", &["stdx", "world", "trace"]),
    ("detect", &["stdx", "world", "trace", "report"]),
    ("debug", &["stdx", "symbols", "x86", "world", "sched"]),
    (
        "campaign",
        &["stdx", "world", "trace", "sched", "detect", "report"],
    ),
    (
        "explore",
        &[
            "stdx", "calls", "config", "world", "linux", "symbols", "code", "trace", "sched",
            "campaign", "detect", "report",
        ],
    ),
    (
        "kernel",
        &[
            "stdx", "calls", "mem", "x86", "world", "pc", "symbols", "trace", "sched", "campaign",
            "detect", "report",
        ],
    ),
    (
        "linearize",
        &[
            "stdx", "calls", "protocol", "world", "linux", "trace", "sched", "campaign", "detect",
            "report", "explore", "kernel",
        ],
    ),
    (
        "predict",
        &[
            "stdx", "symbols", "code", "world", "trace", "sched", "detect", "campaign",
        ],
    ),
    ("hub", &["stdx", "world", "linux", "trace", "campaign"]),
    ("scan", &["stdx", "report", "config"]),
    ("mcp", &[]),
    ("harden-rt", &[]),
    ("harden", &["stdx", "report", "config", "harden-rt"]),
    ("harden-plugin", &["stdx", "harden"]),
    ("testkit", &["stdx", "world", "linux"]),
];

/// The crates at the top may use everything.
const TOP: &[&str] = &["raddle"];

pub(super) fn check() -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("crates").context("no crates folder")? {
        let folder = entry?.path();
        let name = folder.file_name().and_then(|name| name.to_str());
        if let Some(name) = name.filter(|name| !TOP.contains(name)) {
            let manifest = Manifest::read(&folder)?;
            found.push((name.to_owned(), manifest.ours()));
        }
    }
    Ok(compare(LAYERS, &found))
}

/// Differences of the table and the manifests.
fn compare(table: &[(&str, &[&str])], found: &[(String, BTreeSet<String>)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, edges) in found {
        let Some((_, allowed)) = table.iter().find(|(known, _)| known == name) else {
            complaints.push(format!("crates/{name}: not in the table of layers"));
            continue;
        };
        for edge in edges {
            if !allowed.contains(&edge.as_str()) {
                complaints.push(format!("crates/{name}: must not depend on `{edge}`"));
            }
        }
        for edge in *allowed {
            if !edges.contains(*edge) {
                complaints.push(format!(
                    "crates/{name}: does not depend on `{edge}`, as the table says"
                ));
            }
        }
    }
    for (index, (name, edges)) in table.iter().enumerate() {
        if !found.iter().any(|(known, _)| known == name) {
            complaints.push(format!("the table of layers names `{name}`: no such crate"));
        }
        for edge in *edges {
            if !table[..index].iter().any(|(below, _)| below == edge) {
                complaints.push(format!("the table of layers has `{edge}` above `{name}`"));
            }
        }
    }
    complaints.sort();
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(table: &[(&str, &[&str])], found: &[(&str, &[&str])]) -> Vec<String> {
        let found: Vec<(String, BTreeSet<String>)> = found
            .iter()
            .map(|(name, edges)| {
                let edges = edges.iter().copied().map(str::to_owned).collect();
                ((*name).to_owned(), edges)
            })
            .collect();
        compare(table, &found)
    }

    #[test]
    fn new_edges_stale_edges_and_crates_that_are_gone_are_found() {
        let table: &[(&str, &[&str])] = &[("low", &[]), ("high", &["low"])];
        let same: &[(&str, &[&str])] = &[("high", &["low"]), ("low", &[])];
        assert_eq!(complaints(table, same), Vec::<String>::new());
        assert_eq!(
            complaints(table, &[("high", &[]), ("low", &["high"]), ("new", &[])]),
            [
                "crates/high: does not depend on `low`, as the table says",
                "crates/low: must not depend on `high`",
                "crates/new: not in the table of layers",
            ]
        );
        assert_eq!(
            complaints(table, &[("low", &[])]),
            ["the table of layers names `high`: no such crate"]
        );
    }

    #[test]
    fn a_layer_stands_above_those_that_it_needs() {
        let table: &[(&str, &[&str])] = &[("high", &["low"]), ("low", &[])];
        let found: &[(&str, &[&str])] = &[("high", &["low"]), ("low", &[])];
        assert_eq!(
            complaints(table, found),
            ["the table of layers has `low` above `high`"]
        );
    }
}
