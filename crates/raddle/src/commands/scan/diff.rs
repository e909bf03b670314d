//! The files that a git change touches, as they were before.

use raddle_scan::FormerText;

use crate::git;

/// The C files that differ between `revision` and the working tree with what they held then, as paths from the
/// current folder.
pub(super) fn former_texts(revision: &str) -> anyhow::Result<Vec<FormerText>> {
    let is_c = |file: &String| file.ends_with(".c") || file.ends_with(".h");
    let changed = git::changed_files(revision)?;
    changed
        .into_iter()
        .filter(is_c)
        .map(|file| {
            // A file that is new has no former text.
            let text = git::text_at(revision, &file)?.unwrap_or_default();
            Ok(FormerText { file, text })
        })
        .collect()
}
