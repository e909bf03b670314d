//! A mistake in a test case: where it is, what is wrong, what to do.

use std::fmt;

/// A mistake, with the line it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCaseError {
    pub path: String,
    /// One-based.
    pub line: usize,
    /// One-based, in characters.
    pub column: usize,
    /// Characters to underline.
    pub length: usize,
    pub message: String,
    pub help: Option<String>,
    pub source: String,
}

impl std::error::Error for TestCaseError {}

impl fmt::Display for TestCaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path, line, column, ..
        } = self;
        writeln!(f, "{path}:{line}:{column}: {}", self.message)?;
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, " {number} | {}", self.source)?;
        let indent = " ".repeat(column - 1);
        write!(f, " {margin} | {indent}{}", "^".repeat(self.length.max(1)))?;
        if let Some(help) = &self.help {
            write!(f, "\n {margin} = {help}")?;
        }
        Ok(())
    }
}

/// A range of bytes in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A mistake before its line is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) span: Span,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Mistake {
    pub(super) fn new(span: Span, message: impl Into<String>) -> Self {
        Self {
            span,
            message: message.into(),
            help: None,
        }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn locate(self, path: &str, text: &str) -> TestCaseError {
        let start = self.span.start.min(text.len());
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let source = text[line_start..].lines().next().unwrap_or_default();
        let line_end = line_start + source.len();
        let end = self.span.end.clamp(start, line_end.max(start));
        TestCaseError {
            path: path.to_owned(),
            line: text[..line_start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            length: text[start..end].chars().count(),
            message: self.message,
            help: self.help,
            source: source.to_owned(),
        }
    }
}

/// The known name that is most like a misspelt one, if any is like it.
pub(super) fn most_like<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = 1 + name.len() / 4;
    known
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Damerau-Levenshtein distance of neighbours (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swapped_letters_are_one_step() {
        assert_eq!(distance("wirte", "write"), 1);
        assert_eq!(
            most_like("wirte", ["read", "write"].into_iter()),
            Some("write")
        );
        assert_eq!(most_like("xyzzy", ["read", "write"].into_iter()), None);
    }

    #[test]
    fn the_caret_stands_under_the_mistake() {
        let text = "setup:\n  öpen(1)\n";
        let start = text.find("öpen").unwrap();
        let mistake = Mistake::new(
            Span {
                start,
                end: start + "öpen".len(),
            },
            "`öpen` is not a system call",
        );
        assert_eq!(
            mistake
                .help("did you mean `open`?")
                .locate("a.ktest", text)
                .to_string(),
            "a.ktest:2:3: `öpen` is not a system call\n 2 |   öpen(1)\n   |   ^^^^\n   = did you mean `open`?"
        );
    }
}
