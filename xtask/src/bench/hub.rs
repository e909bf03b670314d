//! `cargo xtask bench hub`: two workers behind a hub beside two local threads, what messages cost, and from that what
//! many workers would come to.
#![expect(clippy::print_stdout, reason = "the tables are the result")]

mod simulation;

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Args;

use crate::shell;
use simulation::Costs;

/// Two threads that take a lock in turns and compute for so many rounds between: rounds are about three instructions.
const SOURCE: &str = "
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long shared;
static long compute(long rounds) { volatile long x = 1; for (long i = 0; i < rounds; i++) x += i; return x; }
static void *work(void *unused) {
    for (int turn = 0; turn < 4; turn++) {
        pthread_mutex_lock(&lock);
        shared += compute(ROUNDS) > 0;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}
int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, work, 0);
    pthread_create(&two, 0, work, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    return shared != 8;
}
";

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Hub {
    /// The raddle to use; default: a release build.
    #[arg(long)]
    raddle: Option<PathBuf>,
    /// Seconds of each local campaign, about.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Kill workers, server and director so many times, too: nothing may be lost, nothing may count twice.
    #[arg(long, default_value_t = 0)]
    kills: u64,
}

/// A process that ends with the measurement.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// What a campaign took.
struct Took {
    schedules: u64,
    instructions: u64,
    seconds: f64,
    /// Of its own process: when workers did the schedules, that of the director.
    cpu: f64,
    told: String,
}

impl Took {
    fn rate(&self) -> f64 {
        as_f64(self.schedules) / self.seconds
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures of a table")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

impl Hub {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let raddle = shell::release_build(self.raddle.as_deref())?;
        let folder = shell::target_folder().join("bench-hub");
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder)?;
        let socket = TcpListener::bind("127.0.0.1:0")?;
        let address = socket.local_addr()?.to_string();
        drop(socket);
        let url = format!("nats://{address}");
        let quiet = || Stdio::null();
        let server = Command::new(&raddle)
            .args(["hub", "--listen", &address, "--store"])
            .arg(folder.join("hub"))
            .stderr(quiet())
            .spawn()?;
        let server = Running(server);
        while TcpStream::connect(&address).is_err() {
            std::thread::yield_now();
        }
        let mut workers = Vec::new();
        for name in ["one", "two"] {
            let worker = Command::new(&raddle)
                .args(["worker", "--hub", &url, "--jobs", "1", "--name", name])
                .arg("--cache")
                .arg(folder.join(name))
                .stderr(quiet())
                .spawn()?;
            workers.push(Running(worker));
        }
        println!(
            "Two workers with one thread each, director and server on the same machine, beside two local threads.\n"
        );
        println!(
            "| instructions of a schedule | local, schedules/s | hub, schedules/s | of local | the same by time of all processors | messages per 1,000 schedules | bytes per 1,000 schedules | CPU s of the director per 10^6 schedules |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        let others: Vec<u32> = workers
            .iter()
            .chain([&server])
            .map(|one| one.0.id())
            .collect();
        let mut costs = Vec::new();
        for rounds in [10, 200, 2_000, 20_000] {
            costs.extend(self.compare((&raddle, &folder), rounds, (&url, &others))?);
        }
        println!();
        simulation::table(&costs);
        drop(workers);
        if self.kills > 0 {
            kill(self.kills)?;
        }
        Ok(())
    }

    fn compare(
        &self,
        (raddle, folder): (&Path, &Path),
        rounds: u64,
        (url, others): (&str, &[u32]),
    ) -> anyhow::Result<Option<Costs>> {
        let source = folder.join(format!("work{rounds}.c"));
        let program = source.with_extension("");
        std::fs::write(&source, SOURCE.replace("ROUNDS", &rounds.to_string()))?;
        let built = Command::new("gcc")
            .args(["-O1", "-g", "-pthread", "-o"])
            .args([&program, &source])
            .status()?;
        ensure!(built.success(), "the program does not compile");
        let first = explore(raddle, &program, 500, &["--jobs", "2"])?;
        let wanted = first.rate() * as_f64(self.seconds);
        let schedules = shell_round(wanted).max(500);
        let local = explore(raddle, &program, schedules, &["--jobs", "2"])?;
        let before = cpu_of(others)?;
        let hub = explore(raddle, &program, schedules, &["--hub", url])?;
        let cpu = hub.cpu + cpu_of(others)? - before;
        ensure!(
            local.schedules == hub.schedules && local.instructions == hub.instructions,
            "the hub has another answer"
        );
        let numbers: Vec<u64> = hub
            .told
            .split(|character: char| !character.is_ascii_digit())
            .filter_map(|word| word.parse().ok())
            .collect();
        let [_, out, bytes_out, back, bytes_back, ..] = numbers[..] else {
            anyhow::bail!("the hub's figures are missing: {}", hub.told);
        };
        let per_thousand = |count: u64| as_f64(count) * 1000.0 / as_f64(hub.schedules);
        let steps = local.instructions / local.schedules.max(1);
        println!(
            "| {steps} | {:.0} | {:.0} | {:.1} % | {:.1} % | {:.1} | {:.0} | {:.1} |",
            local.rate(),
            hub.rate(),
            100.0 * hub.rate() / local.rate(),
            100.0 * local.cpu / cpu.max(1e-9),
            per_thousand(out + back),
            per_thousand(bytes_out + bytes_back),
            hub.cpu * 1e6 / as_f64(hub.schedules),
        );
        Ok(Some(Costs {
            steps,
            service: 2.0 / local.rate(),
            director: hub.cpu / as_f64(hub.schedules),
            generation: (hub.seconds - local.seconds).max(0.0) * 64.0 / as_f64(hub.schedules),
        }))
    }
}

/// The test that kills, with more kills: it fails if something is lost or counts twice.
fn kill(kills: u64) -> anyhow::Result<()> {
    let begun = Instant::now();
    let status = Command::new("cargo")
        .args(["nextest", "run", "-p", "raddle", "--test", "hub"])
        .arg("whoever_dies_nothing_is_lost_and_nothing_counts_twice")
        .env("RADDLE_HUB_KILLS", kills.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    ensure!(
        status.success(),
        "after {kills} kills, the answer was another one"
    );
    println!(
        "\n{kills} times a worker, the server or the director was killed at a random moment, in turns, during one campaign of {} schedules: the answer was that of a local run, bit for bit ({:.0} s).",
        kills * 700,
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of schedules, far from the limits"
)]
fn shell_round(number: f64) -> u64 {
    number as u64
}

/// Runs a campaign under a shell that tells the processor time of its children.
fn explore(raddle: &Path, program: &Path, schedules: u64, more: &[&str]) -> anyhow::Result<Took> {
    let begun = Instant::now();
    let output = Command::new("bash")
        .args(["-c", "\"$@\"; status=$?; times >&2; exit $status", "bash"])
        .arg(raddle)
        .args(["explore", "--json", "--time", "1h", "--seed", "1"])
        .args(["--schedules", &schedules.to_string()])
        .args(more)
        .arg("--")
        .arg(program)
        .output()?;
    let seconds = begun.elapsed().as_secs_f64();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(0), "{told}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let count = |name: &str| json["summary"][name].as_u64();
    let times = told.lines().last().context("the shell tells times")?;
    let line = told.lines().find(|line| line.contains("hub: "));
    Ok(Took {
        schedules: count("schedules").context("schedules are counted")?,
        instructions: count("steps").context("steps are counted")?,
        seconds,
        cpu: times.split_whitespace().filter_map(minutes_seconds).sum(),
        told: line.unwrap_or_default().to_owned(),
    })
}

/// Seconds of processors that processes have taken so far.
fn cpu_of(processes: &[u32]) -> anyhow::Result<f64> {
    /// Clock ticks of a second in `/proc`.
    const TICKS: f64 = 100.0;
    let mut ticks = 0;
    for process in processes {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
        // The name in parentheses may hold anything; `utime` and `stime` are the 12th and 13th word behind it.
        let words = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let words = words.split_whitespace().skip(11).take(2);
        ticks += words
            .filter_map(|word| word.parse::<u64>().ok())
            .sum::<u64>();
    }
    Ok(as_f64(ticks) / TICKS)
}

/// `0m1.234s`.
fn minutes_seconds(word: &str) -> Option<f64> {
    let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}
