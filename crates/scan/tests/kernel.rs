//! The scanner on real source: Debian's linux-source-6.1, of which the needed folders are unpacked once
//! below the target directory.
//!
//! One test, because all parts share the unpacked tree. The fixes that are undone are data:
//! `test_data/recall.toml`. Most of the time goes into reading the tree's headers, which every scan does: one
//! scan of the shipped source answers for all parts, and fixes that cannot disturb each other are undone together.

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

/// Bugs that are in the shipped source: locks that are left held, each with its function.
const KNOWN: &[(&str, &str)] = &[
    ("net/wireless/wext-sme.c", "cfg80211_wext_siwgenie"),
    ("net/bluetooth/l2cap_core.c", "l2cap_le_connect_rsp"),
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
    let shipped = scan_shipped(&tree, &recall);
    parse_quality(&shipped, &mut failures);
    known_bugs(&shipped, &mut failures);
    every_pattern_has_fixes(&recall, &mut failures);
    undo_all(&tree, &recall, &shipped, &mut failures);
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
    // The archive has many blocks, which are decompressed side by side.
    let status = Command::new("tar")
        .args(["--use-compress-program=xz -T0", "-xf", ARCHIVE, "-C"])
        .arg(base)
        .args(
            members
                .iter()
                .map(|path| format!("linux-source-6.1/{path}")),
        )
        .status()
        .expect("tar starts");
    // A later update may lack a file that a fix names; the fix is listed then.
    let is_there = |path: &&&str| tree.join(path).exists();
    let missing: Vec<_> = SAMPLE
        .iter()
        .chain(FURTHER)
        .filter(|path| !is_there(path))
        .collect();
    assert!(
        missing.is_empty(),
        "tar could not unpack {missing:?} of {ARCHIVE}: {status}"
    );
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

/// Everything that the parts ask of the source as it is shipped, in one scan.
fn scan_shipped(tree: &Path, recall: &Recall) -> Report {
    let all: Vec<&Fix> = recall.fix.iter().collect();
    let mut paths = union(&all, |fix| &fix.scan);
    paths.extend(SAMPLE);
    paths.extend(KNOWN.iter().map(|(file, _)| *file));
    paths.retain(|path| tree.join(path).exists());
    let mut only = union(&all, |fix| std::slice::from_ref(&fix.pattern));
    only.extend(["missing-barrier", "lock-leak"]);
    only.sort_unstable();
    only.dedup();
    scan(tree, &paths, &only, Vec::new())
}

/// At most 0.7 % of functions may be lost or damaged.
fn parse_quality(shipped: &Report, failures: &mut Vec<String>) {
    let summary = &shipped.summary;
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

fn known_bugs(shipped: &Report, failures: &mut Vec<String>) {
    for (file, function) in KNOWN {
        let is_there = shipped.findings.iter().any(|finding| {
            let place = &finding.steps[0].place;
            finding.kind == "lock-leak" && place.function == *function && place.file.ends_with(file)
        });
        if !is_there {
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
fn undo_all(tree: &Path, recall: &Recall, shipped: &Report, failures: &mut Vec<String>) {
    let mut unfit = Vec::new();
    let fits = |fix: &&Fix| {
        let gone = fix.scan.iter().find(|path| !tree.join(path).exists());
        let why = match (fixes::undone(tree, &fix.edits), gone) {
            (Ok(_), None) => return true,
            (Ok(_), Some(gone)) => format!("{gone} is not there"),
            (Err(why), _) => why,
        };
        unfit.push(format!("{} no longer fits: {why}", fix.name()));
        false
    };
    let fitting: Vec<&Fix> = recall.fix.iter().filter(fits).collect();
    for round in fixes::rounds(fitting, territory) {
        let former = round
            .iter()
            .flat_map(|fix| fixes::undone(tree, &fix.edits).unwrap_or_default());
        let undone = scan_for(tree, &round, former.collect());
        for fix in round {
            if count(&undone, fix) == 0 {
                failures.push(format!("{}: undone, but not found", fix.name()));
            }
            if count(shipped, fix) > 0 {
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

/// What two fixes must not share to be undone together: a file that is edited, or the folder in which one pattern
/// looks at what all others do.
fn territory(fix: &Fix) -> Vec<String> {
    let edited = fix.edits.iter().map(|edit| format!("edited/{}", edit.file));
    let looked_at = fix.scan.iter();
    let looked_at = looked_at.map(|path| format!("{}/{}", fix.pattern, fixes::folder(path)));
    edited.chain(looked_at).collect()
}

/// Scans what the fixes name for their patterns.
fn scan_for(tree: &Path, fixes: &[&Fix], former: Vec<FormerText>) -> Report {
    let paths = union(fixes, |fix| &fix.scan);
    let only = union(fixes, |fix| std::slice::from_ref(&fix.pattern));
    scan(tree, &paths, &only, former)
}

/// What fixes name together, each once.
fn union<'f>(round: &[&'f Fix], of: impl Fn(&'f Fix) -> &'f [String]) -> Vec<&'f str> {
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
