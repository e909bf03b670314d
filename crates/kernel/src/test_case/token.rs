//! Words, numbers, strings and signs of a test case.

use super::error::{Mistake, Span};

/// What a piece of text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Number(i64),
    Text(Vec<u8>),
    /// One of the signs in [`SIGNS`].
    Sign(&'static str),
    /// End of a statement.
    Line,
    End,
}

/// Longer ones first.
const SIGNS: [&str; 21] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "=", "(", ")", "{", "}", "[", "]", ",", ":", "|",
    "+", "-", ".",
];

/// Splits a text; line ends inside of brackets do not count, but those inside of braces of a block do, so
/// all are kept and the parser skips them.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Span)>, Mistake> {
    let mut list = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let first = rest.chars().next().unwrap_or('\n');
        let (token, length) = match first {
            '\n' => (Some(Token::Line), 1),
            ' ' | '\t' | '\r' => (None, 1),
            '#' => (None, rest.find('\n').unwrap_or(rest.len())),
            '"' => string(rest, at)?,
            '0'..='9' => number(rest, at)?,
            'a'..='z' | 'A'..='Z' | '_' => {
                let length = rest
                    .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                    .unwrap_or(rest.len());
                (Some(Token::Word(rest[..length].to_owned())), length)
            }
            other => sign(rest).ok_or_else(|| {
                Mistake::new(
                    span(at, other.len_utf8()),
                    format!("`{other}` means nothing here"),
                )
                .help("a comment begins with `#`, a text is written in double quotes")
            })?,
        };
        if let Some(token) = token {
            list.push((token, span(at, length)));
        }
        at += length;
    }
    list.push((Token::Line, span(at, 0)));
    list.push((Token::End, span(at, 0)));
    Ok(list)
}

fn span(start: usize, length: usize) -> Span {
    Span {
        start,
        end: start + length,
    }
}

fn sign(rest: &str) -> Option<(Option<Token>, usize)> {
    SIGNS
        .iter()
        .find(|sign| rest.starts_with(**sign))
        .map(|sign| (Some(Token::Sign(sign)), sign.len()))
}

fn number(rest: &str, at: usize) -> Result<(Option<Token>, usize), Mistake> {
    let length = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(rest.len());
    let word = rest[..length].replace('_', "");
    let (digits, radix) = if let Some(digits) = word.strip_prefix("0x") {
        (digits, 16)
    } else if word.len() > 1 && word.starts_with('0') {
        (word[1..].trim_start_matches('o'), 8)
    } else {
        (word.as_str(), 10)
    };
    let value = u64::from_str_radix(digits, radix).map_err(|_| {
        Mistake::new(
            span(at, length),
            format!("`{}` is not a number", &rest[..length]),
        )
        .help("numbers are decimal (64), hexadecimal (0x40) or octal (0100), up to 64 bits")
    })?;
    Ok((Some(Token::Number(value.cast_signed())), length))
}

fn string(rest: &str, at: usize) -> Result<(Option<Token>, usize), Mistake> {
    let mut bytes = Vec::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Ok((Some(Token::Text(bytes)), index + 1)),
            '\n' => break,
            '\\' => {
                let escaped = characters.next().map_or('\n', |(_, escaped)| escaped);
                bytes.push(match escaped {
                    'n' => b'\n',
                    't' => b'\t',
                    '0' => 0,
                    '\\' => b'\\',
                    '"' => b'"',
                    'x' => {
                        let digits = rest.get(index + 2..index + 4).unwrap_or_default();
                        let byte = u8::from_str_radix(digits, 16).map_err(|_| {
                            Mistake::new(span(at + index, 2), "`\\x` wants two hexadecimal digits")
                        })?;
                        characters.next();
                        characters.next();
                        byte
                    }
                    _ => {
                        return Err(
                            Mistake::new(span(at + index, 2), "this escape is not known")
                                .help("known are \\n, \\t, \\0, \\\\, \\\" and \\xHH"),
                        );
                    }
                });
            }
            other => bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    let end = rest.find('\n').unwrap_or(rest.len());
    Err(
        Mistake::new(span(at, end), "this text does not end on its line")
            .help("close it with a double quote"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Vec<Token> {
        tokens(text)
            .unwrap()
            .into_iter()
            .map(|(token, _)| token)
            .collect()
    }

    #[test]
    fn numbers_in_all_bases() {
        assert_eq!(
            plain("10 0x10 010 0")[..4],
            [10, 16, 8, 0].map(Token::Number)
        );
        let mistake = tokens("12ab").unwrap_err();
        assert_eq!(mistake.message, "`12ab` is not a number");
    }

    #[test]
    fn escapes_become_bytes() {
        assert_eq!(
            plain(r#""a\x00\n\"" # comment "#)[0],
            Token::Text(b"a\0\n\"".to_vec())
        );
        let mistake = tokens("\"abc\n\"").unwrap_err();
        assert_eq!(mistake.message, "this text does not end on its line");
    }
}
