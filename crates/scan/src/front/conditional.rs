//! Looks ahead from an `#if` inside a function: can its branches be read side by side?

/// Bytes looked at; longer choices are resolved to their first branch.
const BYTES_MAX: usize = 8 << 10;

/// Whether the text after the line of an `#if` has an `#else` or `#elif`, and each branch is a row of whole
/// statements.
pub(super) fn is_choice(text: &[u8]) -> bool {
    let text = &text[..text.len().min(BYTES_MAX)];
    let mut depth = 0_u32;
    let mut branch = 0;
    let mut branches = 0;
    let mut at = 0;
    while at < text.len() {
        let line_end = text[at..]
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(text.len(), |length| at + length + 1);
        if let Some(word) = directive(&text[at..line_end]) {
            let is_own = depth == 0 && !word.starts_with(b"if");
            if is_own && (word.starts_with(b"el") || word.starts_with(b"endif")) {
                if !is_row_of_statements(&text[branch..at]) {
                    return false;
                }
                branches += 1;
                branch = line_end;
                if word.starts_with(b"endif") {
                    return branches > 1;
                }
            } else if word.starts_with(b"if") {
                depth += 1;
            } else if word.starts_with(b"endif") {
                depth -= 1;
            }
        }
        at = line_end;
    }
    false
}

/// The word of a directive line.
fn directive(line: &[u8]) -> Option<&[u8]> {
    let word = line.trim_ascii_start().strip_prefix(b"#")?;
    Some(word.trim_ascii_start())
}

/// Balanced, ends with `;` or `}`, does not begin with `else`, and has no labels of a switch.
fn is_row_of_statements(text: &[u8]) -> bool {
    let mut open: Vec<u8> = Vec::new();
    let mut last = b';';
    let mut at = 0;
    let mut is_first = true;
    while at < text.len() {
        let byte = text[at];
        let next = text.get(at + 1).copied().unwrap_or(0);
        match byte {
            b'/' if next == b'*' => {
                at = end_of(text, at + 2, b"*/");
                continue;
            }
            b'/' if next == b'/' => {
                at = end_of(text, at, b"\n");
                continue;
            }
            b'#' if is_line_start(text, at) => {
                at = end_of(text, at, b"\n");
                continue;
            }
            b'"' | b'\'' => {
                at = end_of_literal(text, at);
                last = byte;
                continue;
            }
            b'(' | b'{' | b'[' => open.push(byte),
            b')' | b'}' | b']' => {
                let wanted = match byte {
                    b')' => b'(',
                    b']' => b'[',
                    _ => b'{',
                };
                if open.pop() != Some(wanted) {
                    return false;
                }
            }
            _ if byte.is_ascii_alphabetic() || byte == b'_' => {
                let word = word_at(text, at);
                let is_label = open.is_empty() && matches!(word, b"case" | b"default");
                if is_label || (is_first && word == b"else") {
                    return false;
                }
                at += word.len();
                last = b'a';
                is_first = false;
                continue;
            }
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            last = byte;
            is_first = false;
        }
        at += 1;
    }
    open.is_empty() && matches!(last, b';' | b'}')
}

fn word_at(text: &[u8], at: usize) -> &[u8] {
    let length = text[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    &text[at..at + length]
}

fn is_line_start(text: &[u8], at: usize) -> bool {
    text[..at]
        .iter()
        .rev()
        .take_while(|byte| **byte != b'\n')
        .all(u8::is_ascii_whitespace)
}

fn end_of(text: &[u8], from: usize, mark: &[u8]) -> usize {
    text.get(from..)
        .and_then(|rest| rest.windows(mark.len()).position(|part| part == mark))
        .map_or(text.len(), |length| from + length + mark.len())
}

fn end_of_literal(text: &[u8], from: usize) -> usize {
    let quote = text[from];
    let mut at = from + 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'\n' => return at,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}
