//! The protocol of MySQL and MariaDB, as far as a client needs it that logs in without a password and sends plain
//! statements: packets, the greeting, and where a result ends. Results are text.

use crate::{Login, Nonsense, Parsed, Reply};

/// A statement.
const COM_QUERY: u8 = 3;
const OK: u8 = 0x00;
const END: u8 = 0xFE;
const ERROR: u8 = 0xFF;
/// NULL, and how longer numbers begin.
const NULL: u8 = 0xFB;
/// Bytes of an end-of-rows packet at most: a row that begins like one is longer.
const END_MAX: usize = 8;

/// What we can do: long flags, a database named at the start, protocol 4.1, transactions, native passwords by plugin.
const ABILITIES: u32 = 0x0008_A20D;
const PACKET_MAX: u32 = 1 << 24;
/// `utf8_general_ci`
const CHARSET: u8 = 33;

pub(crate) fn request(text: &str) -> Vec<u8> {
    packet(0, &[&[COM_QUERY], text.as_bytes()].concat())
}

/// Answers the greeting, and a question for a password with an empty one.
pub(crate) fn login((user, database): (&str, &str), received: &[u8]) -> Result<Login, Nonsense> {
    let Some(first) = Packet::at(received, 0) else {
        return Ok(Login::Wait);
    };
    let number = first.number.wrapping_add(1);
    Ok(match first.content.first().ok_or(Nonsense)? {
        &ERROR => Login::Refused(error(first.content)),
        &OK => Login::Done,
        &END => Login::Say(packet(number, &[])),
        // Version 10 of the protocol.
        10 => Login::Say(packet(number, &hello(user, database))),
        _ => return Err(Nonsense),
    })
}

fn hello(user: &str, database: &str) -> Vec<u8> {
    let mut bytes = ABILITIES.to_le_bytes().to_vec();
    bytes.extend(PACKET_MAX.to_le_bytes());
    bytes.push(CHARSET);
    bytes.extend([0; 23]);
    bytes.extend(user.as_bytes());
    // The password is empty.
    bytes.extend([0, 0]);
    bytes.extend(database.as_bytes());
    bytes.push(0);
    bytes.extend(b"mysql_native_password\0");
    bytes
}

pub(crate) fn reply(received: &[u8]) -> Parsed {
    let whole = |end: usize, is_error| {
        Ok(Some(Reply {
            length: end,
            is_error,
        }))
    };
    let Some(first) = Packet::at(received, 0) else {
        return Ok(None);
    };
    match *first.content.first().ok_or(Nonsense)? {
        ERROR => return whole(first.end, true),
        OK => return whole(first.end, false),
        // LOAD DATA LOCAL asks for a file, which we do not have.
        NULL => return Err(Nonsense),
        _ => {}
    }
    // Columns up to their end, rows up to theirs.
    let (mut at, mut ends) = (first.end, 0);
    while let Some(next) = Packet::at(received, at) {
        at = next.end;
        if next.content.first() == Some(&ERROR) {
            return whole(at, true);
        }
        ends += u32::from(next.is_end());
        if ends == 2 {
            return whole(at, false);
        }
    }
    Ok(None)
}

/// A whole reply as text: names and rows with tabs, or what was done.
pub(crate) fn text(reply: &[u8]) -> String {
    let Some(first) = Packet::at(reply, 0) else {
        return String::new();
    };
    match first.content.first() {
        Some(&ERROR) => return error(first.content),
        Some(&OK) => {
            let mut rest = Fields(&first.content[1..]);
            let changed = rest.number().unwrap_or(0);
            return format!("changed rows: {changed}\n");
        }
        _ => {}
    }
    let mut lines = String::new();
    let mut names = Vec::new();
    let (mut at, mut ends) = (first.end, 0);
    while let Some(next) = Packet::at(reply, at) {
        at = next.end;
        if next.content.first() == Some(&ERROR) {
            lines.push_str(&error(next.content));
        } else if next.is_end() {
            ends += 1;
            if ends == 1 {
                lines.push_str(&(names.join("\t") + "\n"));
            }
        } else if ends == 0 {
            // Catalogue, schema, table, its own name, and the name of the column.
            let mut fields = Fields(next.content);
            names.push(fields.texts().nth(4).flatten().unwrap_or_default());
        } else {
            let fields = &mut Fields(next.content);
            let values: Vec<String> = fields
                .texts()
                .map(|value| value.unwrap_or_else(|| "NULL".to_owned()))
                .collect();
            lines.push_str(&(values.join("\t") + "\n"));
        }
    }
    lines
}

/// `1146 (42S02): Table 'a.b' doesn't exist`.
fn error(content: &[u8]) -> String {
    let number = content.get(1..3).unwrap_or(&[0, 0]);
    let number = u16::from_le_bytes([number[0], number[1]]);
    let rest = String::from_utf8_lossy(content.get(3..).unwrap_or_default()).into_owned();
    match rest.strip_prefix('#') {
        Some(state) if state.is_char_boundary(5) && state.len() >= 5 => {
            let (state, words) = state.split_at(5);
            format!("{number} ({state}): {words}\n")
        }
        _ => format!("{number}: {rest}\n"),
    }
}

fn packet(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    let [low, middle, high, _] = length.to_le_bytes();
    [&[low, middle, high, number], content].concat()
}

/// One packet of what was received.
struct Packet<'a> {
    number: u8,
    content: &'a [u8],
    /// Where the next one begins.
    end: usize,
}

impl<'a> Packet<'a> {
    fn at(bytes: &'a [u8], at: usize) -> Option<Self> {
        let rest = bytes.get(at..)?;
        let [low, middle, high, number] = *rest.first_chunk::<4>()?;
        let length = usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16;
        Some(Self {
            number,
            content: rest.get(4..4 + length)?,
            end: at + 4 + length,
        })
    }

    fn is_end(&self) -> bool {
        self.content.first() == Some(&END) && self.content.len() <= END_MAX
    }
}

/// Numbers and texts with their lengths in front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn number(&mut self) -> Option<u64> {
        let (&first, rest) = self.0.split_first()?;
        let width = match first {
            0xFC => 2,
            0xFD => 3,
            END => 8,
            NULL | ERROR => return None,
            small => {
                self.0 = rest;
                return Some(u64::from(small));
            }
        };
        let mut bytes = [0; 8];
        bytes[..width].copy_from_slice(rest.get(..width)?);
        self.0 = &rest[width..];
        Some(u64::from_le_bytes(bytes))
    }

    /// The texts, and none for NULL.
    fn texts(&mut self) -> impl Iterator<Item = Option<String>> {
        std::iter::from_fn(|| {
            if let [NULL, rest @ ..] = self.0 {
                self.0 = rest;
                return Some(None);
            }
            let length = usize::try_from(self.number()?).ok()?;
            let (text, rest) = self.0.split_at_checked(length)?;
            self.0 = rest;
            Some(Some(String::from_utf8_lossy(text).into_owned()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: (&str, &str) = ("root", "test");

    fn counted(texts: &[Option<&str>]) -> Vec<u8> {
        let field = |text: &Option<&str>| match text {
            None => vec![NULL],
            Some(text) => [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat(),
        };
        texts.iter().flat_map(field).collect()
    }

    fn result() -> Vec<u8> {
        let column = |name| counted(&[Some("def"), Some("s"), Some("t"), Some("t"), Some(name)]);
        let end = [END, 0, 0, 2, 0];
        [
            packet(1, &[2]),
            packet(2, &column("id")),
            packet(3, &column("name")),
            packet(4, &end),
            packet(5, &counted(&[Some("1"), Some("one")])),
            packet(6, &counted(&[Some("2"), None])),
            packet(7, &end),
        ]
        .concat()
    }

    #[test]
    fn results_end_where_they_end_and_are_text() {
        let bytes = result();
        for end in 0..bytes.len() {
            assert_eq!(reply(&bytes[..end]), Ok(None), "{end}");
        }
        let length = bytes.len();
        let is_error = false;
        assert_eq!(reply(&bytes), Ok(Some(Reply { length, is_error })));
        assert_eq!(text(&bytes), "id\tname\n1\tone\n2\tNULL\n");
    }

    #[test]
    fn what_was_done_and_errors_are_text() {
        let done = packet(1, &[OK, 3, 0, 2, 0, 0, 0]);
        assert_eq!(text(&done), "changed rows: 3\n");
        let failed = packet(1, b"\xFF\x7A\x04#42S02Table 't' doesn't exist");
        let length = failed.len();
        let is_error = true;
        assert_eq!(reply(&failed), Ok(Some(Reply { length, is_error })));
        assert_eq!(text(&failed), "1146 (42S02): Table 't' doesn't exist\n");
        assert_eq!(request("DO 1"), b"\x05\0\0\0\x03DO 1");
    }

    #[test]
    fn a_client_logs_in_without_a_password() {
        let greeting = packet(0, b"\x0A5.5.5-10.11.6-MariaDB\0rest");
        let Ok(Login::Say(bytes)) = login(USER, &greeting) else {
            panic!("an answer");
        };
        let answer = Packet::at(&bytes, 0).expect("a packet");
        assert_eq!((answer.number, answer.end), (1, bytes.len()));
        assert!(answer.content[32..].starts_with(b"root\0\0test\0mysql_native"));
        assert_eq!(login(USER, &greeting[..9]), Ok(Login::Wait));
        let other = packet(2, b"\xFEmysql_native_password\0salt");
        assert_eq!(login(USER, &other), Ok(Login::Say(packet(3, &[]))));
        assert_eq!(login(USER, &packet(2, &[OK, 0, 0])), Ok(Login::Done));
        let refused = packet(2, b"\xFF\x15\x04#28000Access denied");
        let words = "1045 (28000): Access denied\n".to_owned();
        assert_eq!(login(USER, &refused), Ok(Login::Refused(words)));
        assert_eq!(login(USER, &packet(0, b"x")), Err(Nonsense));
    }
}
