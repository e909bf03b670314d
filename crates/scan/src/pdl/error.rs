//! Errors in pattern files, shown with the line and a caret.

/// Something in a pattern file that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    /// File name, as given.
    pub file: String,
    /// What is wrong and what would be right.
    pub message: String,
    pub line: usize,
    pub column: usize,
    /// The whole line.
    pub text: String,
    /// Characters to mark.
    pub length: usize,
}

impl PatternError {
    pub(crate) fn new(file: &str, source: &str, span: (usize, usize), message: String) -> Self {
        let start = span.0.min(source.len());
        let line_start = source[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let text = source[line_start..].lines().next().unwrap_or("").to_owned();
        let column = source[line_start..start].chars().count() + 1;
        let end = span
            .1
            .clamp(start, line_start + text.len().max(start - line_start));
        let length = source
            .get(start..end)
            .map_or(1, |marked| marked.chars().count().max(1));
        Self {
            file: file.to_owned(),
            message,
            line: source[..start].matches('\n').count() + 1,
            column,
            text,
            length,
        }
    }
}

impl std::error::Error for PatternError {}

impl std::fmt::Display for PatternError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(
            formatter,
            "{}\n{margin} --> {}:{}:{}",
            self.message, self.file, self.line, self.column
        )?;
        writeln!(formatter, "{margin} |")?;
        writeln!(formatter, "{number} | {}", self.text)?;
        write!(
            formatter,
            "{margin} | {}{}",
            " ".repeat(self.column - 1),
            "^".repeat(self.length)
        )
    }
}
