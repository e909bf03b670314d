//! The scanner on real source: Debian's linux-source-6.1, of which the needed folders are unpacked once
//! below the target directory.
//!
//! One test, because all parts share the unpacked tree and some edit it. The fixes that are undone are data:
//! `test_data/recall.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use raddle_scan::{Level, Options, Report};
use serde::Deserialize;

const ARCHIVE: &str = "/usr/src/linux-source-6.1.tar.xz";
const RECALL: &str = include_str!("../test_data/recall.toml");

/// Folders of the sample for parse quality.
const SAMPLE: &[&str] = &[
    "fs/ext4",
    "fs/fscache",
    "net/bluetooth",
    "net/nfc",
    "kernel/sched",
    "mm",
];

/// Further paths that are always needed.
const FURTHER: &[&str] = &["include", "net/wireless"];

/// Fixes that every shipped pattern must have here.
const FIXES_MIN: usize = 2;

/// Patterns for which fewer fixes have been collected yet; their examples are in `test_data`.
const NEW: &[&str] = &[
    "double-lock",
    "double-unlock",
    "unlock-not-held",
    "wait-for-handler",
    "asserted-lock-not-held",
    "called-without-lock",
    "irq-unsafe-lock",
    "use-after-free",
    "rcu-use-after-unlock",
    "rcu-plain-access",
    "unguarded-read",
    "unlocked-access",
    "unlocked-call",
    "use-after-unlock",
    "rcu-outside-section",
    "irq-lock-mixed",
];

#[derive(Deserialize)]
struct Recall {
    fix: Vec<Fix>,
}

/// A fix of a real bug, to be undone.
#[derive(Deserialize)]
struct Fix {
    /// Subject of the commit that fixed it.
    subject: String,
    /// How the former code is known.
    seen: Seen,
    pattern: String,
    /// The function of the first step of the finding, and a part of its title.
    function: String,
    title: String,
    scan: Vec<String>,
    edits: Vec<Edit>,
}

/// Where the code before a fix was read: `test_data/recall.toml` says more.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Seen {
    Diff,
    Versions,
    Source,
}

impl Fix {
    /// The fix in a message.
    fn name(&self) -> String {
        format!("{} (seen: {:?})", self.subject, self.seen)
    }
}

/// One text of the fixed source and what it was before.
#[derive(Deserialize)]
struct Edit {
    file: String,
    fixed: String,
    buggy: String,
}

#[test]
fn real_source() {
    let recall: Recall = toml::from_str(RECALL).expect("the list of fixes is TOML");
    let tree = unpack(&recall);
    let mut failures = Vec::new();
    parse_quality(&tree, &mut failures);
    known_bugs(&tree, &mut failures);
    every_pattern_has_fixes(&recall, &mut failures);
    undo_all(&tree, &recall, &mut failures);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The paths of the tree that the test reads.
fn members(recall: &Recall) -> BTreeSet<String> {
    let scanned = recall.fix.iter().flat_map(|fix| fix.scan.iter().cloned());
    let edited = recall
        .fix
        .iter()
        .flat_map(|fix| fix.edits.iter().map(|edit| edit.file.clone()));
    let fixed = SAMPLE.iter().chain(FURTHER).map(|path| (*path).to_owned());
    let all: BTreeSet<String> = scanned.chain(edited).chain(fixed).collect();
    // What lies in a folder that is unpacked anyway must not be named again.
    all.iter()
        .filter(|path| {
            !all.iter().any(|other| {
                path.strip_prefix(other.as_str())
                    .is_some_and(|rest| rest.starts_with('/'))
            })
        })
        .cloned()
        .collect()
}

fn unpack(recall: &Recall) -> PathBuf {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let tree = base.join("linux-source-6.1");
    let members = members(recall);
    let list: Vec<&str> = members.iter().map(String::as_str).collect();
    let list = list.join("\n");
    let done = base.join("linux-source-6.1.members");
    let is_whole = fs::read_to_string(&done).is_ok_and(|old| old == list);
    let is_clean = recall
        .fix
        .iter()
        .flat_map(|fix| &fix.edits)
        .all(|edit| text(&tree, edit).contains(&edit.fixed));
    if is_whole && is_clean {
        return tree;
    }
    assert!(
        Path::new(ARCHIVE).exists(),
        "{ARCHIVE} is missing: `cargo xtask setup` installs the Debian package linux-source-6.1"
    );
    let status = Command::new("tar")
        .args(["xf", ARCHIVE, "-C"])
        .arg(base)
        .args(
            members
                .iter()
                .map(|path| format!("linux-source-6.1/{path}")),
        )
        .status()
        .expect("tar starts");
    assert!(status.success(), "tar could not unpack {ARCHIVE}");
    fs::write(done, list).expect("the target directory can be written");
    tree
}

fn text(tree: &Path, edit: &Edit) -> String {
    fs::read_to_string(tree.join(&edit.file)).unwrap_or_default()
}

fn scan(tree: &Path, paths: &[&str], only: &[&str]) -> Report {
    let options = Options {
        paths: paths.iter().map(|path| tree.join(path)).collect(),
        patterns: raddle_scan::shipped_files(),
        only: only.iter().map(|name| (*name).to_owned()).collect(),
        jobs: 2,
        level: Level::FULL,
        limit: None,
        config: raddle_config::scan::Scan::default(),
        former: Vec::new(),
    };
    raddle_scan::scan(&options, &|_, _, _| {}).expect("a scan of real source works")
}

/// At most 0.7 % of functions may be lost or damaged.
fn parse_quality(tree: &Path, failures: &mut Vec<String>) {
    let summary = scan(tree, SAMPLE, &["missing-barrier"]).summary;
    let bad = summary.functions_damaged + summary.functions_lost;
    if summary.functions < 9_000 {
        failures.push(format!("only {} functions were found", summary.functions));
    }
    if bad * 1000 > summary.functions * 7 {
        failures.push(format!(
            "{bad} of {} functions were not understood",
            summary.functions
        ));
    }
}

/// Bugs that are in the shipped source.
fn known_bugs(tree: &Path, failures: &mut Vec<String>) {
    let report = scan(
        tree,
        &["net/wireless/wext-sme.c", "net/bluetooth/l2cap_core.c"],
        &["lock-leak"],
    );
    for function in ["cfg80211_wext_siwgenie", "l2cap_le_connect_rsp"] {
        if !report
            .findings
            .iter()
            .any(|finding| finding.steps[0].place.function == function)
        {
            failures.push(format!("the lock left in {function} was not found"));
        }
    }
}

fn every_pattern_has_fixes(recall: &Recall, failures: &mut Vec<String>) {
    let patterns =
        raddle_scan::list_patterns(&raddle_scan::shipped_files()).expect("shipped patterns work");
    for pattern in patterns {
        let of_pattern = recall.fix.iter().filter(|fix| fix.pattern == pattern.name);
        let count = of_pattern.count();
        if count < FIXES_MIN && !NEW.contains(&pattern.name.as_str()) {
            failures.push(format!("{} has only {count} fixes to undo", pattern.name));
        }
    }
}

/// Each fix must be silent in the shipped source and reported once it is undone.
fn undo_all(tree: &Path, recall: &Recall, failures: &mut Vec<String>) {
    for fix in &recall.fix {
        let paths: Vec<&str> = fix.scan.iter().map(String::as_str).collect();
        let only = [fix.pattern.as_str()];
        let clean = count(&scan(tree, &paths, &only), fix);
        // Several edits may be to one file.
        let originals: BTreeMap<&str, String> = fix
            .edits
            .iter()
            .map(|edit| (edit.file.as_str(), text(tree, edit)))
            .collect();
        for edit in &fix.edits {
            let now = text(tree, edit);
            if now.matches(&edit.fixed).count() != 1 {
                failures.push(format!(
                    "{}: the fixed text is not in {}",
                    fix.name(),
                    edit.file
                ));
            }
            let undone = now.replace(&edit.fixed, &edit.buggy);
            fs::write(tree.join(&edit.file), undone).expect("the copy can be edited");
        }
        let buggy = count(&scan(tree, &paths, &only), fix);
        for (file, original) in originals {
            fs::write(tree.join(file), original).expect("the copy can be restored");
        }
        if buggy == 0 {
            failures.push(format!("{}: undone, but not found", fix.name()));
        }
        if clean > 0 {
            failures.push(format!(
                "{}: still reported in the fixed source",
                fix.name()
            ));
        }
    }
}

fn count(report: &Report, fix: &Fix) -> usize {
    report
        .findings
        .iter()
        .filter(|finding| {
            finding.kind == fix.pattern
                && finding.steps[0].place.function == fix.function
                && finding.title.contains(&fix.title)
        })
        .count()
}
