//! The scanner on real source: Debian's linux-source-6.1, of which the needed folders are unpacked once
//! below the target directory.
//!
//! One test, because all parts share the unpacked tree. The fixes that are undone are data:
//! `test_data/recall.toml`. Most of the time goes into reading the tree's headers, which every scan does, so
//! fixes of different folders are undone together.

mod fixes;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use fixes::Edit;
use raddle_scan::{FormerText, Level, Options, Report};
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
    let mut wanted: Vec<String> = members.iter().cloned().collect();
    wanted.push(archive_state());
    let wanted = wanted.join("\n");
    let done = base.join("linux-source-6.1.members");
    if fs::read_to_string(&done).is_ok_and(|old| old == wanted) {
        return tree;
    }
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
    fs::write(done, wanted).expect("the target directory can be written");
    tree
}

/// What tells one version of the archive from the next.
fn archive_state() -> String {
    let Ok(data) = fs::metadata(ARCHIVE) else {
        panic!(
            "{ARCHIVE} is missing: `cargo xtask setup` installs the Debian package linux-source-6.1"
        );
    };
    let changed = data.modified().ok();
    let changed = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    format!("{} bytes of {changed:?}", data.len())
}

fn scan(tree: &Path, paths: &[&str], only: &[&str], former: Vec<FormerText>) -> Report {
    let options = Options {
        paths: paths.iter().map(|path| tree.join(path)).collect(),
        patterns: raddle_scan::shipped_files(),
        only: only.iter().map(|name| (*name).to_owned()).collect(),
        jobs: 2,
        level: Level::FULL,
        limit: None,
        config: raddle_config::scan::Scan::default(),
        former,
    };
    raddle_scan::scan(&options, &|_, _, _| {}).expect("a scan of real source works")
}

/// At most 0.7 % of functions may be lost or damaged.
fn parse_quality(tree: &Path, failures: &mut Vec<String>) {
    let summary = scan(tree, SAMPLE, &["missing-barrier"], Vec::new()).summary;
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
        Vec::new(),
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
#[expect(
    clippy::print_stderr,
    reason = "fixes that no longer fit are listed, not failed"
)]
fn undo_all(tree: &Path, recall: &Recall, failures: &mut Vec<String>) {
    let mut unfit = Vec::new();
    let fits = |fix: &&Fix| match fixes::undone(tree, &fix.edits) {
        Ok(_) => true,
        Err(why) => {
            unfit.push(format!("{} no longer fits: {why}", fix.name()));
            false
        }
    };
    let fitting: Vec<&Fix> = recall.fix.iter().filter(fits).collect();
    let all: Vec<&&Fix> = fitting.iter().collect();
    let shipped = scan_for(tree, &all, Vec::new());
    let folders = |fix: &&Fix| fix.scan.iter().map(|path| fixes::folder(path)).collect();
    for round in fixes::rounds(&fitting, folders) {
        let former = round
            .iter()
            .flat_map(|fix| fixes::undone(tree, &fix.edits).unwrap_or_default());
        let undone = scan_for(tree, &round, former.collect());
        for fix in round {
            if count(&undone, fix) == 0 {
                failures.push(format!("{}: undone, but not found", fix.name()));
            }
            if count(&shipped, fix) > 0 {
                let name = fix.name();
                failures.push(format!("{name}: still reported in the fixed source"));
            }
        }
    }
    if fixes::is_outdated(unfit.len(), recall.fix.len()) {
        failures.append(&mut unfit);
    }
    for line in unfit {
        eprintln!("{line}");
    }
}

/// Scans what the fixes name for their patterns.
fn scan_for(tree: &Path, fixes: &[&&Fix], former: Vec<FormerText>) -> Report {
    let paths = union(fixes, |fix| &fix.scan);
    let only = union(fixes, |fix| std::slice::from_ref(&fix.pattern));
    scan(tree, &paths, &only, former)
}

/// What fixes name together, each once.
fn union<'f>(round: &[&&'f Fix], of: impl Fn(&'f Fix) -> &'f [String]) -> Vec<&'f str> {
    let all: BTreeSet<&str> = round
        .iter()
        .flat_map(|fix| of(fix).iter().map(String::as_str))
        .collect();
    all.into_iter().collect()
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
