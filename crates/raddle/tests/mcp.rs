//! `raddle mcp` as assistants speak to it: whole conversations.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::DirEntry;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use raddle_testkit::{compile_test_program, raddle_in, snapshot};
use serde_json::{Value, json};
use tempfile::TempDir;

/// An assistant in conversation with raddle, and what was said.
struct Assistant {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    sent: u64,
    transcript: String,
}

impl Assistant {
    fn start(folder: &Path) -> Self {
        let mut child = raddle_in(folder, &["mcp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("raddle starts");
        let mut assistant = Self {
            to: child.stdin.take().expect("it is piped"),
            from: BufReader::new(child.stdout.take().expect("it is piped")),
            child,
            sent: 0,
            transcript: String::new(),
        };
        let client = json!({"name": "test", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        assistant.ask("initialize", &hello);
        assistant.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assistant
    }

    fn send(&mut self, message: &Value) {
        self.transcript.push_str(&format!("> {message}\n"));
        writeln!(self.to, "{message}").expect("it listens");
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.sent += 1;
        let id = self.sent;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
        let mut line = String::new();
        self.from.read_line(&mut line).expect("a line");
        let answer: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        assert_eq!(answer["id"], id, "{answer}");
        self.transcript.push_str(&format!("< {answer}\n"));
        answer["result"].clone()
    }

    /// Calls a tool; its text, and whether it is an error.
    fn call(&mut self, tool: &str, arguments: &Value) -> (String, bool) {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        let text = answer["content"][0]["text"].as_str();
        let text = text
            .unwrap_or_else(|| panic!("no text: {answer}"))
            .to_owned();
        (text, answer["isError"] == true)
    }

    fn told(&mut self, tool: &str, arguments: &Value) -> String {
        let (text, is_error) = self.call(tool, arguments);
        assert!(!is_error, "{tool}: {text}");
        text
    }

    fn leave(mut self) -> String {
        drop(self.to);
        assert!(self.child.wait().expect("it ends").success());
        self.transcript
    }
}

/// The files of a folder.
fn names(folder: &Path) -> BTreeSet<OsString> {
    let entries = std::fs::read_dir(folder).expect("it can be read");
    let name = |entry: std::io::Result<DirEntry>| entry.expect("it can be read").file_name();
    entries.map(name).collect()
}

#[test]
fn an_assistant_finds_a_bug_and_its_cause() {
    let folder = TempDir::new().expect("a folder");
    compile_test_program(
        folder.path(),
        "explore/ledger.c",
        &["-g", "-O0", "-pthread"],
    );
    let before = names(folder.path());
    let mut assistant = Assistant::start(folder.path());
    let found = assistant.told("explore", &json!({"program": "./ledger", "schedules": 300}));
    assert!(found.contains("assertion"), "{found}");
    let recording = found
        .lines()
        .find_map(|line| line.trim().strip_prefix("recording: "));
    let recording = json!(recording.expect("a recording"));
    let story = assistant.told("story", &json!({"recording": recording}));
    assert!(
        story.contains("ledger.balance") && story.contains("book"),
        "{story}"
    );
    let listed = assistant.told("run_without", &json!({"recording": recording}));
    assert!(listed.starts_with("1. context "), "{listed}");
    let without = assistant.told(
        "run_without",
        &json!({"recording": recording, "deviation": 1}),
    );
    assert!(without.contains("it does not fail"), "{without}");
    let opened = assistant.told("open", &json!({"recording": recording}));
    assert!(opened.contains("thread 1:"), "{opened}");
    let write = assistant.told("who_wrote", &json!({"expression": "ledger.balance"}));
    assert!(write.contains("#0 book ("), "{write}");
    let moved = json!({"how": "reverse-continue", "until_written": "ledger.balance"});
    let moved = assistant.told("step", &moved);
    assert!(
        moved.starts_with("came to a write of `until_written`\n"),
        "{moved}"
    );
    let variables = assistant.told("variables", &json!({}));
    assert!(
        variables.contains("  local before: long int = 100\n"),
        "{variables}"
    );
    let value = assistant.told("evaluate", &json!({"expression": "entry->amount"}));
    assert!(value.ends_with(" (int)\n"), "{value}");
    let memory = assistant.told("memory", &json!({"at": "before"}));
    assert!(memory.ends_with(": 64 00 00 00 00 00 00 00\n"), "{memory}");
    assistant.leave();
    assert_eq!(names(folder.path()), before, "nothing is left behind");
}

#[test]
fn what_is_offered_and_refused_is_said_word_for_word() {
    let folder = TempDir::new().expect("a folder");
    let mut assistant = Assistant::start(folder.path());
    assistant.ask("tools/list", &json!({}));
    for (tool, arguments) in [
        ("findings", json!({})),
        ("where", json!({})),
        ("open", json!({"recording": "missing"})),
        ("explore", json!({"program": "./missing"})),
        ("explore", json!({})),
        ("fly", json!({})),
    ] {
        assistant.call(tool, &arguments);
    }
    let stdout = assistant.leave();
    let ran = raddle_testkit::Ran {
        code: Some(0),
        stdout,
        stderr: String::new(),
    };
    snapshot::compare("mcp-tools", folder.path(), &["mcp"], &ran);
}
