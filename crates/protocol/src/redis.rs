//! The protocol of Redis, versions 2 and 3: only as much as is needed to see where a reply ends.

use crate::{Nonsense, Parsed, Reply, line, number};

/// Replies in replies at most: a server may say anything.
const DEPTH_MAX: u32 = 64;

pub(crate) fn reply(received: &[u8]) -> Parsed {
    let Some(length) = value(received, 0, 0)? else {
        return Ok(None);
    };
    let is_error = matches!(received.first(), Some(b'-' | b'!'));
    Ok(Some(Reply { length, is_error }))
}

/// Where the value at a position ends, if it is whole.
fn value(bytes: &[u8], from: usize, depth: u32) -> Result<Option<usize>, Nonsense> {
    if depth > DEPTH_MAX {
        return Err(Nonsense);
    }
    let Some((head, next)) = line(bytes, from) else {
        let known = b"+-:_#,($!=*~>%|";
        return match bytes.get(from) {
            Some(kind) if !known.contains(kind) => Err(Nonsense),
            _ => Ok(None),
        };
    };
    let (kind, rest) = head.split_first().ok_or(Nonsense)?;
    match kind {
        b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => Ok(Some(next)),
        b'$' | b'!' | b'=' => {
            let Ok(length) = usize::try_from(number::<i64>(rest)?) else {
                return Ok(Some(next));
            };
            let end = next.checked_add(length).and_then(|end| end.checked_add(2));
            let end = end.ok_or(Nonsense)?;
            Ok((end <= bytes.len()).then_some(end))
        }
        b'*' | b'~' | b'>' => values(bytes, next, number(rest)?, depth),
        b'%' | b'|' => {
            let pairs: i64 = number(rest)?;
            values(bytes, next, pairs.checked_mul(2).ok_or(Nonsense)?, depth)
        }
        _ => Err(Nonsense),
    }
}

fn values(bytes: &[u8], from: usize, count: i64, depth: u32) -> Result<Option<usize>, Nonsense> {
    let mut at = from;
    for _ in 0..count {
        match value(bytes, at, depth + 1)? {
            Some(end) => at = end,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Protocol, whole};

    #[test]
    fn replies_of_every_shape_end_where_they_end() {
        let redis = Protocol::Redis;
        whole(&redis, "SET a 1", "+OK\r\n", false);
        whole(&redis, "GET a", "$5\r\na\r\nbc\r\n", false);
        whole(&redis, "GET b", "$-1\r\n", false);
        whole(&redis, "INCR a", "-ERR no integer\r\n", true);
        whole(&redis, "LRANGE", "*2\r\n:1\r\n*1\r\n$0\r\n\r\n", false);
        whole(&redis, "HGETALL", "%1\r\n+a\r\n_\r\n", false);
    }

    #[test]
    fn nonsense_is_told() {
        assert_eq!(reply(b"hello"), Err(Nonsense));
        assert_eq!(reply(b"$x\r\n"), Err(Nonsense));
        assert_eq!(reply("*1\r\n".repeat(100).as_bytes()), Err(Nonsense));
        assert_eq!(reply(b"$9223372036854775807\r\n"), Ok(None));
    }
}
