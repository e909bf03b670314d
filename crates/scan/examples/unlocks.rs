//! How many forgotten unlocks are found in code that no list names: takes the release of a lock out of functions
//! that are drawn by chance, once on a way that leaves early and once by returning instead of going to the label
//! that releases, and asks which of them are reported.
//!
//! Arguments: SEED COUNT PATH...; to be run at the top of the tree.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use raddle_scan::{FormerText, Level, Options};
use raddle_stdx::{Prng, width};

type Failure = Box<dyn std::error::Error>;

/// Releases that are taken out.
const RELEASES: &[&str] = &[
    "mutex_unlock(",
    "spin_unlock(",
    "spin_unlock_irqrestore(",
    "spin_unlock_bh(",
    "spin_unlock_irq(",
    "up_read(",
    "up_write(",
    "read_unlock(",
    "write_unlock(",
    "rcu_read_unlock(",
    "srcu_read_unlock(",
    "rtnl_unlock(",
    "release_sock(",
];

/// A place where a release can be forgotten.
struct Place {
    file: String,
    function: String,
    line: usize,
    /// What stands there instead.
    instead: String,
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(seed), Some(count)) = (arguments.next(), arguments.next()) else {
        return Err("usage: unlocks SEED COUNT PATH...".into());
    };
    let paths: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let mut files = Vec::new();
    for path in &paths {
        collect(path, &mut files)?;
    }
    let mut places = Vec::new();
    for file in &files {
        let text = String::from_utf8_lossy(&fs::read(file)?).into_owned();
        find(&file.to_string_lossy(), &text, &mut places);
    }
    let mut random = Prng::new(seed.parse()?);
    let mut drawn: Vec<Place> = Vec::new();
    while drawn.len() < count.parse()? && !places.is_empty() {
        let chosen = random.below(width::to_u64(places.len()));
        let place = places.swap_remove(usize::try_from(chosen)?);
        let is_same = |other: &Place| other.file == place.file && other.function == place.function;
        if !drawn.iter().any(is_same) {
            drawn.push(place);
        }
    }
    let shipped = leaks(&paths, Vec::new())?;
    let found = leaks(&paths, changed(&drawn)?)?;
    let is_found = |place: &Place| {
        let key = (place.file.clone(), place.function.clone());
        found.contains(&key) && !shipped.contains(&key)
    };
    for place in drawn.iter().filter(|place| !is_found(place)) {
        print(&format!(
            "missed {}:{} {}",
            place.file,
            place.line + 1,
            place.function
        ));
    }
    let sum = drawn.iter().filter(|place| is_found(place)).count();
    print(&format!("{sum} of {} found, seed {seed}", drawn.len()));
    Ok(())
}

fn collect(path: &Path, out: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if path.is_dir() {
        let entries: Result<Vec<_>, _> = fs::read_dir(path)?.collect();
        let mut entries: Vec<PathBuf> = entries?.iter().map(fs::DirEntry::path).collect();
        entries.sort();
        return entries.iter().try_for_each(|entry| collect(entry, out));
    }
    if path.extension().is_some_and(|extension| extension == "c") {
        out.push(path.to_path_buf());
    }
    Ok(())
}

/// The places of one file, in functions that begin and end in the first column.
fn find(file: &str, text: &str, out: &mut Vec<Place>) {
    let lines: Vec<&str> = text.lines().collect();
    let mut start = None;
    for (number, line) in lines.iter().enumerate() {
        if line.starts_with('{') {
            start = Some(number);
        } else if line.starts_with('}')
            && let Some(start) = start.take()
            && let Some(function) = name_above(&lines[..start])
        {
            find_in(file, function, &lines[..number], start, out);
        }
    }
}

/// The name in the head of a function: what stands before the first parenthesis.
fn name_above<'t>(lines: &[&'t str]) -> Option<&'t str> {
    let head = lines
        .iter()
        .rev()
        .take(8)
        .find(|line| line.contains('(') && !line.starts_with(char::is_whitespace))?;
    let before = head.split('(').next()?;
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let name = before.rsplit(|letter| !is_part(letter)).next()?;
    (!name.is_empty() && !name.contains("lock")).then_some(name)
}

fn find_in(file: &str, function: &str, lines: &[&str], start: usize, out: &mut Vec<Place>) {
    let returned = lines[start..].iter().rev().map(|line| line.trim());
    let returned = returned.clone().find(|line| line.starts_with("return"));
    let depth = |line: &str| line.len() - line.trim_start_matches('\t').len();
    for number in start..lines.len() {
        let (line, next) = (lines[number], lines.get(number + 1).copied().unwrap_or(""));
        let (own, then) = (line.trim(), next.trim());
        let is_early = depth(line) >= 2 && depth(next) == depth(line);
        let leaves = then.starts_with("return") || then.starts_with("goto ");
        let instead = if is_early && leaves && RELEASES.iter().any(|name| own.starts_with(name)) {
            String::new()
        } else if let Some(label) = own.strip_prefix("goto ")
            && depth(line) >= 2
            && label.contains("unlock")
            && let Some(value) = returned
            && [
                "return ret;",
                "return err;",
                "return rc;",
                "return error;",
                "return retval;",
            ]
            .contains(&value)
        {
            value.to_owned()
        } else {
            continue;
        };
        out.push(Place {
            file: file.to_owned(),
            function: function.to_owned(),
            line: number,
            instead,
        });
    }
}

/// The files with the releases taken out.
fn changed(drawn: &[Place]) -> Result<Vec<FormerText>, Failure> {
    let files: BTreeSet<&str> = drawn.iter().map(|place| place.file.as_str()).collect();
    let mut former = Vec::new();
    for file in files {
        let text = String::from_utf8_lossy(&fs::read(file)?).into_owned();
        let mut lines: Vec<&str> = text.lines().collect();
        for place in drawn.iter().filter(|place| place.file == file) {
            lines[place.line] = &place.instead;
        }
        former.push(FormerText {
            file: file.to_owned(),
            text: lines.join("\n").into_bytes(),
        });
    }
    Ok(former)
}

/// Files and functions in which a lock is reported as left held.
fn leaks(
    paths: &[PathBuf],
    former: Vec<FormerText>,
) -> Result<BTreeSet<(String, String)>, Failure> {
    let options = Options {
        paths: paths.to_vec(),
        patterns: raddle_scan::shipped_files(),
        only: vec!["lock-leak".to_owned()],
        jobs: 2,
        level: Level::FULL,
        limit: None,
        config: raddle_config::scan::Scan::default(),
        former,
    };
    let findings = raddle_scan::scan(&options, &|_, _, _| {})?.findings;
    let places = findings
        .into_iter()
        .map(|mut finding| finding.steps.swap_remove(0).place);
    Ok(places.map(|place| (place.file, place.function)).collect())
}

#[expect(clippy::print_stdout, reason = "the result of this program")]
fn print(text: &str) {
    println!("{text}");
}
