//! `raddle campaign`: a corpus of subjects that is explored round the clock, where new behaviour still appears.
//!
//! ```text
//!   corpus.toml ──create──▶ STORE/NAME/campaign.json ◀── after each round, whole or not at all
//!                              │ energy: whose turn?         ▲
//!                              ▼                             │
//!                           a round: `raddle explore …` as a process of its own, in a folder of its own
//! ```
//!
//! A round is a function of the subject and its number: one that was killed is run again, and counts once.
//!
//! Reading order: [`subjects`] (what the user writes), [`state`] (what is known), [`place`] (where it lies), [`energy`]
//! (whose turn it is), [`round`] (one round), [`resume`] (one after the other), [`tell`] (what users see).

mod energy;
mod known;
mod metrics;
mod place;
mod resume;
mod round;
mod state;
mod subjects;
mod tell;

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Subcommand};

use self::place::{Place, Store};
use self::subjects::Corpus;
use crate::exit::{Code, Failure};
use crate::message;

/// Explore a corpus of programs and tests of kernels round the clock, where new behaviour still appears.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle campaign create nightly corpus.toml\n  raddle campaign resume nightly\n  raddle campaign resume nightly --time 8h --hub nats://host:4222\n  raddle campaign show nightly\n  raddle campaign accept nightly C-7832 --reason \"known, issue 41\"\n\ncorpus.toml:\n  round-schedules = 1000\n  [[subject]]\n  name = \"bank\"\n  run = [\"explore\", \"--\", \"./bank\"]\n  [[subject]]\n  name = \"pipe\"\n  run = [\"kernel\", \"explore\", \"--kernel\", \"/boot/vmlinuz\", \"pipe.ktest\"]"
)]
pub(crate) struct Campaign {
    #[command(subcommand)]
    command: CampaignCommand,
}

#[derive(Debug, Subcommand)]
enum CampaignCommand {
    Create(Create),
    List(List),
    Show(tell::Show),
    Resume(Box<resume::Resume>),
    Pause(Pause),
    Accept(known::Accept),
    Metrics(tell::Metrics),
    Delete(Delete),
}

/// A campaign by its name.
#[derive(Debug, Args)]
struct Named {
    /// The campaign.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    stored: Stored,
}

/// Where campaigns are.
#[derive(Debug, Args)]
struct Stored {
    /// Folder with campaigns.
    #[arg(long, value_name = "DIR", default_value = "raddle-campaigns")]
    store: PathBuf,
}

impl Named {
    fn place(&self) -> anyhow::Result<Place> {
        Store::at(&self.stored.store)?.find(&self.name)
    }
}

/// Make a campaign from a file that names its subjects; `resume` begins it.
#[derive(Debug, Args)]
struct Create {
    #[command(flatten)]
    named: Named,
    /// The subjects, and how they are explored.
    #[arg(value_name = "CORPUS.toml")]
    corpus: PathBuf,
}

impl Create {
    fn run(&self) -> anyhow::Result<Code> {
        let state = Corpus::read(&self.corpus)?.begin(&self.named.name)?;
        let store = Store::at(&self.named.stored.store)?;
        let place = store.create(&self.named.name, &state)?;
        message::note(&format!(
            "campaign {} with {} subjects is in {}; begin it with: raddle campaign resume {0}",
            state.name,
            state.subjects.len(),
            place.folder().display()
        ));
        Ok(Code::Clean)
    }
}

/// List all campaigns.
#[derive(Debug, Args)]
struct List {
    #[command(flatten)]
    stored: Stored,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl List {
    fn run(&self) -> anyhow::Result<Code> {
        let places = Store::at(&self.stored.store)?.all()?;
        let states = places.iter().map(|place| Ok((place, place.read()?)));
        let states: Vec<_> = states.collect::<anyhow::Result<_>>()?;
        message::result(&tell::list(&states, self.json)?)?;
        Ok(Code::Clean)
    }
}

/// Let a campaign end after the round that is under way; `resume` goes on.
#[derive(Debug, Args)]
struct Pause {
    #[command(flatten)]
    named: Named,
}

impl Pause {
    fn run(&self) -> anyhow::Result<Code> {
        let place = self.named.place()?;
        place.set_paused(true)?;
        message::note(if place.is_busy()? {
            "it ends after the round that is under way"
        } else {
            "it was not running"
        });
        Ok(Code::Clean)
    }
}

/// Throw a campaign away, with its findings.
#[derive(Debug, Args)]
struct Delete {
    #[command(flatten)]
    named: Named,
}

impl Delete {
    fn run(&self) -> anyhow::Result<Code> {
        let place = self.named.place()?;
        let Some(_lock) = place.lock()? else {
            bail!(
                "campaign {} is running: `raddle campaign pause {0}` first",
                self.named.name
            );
        };
        place.delete()?;
        Ok(Code::Clean)
    }
}

impl Campaign {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        match self.command {
            CampaignCommand::Create(command) => Ok(command.run()?),
            CampaignCommand::List(command) => Ok(command.run()?),
            CampaignCommand::Show(command) => Ok(command.run()?),
            CampaignCommand::Resume(command) => command.run(),
            CampaignCommand::Pause(command) => Ok(command.run()?),
            CampaignCommand::Accept(command) => Ok(command.run()?),
            CampaignCommand::Metrics(command) => Ok(command.run()?),
            CampaignCommand::Delete(command) => Ok(command.run()?),
        }
    }
}
