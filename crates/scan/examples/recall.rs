//! Undoes real fixes in memory and asks what is reported, for `cargo xtask bench scan tuned` and `held-out`.
//!
//! Arguments: FIXES.toml TREE [SUBJECT]. With a part of a subject the fixes of that subject are undone and each
//! pattern tells where it stopped. Else a fix counts as found if a finding of any pattern has a step in one of the
//! functions that the fix names, and the shipped source has no such finding.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

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

#[derive(Deserialize)]
struct Edit {
    file: String,
    fixed: String,
    buggy: String,
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
    for round in rounds(&fixes.fix) {
        let mut former = Vec::new();
        let mut paths = Vec::new();
        for fix in &round {
            former.extend(undone(tree, fix)?);
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

/// Fixes in different folders can be undone together: patterns that count what others do look at a folder.
fn rounds(fixes: &[Fix]) -> Vec<Vec<&Fix>> {
    let mut rounds: Vec<Vec<&Fix>> = Vec::new();
    for fix in fixes {
        let own = folders(fix);
        let free = rounds.iter_mut().find(|round| {
            !round
                .iter()
                .any(|other| folders(other).iter().any(|folder| own.contains(folder)))
        });
        match free {
            Some(round) => round.push(fix),
            None => rounds.push(vec![fix]),
        }
    }
    rounds
}

fn folders(fix: &Fix) -> Vec<PathBuf> {
    let folders = fix
        .edits
        .iter()
        .filter_map(|edit| Some(Path::new(&edit.file).parent()?.to_owned()));
    folders.collect()
}

fn undone(tree: &Path, fix: &Fix) -> Result<Vec<FormerText>, Failure> {
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    for edit in &fix.edits {
        let now = match texts.get(edit.file.as_str()) {
            Some(text) => text.clone(),
            None => fs::read_to_string(tree.join(&edit.file))?,
        };
        let count = now.matches(&edit.fixed).count();
        if count != 1 {
            let place = &edit.file;
            return Err(format!("{}: {count} times in {place}", fix.subject).into());
        }
        texts.insert(&edit.file, now.replace(&edit.fixed, &edit.buggy));
    }
    let former = texts.into_iter().map(|(file, text)| FormerText {
        file: tree.join(file).display().to_string(),
        text: text.into_bytes(),
    });
    Ok(former.collect())
}

/// Where each pattern stopped in the functions of an undone fix.
fn explain(tree: &Path, fix: &Fix) -> Result<(), Failure> {
    let paths: Vec<PathBuf> = folders(fix)
        .iter()
        .map(|folder| tree.join(folder))
        .collect();
    let options = options(&paths, undone(tree, fix)?);
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
