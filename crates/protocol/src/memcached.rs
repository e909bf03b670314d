//! The text protocol of memcached.

use crate::{Nonsense, Parsed, Reply, line, number};

/// Lines end with a carriage return, too; what is stored is a second line.
pub(crate) fn request(text: &str) -> Vec<u8> {
    let lines: Vec<&str> = text.lines().collect();
    format!("{}\r\n", lines.join("\r\n")).into_bytes()
}

pub(crate) fn reply(received: &[u8]) -> Parsed {
    let mut at = 0;
    while let Some((head, next)) = line(received, at) {
        let mut words = head.split(|byte| *byte == b' ');
        match words.next().unwrap_or_default() {
            b"VALUE" => {
                // VALUE <key> <flags> <bytes> [<cas unique>]
                let length: usize = number(words.nth(2).ok_or(Nonsense)?)?;
                let end = next.checked_add(length).and_then(|end| end.checked_add(2));
                at = end.ok_or(Nonsense)?;
            }
            b"STAT" | b"ITEM" => at = next,
            first => {
                let is_error = first.ends_with(b"ERROR");
                return Ok(Some(Reply {
                    length: next,
                    is_error,
                }));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Protocol, whole};

    #[test]
    fn values_are_as_long_as_they_say() {
        let memcached = Protocol::Memcached;
        whole(&memcached, "set a 0 0 1\nx", "STORED\r\n", false);
        let two = "VALUE a 0 5\r\nEND\r\n\r\nVALUE b 0 1 7\r\nx\r\nEND\r\n";
        whole(&memcached, "gets a b", two, false);
        whole(&memcached, "get c", "END\r\n", false);
        whole(&memcached, "stats", "STAT pid 1\r\nEND\r\n", false);
        whole(&memcached, "incr a x", "CLIENT_ERROR invalid\r\n", true);
        assert_eq!(reply(b"VALUE a 0 x\r\n"), Err(Nonsense));
        assert_eq!(memcached.request("set a 0 0 1\nx"), b"set a 0 0 1\r\nx\r\n");
    }
}
