//! The protocol of PostgreSQL, version 3, as far as a client needs it that logs in without a password and sends plain
//! statements. Results are text.

use crate::{Login, Nonsense, Parsed, Reply};

const VERSION: u32 = 3 << 16;

pub(crate) fn request(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), &[0]].concat())
}

/// The client speaks first, and waits until the server is ready.
pub(crate) fn login(
    (user, database): (&str, &str),
    received: &[u8],
    is_first: bool,
) -> Result<Login, Nonsense> {
    if is_first {
        let words = format!("user\0{user}\0database\0{database}\0\0");
        let length = u32::try_from(words.len() + 8).unwrap_or(u32::MAX);
        let parts = [
            &length.to_be_bytes()[..],
            &VERSION.to_be_bytes(),
            words.as_bytes(),
        ];
        return Ok(Login::Say(parts.concat()));
    }
    for message in Messages::of(received) {
        let Message { kind, content, .. } = message?;
        match kind {
            b'E' => return Ok(Login::Refused(error(content))),
            b'R' if content.first_chunk::<4>() != Some(&[0; 4]) => {
                let words = "the server wants a password: let it trust this user".to_owned();
                return Ok(Login::Refused(words));
            }
            b'Z' => return Ok(Login::Done),
            _ => {}
        }
    }
    Ok(Login::Wait)
}

/// A reply goes up to where the server is ready for the next statement.
pub(crate) fn reply(received: &[u8]) -> Parsed {
    let mut is_error = false;
    for message in Messages::of(received) {
        let message = message?;
        is_error |= message.kind == b'E';
        if message.kind == b'Z' {
            let length = message.end;
            return Ok(Some(Reply { length, is_error }));
        }
    }
    Ok(None)
}

/// A whole reply as text: names and rows with tabs, and what was done.
pub(crate) fn text(reply: &[u8]) -> String {
    let mut lines = String::new();
    for Message { kind, content, .. } in Messages::of(reply).flatten() {
        match kind {
            b'T' => lines.push_str(&(names(content).join("\t") + "\n")),
            b'D' => lines.push_str(&(values(content).join("\t") + "\n")),
            b'C' => lines.push_str(&(until_zero(content).0 + "\n")),
            b'E' => lines.push_str(&error(content)),
            _ => {}
        }
    }
    lines
}

/// The names of a row description: each is followed by 18 bytes of types and formats.
fn names(content: &[u8]) -> Vec<String> {
    let mut rest = content.get(2..).unwrap_or_default();
    let mut names = Vec::new();
    while !rest.is_empty() {
        let (name, behind) = until_zero(rest);
        names.push(name);
        rest = behind.get(18..).unwrap_or_default();
    }
    names
}

fn values(content: &[u8]) -> Vec<String> {
    let mut rest = content.get(2..).unwrap_or_default();
    let mut values = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        // A length below zero is NULL.
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            values.push("NULL".to_owned());
            rest = behind;
            continue;
        };
        let Some((value, behind)) = behind.split_at_checked(length) else {
            break;
        };
        values.push(String::from_utf8_lossy(value).into_owned());
        rest = behind;
    }
    values
}

/// `ERROR 42P01: relation "t" does not exist`.
fn error(content: &[u8]) -> String {
    let mut rest = content;
    let [mut severity, mut code, mut words] = [const { String::new() }; 3];
    while let [field, behind @ ..] = rest {
        let (text, behind) = until_zero(behind);
        match field {
            b'S' => severity = text,
            b'C' => code = text,
            b'M' => words = text,
            _ => {}
        }
        rest = behind;
    }
    format!("{severity} {code}: {words}\n")
}

/// A text up to its zero, and what is behind it.
fn until_zero(bytes: &[u8]) -> (String, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0);
    let end = end.unwrap_or(bytes.len());
    let behind = bytes.get(end + 1..).unwrap_or_default();
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), behind)
}

fn message(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len() + 4).unwrap_or(u32::MAX);
    [&[kind], &length.to_be_bytes()[..], content].concat()
}

struct Message<'a> {
    kind: u8,
    content: &'a [u8],
    /// Where the next one begins.
    end: usize,
}

/// The whole messages at the front of what was received.
struct Messages<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Messages<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, Nonsense>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.at..)?;
        let [kind, length @ ..] = rest.first_chunk::<5>()?;
        let length = u32::from_be_bytes(*length);
        if !kind.is_ascii_alphanumeric() || length < 4 {
            self.at = self.bytes.len();
            return Some(Err(Nonsense));
        }
        let end = usize::try_from(length).ok()?.checked_add(1)?;
        let content = rest.get(5..end)?;
        self.at += end;
        Some(Ok(Message {
            kind: *kind,
            content,
            end: self.at,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result() -> Vec<u8> {
        let columns = [&[0, 2][..], b"id\0", &[0; 18], b"name\0", &[0; 18]].concat();
        let row = [&[0, 2, 0, 0, 0, 1][..], b"1", &[0xFF; 4]].concat();
        [
            message(b'T', &columns),
            message(b'D', &row),
            message(b'C', b"SELECT 1\0"),
            message(b'Z', b"I"),
        ]
        .concat()
    }

    #[test]
    fn results_end_when_the_server_is_ready_and_are_text() {
        let bytes = result();
        for end in 0..bytes.len() {
            assert_eq!(reply(&bytes[..end]), Ok(None), "{end}");
        }
        let length = bytes.len();
        let is_error = false;
        assert_eq!(reply(&bytes), Ok(Some(Reply { length, is_error })));
        assert_eq!(text(&bytes), "id\tname\n1\tNULL\nSELECT 1\n");
        assert_eq!(request("SELECT 1"), b"Q\0\0\0\x0DSELECT 1\0");
    }

    #[test]
    fn errors_are_told_and_nonsense_is_refused() {
        let failed = message(b'E', b"SERROR\0C42P01\0Mno such table\0\0");
        let bytes = [failed, message(b'Z', b"I")].concat();
        let length = bytes.len();
        let is_error = true;
        assert_eq!(reply(&bytes), Ok(Some(Reply { length, is_error })));
        assert_eq!(text(&bytes), "ERROR 42P01: no such table\n");
        assert_eq!(reply(b"\0\0\0\0\0"), Err(Nonsense));
        assert_eq!(reply(b"Q\0\0\0\x01"), Err(Nonsense));
    }

    #[test]
    fn a_client_logs_in_without_a_password() {
        let user = ("me", "db");
        let Ok(Login::Say(hello)) = login(user, b"", true) else {
            panic!("the client speaks first");
        };
        assert_eq!(usize::from(hello[3]), hello.len());
        assert!(hello[8..].starts_with(b"user\0me\0database\0db\0"));
        let ready = [message(b'R', &[0; 4]), message(b'Z', b"I")].concat();
        assert_eq!(login(user, &ready[..9], false), Ok(Login::Wait));
        assert_eq!(login(user, &ready, false), Ok(Login::Done));
        let asks = message(b'R', &[0, 0, 0, 10]);
        assert!(
            matches!(login(user, &asks, false), Ok(Login::Refused(words)) if words.contains("password"))
        );
    }
}
