//! Campaigns whose workers are behind a hub: options, and the way from a program to its crew there.

pub(crate) mod kernel;
pub(crate) mod program;
pub(crate) mod serial;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use raddle_campaign::{Begun, Listener, Options, Report, ReportOf, Stage, begin, sample_with};
use raddle_explore::{Program, ProgramReport, StartFailure};
use raddle_hub::{
    Access, Campaign, Comparable, Ears, Figures, Hub, HubCrew, Identity, Manifest, Wishes,
};
use raddle_kernel::campaign::{KernelReport, KernelTest, StartFailure as KernelStartFailure};
use raddle_kernel::recording::KernelRecording;
use raddle_linux::ContentId;
use raddle_report::words::counted;
use raddle_trace::Recording;
use serial::Histories;

use crate::commands::kernel::prepare::SymbolSources;
use crate::message;

/// Who does the work.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Workers on other machines")]
pub(crate) struct HubOptions {
    /// Have the schedules run by the workers of this hub (see `raddle hub` and `raddle worker`), such as
    /// nats://host:4222; results are the same.
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    #[command(flatten)]
    keys: HubKeys,
    /// Continue a campaign of the same command that was broken off: what its workers told is not run again.
    #[arg(long, requires = "hub")]
    resume: bool,
    /// Have this part of the schedules run twice, and compare.
    #[arg(long, value_name = "PERCENT", requires = "hub", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=100))]
    cross_check: u64,
}

/// How to get into a hub. A user and a password can be part of the address.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct HubKeys {
    /// A file with user credentials of NATS.
    #[arg(long, value_name = "FILE")]
    hub_credentials: Option<PathBuf>,
    /// A file with the seed of an nkey.
    #[arg(long, value_name = "FILE")]
    hub_nkey: Option<PathBuf>,
    /// Certificates of the authorities to trust, for tls:// addresses.
    #[arg(long, value_name = "FILE")]
    hub_ca: Option<PathBuf>,
}

impl HubKeys {
    pub(crate) fn access(&self, url: &str) -> Access {
        Access {
            url: url.to_owned(),
            credentials: self.hub_credentials.clone(),
            nkey: self.hub_nkey.clone(),
            user: None,
            ca: self.hub_ca.clone(),
        }
    }
}

/// This build of raddle.
pub(crate) fn identity() -> anyhow::Result<Identity> {
    Identity::of_program(Path::new("/proc/self/exe"), env!("CARGO_PKG_VERSION"))
        .context("cannot read this program, whose digest tells workers of the same build")
}

/// A hub that campaigns are sent to.
#[derive(Debug)]
pub(crate) struct Remote {
    hub: Hub,
    identity: Identity,
    wishes: Wishes,
}

impl HubOptions {
    /// The same options as words, for a command that takes them. It continues what was broken off.
    pub(crate) fn words(&self) -> Vec<String> {
        let Some(url) = &self.hub else {
            return Vec::new();
        };
        let mut words = vec![
            format!("--hub={url}"),
            format!("--cross-check={}", self.cross_check),
            "--resume".to_owned(),
        ];
        let files = [
            ("--hub-credentials", &self.keys.hub_credentials),
            ("--hub-nkey", &self.keys.hub_nkey),
            ("--hub-ca", &self.keys.hub_ca),
        ];
        for (option, file) in files {
            // The command may be run in another folder.
            let file = file
                .as_ref()
                .map(|file| std::path::absolute(file).unwrap_or(file.clone()));
            words.extend(file.map(|file| format!("{option}={}", file.display())));
        }
        words
    }

    /// The hub, if the user wants one.
    pub(crate) fn connect(&self) -> anyhow::Result<Option<Remote>> {
        let Some(url) = &self.hub else {
            return Ok(None);
        };
        Ok(Some(Remote {
            hub: Hub::connect(&self.keys.access(url))?,
            identity: identity()?,
            wishes: Wishes {
                resume: self.resume,
                checked_per_mille: self.cross_check * 10,
            },
        }))
    }
}

/// What came of a campaign, and what it cost on the hub.
pub(crate) type Explored<R, F> = (Result<R, F>, Figures);
/// The same for programs.
pub(crate) type ExploredProgram = Explored<ProgramReport, StartFailure>;
/// The same for tests of kernels.
pub(crate) type ExploredKernel = Explored<KernelReport, KernelStartFailure>;

/// A subject as it travels.
struct Parcel<'a> {
    manifest: Manifest,
    files: BTreeMap<ContentId, Vec<u8>>,
    /// Stands for everything that decides which jobs there will be, besides the manifest.
    seed: u64,
    /// Told what workers tell besides outcomes.
    beside: &'a dyn Fn(&serde_json::Value),
}

const NOT_EXHAUSTIVE: &str = "`--exhaustive` goes through interleavings one after the other, each chosen by the one before: no hub can help; leave out `--hub`";

impl Remote {
    /// Explores a program as `raddle_explore::explore` does, with the workers of the hub.
    pub(crate) fn explore(
        &self,
        program: &Program,
        name: &str,
        news: &mut Listener<'_, Recording>,
    ) -> anyhow::Result<ExploredProgram> {
        self.explore_judged(program, name, &|_| (), news)
    }

    /// The same for a program whose runs are compared with serial orders.
    pub(crate) fn linearize(
        &self,
        program: &Program,
        name: &str,
        histories: &Histories,
        news: &mut Listener<'_, Recording>,
    ) -> anyhow::Result<ExploredProgram> {
        self.explore_judged(program, name, &|told| histories.hear(told), news)
    }

    fn explore_judged(
        &self,
        program: &Program,
        name: &str,
        beside: &dyn Fn(&serde_json::Value),
        news: &mut Listener<'_, Recording>,
    ) -> anyhow::Result<ExploredProgram> {
        if program.exhaustive {
            bail!(NOT_EXHAUSTIVE);
        }
        if program.about.oracle.is_some() {
            bail!(
                "`--oracle` is a command of this machine, and workers run nothing outside of the guest: give the right output with `--expect-output`, or leave out `--hub`"
            );
        }
        let begun = match begin(program, news) {
            Ok(Some(begun)) => begun,
            Ok(None) => return Ok((Ok(ended(&program.options)), Figures::default())),
            Err(failure) => return Ok((Err(failure), Figures::default())),
        };
        let mut files = BTreeMap::new();
        let parcel = Parcel {
            manifest: program::manifest(program, &begun.stage, name, &self.identity, &mut files)?,
            files,
            seed: program::campaign_seed(program),
            beside,
        };
        self.sample(program, begun, parcel, news)
    }

    /// Explores a test of a kernel as `raddle_kernel::campaign::explore` does, with the workers of the hub.
    pub(crate) fn explore_kernel(
        &self,
        test: &KernelTest<'_>,
        sources: &SymbolSources,
        news: &mut Listener<'_, KernelRecording>,
    ) -> anyhow::Result<ExploredKernel> {
        if test.exhaustive {
            bail!(NOT_EXHAUSTIVE);
        }
        if test.target.judge.is_some() {
            bail!(
                "calls of kernels are compared with serial orders on one machine only: leave out `--linearize` or `--hub`"
            );
        }
        let begun = match begin(test, news) {
            Ok(Some(begun)) => begun,
            Ok(None) => {
                let report = KernelReport {
                    campaign: ended(&test.options),
                    ..KernelReport::default()
                };
                return Ok((Ok(report), Figures::default()));
            }
            Err(failure) => return Ok((Err(failure), Figures::default())),
        };
        let fixed_threads = begun.stage.world.info().fixed_threads.clone();
        let mut files = BTreeMap::new();
        let parcel = Parcel {
            manifest: kernel::manifest(test.target, sources, &self.identity, &mut files)?,
            files,
            seed: kernel::campaign_seed(test),
            beside: &|_| (),
        };
        let (report, figures) = self.sample(test, begun, parcel, news)?;
        let report = report.map(|campaign| KernelReport {
            campaign,
            fixed_threads,
        });
        Ok((report, figures))
    }

    /// Has the schedules of a subject run by the workers of the hub.
    fn sample<S: Comparable>(
        &self,
        subject: &S,
        begun: Begun<S>,
        parcel: Parcel<'_>,
        news: &mut Listener<'_, <S::Stage as Stage>::Recording>,
    ) -> anyhow::Result<Explored<ReportOf<S>, S::StartFailure>> {
        let Parcel {
            manifest,
            files,
            seed,
            beside,
        } = parcel;
        let campaign = Campaign::open(&self.hub, &manifest, &files, seed)?;
        drop(files);
        message::note(&format!(
            "campaign {} on {}: {} ({} bytes) sent there",
            campaign.id,
            self.hub.url(),
            counted(campaign.sent.0, "file"),
            campaign.sent.1
        ));
        let ears = Ears {
            notice: &|text| message::warning(text),
            beside,
        };
        let mut crew = HubCrew::new(&self.hub, subject, campaign, self.wishes, ears)?;
        let report = sample_with(subject, begun, &mut crew, news);
        let is_over = match &report {
            Ok(report) => !report.was_cancelled && !report.was_stopped,
            Err(_) => true,
        };
        let figures = crew.end(is_over);
        message::note(&in_words(&figures));
        Ok((report, figures))
    }
}

/// The report of a campaign that ended before its first run did.
fn ended<R, T: Default>(options: &Options) -> Report<R, T> {
    let mut report = Report::default();
    report.note_end(&options.cancel);
    report
}

/// Complains if workers told different things of so many schedules.
pub(crate) fn agreed(disagreements: usize) -> anyhow::Result<()> {
    anyhow::ensure!(
        disagreements == 0,
        "workers came to different outcomes of {disagreements} schedules: a machine is broken, or raddle is not deterministic; please report it"
    );
    Ok(())
}

fn in_words(figures: &Figures) -> String {
    let Figures {
        batches,
        jobs,
        bytes_out,
        bytes_in,
        messages_in,
        doubled,
        repeated,
        done_here,
        reason,
        resumed,
        refused,
        differences,
        workers,
    } = figures;
    let mut text = format!(
        "hub: {jobs} jobs in {batches} messages of {bytes_out} bytes, {messages_in} messages of {bytes_in} bytes back from {}",
        counted(u64::try_from(workers.len()).unwrap_or(u64::MAX), "worker")
    );
    let parts = [
        (*doubled, "times jobs were given out again"),
        (*repeated, "outcomes came again"),
        (*resumed, "outcomes were there already"),
        (*refused, "messages were refused"),
        (*done_here, "jobs were done here"),
    ];
    for (count, what) in parts {
        if count > 0 {
            text.push_str(&format!("; {count} {what}"));
        }
    }
    if let Some(reason) = reason {
        text.push_str(&format!(" ({reason})"));
    }
    if !differences.is_empty() {
        text.push_str(&format!(
            "; {} jobs had two different outcomes",
            differences.len()
        ));
    }
    text
}
