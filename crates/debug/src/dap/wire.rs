//! Messages of the Debug Adapter Protocol: a header with the length, an empty line, JSON.

use std::io::{self, BufRead, Write};

use raddle_stdx::width::to_usize;
use serde_json::{Value, json};

/// Bytes of a message at most: editors send far less.
const MESSAGE_MAX: u64 = 16 << 20;
/// Bytes of a line of a header at most.
const HEADER_MAX: u64 = 4096;

/// A request of the editor.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) number: i64,
    pub(super) command: String,
    pub(super) arguments: Value,
}

/// Both directions of a conversation with an editor.
#[derive(Debug)]
pub struct Wire<I, O> {
    input: I,
    output: O,
    /// Messages that were sent.
    sent: i64,
}

impl<I: BufRead, O: Write> Wire<I, O> {
    pub fn new(input: I, output: O) -> Self {
        Self {
            input,
            output,
            sent: 0,
        }
    }

    /// The next request; none when the editor has closed its side.
    pub(super) fn receive(&mut self) -> io::Result<Option<Request>> {
        loop {
            let Some(length) = self.header()? else {
                return Ok(None);
            };
            let mut body = vec![0; to_usize(length)];
            self.input.read_exact(&mut body)?;
            let message: Value = serde_json::from_slice(&body).map_err(broken)?;
            // Editors answer our events with nothing, and we ask them nothing.
            if message["type"] == "request" {
                return Ok(Some(Request {
                    number: message["seq"].as_i64().unwrap_or(0),
                    command: message["command"].as_str().unwrap_or_default().to_owned(),
                    arguments: message["arguments"].clone(),
                }));
            }
        }
    }

    /// The length that a header gives.
    fn header(&mut self) -> io::Result<Option<u64>> {
        let mut length = None;
        loop {
            let mut line = String::new();
            let limited = &mut io::Read::take(&mut self.input, HEADER_MAX);
            if limited.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok();
            }
        }
        match length.filter(|length| *length <= MESSAGE_MAX) {
            Some(length) => Ok(Some(length)),
            None => Err(broken("a header without a sensible Content-Length")),
        }
    }

    fn send(&mut self, mut message: Value) -> io::Result<()> {
        self.sent += 1;
        message["seq"] = self.sent.into();
        let body = message.to_string();
        write!(self.output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
        self.output.flush()
    }

    pub(super) fn answer(&mut self, request: &Request, body: Value) -> io::Result<()> {
        self.send(json!({
            "type": "response",
            "request_seq": request.number,
            "success": true,
            "command": request.command,
            "body": body,
        }))
    }

    pub(super) fn refuse(&mut self, request: &Request, why: &str) -> io::Result<()> {
        self.send(json!({
            "type": "response",
            "request_seq": request.number,
            "success": false,
            "command": request.command,
            "message": why,
            "body": {"error": {"id": 1, "format": why, "showUser": true}},
        }))
    }

    pub(super) fn event(&mut self, name: &str, body: Value) -> io::Result<()> {
        self.send(json!({"type": "event", "event": name, "body": body}))
    }
}

fn broken(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(text: &str) -> io::Result<Option<Request>> {
        Wire::new(text.as_bytes(), Vec::new()).receive()
    }

    #[test]
    fn requests_are_read_with_any_header_and_responses_are_passed_over() {
        let text = "content-length: 19\r\n\r\n{\"type\":\"response\"}Content-Type: x\r\nContent-Length: 45\r\n\r\n{\"type\":\"request\",\"seq\":7,\"command\":\"threads\"}";
        let text = text.replace("45", "46");
        let request = received(&text).unwrap().unwrap();
        assert_eq!((request.number, request.command.as_str()), (7, "threads"));
    }

    #[test]
    fn broken_messages_are_errors_and_the_end_is_none() {
        assert!(received("").unwrap().is_none());
        received("Content-Length: x\r\n\r\n{}").unwrap_err();
        received("Content-Length: 99999999999\r\n\r\n{}").unwrap_err();
        received("Content-Length: 5\r\n\r\n{").unwrap_err();
        received("Content-Length: 2\r\n\r\n{]").unwrap_err();
    }

    #[test]
    fn messages_are_numbered_and_measured_in_bytes() {
        let mut wire = Wire::new(&b""[..], Vec::new());
        wire.event("output", json!({"output": "ä"})).unwrap();
        let text = String::from_utf8(wire.output).unwrap();
        let body = r#"{"body":{"output":"ä"},"event":"output","seq":1,"type":"event"}"#;
        assert_eq!(
            text,
            format!("Content-Length: {}\r\n\r\n{body}", body.len())
        );
    }
}
