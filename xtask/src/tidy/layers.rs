//! Crates may depend only on the crates that this table allows: a new edge is an architectural change.

use std::fs;

use anyhow::Context;

/// Each crate with the crates of ours it may name in `[dependencies]`.
const ALLOWED: &[(&str, &[&str])] = &[
    ("stdx", &[]),
    ("calls", &[]),
    ("config", &["stdx"]),
    ("symbols", &["stdx"]),
    ("code", &["stdx", "symbols"]),
    ("mem", &["stdx"]),
    ("x86", &["stdx", "mem"]),
    ("world", &["stdx", "mem", "x86"]),
    (
        "linux",
        &["stdx", "calls", "mem", "x86", "world", "symbols", "config"],
    ),
    (
        "lockstep",
        &["stdx", "calls", "mem", "x86", "world", "linux", "symbols"],
    ),
    ("pc", &["stdx", "mem", "x86", "world", "symbols"]),
    ("report", &["stdx", "symbols"]),
    ("trace", &["stdx", "world", "code", "config"]),
    ("sched", &["stdx", "world", "trace"]),
    ("campaign", &["stdx", "world", "sched"]),
    ("detect", &["stdx", "world", "trace", "report"]),
    (
        "explore",
        &[
            "stdx", "calls", "config", "world", "linux", "symbols", "trace", "sched", "campaign",
            "detect", "report",
        ],
    ),
    (
        "predict",
        &["stdx", "explore", "trace", "sched", "detect", "report"],
    ),
    (
        "linearize",
        &["stdx", "explore", "trace", "sched", "detect", "report"],
    ),
    (
        "kernel",
        &[
            "stdx", "calls", "mem", "x86", "world", "pc", "symbols", "trace", "sched", "campaign",
            "detect", "report",
        ],
    ),
    ("scan", &["stdx", "report", "config"]),
    ("harden", &["stdx", "report", "config", "harden-rt"]),
    ("harden-plugin", &["stdx", "harden"]),
    ("harden-rt", &[]),
];

/// The crates at the top may use everything.
const TOP: &[&str] = &["raddle", "testkit"];

pub(super) fn check() -> anyhow::Result<Vec<String>> {
    let mut complaints = Vec::new();
    for entry in fs::read_dir("crates").context("no crates folder")? {
        let folder = entry?.path();
        let Some(name) = folder
            .file_name()
            .and_then(|name| name.to_str())
            .map(str::to_owned)
        else {
            continue;
        };
        if TOP.contains(&name.as_str()) {
            continue;
        }
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
            complaints.push(format!("crates/{name}: not in the table of layers"));
            continue;
        };
        let manifest: toml::Table = fs::read_to_string(folder.join("Cargo.toml"))?.parse()?;
        let Some(dependencies) = manifest.get("dependencies").and_then(toml::Value::as_table)
        else {
            continue;
        };
        for ours in dependencies
            .keys()
            .filter_map(|key| key.strip_prefix("raddle-"))
        {
            if !allowed.contains(&ours) {
                complaints.push(format!(
                    "crates/{name}: must not depend on `{ours}` (see xtask/src/tidy/layers.rs)"
                ));
            }
        }
    }
    complaints.sort();
    Ok(complaints)
}
