//! A memcached under load. Two of them run side by side and are asked in turns of a few milliseconds, so that both see
//! the same machine; they have one processor, the client has another.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use super::workload::{Spent, quiet, schedule_seconds};
use crate::bench::cpu;

/// Connections of memcached. It sets the limit of open files to just that, which valgrind permits only if it is the limit
/// there is, less the twelve that valgrind keeps.
const CONNECTIONS: &str = "1012";
/// Requests that one server gets before it is the other's turn.
const TURN: usize = 4000;
/// Requests in one packet, which the server may answer in one go: else the kernel takes four fifths of the time.
const BATCH: usize = 100;
const IN_ONE_GO: &str = "100";
/// Keys; all of them are there when the load begins.
const KEYS: usize = 5000;
const SERVER_CPU: &str = "0";
const CLIENT_CPU: &str = "1";

/// Processor time that each of two servers needs for as many requests.
pub(super) fn pair(first: &Path, second: &Path, requests: usize) -> anyhow::Result<[Spent; 2]> {
    pin_to(CLIENT_CPU);
    let mut servers = [
        Server::start(&mut pinned(first), &first.with_extension("socket-1"))?,
        Server::start(&mut pinned(second), &second.with_extension("socket-2"))?,
    ];
    let mut spent = [Spent::default(); 2];
    for turn in 0..2 * requests / TURN {
        // First, second, second, first: neither is always the one that comes later.
        let which = usize::from(matches!(turn % 4, 1 | 2));
        let server = &mut servers[which];
        let before = server.spent()?;
        server.load(TURN)?;
        let after = server.spent()?;
        spent[which].all += after.all - before.all;
        spent[which].user += after.user - before.user;
    }
    for server in servers {
        server.stop()?;
    }
    Ok(spent)
}

fn pinned(binary: &Path) -> Command {
    let mut command = quiet(Path::new("taskset"));
    command.args(["-c", SERVER_CPU]).arg(binary);
    command
}

/// Keeps this process on a processor; where that cannot be, the measurement is merely noisier.
fn pin_to(cpu: &str) {
    let id = std::process::id().to_string();
    let _status = quiet(Path::new("taskset"))
        .args(["-p", "-c", cpu, &id])
        .status();
}

/// A memcached that runs.
pub(super) struct Server {
    child: Child,
    connections: Vec<BufReader<UnixStream>>,
    sent: usize,
}

impl Server {
    pub(super) fn start(command: &mut Command, socket: &Path) -> anyhow::Result<Self> {
        if socket.exists() {
            fs::remove_file(socket)?;
        }
        let child = command
            .args(["-u", "root", "-t", "1", "-m", "64", "-A"])
            .args(["-R", IN_ONE_GO, "-c", CONNECTIONS, "-s"])
            .arg(socket)
            .spawn()?;
        let start = Instant::now();
        let mut connections = Vec::new();
        while connections.len() < 4 {
            match UnixStream::connect(socket) {
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
        let mut server = Self {
            child,
            connections,
            sent: 0,
        };
        for number in (0..KEYS).step_by(BATCH) {
            let packet = (number..number + BATCH).map(set).collect::<String>();
            server.ask(0, &packet, BATCH)?;
        }
        Ok(server)
    }

    /// One set to nine gets, all of keys that are there.
    pub(super) fn load(&mut self, requests: usize) -> anyhow::Result<()> {
        let until = self.sent + requests;
        while self.sent < until {
            let packet: String = (self.sent..self.sent + BATCH)
                .map(|number| {
                    let key = (number * 7919 + number / KEYS) % KEYS;
                    if number % 10 == 0 {
                        set(key)
                    } else {
                        format!("get key{key}\r\n")
                    }
                })
                .collect();
            let connection = self.sent / BATCH % self.connections.len();
            self.ask(connection, &packet, BATCH)?;
            self.sent += BATCH;
        }
        Ok(())
    }

    /// Sends requests and reads until all are answered: each answer ends with STORED or END.
    fn ask(&mut self, connection: usize, packet: &str, mut answers: usize) -> anyhow::Result<()> {
        let connection = &mut self.connections[connection];
        connection.get_mut().write_all(packet.as_bytes())?;
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

    /// Processor time of all threads so far.
    fn spent(&self) -> anyhow::Result<Spent> {
        let mut spent = Spent::default();
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let task = task?.path();
            spent.all += schedule_seconds(&task)?;
            let [user, _] = cpu::user_and_system(&fs::read_to_string(task.join("stat"))?);
            spent.user += user;
        }
        Ok(spent)
    }

    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        self.connections[0].get_mut().write_all(b"shutdown\r\n")?;
        self.child.wait()?;
        Ok(())
    }
}

fn set(key: usize) -> String {
    let value = "v".repeat(100);
    format!("set key{key} 0 0 {}\r\n{value}\r\n", value.len())
}
