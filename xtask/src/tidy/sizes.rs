//! Files stay small: one that grows beyond its limit is split by topic.

use std::path::Path;

/// Lines that a source file may have without its unit tests.
const LINES_MAX: usize = 500;

/// Longer files and what they may have at most. A ratchet: numbers here only become smaller, and no file is added.
const LONG_FILES: &[(&str, usize)] = &[
    ("crates/harden-plugin/src/emit.rs", 700),
    ("crates/harden-plugin/src/extract.rs", 650),
    ("crates/harden-plugin/src/ir.rs", 800),
    ("crates/linux/src/files/socket/connect.rs", 600),
    ("crates/linux/src/files/tree.rs", 550),
    ("crates/linux/src/syscall/fd.rs", 550),
    ("crates/linux/src/world/mod.rs", 750),
    ("crates/mem/src/space.rs", 550),
    ("crates/scan/src/analyse/keys.rs", 550),
    ("crates/scan/src/analyse/paths/calls.rs", 750),
    ("crates/scan/src/analyse/paths/walk.rs", 550),
    ("crates/scan/src/front/lex.rs", 600),
    ("crates/scan/src/front/parse/decl.rs", 650),
    ("crates/scan/src/matcher/conditions.rs", 750),
    ("crates/scan/src/matcher/join.rs", 750),
    ("crates/scan/src/matcher/syntax.rs", 750),
    ("crates/scan/src/pdl/parse.rs", 700),
    ("crates/scan/src/results.rs", 600),
    ("crates/sched/src/driver.rs", 750),
    ("crates/symbols/src/module.rs", 550),
    ("crates/x86/src/generic/segment.rs", 700),
    ("crates/x86/src/lower/select.rs", 750),
    ("crates/x86/src/native/emit.rs", 750),
    ("crates/x86/src/supervisor/engine.rs", 650),
];

/// A complaint about one file.
pub(super) fn check(path: &str, text: &str) -> Option<String> {
    let lines = lines_of_code(text);
    let listed = LONG_FILES.iter().find(|(listed, _)| *listed == path);
    let limit = listed.map_or(LINES_MAX, |(_, lines)| *lines);
    (lines > limit && !is_test(path)).then(|| {
        format!("{path}: {lines} lines without tests; the limit is {limit}: split it by topic")
    })
}

/// Complaints about rows that no file needs.
pub(super) fn stale(files: &[(String, String)]) -> Vec<String> {
    let needed = |path: &str| {
        let file = files.iter().find(|(known, _)| known == path);
        file.is_some_and(|(_, text)| lines_of_code(text) > LINES_MAX)
    };
    LONG_FILES
        .iter()
        .filter(|(path, _)| !needed(path))
        .map(|(path, _)| format!("{path}: is not long any more; take it off the list of sizes"))
        .collect()
}

fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || Path::new(path).iter().any(|part| part == "tests")
}

fn lines_of_code(text: &str) -> usize {
    let code = text.split("#[cfg(test)]\nmod tests").next();
    code.unwrap_or(text).lines().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_may_not_grow_beyond_their_limit() {
        let lines = |count: usize| "x\n".repeat(count);
        assert_eq!(check("a.rs", &lines(LINES_MAX)), None);
        assert!(check("a.rs", &lines(LINES_MAX + 1)).is_some());
        assert_eq!(check("a/tests/b.rs", &lines(LINES_MAX + 1)), None);
        let tested = lines(LINES_MAX) + "#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(check("a.rs", &tested), None);
        let (path, limit) = LONG_FILES[0];
        assert_eq!(check(path, &lines(limit)), None);
        assert!(check(path, &lines(limit + 1)).is_some());
    }

    #[test]
    fn rows_of_files_that_are_short_or_gone_are_found() {
        assert_eq!(stale(&[]).len(), LONG_FILES.len());
    }
}
