//! The lines that changed since a revision, as `git diff` tells.

use anyhow::bail;
use raddle_campaign::Focus;

use crate::git;

/// Lines at most: a longer diff is no focus.
const LINES_MAX: usize = 20_000;

/// The lines of the working tree that are not in `revision`.
pub(crate) fn changed_since(revision: &str) -> anyhow::Result<Vec<Focus>> {
    let lines = added_lines(&git::changes_since(revision)?);
    if lines.is_empty() {
        bail!("nothing was added or changed since `{revision}`: there is nothing to focus on");
    }
    if lines.len() > LINES_MAX {
        bail!(
            "{} lines changed since `{revision}`, more than {LINES_MAX}: that is no focus",
            lines.len()
        );
    }
    Ok(lines)
}

/// Added and changed lines of a unified diff without context.
fn added_lines(diff: &str) -> Vec<Focus> {
    let mut file = String::new();
    let mut found = Vec::new();
    for line in diff.lines() {
        if let Some(name) = line.strip_prefix("+++ ") {
            name.strip_prefix("b/")
                .unwrap_or(name)
                .clone_into(&mut file);
        } else if line.starts_with("@@ ")
            && let Some((first, count)) = added_range(line)
        {
            found.extend(
                (first..first.saturating_add(count)).map(|line| Focus::Line {
                    file: file.clone(),
                    line,
                }),
            );
        }
    }
    found
}

/// First line and number of lines of `@@ -1,2 +3,4 @@`.
fn added_range(header: &str) -> Option<(u32, u32)> {
    let range = header.split(' ').find_map(|word| word.strip_prefix('+'))?;
    match range.split_once(',') {
        Some((first, count)) => Some((first.parse().ok()?, count.parse().ok()?)),
        None => Some((range.parse().ok()?, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_changed_lines_are_found_and_removed_ones_are_not() {
        let diff = "diff --git a/src/a.c b/src/a.c\n--- a/src/a.c\n+++ b/src/a.c\n@@ -3 +3,2 @@ int f(void)\n-x\n+y\n+z\n@@ -9,2 +10,0 @@\n-a\n-b\n@@ -20,0 +19 @@\n+c\n";
        let lines: Vec<String> = added_lines(diff).iter().map(Focus::to_string).collect();
        assert_eq!(lines, ["src/a.c:3", "src/a.c:4", "src/a.c:19"]);
    }
}
