//! `raddle run`: runs a program to its end on the deterministic machine.

mod ending;
mod record;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;
use raddle_explore::ordinary::STEPS_MAX;
use raddle_linux::{Exported, LinuxWorld, Observe, StartError};
use raddle_report::words::{counted, listed};
use raddle_sched::{Plain, Reaction};
use raddle_stdx::cpu_time;
use raddle_trace::log::{Head, Image, LogWriter};
use raddle_trace::{Facts, Observation, Observer as _};
use raddle_world::{ContextId, Event, EventKind, Inspect as _};

use crate::event_text;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::program_options::ProgramOptions;
pub(super) use ending::conclude;
use record::Recorder;

/// Exit status of errors that are ours and not the program's, as env(1) and timeout(1) have it.
pub(super) const OWN_ERROR: u8 = 125;

/// Run a program deterministically on raddle's own machine.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle run -- ./program arg\n  raddle run --seed 7 --stats -- /usr/bin/sort --parallel=4 words.txt\n  raddle run --trace=events.bin --env DEBUG=1 -- ./server\n  raddle run --record server.raddle -- ./server; raddle replay --gdb 1234 server.raddle"
)]
pub(crate) struct Run {
    /// Chooses the interleaving and every random byte.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print instructions, speed, switches, system calls, pages and restores at the end.
    #[arg(long)]
    stats: bool,
    /// Write what is needed to have this run again, from its first instruction: `raddle replay FILE` does so, `--gdb` goes
    /// through it in both directions, and `raddle explore FILE` explores from a moment of it.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Print every event on standard error, or write them to FILE as a log that `raddle log` shows.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    trace: Option<Option<PathBuf>>,
    /// Trace memory accesses with their values, too, and the locks that they show.
    #[arg(long, requires = "trace")]
    accesses: bool,
    /// Write the files, directories and links that the program made or changed below DIR at the end.
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    /// Export FIFOs and set-user-id, set-group-id and sticky bits, too.
    #[arg(long, requires = "export")]
    export_special: bool,
    /// Stop after this many instructions.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=STEPS_MAX))]
    max_instructions: Option<u64>,
    #[command(flatten)]
    program: ProgramOptions,
}

impl Run {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        self.run_program().map_err(|error| Failure {
            code: Code::Guest(OWN_ERROR),
            error,
        })
    }

    fn run_program(self) -> anyhow::Result<Code> {
        let mut recorder = match &self.record {
            Some(path) => Some(Recorder::open(path, self.program.inputs(self.seed)?)?),
            None => None,
        };
        let setup = match &recorder {
            Some(recorder) => recorder.setup(),
            None => self.program.setup(self.seed)?,
        };
        let mut world = LinuxWorld::new(setup).map_err(cannot_start)?;
        let hooks = self.program.hooks()?;
        let mut sink = Sink::new(&self, &mut world)?;
        if self.trace.is_some() {
            world.set_tracing(true);
            world.set_hooks(raddle_config::hooks::with_standard(&hooks));
        }
        if self.accesses {
            world.set_observe(Observe::AddrValue);
        }
        let interrupt = Interrupt::listen()?;
        let begun = cpu_time();
        let mut trouble = None;
        let steps_max = self.max_instructions.unwrap_or(STEPS_MAX);
        let mut plain = Plain::default();
        let end = plain.run(&mut world, steps_max, &mut |world, events| {
            if let Some(recorder) = &mut recorder {
                recorder.events(events);
            }
            let mut closed = None;
            for event in events {
                match sink.event(world, event) {
                    Ok(now_closed) => closed = closed.or(now_closed),
                    Err(error) => trouble = trouble.take().or(Some(error)),
                }
            }
            match closed {
                _ if trouble.is_some() || sink.is_broken() || interrupt.is_requested() => {
                    Reaction::Stop
                }
                Some(descriptor) => Reaction::CloseOutput(descriptor),
                None => Reaction::GoOn,
            }
        });
        let elapsed = cpu_time().saturating_sub(begun);
        sink.finish(world.run_digest())?;
        if let Some(recorder) = recorder {
            recorder.finish(&mut world, &plain, (&end, steps_max))?;
        }
        if let Some(error) = trouble {
            return Err(error);
        }
        if self.stats {
            print_statistics(&world, elapsed);
        }
        if let Some(directory) = &self.export {
            let exported = world
                .export(directory, self.export_special)
                .with_context(|| format!("cannot export to {}", directory.display()))?;
            tell_export(exported, self.export_special);
        }
        conclude(end, steps_max, &mut world)
    }
}

/// Why a program cannot be started, and what to do about it.
pub(super) fn cannot_start(error: StartError) -> anyhow::Error {
    match error {
        StartError::Program { .. } => {
            anyhow!("{error}; check the path, or run `file` on it to see what it is")
        }
        other => anyhow!(other),
    }
}

/// Says what is unusual about the files that a program left.
fn tell_export(exported: Exported, with_special: bool) {
    let mut special = Vec::new();
    if exported.fifos > 0 {
        special.push(counted(exported.fifos, "FIFO"));
    }
    if exported.special_modes > 0 {
        special.push(format!(
            "the set-id or sticky bits of {}",
            counted(exported.special_modes, "file")
        ));
    }
    if !special.is_empty() {
        let what = listed(&special);
        crate::message::note(&if with_special {
            format!("exported {what}, as --export-special asks for")
        } else {
            format!("did not export {what}; --export-special does")
        });
    }
    if exported.sockets > 0 {
        crate::message::note(&format!(
            "did not export {}: it means nothing outside of the program's world",
            counted(exported.sockets, "socket")
        ));
    }
}

/// Where events go: output to our own output, everything to the trace.
struct Sink {
    trace: Trace,
    facts: Facts,
}

enum Trace {
    Off,
    Text,
    Log {
        writer: Box<LogWriter<BufWriter<File>>>,
        path: PathBuf,
    },
}

impl Sink {
    fn new(run: &Run, world: &mut LinuxWorld) -> anyhow::Result<Self> {
        let trace = match &run.trace {
            None => Trace::Off,
            Some(None) => Trace::Text,
            Some(Some(path)) => {
                let file = File::create(path)
                    .with_context(|| format!("cannot create {}", path.display()))?;
                let writer = LogWriter::new(BufWriter::new(file), &run.head(world))
                    .with_context(|| format!("cannot write {}", path.display()))?;
                Trace::Log {
                    writer: Box::new(writer),
                    path: path.clone(),
                }
            }
        };
        let facts = Facts::default();
        Ok(Self { trace, facts })
    }

    /// Gives the output of the program whose reader is gone, if it is one.
    fn event(&mut self, world: &mut LinuxWorld, event: &Event) -> anyhow::Result<Option<i32>> {
        let mut closed = None;
        if let EventKind::Output { descriptor, bytes } = &event.kind
            && !pass_on(*descriptor, bytes)?
        {
            closed = Some(*descriptor);
        }
        if !matches!(self.trace, Trace::Off) {
            let code = &mut |site| world.locked_kind(event.context, site);
            self.facts.event_with(event, code);
        }
        match &mut self.trace {
            Trace::Off => {}
            Trace::Text => crate::message::trace(&event_text::line(event)),
            Trace::Log { writer, .. } => writer.event(event, &self.facts),
        }
        Ok(closed)
    }

    /// Whether the log cannot be written any more.
    fn is_broken(&self) -> bool {
        matches!(&self.trace, Trace::Log { writer, .. } if writer.is_broken())
    }

    fn finish(self, digest: u64) -> anyhow::Result<()> {
        match self.trace {
            Trace::Off => {}
            Trace::Text => crate::message::trace(&format!("digest {digest:016x}")),
            Trace::Log { writer, path } => {
                writer
                    .finish(digest)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                crate::message::note(&format!("trace digest {digest:016x}"));
            }
        }
        Ok(())
    }
}

impl Run {
    /// What a log says of the run before it begins.
    fn head(&self, world: &mut LinuxWorld) -> Head {
        let symbols = world.symbols(ContextId(0)).unwrap_or_default();
        let images = symbols.modules().into_iter().map(|mapping| Image {
            path: mapping.name.to_string(),
            build_id: mapping.module.build_id().map(ToString::to_string),
        });
        Head {
            writer: format!("raddle {}", env!("CARGO_PKG_VERSION")),
            subject: self.program.words(),
            seed: self.seed,
            observation: if self.accesses {
                Observation::Values
            } else {
                Observation::Synchronisation
            },
            images: images.collect(),
        }
    }
}

/// The program's output is our output. Whether it is still read: natively, too, the program is the one who hears of it.
pub(super) fn pass_on(descriptor: i32, bytes: &[u8]) -> anyhow::Result<bool> {
    let result = if descriptor == 2 {
        std::io::stderr().write_all(bytes)
    } else {
        let mut stdout = std::io::stdout();
        stdout.write_all(bytes).and_then(|()| stdout.flush())
    };
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("cannot pass the program's output on"),
    }
}

fn print_statistics(world: &LinuxWorld, elapsed: std::time::Duration) {
    let statistics = world.statistics();
    let micros = elapsed.as_micros().max(1);
    // Steps per microsecond are millions of instructions per second.
    let mips = u128::from(statistics.steps) / micros;
    let virtual_ms = world.now().0 / 1_000_000;
    crate::message::note(&format!(
        "{} instructions in {:.3} s of CPU time ({mips} MIPS), virtual time {}.{:03} s; {} context switches, {} system calls, {} signals; {} pages used, {} fetched from files; {} restores, {} pages restored; digest {:016x}",
        statistics.steps,
        elapsed.as_secs_f64(),
        virtual_ms / 1000,
        virtual_ms % 1000,
        statistics.switches,
        statistics.syscalls,
        statistics.signals,
        statistics.pages_used,
        statistics.pages_fetched,
        statistics.restores,
        statistics.restored_pages,
        world.run_digest(),
    ));
}
