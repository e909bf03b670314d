//! `raddle dap` as editors speak to it: whole conversations.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use raddle_testkit::{compile_test_program, raddle_in, recordings, snapshot, told_in};
use serde_json::{Value, json};
use tempfile::TempDir;

/// An editor in conversation with raddle, and what was said.
struct Editor {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    sent: u64,
    transcript: String,
}

impl Editor {
    fn start(folder: &Path) -> Self {
        let mut child = raddle_in(folder, &["dap"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("raddle starts");
        Self {
            to: child.stdin.take().expect("it is piped"),
            from: BufReader::new(child.stdout.take().expect("it is piped")),
            child,
            sent: 0,
            transcript: String::new(),
        }
    }

    fn send(&mut self, text: &str) {
        write!(self.to, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("it listens");
        self.to.flush().expect("it listens");
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.from.read_line(&mut line).expect("a line");
            assert!(!line.is_empty(), "raddle left\n{}", self.transcript);
            if let Some(value) = line.trim_end().strip_prefix("Content-Length: ") {
                length = value.parse().expect("a length");
            } else if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.from.read_exact(&mut body).expect("a body");
        let message: Value = serde_json::from_slice(&body).expect("JSON");
        self.transcript.push_str(&format!("< {message}\n"));
        message
    }

    /// Asks, waits for the answer, and gives its body; what else comes before is written down.
    fn ask(&mut self, command: &str, arguments: &Value) -> Value {
        self.sent += 1;
        let request = json!({"seq": self.sent, "type": "request", "command": command, "arguments": arguments});
        self.transcript.push_str(&format!("> {request}\n"));
        self.send(&request.to_string());
        loop {
            let message = self.receive();
            if message["type"] == "response" && message["request_seq"] == self.sent {
                return message["body"].clone();
            }
        }
    }

    /// Waits for the run to stop.
    fn stopped(&mut self) -> Value {
        loop {
            let message = self.receive();
            if message["event"] == "stopped" {
                return message["body"].clone();
            }
        }
    }

    /// Moves the run and gives why it stopped, and where: function and line.
    fn go(&mut self, command: &str, thread: &Value) -> (String, String, u64) {
        self.ask(command, &json!({"threadId": thread}));
        let stopped = self.stopped();
        let reason = stopped["reason"].as_str().expect("a reason").to_owned();
        let (function, line) = self.place(&stopped["threadId"]);
        (reason, function, line)
    }

    fn place(&mut self, thread: &Value) -> (String, u64) {
        let stack = self.ask("stackTrace", &json!({"threadId": thread, "levels": 1}));
        let frame = &stack["stackFrames"][0];
        let function = frame["name"].as_str().expect("a name").to_owned();
        (function, frame["line"].as_u64().expect("a line"))
    }

    fn value(&mut self, expression: &str) -> String {
        let told = self.ask(
            "evaluate",
            &json!({"expression": expression, "context": "watch"}),
        );
        match told["result"].as_str() {
            Some(result) => result.to_owned(),
            None => format!(
                "error: {}",
                told["error"]["format"].as_str().expect("a reason")
            ),
        }
    }

    /// Says good-bye; what was said, without what differs from machine to machine.
    fn leave(mut self) -> String {
        self.ask("disconnect", &json!({}));
        drop(self.to);
        assert!(self.child.wait().expect("it ends").success());
        self.transcript
    }
}

/// Explores the ledger until its failure is found; the recording.
fn recorded(folder: &Path) -> String {
    compile_test_program(folder, "explore/ledger.c", &["-g", "-O0", "-pthread"]);
    let arguments = [
        "explore",
        "--schedules",
        "600",
        "--time",
        "600",
        "--until-found",
        "--",
        "./ledger",
    ];
    let (code, text) = told_in(folder, &arguments);
    assert_eq!(code, 1, "{text}");
    recordings(folder).remove(0).to_string_lossy().into_owned()
}

/// The number of the line of the ledger with this text.
fn line(text: &str) -> u64 {
    let source = std::fs::read_to_string(raddle_testkit::test_program("explore/ledger.c"));
    let source = source.expect("the source");
    let found = source.lines().position(|line| line.contains(text));
    1 + u64::try_from(found.expect("the line")).expect("few")
}

/// The file that was compiled: the program's folder has a copy.
fn source(folder: &Path) -> Value {
    json!({"path": folder.join("ledger.c").to_string_lossy()})
}

/// Numbers that follow a word, and long addresses, as letters: they are those of the C library of a machine.
fn masked(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(found) = ["step ", " of ", "0x"]
        .iter()
        .filter_map(|word| {
            let at = rest.find(word)?;
            Some((at, *word))
        })
        .min()
    {
        let (at, word) = found;
        let (before, after) = rest.split_at(at + word.len());
        masked.push_str(before);
        let is_digit = |c: char| {
            if word == "0x" {
                c.is_ascii_hexdigit()
            } else {
                c.is_ascii_digit()
            }
        };
        let end = after.find(|c| !is_digit(c)).unwrap_or(after.len());
        let is_unstable = if word == "0x" { end > 8 } else { end > 0 };
        masked.push_str(if is_unstable { "N" } else { &after[..end] });
        rest = &after[end..];
    }
    masked + rest
}

#[test]
fn an_editor_goes_from_the_failure_back_to_its_cause() {
    let folder = TempDir::new().expect("a folder");
    let recording = recorded(folder.path());
    let mut editor = Editor::start(folder.path());
    editor.ask(
        "initialize",
        &json!({"adapterID": "raddle", "linesStartAt1": true}),
    );
    editor.ask("launch", &json!({"recording": recording, "start": "end"}));
    editor.ask("setExceptionBreakpoints", &json!({"filters": []}));
    editor.ask("configurationDone", &json!({}));
    editor.stopped();
    let threads = editor.ask("threads", &json!({}));
    assert_eq!(threads["threads"][0]["id"], 1);
    // The failure is in main; the wrong value was written by a clerk.
    assert_ne!(editor.value("ledger.balance"), "180");
    let info = editor.ask("dataBreakpointInfo", &json!({"name": "ledger.balance"}));
    let data = json!({"breakpoints": [{"dataId": info["dataId"], "accessType": "write"}]});
    editor.ask("setDataBreakpoints", &data);
    let (reason, function, at) = editor.go("reverseContinue", &json!(1));
    assert_eq!(
        (reason.as_str(), function.as_str()),
        ("data breakpoint", "book")
    );
    assert_eq!(at, line("ledger.balance = after"));
    let (_, function, again) = editor.go("reverseContinue", &json!(1));
    assert_eq!((function.as_str(), again), ("book", at));
    assert_eq!(editor.value("ledger.balance"), "100");
    let told = editor.ask(
        "evaluate",
        &json!({"expression": "who-wrote ledger.balance", "context": "repl"}),
    );
    let told = told["result"].as_str().expect("a sentence");
    assert_eq!(
        told,
        "nothing has written `ledger.balance` since the beginning of the recording"
    );
    let transcript = masked(&editor.leave());
    let ran = raddle_testkit::Ran {
        code: Some(0),
        stdout: transcript,
        stderr: String::new(),
    };
    snapshot::compare("dap-failure-to-cause", folder.path(), &["dap"], &ran);
}

#[test]
fn lines_are_stepped_in_both_directions() {
    let folder = TempDir::new().expect("a folder");
    let recording = recorded(folder.path());
    let mut editor = Editor::start(folder.path());
    editor.ask("initialize", &json!({}));
    editor.ask("launch", &json!({"recording": recording}));
    let call = line("book(entry);");
    let set = editor.ask(
        "setBreakpoints",
        &json!({"source": source(folder.path()), "breakpoints": [{"line": call}]}),
    );
    assert_eq!(set["breakpoints"][0]["verified"], true, "{set}");
    editor.ask("configurationDone", &json!({}));
    editor.stopped();
    let stopped = editor.ask("continue", &json!({"threadId": 1}));
    assert_eq!(stopped["allThreadsContinued"], true);
    let thread = editor.stopped()["threadId"].clone();
    assert_eq!(editor.place(&thread), ("clerk".to_owned(), call));
    editor.ask(
        "setBreakpoints",
        &json!({"source": source(folder.path()), "breakpoints": []}),
    );
    let named = |(reason, function, line): (String, String, u64)| {
        assert_eq!(reason, "step");
        (function, line)
    };
    let in_book = |text| ("book".to_owned(), line(text));
    let (before, after) = ("before = ledger.balance", "after = before");
    assert_eq!(named(editor.go("stepIn", &thread)), in_book(before));
    assert_eq!(named(editor.go("next", &thread)), in_book(after));
    assert_eq!(editor.value("before"), "100");
    assert_eq!(
        named(editor.go("next", &thread)),
        in_book("ledger.balance = after")
    );
    assert_eq!(named(editor.go("stepBack", &thread)), in_book(after));
    assert_eq!(named(editor.go("stepBack", &thread)), in_book(before));
    let (_, function, at) = editor.go("stepBack", &thread);
    assert_eq!(
        (function.as_str(), at),
        ("book", line("static void book") + 1)
    );
    let (_, function, at) = editor.go("stepBack", &thread);
    assert_eq!((function.as_str(), at), ("clerk", call));
    assert_eq!(
        named(editor.go("next", &thread)),
        ("clerk".to_owned(), call + 1)
    );
    assert_eq!(
        named(editor.go("stepBack", &thread)),
        ("clerk".to_owned(), call)
    );
    editor.leave();
}

#[test]
fn values_are_read_by_expressions_and_references() {
    let folder = TempDir::new().expect("a folder");
    let recording = recorded(folder.path());
    let mut editor = Editor::start(folder.path());
    editor.ask("initialize", &json!({}));
    editor.ask("launch", &json!({"recording": recording}));
    let condition = json!({"breakpoints": [{"name": "book", "condition": "entry->amount == 30"}]});
    editor.ask("setFunctionBreakpoints", &condition);
    editor.ask("configurationDone", &json!({}));
    editor.stopped();
    let (reason, function, _) = editor.go("continue", &json!(1));
    assert_eq!((reason.as_str(), function.as_str()), ("breakpoint", "book"));
    for (expression, value) in [
        ("entry->amount", "30"),
        ("(*entry).amount * 2 - 1", "59"),
        ("ledger.booked[1][2]", "6"),
        ("ledger.booked[1]", "{4, 5, 6}"),
        ("ledger.rounds", "5"),
        ("ledger.last->clerk[0]", "111 'o'"),
        ("&ledger == &ledger.balance", "1"),
        ("entry->next == ledger.last && !0", "1"),
        ("nothing", "error: there is no variable `nothing` here"),
        ("ledger.balance(", "error: `(` is not an expression"),
        ("ledger.balance / 0", "error: division by zero"),
    ] {
        assert_eq!(editor.value(expression), value, "{expression}");
    }
    let clerk = editor.value("entry->clerk");
    assert!(clerk.ends_with("\"bert\""), "{clerk}");
    let stack = editor.ask("stackTrace", &json!({"threadId": 3}));
    assert_eq!(stack["stackFrames"][1]["name"], "clerk", "{stack}");
    let frame = stack["stackFrames"][0]["id"].clone();
    let scopes = editor.ask("scopes", &json!({"frameId": frame}));
    assert_eq!(scopes["scopes"][0]["name"], "Arguments");
    let arguments = scopes["scopes"][0]["variablesReference"].clone();
    let listed = editor.ask("variables", &json!({"variablesReference": arguments}));
    assert_eq!(listed["variables"][0]["name"], "entry");
    assert_eq!(listed["variables"][0]["type"], "entry *");
    let inside = listed["variables"][0]["variablesReference"].clone();
    let listed = editor.ask("variables", &json!({"variablesReference": inside}));
    assert_eq!(listed["variables"][1]["name"], "amount");
    assert_eq!(listed["variables"][1]["value"], "30");
    // A recording cannot be changed.
    let refused = editor.ask("setVariable", &json!({"name": "before", "value": "1"}));
    assert!(
        refused["error"]["format"]
            .as_str()
            .is_some_and(|why| why.contains("not changed")),
        "{refused}"
    );
    editor.leave();
}

#[test]
fn what_cannot_be_debugged_is_refused_in_words() {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("text"), "no recording").expect("it can be written");
    for (arguments, why) in [
        (json!({}), "names no `recording`"),
        (json!({"recording": "text"}), "cannot replay text"),
        (
            json!({"recording": "missing"}),
            "cannot read the recording missing",
        ),
    ] {
        let mut editor = Editor::start(folder.path());
        editor.ask("initialize", &json!({}));
        let refused = editor.ask("launch", &arguments);
        let told = refused["error"]["format"].as_str().unwrap_or_default();
        assert!(told.contains(why), "{refused}");
        drop(editor.to);
        assert_eq!(editor.child.wait().expect("it ends").code(), Some(2));
    }
}
