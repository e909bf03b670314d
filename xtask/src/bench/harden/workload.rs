//! What the measured programs do: run once, or answer requests; and what that costs.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

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

impl Workload {
    /// Processor seconds of one run: unlike wall time, they do not count what others do meanwhile.
    pub(super) fn seconds(&self, binary: &Path) -> anyhow::Result<f64> {
        match self {
            Self::Run {
                long, has_threads, ..
            } => {
                let mut child = command(binary).args(*long).spawn()?;
                let seconds = seconds_until_end(&child, *has_threads)?;
                let status = child.wait()?;
                anyhow::ensure!(status.success(), "{} ended with {status}", binary.display());
                Ok(seconds)
            }
            Self::Memcached { requests, .. } => {
                let mut server = Server::start(&mut command(binary), binary)?;
                server.load(*requests)?;
                let seconds = server.seconds()?;
                server.stop()?;
                Ok(seconds)
            }
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
                let mut server = Server::start(&mut command, binary)?;
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

    /// Instructions of a short run, if valgrind is here.
    pub(super) fn instructions(&self, binary: &Path) -> Option<f64> {
        let log = binary.with_extension("valgrind");
        let mut command = Command::new("sh");
        command
            .args(["-c", LIMITED, "valgrind"])
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(format!("--log-file={}", log.display()))
            .arg(binary)
            .current_dir(binary.parent()?)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match self {
            Self::Run { short, .. } => {
                command.args(*short).status().ok()?;
            }
            Self::Memcached { short, .. } => {
                let mut server = Server::start(&mut command, binary).ok()?;
                server.load(*short).ok()?;
                server.stop().ok()?;
            }
        }
        let text = fs::read_to_string(&log).ok()?;
        let line = text.lines().find(|line| line.contains("Collected"))?;
        line.rsplit(' ').next()?.parse().ok()
    }
}

/// Connections of memcached. It sets the limit of open files to just that, which valgrind permits only if it is the limit
/// there is, less the twelve that valgrind keeps.
const CONNECTIONS: &str = "1012";
const LIMITED: &str = "ulimit -n 1024 && exec \"$0\" \"$@\"";

fn command(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .current_dir(binary.parent().unwrap_or(Path::new(".")))
        .env("RADDLE_HARDEN_LOG", "none")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Waits until the child is a zombie, whose times proc(5) still tells. With threads they come in hundredths; without,
/// in nanoseconds.
fn seconds_until_end(child: &Child, has_threads: bool) -> anyhow::Result<f64> {
    let folder = PathBuf::from(format!("/proc/{}", child.id()));
    loop {
        let stat = fs::read_to_string(folder.join("stat"))?;
        let fields: Vec<&str> = stat
            .rsplit_once(") ")
            .context("no name in stat")?
            .1
            .split(' ')
            .collect();
        if fields[0] != "Z" {
            std::thread::sleep(Duration::from_millis(3));
            continue;
        }
        if !has_threads {
            return schedule_seconds(&folder);
        }
        let ticks = fields[11].parse::<u32>()? + fields[12].parse::<u32>()?;
        return Ok(f64::from(ticks) / 100.0);
    }
}

fn schedule_seconds(task: &Path) -> anyhow::Result<f64> {
    let text = fs::read_to_string(task.join("schedstat"))?;
    let nanoseconds: f64 = text
        .split(' ')
        .next()
        .context("an empty schedstat")?
        .parse()?;
    Ok(nanoseconds / 1e9)
}

/// A memcached that runs.
struct Server {
    child: Child,
    connections: Vec<BufReader<UnixStream>>,
}

impl Server {
    fn start(command: &mut Command, binary: &Path) -> anyhow::Result<Self> {
        let socket = binary.with_extension("socket");
        if socket.exists() {
            fs::remove_file(&socket)?;
        }
        let child = command
            .args([
                "-u",
                "root",
                "-t",
                "2",
                "-m",
                "64",
                "-A",
                "-c",
                CONNECTIONS,
                "-s",
            ])
            .arg(&socket)
            .spawn()?;
        let start = Instant::now();
        let mut connections = Vec::new();
        while connections.len() < 4 {
            match UnixStream::connect(&socket) {
                Ok(stream) => connections.push(BufReader::new(stream)),
                Err(error) => {
                    anyhow::ensure!(
                        start.elapsed() < Duration::from_secs(60),
                        "memcached does not listen: {error}"
                    );
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
        Ok(Self { child, connections })
    }

    fn load(&mut self, requests: usize) -> anyhow::Result<()> {
        const BATCH: usize = 20;
        let value = "v".repeat(100);
        let mut sent = 0;
        while sent < requests {
            for connection in &mut self.connections {
                let mut text = String::new();
                let mut lines = 0;
                for number in sent..sent + BATCH {
                    let key = number * 7919 % 5000;
                    if number % 10 == 0 {
                        text.push_str(&format!("set key{key} 0 0 {}\r\n{value}\r\n", value.len()));
                        lines += 1;
                    } else {
                        text.push_str(&format!("get key{key}\r\n"));
                        lines += 1;
                    }
                }
                connection.get_mut().write_all(text.as_bytes())?;
                read_answers(connection, lines)?;
                sent += BATCH;
            }
        }
        Ok(())
    }

    /// Processor time of all threads so far.
    fn seconds(&self) -> anyhow::Result<f64> {
        let mut sum = 0.0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            sum += schedule_seconds(&task?.path())?;
        }
        Ok(sum)
    }

    fn stop(mut self) -> anyhow::Result<()> {
        self.connections[0].get_mut().write_all(b"shutdown\r\n")?;
        self.child.wait()?;
        Ok(())
    }
}

/// Reads until as many requests are answered: each answer ends with STORED or END.
fn read_answers(connection: &mut BufReader<UnixStream>, mut answers: usize) -> anyhow::Result<()> {
    let mut line = String::new();
    while answers > 0 {
        line.clear();
        anyhow::ensure!(
            connection.read_line(&mut line)? > 0,
            "memcached closed the connection"
        );
        if line == "STORED\r\n" || line == "END\r\n" {
            answers -= 1;
        }
        anyhow::ensure!(!line.starts_with("ERROR"), "memcached answers {line}");
    }
    Ok(())
}
