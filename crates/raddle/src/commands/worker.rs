//! `raddle worker`: does the work of campaigns on other machines.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use raddle_campaign::Cancel;
use raddle_hub::{Cache, Hub, Manifest, Workplace, serve};

use crate::exit::{Code, Failure};
use crate::hub::kernel::{self, Targets};
use crate::hub::program::{self, Limits};
use crate::hub::{HubKeys, identity};
use crate::interrupt::Interrupt;
use crate::{message, units};

/// Run schedules for campaigns that were started with `--hub`, until Ctrl-C.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  raddle worker --hub nats://host:4222\n\nA worker runs what the hub gives it, inside of raddle's own machine: a program sees only the files that were sent with it, never those of the worker. It works only for directors of the same build of raddle."
)]
pub(crate) struct RunWorker {
    /// The hub, such as nats://host:4222.
    #[arg(long, value_name = "URL")]
    hub: String,
    #[command(flatten)]
    keys: HubKeys,
    /// Schedules at one time. Default: one per core.
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// The name by which directors know this worker. Default: the name of the machine and the process.
    #[arg(long)]
    name: Option<String>,
    /// Folder for the files of programs. Default: ~/.cache/raddle/hub.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Size of that folder at most, in MiB, or with M or G.
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = units::mebibytes)]
    cache_size: u64,
    /// Memory that a program may ask for at most, in MiB, or with M or G.
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = units::mebibytes)]
    max_memory: u64,
    /// Time that jobs which came together may take before they are given back: seconds, or 90s, 5m.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = units::seconds)]
    job_time: u64,
}

/// Threads and processes of a program at one time; as `--max-processes` has it.
const PROCESSES_MAX: usize = 4096;

impl RunWorker {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let interrupt = Interrupt::listen()?;
        let folder = match &self.cache {
            Some(folder) => folder.clone(),
            None => default_cache()?,
        };
        let cache = Cache::open(&folder, self.cache_size << 20)
            .with_context(|| format!("cannot keep files in {}", folder.display()))?;
        let hub = Hub::connect(&self.keys.access(&self.hub))?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let limits = Limits {
            memory_max: self.max_memory << 20,
            processes_max: PROCESSES_MAX,
        };
        let targets = Targets::default();
        let open =
            |manifest: &Manifest, cache: &Cache, cancel: &Cancel| match manifest.kind.as_str() {
                program::KIND => program::bench(manifest, cache, cancel, limits),
                kernel::KIND => targets.bench(manifest, cache, cancel, limits),
                other => Err(format!(
                    "this worker does not know subjects of kind `{other}`"
                )),
            };
        let workplace = Workplace {
            identity: identity()?,
            name: self.name.clone().unwrap_or_else(own_name),
            threads: self.jobs.unwrap_or(cores).max(1),
            cache,
            batch_time: Duration::from_secs(self.job_time),
            open: &open,
            log: &message::note,
            is_over: &|| interrupt.is_requested(),
        };
        message::note(&format!(
            "worker {} with {} threads waits for jobs on {}; {}",
            workplace.name,
            workplace.threads,
            hub.url(),
            workplace.identity
        ));
        let done = serve(&hub, &workplace)?;
        message::note(&format!("worker {}: {done} jobs done", workplace.name));
        Ok(Code::Clean)
    }
}

fn own_name() -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}-{}", machine.trim(), std::process::id())
}

fn default_cache() -> anyhow::Result<PathBuf> {
    let home = std::env::home_dir().context("there is no home folder: name one with --cache")?;
    Ok(home.join(".cache/raddle/hub"))
}
