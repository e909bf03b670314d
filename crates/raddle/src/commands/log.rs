//! `raddle log`: shows an event log.

use std::io::BufReader;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;
use raddle_report::words::{counted, printable};
use raddle_trace::log::{Ending, Head, Item, LogReader};

use crate::event_json;
use crate::event_text;
use crate::exit::{Code, Failure};
use crate::output::{Destination, Output};

/// Show an event log that `raddle run --trace=FILE` has written.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle log bank.events | less\n  raddle log --context 2 bank.events\n  raddle log --json bank.events | jq 'select(.event == \"acquire\")'"
)]
pub(crate) struct Log {
    /// The log.
    file: PathBuf,
    /// One JSON object a line: the head, then events and facts in order, then the end.
    #[arg(long)]
    json: bool,
    /// Only what this context does (repeatable).
    #[arg(long, value_name = "N")]
    context: Vec<u32>,
}

impl Log {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let name = || format!("cannot show {}", self.file.display());
        let file = raddle_stdx::regular_file::open(&self.file).with_context(name)?;
        let mut reader = LogReader::new(BufReader::new(file)).with_context(name)?;
        let mut output = Output::open(&Destination::Stdout)?;
        output.write(&if self.json {
            event_json::head(reader.head())
        } else {
            head_text(reader.head())
        })?;
        let mut events = 0_u64;
        while let Some(item) = reader.item().with_context(name)? {
            events += u64::from(matches!(item, Item::Event(_)));
            if self.is_wanted(&item) {
                output.write(&self.line(&item))?;
            }
        }
        let ending = reader.ending().unwrap_or(Ending::Truncated);
        if self.json {
            output.write(&event_json::ending(ending, events))?;
        }
        output.close()?;
        match ending {
            Ending::Whole { digest } if !self.json => {
                crate::message::note(&format!(
                    "{}, digest {digest:016x}",
                    counted(events, "event")
                ));
            }
            Ending::Whole { .. } => {}
            Ending::Truncated => {
                return Err(self.broken("is cut off; what stands above is whole", events));
            }
            Ending::Damaged => {
                return Err(self.broken("is damaged behind what stands above", events));
            }
        }
        Ok(Code::Clean)
    }

    fn broken(&self, how: &str, events: u64) -> Failure {
        let events = counted(events, "event");
        anyhow!("{} {how} ({events})", self.file.display()).into()
    }

    fn is_wanted(&self, item: &Item) -> bool {
        let (Item::Event(raddle_world::Event { context, .. }) | Item::Fact { context, .. }) = item;
        self.context.is_empty() || self.context.contains(&context.0)
    }

    fn line(&self, item: &Item) -> String {
        match item {
            item if self.json => event_json::item(item),
            Item::Event(event) => format!("{}\n", event_text::line(event)),
            Item::Fact { fact, .. } => format!("{:>32} {}\n", "·", event_text::fact(fact)),
        }
    }
}

fn head_text(head: &Head) -> String {
    let mut text = format!(
        "log of `{}`, seed {}, by {}\n",
        printable(&head.subject.join(" ")),
        head.seed,
        printable(&head.writer)
    );
    for image in &head.images {
        let id = image.build_id.as_deref().unwrap_or("no build id");
        text.push_str(&format!(
            "image {} ({})\n",
            printable(&image.path),
            printable(id)
        ));
    }
    text
}
