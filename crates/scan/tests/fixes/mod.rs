//! Real fixes that are taken back in memory, for the test over real source and for `cargo xtask bench scan`.
//!
//! The source is Debian's, and its stable updates go on: what a fix says about the text may cease to be true
//! any week. Such a fix is listed instead of undone, and only [`is_outdated`] makes the list itself a failure.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use raddle_scan::FormerText;
use serde::Deserialize;

/// One text of the fixed source and what it was before.
#[derive(Deserialize)]
pub(crate) struct Edit {
    pub(crate) file: String,
    pub(crate) fixed: String,
    pub(crate) buggy: String,
}

/// Of a list, one fix in this many may no longer fit: a stable update touches a few of the files, and a list
/// that has lost more says little about the rest.
const UNFIT_MAX_OF: usize = 10;

/// Whether too many fixes of a list no longer fit the source.
pub(crate) fn is_outdated(unfit: usize, listed: usize) -> bool {
    unfit * UNFIT_MAX_OF > listed
}

/// The files as they were before the fix, or why the fix no longer fits.
pub(crate) fn undone(tree: &Path, edits: &[Edit]) -> Result<Vec<FormerText>, String> {
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    for edit in edits {
        let now = match texts.get(edit.file.as_str()) {
            Some(text) => text.clone(),
            None => fs::read_to_string(tree.join(&edit.file))
                .map_err(|error| format!("{}: {error}", edit.file))?,
        };
        let count = now.matches(&edit.fixed).count();
        if count != 1 {
            return Err(format!("{} has the fixed text {count} times", edit.file));
        }
        texts.insert(&edit.file, now.replace(&edit.fixed, &edit.buggy));
    }
    let former = texts.into_iter().map(|(file, text)| FormerText {
        file: tree.join(file).display().to_string(),
        text: text.into_bytes(),
    });
    Ok(former.collect())
}

/// Fixes in different folders can be undone together: patterns that count what others do look at a folder.
pub(crate) fn rounds<'f, F>(
    fixes: impl IntoIterator<Item = &'f F>,
    folders: impl Fn(&F) -> Vec<String>,
) -> Vec<Vec<&'f F>> {
    let mut rounds: Vec<Vec<&F>> = Vec::new();
    for fix in fixes {
        let own = folders(fix);
        let is_apart = |other: &&F| {
            let others = folders(other);
            !own.iter()
                .any(|folder| others.iter().any(|other| overlap(folder, other)))
        };
        match rounds.iter_mut().find(|round| round.iter().all(is_apart)) {
            Some(round) => round.push(fix),
            None => rounds.push(vec![fix]),
        }
    }
    rounds
}

/// Whether one of two folders is the other or lies in it.
fn overlap(one: &str, other: &str) -> bool {
    Path::new(one).starts_with(other) || Path::new(other).starts_with(one)
}

/// The folder of a path that is a folder or a C file.
pub(crate) fn folder(path: &str) -> String {
    let is_file = path.ends_with(".c") || path.ends_with(".h");
    match path.rsplit_once('/') {
        Some((folder, _)) if is_file => folder.to_owned(),
        _ => path.to_owned(),
    }
}
