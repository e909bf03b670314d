//! `raddle linearize import`: concurrent tests of a server from a sequential script.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Args;
use raddle_campaign::pairs::{Profiler, rank};
use raddle_campaign::{Stage as _, Subject as _};
use raddle_explore::{About, Judge, SnapshotAt};
use raddle_linearize::ServerTest;
use raddle_linearize::import::{ImportError, cut, requests, test_text};
use raddle_report::words::counted;
use raddle_sched::Follow;
use raddle_stdx::width::to_u64;
use raddle_trace::{Inputs, Schedule};
use raddle_world::{Event, EventKind, Mark};

use super::read;
use crate::commands::explore::{ExploreOptions, start_failure};
use crate::exit::{Code, Failure};
use crate::keep;
use crate::message;
use crate::program_options::ProgramOptions;

/// Make concurrent tests of a server from a sequential script: pairs of requests that touch common memory.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle linearize import --template redis.toml --to tests script.redis\n  raddle linearize import --template mariadb.toml --to tests --tests 20 join.test\n\nThe script has SQL statements (plain ones of a mysqltest script, too), lines of redis-cli, requests of memcached's text protocol, or HTTP requests, as the protocol of the template says."
)]
pub(crate) struct Import {
    /// A test file that says how the server starts, what is set up and which probes are asked; its clients do not count.
    #[arg(long, value_name = "FILE")]
    template: PathBuf,
    /// Folder for the tests; 001.toml is the most promising one.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Tests at most.
    #[arg(long, value_name = "N", default_value_t = 100)]
    tests: usize,
    #[command(flatten)]
    options: ExploreOptions,
    #[command(flatten)]
    program: ProgramOptions,
}

impl Import {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let Some(script) = self.program.single() else {
            return Err(anyhow!("one script at a time: name one file").into());
        };
        let template = read(&self.template, "template")?;
        let shown = self.template.display();
        let test = ServerTest::template(&template)
            .map_err(|error| anyhow!("cannot use the template {shown}: {error}"))?;
        let all = requests(&test.scripts.protocol, &read(&script, "script")?);
        if all.len() < 2 {
            return Err(anyhow!(ImportError::TooFew(all.len())).into());
        }
        let profiler = self.profile(&test, &all)?;
        if profiler.footprints.len() < all.len() {
            message::warning(&format!(
                "the server served {} of {} only",
                profiler.footprints.len(),
                counted(to_u64(all.len()), "request")
            ));
        }
        let pairs = rank(&profiler.footprints);
        std::fs::create_dir_all(&self.to)
            .with_context(|| format!("cannot make {}", self.to.display()))?;
        let near = pairs
            .iter()
            .filter_map(|pair| Some((pair, cut(&all, pair)?)));
        let mut count = 0;
        for (pair, parts) in near.take(self.tests) {
            count += 1;
            let comment = format!(
                "requests {} and {} of {}: {} pairs of instructions touch common memory, {} of which no test before this one brings together",
                pair.first + 1,
                pair.second + 1,
                script.display(),
                pair.all,
                pair.new
            );
            let text = test_text(&template, &comment, parts).map_err(|error| anyhow!(error))?;
            let file = self.to.join(format!("{count:03}.toml"));
            keep::write(&file, text.as_bytes())
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        message::result(&format!(
            "wrote {} to {}: {} of {} touch common memory in a new way\n",
            counted(count, "test"),
            self.to.display(),
            counted(to_u64(pairs.len()), "pair"),
            counted(to_u64(all.len()), "request"),
        ))?;
        if pairs.is_empty() {
            return Ok(Code::Vacuous);
        }
        Ok(Code::Clean)
    }

    /// What each request touches when the script is played as it is.
    fn profile(&self, test: &ServerTest, all: &[String]) -> Result<Profiler, Failure> {
        let seed = self.options.seed();
        let mut scripts = test.scripts.clone();
        scripts.clients = vec![all.to_vec()];
        let inputs = Inputs {
            scripts: Some(scripts),
            ..self.program.of_command(&test.server).inputs(seed)?
        };
        let cancel = raddle_campaign::Cancel::default();
        let mut program = self.options.program(inputs, &cancel)?;
        program.about = Arc::new(About {
            snapshot_at: SnapshotAt::Clients,
            judge: Some(Judge::of_marks(|_| None)),
            ..About::clone(&program.about)
        });
        let mut session = program.start().map_err(start_failure)?;
        let mut profiler = Profiler::new(begins);
        let order = Schedule::default();
        let rules = program.first_rules();
        session.observe(&mut Follow::new(&order), &rules, &mut [&mut profiler]);
        Ok(profiler)
    }
}

/// A client says what it will ask.
fn begins(event: &Event) -> bool {
    let EventKind::Mark(mark) = &event.kind else {
        return false;
    };
    matches!(
        **mark,
        Mark::Begin {
            is_probe: false,
            ..
        }
    )
}
