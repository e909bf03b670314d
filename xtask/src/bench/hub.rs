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
    /// Of the director, when workers did the schedules.
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
        let _server = Running(server);
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
            "| instructions of a schedule | local, schedules/s | hub, schedules/s | of local | messages per 1,000 schedules | bytes per 1,000 schedules | CPU s of the director per 10^6 schedules |"
        );
        println!("|---|---|---|---|---|---|---|");
        let mut costs = Vec::new();
        for rounds in [10, 200, 2_000, 20_000] {
            costs.extend(self.compare(&raddle, &folder, rounds, &url)?);
        }
        println!();
        simulation::table(&costs);
        Ok(())
    }

    fn compare(
        &self,
        raddle: &Path,
        folder: &Path,
        rounds: u64,
        url: &str,
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
        let hub = explore(raddle, &program, schedules, &["--hub", url])?;
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
            "| {steps} | {:.0} | {:.0} | {:.1} % | {:.1} | {:.0} | {:.1} |",
            local.rate(),
            hub.rate(),
            100.0 * hub.rate() / local.rate(),
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
    let count = |name: &str| json["counts"][name].as_u64().or(json[name].as_u64());
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

/// `0m1.234s`.
fn minutes_seconds(word: &str) -> Option<f64> {
    let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}
