//! Anything telnet-like: the reply ends with given bytes.

use crate::Reply;

pub(crate) fn reply(end: &str, error: &str, received: &[u8]) -> Option<Reply> {
    let end = end.as_bytes();
    // Without an end, whatever is there is the reply.
    let at = match end.len() {
        0 => received.len().checked_sub(1).map(|_| received.len())?,
        length => received.windows(length).position(|part| part == end)? + length,
    };
    Some(Reply {
        length: at,
        is_error: !error.is_empty() && received.starts_with(error.as_bytes()),
    })
}

#[cfg(test)]
mod tests {
    use crate::{Protocol, whole};

    #[test]
    fn a_reply_goes_up_to_its_end() {
        let lines = Protocol::Lines {
            end: ".\n".into(),
            error: "ERR".into(),
        };
        whole(&lines, "LIST", "a\nb\n.\n", false);
        whole(&lines, "LIST", "ERR no\n.\n", true);
        assert_eq!(lines.request("LIST"), b"LIST\n");
    }
}
