//! What the measured programs do: run once, or answer requests; and what that costs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

use super::server::{self, Server};
use crate::bench::cpu;

/// A measured program's work.
#[derive(Debug)]
pub(super) enum Workload {
    /// It runs to its end.
    Run {
        long: &'static [&'static str],
        /// For counting instructions under valgrind.
        short: &'static [&'static str],
        has_threads: bool,
    },
    /// A memcached that gets one set to nine gets over four connections.
    Memcached { requests: usize, short: usize },
}

/// What one run cost.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    /// Processor seconds: unlike wall time, they do not count what others do meanwhile.
    pub(super) all: f64,
    /// Those outside the kernel.
    pub(super) user: f64,
}

impl Workload {
    /// One run of each of two builds, as close together as can be.
    pub(super) fn pair(&self, first: &Path, second: &Path) -> anyhow::Result<[Spent; 2]> {
        match self {
            Self::Run {
                long, has_threads, ..
            } => {
                let run = |binary| one_run(binary, long, *has_threads);
                Ok([run(first)?, run(second)?])
            }
            Self::Memcached { requests, .. } => server::pair(first, second, *requests),
        }
    }

    /// What a build that counts says: all points passed, and those for deadlocks.
    pub(super) fn points(&self, binary: &Path) -> anyhow::Result<(f64, f64)> {
        let log = binary.with_extension("log");
        if log.exists() {
            fs::remove_file(&log)?;
        }
        let mut command = command(binary);
        command
            .env("RADDLE_HARDEN_SUMMARY", "1")
            .env("RADDLE_HARDEN_LOG", &log);
        match self {
            Self::Run { long, .. } => {
                command.args(*long).status()?;
            }
            Self::Memcached { requests, .. } => {
                let mut server = Server::start(&mut command, &binary.with_extension("socket"))?;
                server.load(*requests)?;
                server.stop()?;
            }
        }
        let text = fs::read_to_string(&log)?;
        let line = text
            .lines()
            .rfind(|line| line.starts_with("raddle-harden: summary"))
            .context("the counting build printed no summary")?;
        let number_before = |what: &str| {
            let before = line.split(what).next().unwrap_or("");
            before.rsplit(' ').next().unwrap_or("").parse::<f64>()
        };
        Ok((
            number_before(" points passed")?,
            number_before(" of them for deadlocks")?,
        ))
    }

    /// Instructions of a short run, if valgrind is here. With threads, those of the busiest one: what others do depends
    /// on the clock.
    pub(super) fn instructions(&self, binary: &Path) -> Option<f64> {
        let counts = binary.with_extension("valgrind");
        let folder = binary.parent()?;
        clear(&counts)?;
        let mut command = Command::new("sh");
        command
            .args(["-c", LIMITED, "valgrind", "--quiet"])
            .args(["--tool=callgrind", "--separate-threads=yes"])
            .arg(format!("--callgrind-out-file={}", counts.display()))
            .arg(binary)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match self {
            Self::Run { short, .. } => {
                command.args(*short).status().ok()?;
            }
            Self::Memcached { short, .. } => {
                let socket = binary.with_extension("socket");
                let mut server = Server::start(&mut command, &socket).ok()?;
                server.load(*short).ok()?;
                server.stop().ok()?;
            }
        }
        let threads = files_of(&counts)?;
        let totals = threads.iter().filter_map(|path| total(path));
        totals.max_by(f64::total_cmp)
    }
}

/// The files that callgrind makes for threads: the name given, with a number.
fn files_of(counts: &Path) -> Option<Vec<PathBuf>> {
    let prefix = format!("{}-", counts.file_name()?.to_str()?);
    let entries = fs::read_dir(counts.parent()?).ok()?;
    let paths = entries.flatten().map(|entry| entry.path());
    let is_ours = |path: &PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(&prefix))
    };
    Some(paths.filter(is_ours).collect())
}

fn clear(counts: &Path) -> Option<()> {
    for path in files_of(counts)? {
        fs::remove_file(path).ok()?;
    }
    Some(())
}

/// The sum at the end of a file of callgrind.
fn total(path: &Path) -> Option<f64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().rfind(|line| line.starts_with("totals: "))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn one_run(binary: &Path, words: &[&str], has_threads: bool) -> anyhow::Result<Spent> {
    let mut child = command(binary).args(words).spawn()?;
    let spent = spent_until_end(&child, has_threads)?;
    let status = child.wait()?;
    anyhow::ensure!(status.success(), "{} ended with {status}", binary.display());
    Ok(spent)
}

/// The limit of open files at which valgrind lets `server::CONNECTIONS` be.
const LIMITED: &str = "ulimit -n 1024 && exec \"$0\" \"$@\"";

fn command(binary: &Path) -> Command {
    let mut command = quiet(binary);
    command.current_dir(binary.parent().unwrap_or(Path::new(".")));
    command
}

/// A command that reads and prints nothing.
pub(super) fn quiet(program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("RADDLE_HARDEN_LOG", "none")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Waits until the child is a zombie, whose times proc(5) still tells. With threads they come in hundredths; without,
/// in nanoseconds.
fn spent_until_end(child: &Child, has_threads: bool) -> anyhow::Result<Spent> {
    let folder = PathBuf::from(format!("/proc/{}", child.id()));
    loop {
        let stat = fs::read_to_string(folder.join("stat"))?;
        let is_over = stat
            .rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('Z'));
        if !is_over {
            std::thread::sleep(Duration::from_millis(3));
            continue;
        }
        let [user, system] = cpu::user_and_system(&stat);
        let all = if has_threads {
            user + system
        } else {
            schedule_seconds(&folder)?
        };
        return Ok(Spent { all, user });
    }
}

pub(super) fn schedule_seconds(task: &Path) -> anyhow::Result<f64> {
    let text = fs::read_to_string(task.join("schedstat"))?;
    let nanoseconds: f64 = text
        .split(' ')
        .next()
        .context("an empty schedstat")?
        .parse()?;
    Ok(nanoseconds / 1e9)
}
