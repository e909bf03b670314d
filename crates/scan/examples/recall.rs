//! Undoes real fixes in memory and asks what is reported, for `cargo xtask bench scan tuned` and `held-out`.
//!
//! Arguments: FIXES.toml TREE [SUBJECT]. With a part of a subject the fixes of that subject are undone and each
//! pattern tells where it stopped. Else a fix counts as found if a finding of any pattern has a step in one of the
//! functions that the fix names, and the shipped source has no such finding. A fix that no longer fits the
//! source is listed and counts neither as found nor as missed.

#[path = "../tests/fixes/mod.rs"]
mod fixes;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fixes::Edit;
use raddle_scan::{FormerText, Level, Options};
use serde::Deserialize;

type Failure = Box<dyn std::error::Error>;

#[derive(Deserialize)]
struct Fixes {
    fix: Vec<Fix>,
}

#[derive(Deserialize)]
struct Fix {
    subject: String,
    class: String,
    /// A finding in one of these is about the bug.
    functions: Vec<String>,
    edits: Vec<Edit>,
}

/// What tells one finding from another, and the functions of its steps.
type Findings = BTreeMap<(String, String), Vec<String>>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(list), Some(tree)) = (arguments.next(), arguments.next()) else {
        return Err("usage: recall FIXES.toml TREE".into());
    };
    let fixes: Fixes = toml::from_str(&fs::read_to_string(list)?)?;
    let tree = Path::new(&tree);
    if let Some(subject) = arguments.next() {
        let asked = fixes
            .fix
            .iter()
            .filter(|fix| fix.subject.contains(&subject));
        return asked.into_iter().try_for_each(|fix| explain(tree, fix));
    }
    let mut shares: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let fitting = fitting(tree, &fixes)?;
    for round in fixes::rounds(fitting.iter().copied(), folders) {
        let mut former = Vec::new();
        let mut paths = Vec::new();
        for fix in &round {
            former.extend(fixes::undone(tree, &fix.edits)?);
            paths.extend(folders(fix).into_iter().map(|folder| tree.join(folder)));
        }
        paths.sort();
        paths.dedup();
        let shipped = scan(&paths, Vec::new())?;
        let found = scan(&paths, former)?;
        for fix in round {
            let kinds = kinds(fix, &shipped, &found);
            let share = shares.entry(&fix.class).or_default();
            share.1 += 1;
            share.0 += usize::from(!kinds.is_empty());
            let verdict = if kinds.is_empty() { "missed" } else { "found" };
            print(&format!(
                "{verdict} | {} | {} | {}",
                fix.class,
                fix.subject,
                kinds.join(", ")
            ));
        }
    }
    let mut all = (0, 0);
    for (class, (found, of)) in shares {
        print(&format!("{class}: {found} of {of}"));
        all = (all.0 + found, all.1 + of);
    }
    print(&format!("together: {} of {}", all.0, all.1));
    Ok(())
}

/// The fixes that can still be undone; the others are listed, and too many of them are an error.
fn fitting<'f>(tree: &Path, fixes: &'f Fixes) -> Result<Vec<&'f Fix>, Failure> {
    let mut fitting = Vec::new();
    for fix in &fixes.fix {
        match fixes::undone(tree, &fix.edits) {
            Ok(_) => fitting.push(fix),
            Err(why) => print(&format!("no longer fits | {} | {why}", fix.subject)),
        }
    }
    let (unfit, listed) = (fixes.fix.len() - fitting.len(), fixes.fix.len());
    if fixes::is_outdated(unfit, listed) {
        return Err(format!("{unfit} of {listed} fixes no longer fit this source").into());
    }
    Ok(fitting)
}

fn folders(fix: &Fix) -> Vec<String> {
    let edits = fix.edits.iter();
    edits.map(|edit| fixes::folder(&edit.file)).collect()
}

/// Where each pattern stopped in the functions of an undone fix.
fn explain(tree: &Path, fix: &Fix) -> Result<(), Failure> {
    let paths: Vec<PathBuf> = folders(fix)
        .iter()
        .map(|folder| tree.join(folder))
        .collect();
    let options = options(&paths, fixes::undone(tree, &fix.edits)?);
    print(&fix.subject);
    for function in &fix.functions {
        let file = &fix.edits[0].file;
        for line in raddle_scan::why(&options, file, function, &|_, _, _| {})? {
            print(&line);
        }
    }
    Ok(())
}

fn scan(folders: &[PathBuf], former: Vec<FormerText>) -> Result<Findings, Failure> {
    let report = raddle_scan::scan(&options(folders, former), &|_, _, _| {})?;
    let told = report.findings.into_iter().map(|finding| {
        let functions = finding.steps.iter();
        let functions = functions.map(|step| step.place.function.clone());
        (
            (finding.kind, finding.fingerprint + &finding.title),
            functions.collect(),
        )
    });
    Ok(told.collect())
}

fn options(folders: &[PathBuf], former: Vec<FormerText>) -> Options {
    Options {
        paths: folders.to_vec(),
        patterns: raddle_scan::shipped_files(),
        only: Vec::new(),
        jobs: 2,
        level: Level::FULL,
        limit: None,
        config: raddle_config::scan::Scan::default(),
        former,
    }
}

/// The patterns that report the undone fix.
fn kinds(fix: &Fix, shipped: &Findings, found: &Findings) -> Vec<String> {
    let mut kinds: Vec<String> = found
        .iter()
        .filter(|(finding, functions)| {
            !shipped.contains_key(*finding)
                && functions.iter().any(|name| fix.functions.contains(name))
        })
        .map(|((kind, _), _)| kind.clone())
        .collect();
    kinds.dedup();
    kinds
}

#[expect(clippy::print_stdout, reason = "the result of this program")]
fn print(text: &str) {
    println!("{text}");
}
