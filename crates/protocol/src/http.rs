//! HTTP/1.1.

use crate::{Nonsense, Parsed, Reply, number};

const HEADERS_MAX: usize = 128;
const CLIENT_ERRORS: u16 = 400;

/// `GET /path` or `POST /path body`.
pub(crate) fn request(text: &str) -> Vec<u8> {
    let mut words = text.splitn(3, ' ');
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or("/"),
    );
    let body = words.next().unwrap_or_default();
    let length = if body.is_empty() {
        String::new()
    } else {
        format!("Content-Length: {}\r\n", body.len())
    };
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{length}\r\n{body}").into_bytes()
}

pub(crate) fn reply(request: &str, received: &[u8], is_closed: bool) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let head = match response.parse(received).map_err(|_| Nonsense)? {
        httparse::Status::Complete(head) => head,
        httparse::Status::Partial => return Ok(None),
    };
    let code = response.code.unwrap_or(0);
    let header = |name: &str| {
        let mut headers = response.headers.iter();
        let found = headers.find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| header.value)
    };
    let has_body = !request.starts_with("HEAD ") && !matches!(code, 100..200 | 204 | 304);
    let is_chunked = header("Transfer-Encoding")
        .is_some_and(|value| value.to_ascii_lowercase().ends_with(b"chunked"));
    let length = if !has_body {
        Some(head)
    } else if is_chunked {
        chunks(received, head)?
    } else if let Some(length) = header("Content-Length") {
        let end = head.checked_add(number(length)?).ok_or(Nonsense)?;
        (end <= received.len()).then_some(end)
    } else {
        is_closed.then_some(received.len())
    };
    let is_error = code >= CLIENT_ERRORS;
    Ok(length.map(|length| Reply { length, is_error }))
}

/// Where the last chunk ends; trailers are not understood.
fn chunks(received: &[u8], head: usize) -> Result<Option<usize>, Nonsense> {
    let mut at = head;
    loop {
        let rest = received.get(at..).unwrap_or_default();
        let (digits, size) = match httparse::parse_chunk_size(rest).map_err(|_| Nonsense)? {
            httparse::Status::Complete(found) => found,
            httparse::Status::Partial => return Ok(None),
        };
        let size = usize::try_from(size).map_err(|_| Nonsense)?;
        let end = at.checked_add(digits).and_then(|at| at.checked_add(size));
        at = end.and_then(|end| end.checked_add(2)).ok_or(Nonsense)?;
        if at > received.len() {
            return Ok(None);
        }
        if size == 0 {
            return Ok(Some(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Protocol, whole};

    #[test]
    fn bodies_end_as_their_headers_say() {
        let http = Protocol::Http;
        whole(
            &http,
            "GET /a",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            false,
        );
        let chunked = "HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        whole(&http, "GET /a", chunked, true);
        whole(
            &http,
            "HEAD /a",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
            false,
        );
        let open = b"HTTP/1.1 200 OK\r\n\r\nabc";
        assert_eq!(reply("GET /", open, false), Ok(None));
        assert_eq!(
            reply("GET /", open, true).map(|reply| reply.map(|r| r.length)),
            Ok(Some(22))
        );
        assert_eq!(reply("GET /", b"no http\r\n\r\n", false), Err(Nonsense));
        let post = http.request("POST /a b c");
        assert!(post.ends_with(b"Content-Length: 3\r\n\r\nb c"));
    }
}
