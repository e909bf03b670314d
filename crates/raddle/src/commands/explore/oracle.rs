//! The user's own idea of a right result: a given output, or a command that looks at it.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anyhow::Context;
use raddle_explore::Judge;
use raddle_explore::judge::Result as Outcome;
use raddle_stdx::Digest;

/// Characters of an output that a message shows.
const SHOWN: usize = 60;

/// A judge for what the user expects; none if nothing was said.
pub(crate) fn judge(output: Option<&str>, oracle: Option<&str>) -> Option<Judge> {
    if output.is_none() && oracle.is_none() {
        return None;
    }
    let output = output.map(str::to_owned);
    let oracle = oracle.map(str::to_owned);
    // Most schedules write the same; a process for each would cost more than the schedule.
    let known: Mutex<BTreeMap<u64, Option<String>>> = Mutex::default();
    Some(Judge::new(move |result| {
        if let Some(reason) = output.as_deref().and_then(|wanted| compare(wanted, result)) {
            return Some(reason);
        }
        let command = oracle.as_deref()?;
        let key = digest(result);
        let seen = known.lock().ok().and_then(|known| known.get(&key).cloned());
        seen.unwrap_or_else(|| {
            let verdict = ask(command, result);
            if let Ok(mut known) = known.lock() {
                known.insert(key, verdict.clone());
            }
            verdict
        })
    }))
}

fn digest(result: Outcome<'_>) -> u64 {
    let mut digest = Digest::default();
    digest.bytes(result.stdout);
    digest.word(u64::from(result.status.cast_unsigned()));
    digest.value()
}

fn compare(wanted: &str, result: Outcome<'_>) -> Option<String> {
    if result.stdout == wanted.as_bytes() {
        return None;
    }
    let got = String::from_utf8_lossy(result.stdout);
    let pairs = wanted.lines().zip(got.lines()).zip(1..);
    let differs = pairs.into_iter().find(|((one, other), _)| one != other);
    Some(match differs {
        Some(((one, other), line)) => format!(
            "line {line} is `{}` instead of `{}`",
            shortened(other),
            shortened(one)
        ),
        None => format!("{} bytes instead of {}", result.stdout.len(), wanted.len()),
    })
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    text.chars().take(SHOWN).chain("..".chars()).collect()
}

/// Runs the command with the output on its standard input; what it says first is the reason.
fn ask(command: &str, result: Outcome<'_>) -> Option<String> {
    match run(command, result) {
        Ok((true, _)) => None,
        Ok((false, words)) => {
            let first = words.lines().next().unwrap_or_default();
            Some(if first.is_empty() {
                "the oracle says so".into()
            } else {
                shortened(first)
            })
        }
        Err(error) => Some(format!("the oracle could not be asked: {error:#}")),
    }
}

fn run(command: &str, result: Outcome<'_>) -> anyhow::Result<(bool, String)> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .env("RADDLE_STATUS", result.status.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start /bin/sh")?;
    if let Some(mut stdin) = child.stdin.take() {
        // An oracle that has seen enough may close its input.
        drop(stdin.write_all(result.stdout));
    }
    let output = child.wait_with_output()?;
    let words = [output.stdout, output.stderr].concat();
    Ok((
        output.status.success(),
        String::from_utf8_lossy(&words).into_owned(),
    ))
}

/// The oracle must be there before thousands of schedules rely on it.
pub(crate) fn check(command: &str) -> anyhow::Result<()> {
    let child = Command::new("/bin/sh")
        .args(["-n", "-c", command])
        .output()
        .context("cannot start /bin/sh for the oracle")?;
    anyhow::ensure!(
        child.status.success(),
        "`--oracle {command}` is not a shell command: {}",
        String::from_utf8_lossy(&child.stderr).trim()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(stdout: &[u8]) -> Outcome<'_> {
        Outcome {
            status: 0,
            stdout,
            marks: &[],
        }
    }

    #[test]
    fn outputs_are_compared_line_by_line() {
        assert_eq!(compare("a\nb\n", result(b"a\nb\n")), None);
        assert_eq!(
            compare("a\nb\n", result(b"a\nc\n")).unwrap(),
            "line 2 is `c` instead of `b`"
        );
        assert_eq!(
            compare("a\n", result(b"a\nb\n")).unwrap(),
            "4 bytes instead of 2"
        );
    }

    #[test]
    fn an_oracle_reads_the_output_and_gives_its_reason() {
        assert_eq!(ask("grep -q ok", result(b"all ok\n")), None);
        assert_eq!(
            ask("grep -q ok || { echo no ok; exit 1; }", result(b"bad\n")).unwrap(),
            "no ok"
        );
    }
}
