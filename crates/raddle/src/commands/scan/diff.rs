//! Which lines a git change touches.

use raddle_scan::ChangedFile;

use crate::git;

/// Lines changed between `revision` and the working tree, per file, as paths from the current folder.
pub(super) fn changed_lines(revision: &str) -> anyhow::Result<Vec<ChangedFile>> {
    Ok(parse(&git::changes_since(revision, &["--relative"])?))
}

fn parse(diff: &str) -> Vec<ChangedFile> {
    let mut files: Vec<ChangedFile> = Vec::new();
    for line in diff.lines() {
        if let Some(path) = line.strip_prefix("+++ b/") {
            files.push(ChangedFile {
                file: path.to_owned(),
                lines: Vec::new(),
            });
        } else if let (Some(range), Some(file)) = (new_range(line), files.last_mut()) {
            file.lines.push(range);
        }
    }
    files
}

/// The new lines of a hunk header `@@ -a,b +c,d @@`; where lines only went, the line before.
fn new_range(line: &str) -> Option<(u32, u32)> {
    let rest = line.strip_prefix("@@ -")?;
    let (_, rest) = rest.split_once(" +")?;
    let (range, _) = rest.split_once(' ')?;
    let (start, count) = range.split_once(',').unwrap_or((range, "1"));
    let (start, count): (u32, u32) = (start.parse().ok()?, count.parse().ok()?);
    Some((start, start + count.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_become_line_ranges() {
        let diff = "--- a/x.c\n+++ b/x.c\n@@ -1 +1,3 @@ f\n+a\n@@ -9,2 +10,0 @@\n-b\n--- a/y.c\n+++ b/y.c\n@@ -4 +4 @@\n";
        let files = parse(diff);
        assert_eq!(files.len(), 2);
        assert_eq!(files[0].lines, [(1, 3), (10, 10)]);
        assert_eq!(files[1].lines, [(4, 4)]);
    }
}
