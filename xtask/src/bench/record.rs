//! `cargo xtask bench record`: a Redis server with clients in one world, recorded as an ordinary run and had again.
#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::shell;

/// Requests of each of the two kinds.
const REQUESTS: [u32; 3] = [1_000, 50_000, 500_000];

/// The server, ten clients, and an end in good order.
const SESSION: &str = "redis-server --save '' --loglevel warning & \
    redis-cli ping >/dev/null; while ! redis-cli ping >/dev/null 2>&1; do sleep 0.01; done; \
    redis-benchmark -q -c 10 -n REQUESTS -t set,get >/dev/null && redis-cli shutdown nosave; wait";

/// Records sessions of different lengths; `raddle` is the program to use, or the release build.
pub(crate) fn run(raddle: Option<&Path>) -> anyhow::Result<()> {
    let raddle = shell::release_build(raddle)?;
    let folder = shell::target_folder().join("bench-record");
    std::fs::create_dir_all(&folder)?;
    println!(
        "A server of Redis and `redis-benchmark` with ten clients in one world, by the clock on the wall.\n"
    );
    println!(
        "| requests | instructions | without a recording | recorded | size of the recording | replayed |"
    );
    println!("|---|---|---|---|---|---|");
    for requests in REQUESTS {
        let file = folder.join("redis.raddle");
        let script = SESSION.replace("REQUESTS", &requests.to_string());
        let session = ["--seed", "1", "--", "/bin/sh", "-c", &script];
        let plain = timed(Command::new(&raddle).args(["run", "--stats"]).args(session))?;
        let record = ["run", "--record"];
        let recorded = timed(Command::new(&raddle).args(record).arg(&file).args(session))?;
        let replayed = timed(Command::new(&raddle).arg("replay").arg(&file))?;
        ensure!(
            told(&replayed.0).contains("replayed 1 time bit for bit"),
            "{requests}: {}",
            told(&replayed.0)
        );
        let stats = told(&plain.0);
        let steps = stats.split_once(" instructions in").map(|(text, _)| text);
        let steps = steps.and_then(|text| text.rsplit(' ').next());
        println!(
            "| 2 x {requests} | {} | {} | {} | {} bytes | {} |",
            steps.context("the statistics name the instructions")?,
            seconds(plain.1),
            seconds(recorded.1),
            std::fs::metadata(&file)?.len(),
            seconds(replayed.1)
        );
    }
    Ok(())
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Runs a session that must end well.
fn timed(command: &mut Command) -> anyhow::Result<(Output, Duration)> {
    let begun = Instant::now();
    let output = command.output()?;
    ensure!(
        output.status.success(),
        "{command:?} ended with {}: {}",
        output.status,
        told(&output)
    );
    Ok((output, begun.elapsed()))
}
