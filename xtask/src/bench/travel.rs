//! `cargo xtask bench travel`: how long moves to and fro take in recorded runs of 10^6, 10^7 and 10^8 instructions.
//!
//! The moves are asked for as coding assistants do, over `raddle mcp`: what is measured is what a user waits for, from the
//! question to the answer with its stack.
#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::{bench::median, shell};

/// Two threads count in turn; then an assertion fails. A round is about eight instructions of each thread.
const PROGRAM: &str = "crates/raddle/tests/explore/marathon.c";

/// Rounds that come to about 10^6, 10^7 and 10^8 instructions.
const ROUNDS: [u32; 3] = [55_000, 550_000, 5_500_000];

/// How often each kind of small step is made.
const STEPS: usize = 9;

/// Measures the moves; `raddle` is the program to use, or the release build.
pub(crate) fn run(raddle: Option<&Path>) -> anyhow::Result<()> {
    let raddle = shell::release_build(raddle)?;
    let folder = shell::target_folder().join("bench-travel");
    std::fs::create_dir_all(&folder)?;
    let source = shell::root().join(PROGRAM);
    let program = folder.join("marathon");
    let status = Command::new("gcc")
        .args(["-g", "-O0", "-pthread"])
        .arg(source)
        .arg("-o")
        .arg(&program)
        .status()?;
    ensure!(status.success(), "gcc ended with {status}");
    println!(
        "By the clock on the wall, asked over `raddle mcp`, the answer with its stack included. \
         Small steps: the median of {STEPS}, and the slowest. \
         `who wrote` asks for the last write of a counter, of the other thread's counter, and of a variable that was written \
         once, before all threads.\n"
    );
    println!(
        "| instructions | open at the end | line back | slowest | instruction back | slowest | last write | the other's | the first of all | back over all of it | and forward |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for rounds in ROUNDS {
        row(&raddle, &folder, &program, rounds)?;
    }
    Ok(())
}

fn row(raddle: &Path, folder: &Path, program: &Path, rounds: u32) -> anyhow::Result<()> {
    let recording = record(raddle, folder, program, rounds)?;
    let mut assistant = Assistant::start(raddle, folder)?;
    let (opened, open) = assistant.timed("open", &json!({"recording": recording}))?;
    let end = opened.split(' ').nth(1).context("it says the step")?;
    // The assertion stands in the C library: out of it first, into the code that the user steps through.
    let counted = json!({"how": "reverse-continue", "until_written": "counted[1]"});
    let (_, _) = assistant.timed("step", &counted)?;
    let line = assistant.steps("back")?;
    let instruction = assistant.steps("instruction-back")?;
    assistant.timed("open", &json!({"recording": recording}))?;
    let mut wrote = |expression: &str| {
        let (text, time) = assistant.timed("who_wrote", &json!({ "expression": expression }))?;
        ensure!(text.contains(" at step "), "{expression}: {text}");
        Ok(time)
    };
    let (own, other, first) = (wrote("counted[1]")?, wrote("counted[0]")?, wrote("rounds")?);
    let (_, back) = assistant.timed("step", &json!({"how": "reverse-continue"}))?;
    let (_, forward) = assistant.timed("step", &json!({"how": "continue"}))?;
    assistant.leave()?;
    println!(
        "| {end} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        seconds(open),
        seconds(line.0),
        seconds(line.1),
        seconds(instruction.0),
        seconds(instruction.1),
        seconds(own),
        seconds(other),
        seconds(first),
        seconds(back),
        seconds(forward),
    );
    Ok(())
}

/// A recording of a run that fails, and fails in every schedule.
fn record(raddle: &Path, folder: &Path, program: &Path, rounds: u32) -> anyhow::Result<PathBuf> {
    let folder = folder.join(rounds.to_string());
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let options = ["explore", "--schedules", "1", "--explain-time", "1"];
    Command::new(raddle)
        .args(options)
        .arg("--output")
        .arg(&folder)
        .arg("--")
        .arg(program)
        .arg(rounds.to_string())
        .output()?;
    let entries = std::fs::read_dir(&folder)?;
    let mut files = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "raddle"));
    files.next().context("no recording was written")
}

/// A conversation with `raddle mcp`.
struct Assistant {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    sent: u64,
}

impl Assistant {
    fn start(raddle: &Path, folder: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(raddle)
            .arg("mcp")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut assistant = Self {
            to: child.stdin.take().context("it is piped")?,
            from: BufReader::new(child.stdout.take().context("it is piped")?),
            child,
            sent: 0,
        };
        let client = json!({"name": "bench", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        assistant.ask("initialize", &hello)?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(assistant.to, "{ready}")?;
        Ok(assistant)
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> anyhow::Result<Value> {
        self.sent += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.sent, "method": method, "params": parameters});
        writeln!(self.to, "{request}")?;
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line)?;
        Ok(answer["result"].clone())
    }

    /// What a tool says, and how long that took.
    fn timed(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<(String, Duration)> {
        let begun = Instant::now();
        let call = json!({"name": tool, "arguments": arguments});
        let answer = self.ask("tools/call", &call)?;
        let time = begun.elapsed();
        let text = answer["content"][0]["text"].as_str();
        let text = text.with_context(|| format!("no text: {answer}"))?;
        ensure!(answer["isError"] != true, "{tool}: {text}");
        Ok((text.to_owned(), time))
    }

    /// The median and the longest of several steps of a kind.
    fn steps(&mut self, how: &str) -> anyhow::Result<(Duration, Duration)> {
        let mut times = Vec::new();
        for _ in 0..STEPS {
            times.push(self.timed("step", &json!({ "how": how }))?.1);
        }
        let longest = times.iter().copied().max().unwrap_or_default();
        let times = times.iter().map(Duration::as_secs_f64).collect();
        Ok((Duration::from_secs_f64(median(times)), longest))
    }

    fn leave(mut self) -> anyhow::Result<()> {
        drop(self.to);
        let status = self.child.wait()?;
        ensure!(status.success(), "raddle mcp ended with {status}");
        Ok(())
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
