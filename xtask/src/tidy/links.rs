//! Links of the manual lead to files that are there, and every page stands in its table of contents.

use std::collections::BTreeSet;

const SUMMARY: &str = "docs/src/SUMMARY.md";
const PAGES: &str = "docs/src/";

/// Complaints about the links of all pages.
pub(super) fn check(files: &[(String, String)], all: &BTreeSet<String>) -> Vec<String> {
    let is_page = |path: &str| path.ends_with(".md") && !path.starts_with("corpus/");
    let pages = files.iter().filter(|(path, _)| is_page(path));
    let mut complaints = Vec::new();
    let mut listed = BTreeSet::new();
    for (path, text) in pages.clone() {
        for (number, target) in targets(text) {
            let Some(file) = resolved(path, target) else {
                complaints.push(format!("{path}:{number}: `{target}` leads out of the tree"));
                continue;
            };
            let is_there = all.contains(&file)
                || all
                    .range(format!("{file}/")..)
                    .next()
                    .is_some_and(|next| next.starts_with(&format!("{file}/")));
            if !is_there {
                complaints.push(format!("{path}:{number}: `{target}` leads nowhere"));
            }
            if path == SUMMARY {
                listed.insert(file);
            }
        }
    }
    for (path, _) in pages {
        if path.starts_with(PAGES) && path != SUMMARY && !listed.contains(path) {
            complaints.push(format!("{path}: not in {SUMMARY}"));
        }
    }
    complaints
}

/// The files that a page links to, each with its line; not what is in blocks of code, on other servers, or on the page.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            // In a span of code there is an odd number of marks before.
            let is_quoted = line[..at].matches('`').count() % 2 == 1;
            let target = line[at + 2..].split([')', ' ', '#']).next().unwrap_or("");
            if !is_quoted && !target.is_empty() && !target.contains("://") {
                found.push((number, target));
            }
        }
    }
    found
}

/// The path of a link's target from the root of the tree.
fn resolved(page: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(pages: &[(&str, &str)], others: &[&str]) -> Vec<String> {
        let files: Vec<(String, String)> = pages
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        let names = pages
            .iter()
            .map(|(path, _)| *path)
            .chain(others.iter().copied());
        check(&files, &names.map(str::to_owned).collect())
    }

    #[test]
    fn links_that_lead_nowhere_and_pages_that_are_not_listed_are_found() {
        let summary = (SUMMARY, "- [A](a.md)\n");
        let page = (
            "docs/src/a.md",
            "[x](b.md) `[y](c.md)`\n```\n[z](d.md)\n```\n",
        );
        let other = (
            "docs/src/e.md",
            "[a](./a.md#part) [w](https://x.y/z) [p](../img/p.png)\n",
        );
        assert_eq!(
            complaints(&[summary, page, other], &["docs/img/p.png"]),
            [
                "docs/src/a.md:1: `b.md` leads nowhere",
                "docs/src/e.md: not in docs/src/SUMMARY.md",
            ]
        );
    }

    #[test]
    fn folders_can_be_linked_and_the_tree_cannot_be_left() {
        let page = ("README.md", "[docs](docs/) [out](../../x)\n");
        assert_eq!(
            complaints(&[page], &["docs/src/a.c"]),
            ["README.md:1: `../../x` leads out of the tree"]
        );
    }
}
