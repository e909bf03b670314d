//! Every rule that raddle reports by has a page and a test.

/// Where the kinds of findings of programs and kernels are written down.
const KINDS: [&str; 2] = [
    "crates/raddle/src/commands/explore/kinds.rs",
    "crates/raddle/src/commands/kernel/kinds.rs",
];

/// The page of kinds, and that of patterns.
const KINDS_PAGE: &str = "docs/src/reference/kinds.md";
const PATTERNS_PAGE: &str = "docs/src/commands/scan.md";

/// Complaints about kinds and patterns; `files` are those of the repository with their text.
pub(super) fn check(files: &[(String, String)]) -> Vec<String> {
    let text = |wanted: &str| {
        let found = files.iter().find(|(path, _)| path == wanted);
        found.map_or("", |(_, text)| text.as_str())
    };
    let mut complaints = Vec::new();
    for path in KINDS {
        for kind in kinds(text(path)) {
            if !text(KINDS_PAGE).contains(&format!("`{kind}`")) {
                complaints.push(format!("{KINDS_PAGE}: does not list `{kind}`"));
            }
            if !is_tested(files, kind) {
                complaints.push(format!("{path}: no test and no case names `{kind}`"));
            }
        }
    }
    for pattern in patterns(files) {
        if !text(PATTERNS_PAGE).contains(&format!("`{pattern}`"))
            && !text(PATTERNS_PAGE).contains(&format!("| {pattern} |"))
        {
            complaints.push(format!("{PATTERNS_PAGE}: does not list `{pattern}`"));
        }
        complaints.extend(untested(files, pattern));
    }
    complaints
}

/// The names of a table of kinds: a name stands alone on the first line of its row.
fn kinds(source: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut before = "";
    for line in source.lines() {
        let name = line.trim().strip_prefix('"');
        let name = name.and_then(|rest| rest.strip_suffix("\","));
        if before.trim() == "(" {
            found.extend(name);
        }
        before = line;
    }
    found
}

fn patterns(files: &[(String, String)]) -> Vec<&str> {
    let files = files.iter().map(|(path, _)| path);
    let own = files.filter_map(|path| path.strip_prefix("crates/scan/patterns/"));
    own.filter_map(|file| file.strip_suffix(".pdl")).collect()
}

/// A kind of programs is tested by a case of the corpus, by a test from the outside or by a snapshot; one of kernels
/// also where the crate of kernels tells kinds apart.
fn is_tested(files: &[(String, String)], kind: &str) -> bool {
    let quoted = format!("\"{kind}\"");
    let explained = format!("raddle explain {kind}\n");
    files.iter().any(|(path, text)| {
        let is_case = path.starts_with("corpus/") && path.ends_with("/case.toml");
        let is_test = path.starts_with("crates/raddle/tests/");
        let is_kernel = kind.starts_with("kernel-") && path.starts_with("crates/kernel/src/");
        ((is_case || is_test || is_kernel) && text.contains(&quoted))
            || (is_test && text.contains(&explained))
    })
}

/// A pattern has a file with its marks and one without any.
fn untested(files: &[(String, String)], pattern: &str) -> Option<String> {
    let folder = format!("crates/scan/test_data/{pattern}/");
    let own = files.iter().filter(|(path, _)| path.starts_with(&folder));
    let marked = own.clone().any(|(_, text)| has_mark(text, pattern));
    let clean = own.clone().any(|(_, text)| !text.contains("//~"));
    (!marked || !clean).then(|| {
        format!("{folder}: has no file with the mark `//~ {pattern}`, or none without marks")
    })
}

fn has_mark(text: &str, pattern: &str) -> bool {
    text.lines()
        .filter_map(|line| line.split_once("//~"))
        .any(|(_, names)| names.split([' ', ',']).any(|name| name == pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        list.iter().map(owned).collect()
    }

    #[test]
    fn kinds_without_page_or_test_are_found() {
        let table =
            "const X: [Kind; 1] = [\n    (\n        \"crash\",\n        \"it dies\",\n    ),\n];";
        let bare = files(&[(KINDS[0], table)]);
        assert_eq!(check(&bare).len(), 2);
        let good = files(&[
            (KINDS[0], table),
            (KINDS_PAGE, "| `crash` | it dies |"),
            ("corpus/a/b/case.toml", "kind = \"crash\""),
        ]);
        assert_eq!(check(&good), Vec::<String>::new());
    }

    #[test]
    fn patterns_without_page_or_test_are_found() {
        let bare = files(&[("crates/scan/patterns/leak.pdl", "")]);
        assert_eq!(check(&bare).len(), 2);
        let good = files(&[
            ("crates/scan/patterns/leak.pdl", ""),
            (PATTERNS_PAGE, "| `leak` | ... |"),
            ("crates/scan/test_data/leak/buggy.c", "return; //~ leak\n"),
            ("crates/scan/test_data/leak/fixed.c", "return;\n"),
        ]);
        assert_eq!(check(&good), Vec::<String>::new());
    }
}
