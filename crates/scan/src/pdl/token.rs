//! Tokens of the pattern language.

use super::error::PatternError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Keywords, labels and names; may contain `-` inside.
    Word(String),
    /// `$name`
    Variable(String),
    /// `@name`
    Class(String),
    /// `"text"` or `"""text"""`
    Text(String),
    Symbol(&'static str),
    End,
}

#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: (usize, usize),
}

const SYMBOLS: &[&str] = &[
    "\\{", "==", "!=", ">=", "<=", "{", "}", "(", ")", "[", "]", ";", ",", ":", "<", ">", "=", "|",
];

pub(super) fn tokens(file: &str, source: &str) -> Result<Vec<Token>, PatternError> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if rest.starts_with("//") || rest.starts_with('#') {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            at += rest.find("*/").map_or(rest.len(), |end| end + 2);
        } else {
            let (kind, length) = token(rest).map_err(|(length, message)| {
                PatternError::new(file, source, (at, at + length), message)
            })?;
            out.push(Token {
                kind,
                span: (at, at + length),
            });
            at += length;
        }
    }
    out.push(Token {
        kind: Kind::End,
        span: (source.len(), source.len()),
    });
    Ok(out)
}

fn word_length(text: &str) -> usize {
    let mut end = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let continues = character.is_alphanumeric()
            || character == '_'
            || (character == '-'
                && end > 0
                && characters
                    .peek()
                    .is_some_and(|(_, next)| next.is_alphanumeric()));
        if !continues {
            break;
        }
        end = at + character.len_utf8();
    }
    end
}

fn token(rest: &str) -> Result<(Kind, usize), (usize, String)> {
    if let Some(text) = rest.strip_prefix("\"\"\"") {
        let Some(end) = text.find("\"\"\"") else {
            return Err((3, "this text is never closed; end it with `\"\"\"`".into()));
        };
        return Ok((Kind::Text(text[..end].trim().to_owned()), end + 6));
    }
    if let Some(text) = rest.strip_prefix('"') {
        let end = text.find(['"', '\n']);
        let Some(end) = end.filter(|end| text.as_bytes()[*end] == b'"') else {
            return Err((1, "this text is never closed; end it with `\"`".into()));
        };
        return Ok((Kind::Text(text[..end].to_owned()), end + 2));
    }
    for (prefix, make) in [
        ('$', Kind::Variable as fn(String) -> Kind),
        ('@', Kind::Class as fn(String) -> Kind),
    ] {
        if let Some(text) = rest.strip_prefix(prefix) {
            let length = word_length(text);
            if length == 0 {
                return Err((1, format!("a name must follow `{prefix}`")));
            }
            return Ok((make(text[..length].to_owned()), length + 1));
        }
    }
    let length = word_length(rest);
    if length > 0 {
        return Ok((Kind::Word(rest[..length].to_owned()), length));
    }
    match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
        Some(symbol) => Ok((Kind::Symbol(symbol), symbol.len())),
        None => {
            let first = rest.chars().next().unwrap_or(' ');
            Err((first.len_utf8(), format!("`{first}` means nothing here")))
        }
    }
}
