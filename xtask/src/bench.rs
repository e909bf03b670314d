//! Measurements, as ratios to baselines taken in the same run; what each prints is kept in `bench/`.

use clap::Subcommand;

mod against;
mod clean;
mod cpu;
mod engine;
mod explore;
mod harden;
mod hub;
mod kernel;
mod kernel_campaign;
mod kernel_races;
mod linearize;
mod predict;
mod record;
mod replay;
mod results;
mod scan;
mod scan_tables;
mod travel;

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// This build beside another one: campaigns of programs and kernels, explanations, in alternating runs.
    Against(against::Against),
    /// Correct programs of many idioms and languages: nothing may be reported.
    Clean(clean::Clean),
    /// Speed of the engine: kernels, programs, restores.
    Engine,
    /// The search: schedules to the bug by scheduler, schedules per second, peers.
    Explore(explore::Explore),
    /// Hardening: sites and points of real programs, overhead, recovery time, and the setjmp mechanism beside it.
    Harden(harden::Harden),
    /// Two workers behind a hub beside two local threads; what many workers would come to.
    Hub(hub::Hub),
    /// Kernels: schedules to known bugs, throughput, heuristics, determinism.
    Kernel(kernel::Kernel),
    /// Many tests on the packaged kernel, in parts that can be taken up again.
    KernelCampaign(kernel_campaign::KernelCampaign),
    /// Real races of Linux: kernels with their fixes undone, built, explored, replayed.
    KernelRaces(kernel_races::KernelRaces),
    /// Servers compared with serial orders: tests made of scripts, the inputs of Table 5.2.
    Linearize(linearize::Linearize),
    /// Predictions: the bugs of the papers from runs that end well, with `explore` beside it.
    Predict(predict::Predict),
    /// Recordings of ordinary runs: a server with its clients, size and time to have it again.
    Record {
        /// The raddle to use; default: a release build.
        #[arg(long)]
        raddle: Option<std::path::PathBuf>,
    },
    /// Replay: 10,000 replays of 20 findings.
    Replay {
        /// The raddle to use; default: a release build.
        #[arg(long)]
        raddle: Option<std::path::PathBuf>,
    },
    /// The static scanner: what each analysis brings, speed, memory, and Coccinelle beside it.
    Scan(scan::Scan),
    /// Steps back, and who wrote a value last, in recorded runs of up to 10^8 instructions.
    Travel {
        /// The raddle to use; default: a release build.
        #[arg(long)]
        raddle: Option<std::path::PathBuf>,
    },
}

pub(crate) fn run(bench: &Bench) -> anyhow::Result<()> {
    if !results::is_measuring() {
        return results::keep();
    }
    match bench {
        Bench::Against(against) => against.run(),
        Bench::Clean(clean) => clean.run(),
        Bench::Engine => engine::run(),
        Bench::Explore(explore) => explore.run(),
        Bench::Harden(harden) => harden.run(),
        Bench::Hub(hub) => hub.run(),
        Bench::Kernel(kernel) => kernel.run(),
        Bench::KernelCampaign(campaign) => campaign.run(),
        Bench::KernelRaces(races) => races.run(),
        Bench::Linearize(linearize) => linearize.run(),
        Bench::Predict(predict) => predict.run(),
        Bench::Record { raddle } => record::run(raddle.as_deref()),
        Bench::Replay { raddle } => replay::run(raddle.as_deref()),
        Bench::Scan(scan) => scan.run(),
        Bench::Travel { raddle } => travel::run(raddle.as_deref()),
    }
}

/// The value in the middle; 0 of none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
