//! `raddle replay`: has a recorded run again, bit for bit.

mod ordinary;

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, ensure};
use clap::Args;
use raddle_campaign::Leave;
use raddle_debug::Debugger;
use raddle_explore::ordinary::Past;
use raddle_explore::{
    About, DATA_RACE, Judge, Relaxed, Replayed, Replayer, changed_files, replay_relaxed,
};
use raddle_linearize::Linearize;
use raddle_linux::LinuxWorld;
use raddle_report::render::terminal;
use raddle_report::words::counted;
use raddle_sched::travel::Travel;
use raddle_stdx::regular_file;
use raddle_trace::{Enveloped, Inputs, Mapping, Recording};

use super::explore::{oracle, start_failure};
use super::kernel::{self, Inspection};
use super::linearize::cannot_judge;
use super::run::OWN_ERROR;
use crate::event_text;
use crate::exit::{Code, Failure};
use crate::gdb;
use crate::interrupt::Interrupt;
use crate::keep::{RECORDING_BYTES_MAX, shell_quoted};
use crate::message;
use crate::output::{Destination, Output};
use crate::program_options::parse_mappings;
use crate::watch::{Budget, Stage, watched};
use crate::{sealed, units};

/// Replay a recording of `raddle explore`, of `raddle kernel explore` or of `raddle run --record`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle replay bank-A-1c9e.raddle\n  raddle replay --trace bank-A-1c9e.raddle\n  raddle replay --times 100 bank-A-1c9e.raddle\n  raddle replay --gdb 1234 bank-A-1c9e.raddle\n  raddle replay --relaxed bank-A-1c9e.raddle\n  raddle replay --oracle 'grep -q ok' bank-WO-1c9e.raddle\n  raddle replay --trace=pipe.trace --instructions pipe-KO-1c9e.kraddle\n  raddle run --record server.raddle -- ./server; raddle replay server.raddle"
)]
pub(crate) struct Replay {
    /// The recording, or the folder of `raddle kernel bundle`.
    recording: PathBuf,
    /// Print the events of the run on standard error, with threads and source lines, or write them to a file; `-` is
    /// standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    trace: Option<Destination>,
    /// Replay this many times; all must be the same.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    times: u32,
    /// Serve the run to gdb on this port of this machine, forwards and backwards; 0 chooses a port.
    #[arg(long, value_name = "PORT", conflicts_with_all = ["trace", "times", "traced_on", "call_graph", "json"])]
    gdb: Option<u16>,
    /// Apply the switches to the program as it is now, though it has changed: at the same lines and visits.
    #[arg(long, conflicts_with_all = ["trace", "times", "gdb"])]
    relaxed: bool,
    /// Time at most for explaining the failure, once it was replayed: seconds, or 90s, 5m.
    #[arg(long, value_name = "TIME", default_value_t = 60, value_parser = units::seconds)]
    explain_time: u64,
    /// A shell command that reads the standard output and ends with 0 if it is right. A recording may name one: it is
    /// shown, and never run unless it is given here.
    #[arg(long, value_name = "COMMAND")]
    oracle: Option<String>,
    /// Show the guest nothing of this machine but the recorded program, its libraries and what `--map` names; of a
    /// kernel's recording, read nothing but what lies beside it.
    #[arg(long)]
    sealed: bool,
    /// With --sealed: show a host file or directory at another path (repeatable); what the recording maps is mapped only
    /// if it is named here.
    #[arg(long, value_name = "HOST:GUEST", requires = "sealed")]
    map: Vec<String>,
    #[command(flatten, next_help_heading = "Options for recordings of kernels")]
    inspection: Inspection,
}

impl Replay {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        if kernel::is_recording(&self.recording) {
            return self.replay_kernel();
        }
        let path = self.recording.display();
        if self.inspection != Inspection::default() {
            return Err(anyhow!(
                "{path} is not a recording of a kernel: the options that `raddle replay --help` lists under \"Options for recordings of kernels\" do not apply to it"
            )
            .into());
        }
        let mut recording = read(&self.recording)?;
        if self.sealed {
            self.seal(&mut recording.inputs)?;
        }
        let changed = changed_files(&recording);
        if let Some(recorded) = Past::recorded(&recording) {
            return self.replay_ordinary(&recording, recorded, &changed);
        }
        let judge = self.judge(&recording)?;
        if self.relaxed && recording.kind == DATA_RACE {
            return Err(anyhow!(
                "cannot replay {path} with `--relaxed`: it is the recording of a data race, which is looked for only in the program that showed it; `raddle explore --races` looks for it in another one"
            )
            .into());
        }
        if self.relaxed {
            let relaxed = replay_relaxed(&recording, judge).map_err(start_failure)?;
            return tell_relaxed(&recording, &relaxed, &changed);
        }
        check_files(&self.recording, &recording, &changed)?;
        let mut replayer = Replayer::start(&recording, judge).map_err(start_failure)?;
        let mut replayed = replayer.run();
        let is_judged = self.check(&recording, &replayed, &mut replayer)?;
        if let Some(port) = self.gdb {
            return serve_gdb(replayer, &recording, port);
        }
        for _ in 1..self.times {
            replayed = replayer.run();
            self.check(&recording, &replayed, &mut replayer)?;
        }
        if let Some(to) = &self.trace {
            write_trace(&mut replayer, to)?;
        }
        self.explain(&recording, &mut replayer, is_judged)?;
        message::result(&format!(
            "replayed {} bit for bit: {} instructions, {}, digest {:016x}\n",
            counted(self.times.into(), "time"),
            replayed.steps,
            counted(replayed.switches, "context switch"),
            replayed.run_digest,
        ))?;
        if is_judged {
            return Ok(Code::Findings);
        }
        message::note(&format!(
            "whether this run is wrong was not judged; the recording says: {}",
            recording.failure
        ));
        Ok(Code::Vacuous)
    }

    /// Has an ordinary run again. Where that is not possible, the status is that of `raddle run`: any other one may be
    /// the program's.
    fn replay_ordinary(
        &self,
        recording: &Recording,
        recorded: Past,
        changed: &[String],
    ) -> Result<Code, Failure> {
        let path = &self.recording;
        let replayed = || {
            ensure!(
                !self.relaxed && self.oracle.is_none(),
                "{} is the recording of an ordinary run, which nobody judges: `--relaxed` and `--oracle` are for recordings of failures",
                path.display()
            );
            check_files(path, recording, changed)?;
            let Some(port) = self.gdb else {
                return ordinary::replay(recording, recorded, self.times, self.trace.as_ref());
            };
            let replayer = start_again(recording).map_err(|failure| failure.error)?;
            serve_gdb(replayer, recording, port).map_err(|failure| failure.error)
        };
        replayed().map_err(|error| Failure {
            code: Code::Guest(OWN_ERROR),
            error,
        })
    }

    /// Tells the story of the failure, if that does not take too long.
    fn explain(
        &self,
        recording: &Recording,
        replayer: &mut Replayer<'_>,
        is_judged: bool,
    ) -> anyhow::Result<()> {
        let budget = Budget::of_seconds(self.explain_time, Some(self.explain_time));
        let explained = watched(&Interrupt::listen()?, budget, |cancel, stage| {
            stage.set(Stage::Explaining { number: 1, of: 1 });
            replayer.explain(Leave::to_explain(cancel, 1))
        });
        if let Some(finding) = explained {
            message::result(&terminal::finding(&finding, 1, 1, terminal::Style::PLAIN))?;
        } else if is_judged {
            message::note(&format!(
                "{}: not explained within {} s; --explain-time gives it more",
                recording.failure, self.explain_time
            ));
        }
        Ok(())
    }

    /// Leaves the guest nothing but the recorded program, its libraries and what the user maps now.
    fn seal(&self, inputs: &mut Inputs) -> anyhow::Result<()> {
        let program = Path::new(&inputs.directory).join(&inputs.program);
        let visible = sealed::visible(&program)?;
        let shown = |path: &Path| path.display().to_string();
        inputs.visible = Some(visible.iter().map(|path| shown(path)).collect());
        let given = parse_mappings(&self.map)?;
        let given: Vec<Mapping> = given
            .iter()
            .map(|mapping| Mapping {
                host: shown(&mapping.host),
                guest: String::from_utf8_lossy(&mapping.guest).into_owned(),
            })
            .collect();
        for recorded in &inputs.mappings {
            if !given.contains(recorded) {
                message::note(&format!(
                    "sealed: {} is not mapped to {}; to show it to the program, add: --map {}",
                    recorded.host,
                    recorded.guest,
                    shell_quoted(&format!("{}:{}", recorded.host, recorded.guest))
                ));
            }
        }
        inputs.mappings = given;
        Ok(())
    }

    /// The judge of a replay: the recorded output, and the command that the user gives now. What a recording wants to
    /// have run is text of its author.
    fn judge(&self, recording: &Recording) -> Result<Option<Judge>, Failure> {
        if let Some(command) = &self.oracle {
            oracle::check(command)?;
        }
        if let (Some(command), None) = (&recording.expected.oracle, &self.oracle) {
            let note = format!(
                "the result of this run was judged by a command, which is not run now; if you trust it, add: --oracle {}",
                shell_quoted(command)
            );
            if self.relaxed {
                return Err(anyhow!("{note}").into());
            }
            message::note(&note);
        }
        if let Some(rules) = &recording.expected.serial {
            let about = About::recorded(recording, None);
            let linearize = Linearize::start(&about, rules, Leave::endless());
            return Ok(Some(linearize.map_err(cannot_judge)?.judge()));
        }
        Ok(oracle::judge(
            recording.expected.output.as_deref(),
            self.oracle.as_deref(),
        ))
    }

    /// Whether the run is the recorded one; an error if it is not. Gives whether its failure was judged, too: one that
    /// only an oracle sees is not without it.
    fn check(
        &self,
        recording: &Recording,
        replayed: &Replayed,
        replayer: &mut Replayer<'_>,
    ) -> Result<bool, Failure> {
        let needs_oracle = recording.expected.oracle.is_some() && self.oracle.is_none();
        if replayed.same_run && !replayed.fails && needs_oracle {
            return Ok(false);
        }
        check(recording, replayed, replayer)?;
        Ok(true)
    }

    fn replay_kernel(self) -> Result<Code, Failure> {
        if self.relaxed {
            return Err(anyhow!(
                "{} is a recording of a kernel: --relaxed is for recordings of programs",
                self.recording.display()
            )
            .into());
        }
        let replay = kernel::Replay {
            recording: self.recording,
            times: self.times,
            gdb: self.gdb,
            trace: self.trace,
            sealed: self.sealed,
            inspection: self.inspection,
        };
        replay.run()
    }
}

/// Reads the recording of a program.
pub(super) fn read(path: &Path) -> anyhow::Result<Recording> {
    let shown = path.display();
    let text = regular_file::read(path, RECORDING_BYTES_MAX)
        .with_context(|| format!("cannot read the recording {shown}"))?;
    Recording::parse(&String::from_utf8_lossy(&text))
        .map_err(|error| anyhow!("cannot replay {shown}: {error}"))
}

/// An error if files have changed on which a recording depends.
pub(super) fn check_files(
    path: &Path,
    recording: &Recording,
    changed: &[String],
) -> anyhow::Result<()> {
    let instead = match recording.ordinary {
        Some(_) => "or record the run again",
        None => "replay with `--relaxed`, or explore again",
    };
    ensure!(
        changed.is_empty(),
        "cannot replay {}: since it was made, {}; bring the old files back, {instead}",
        path.display(),
        changed.join(", and ")
    );
    Ok(())
}

/// The run of a recording, to be looked into: it was had again once, bit for bit, and nothing was judged.
pub(super) fn debugger<'r>(
    path: &Path,
    recording: &'r Recording,
) -> Result<Debugger<Replayer<'r>>, Failure> {
    check_files(path, recording, &changed_files(recording))?;
    let replayer = start_again(recording)?;
    let symbols = |world: &mut LinuxWorld, who| world.symbols(who);
    Ok(Debugger::new(Travel::new(replayer), Box::new(symbols)))
}

/// A recorded run that was had again once, bit for bit.
fn start_again(recording: &Recording) -> Result<Replayer<'_>, Failure> {
    let mut replayer = Replayer::start(recording, None).map_err(start_failure)?;
    let replayed = replayer.run();
    if !replayed.same_run {
        check(recording, &replayed, &mut replayer)?;
    }
    Ok(replayer)
}

fn serve_gdb(replayer: Replayer<'_>, recording: &Recording, port: u16) -> Result<Code, Failure> {
    let program = shell_quoted(&recording.inputs.program);
    let options = format!("-ex 'set sysroot /' {program}");
    gdb::serve(replayer, port, &options)?;
    Ok(Code::Clean)
}

/// Writes the events of the run, one line each.
fn write_trace(replayer: &mut Replayer<'_>, to: &Destination) -> anyhow::Result<()> {
    let mut output = Output::open(to)?;
    let mut written = Ok(());
    replayer.trace(&mut |line| {
        if written.is_ok() {
            written = output.write(&format!("{}\n", event_text::traced(&line)));
        }
    });
    written?;
    output.close()
}

/// What became of a failure in a changed program.
fn tell_relaxed(
    recording: &Recording,
    relaxed: &Relaxed,
    changed: &[String],
) -> Result<Code, Failure> {
    if relaxed.switches > 0 && recording.landmarks.is_empty() {
        return Err(anyhow!(
            "the recording does not say at which lines its switches happened; explore again"
        )
        .into());
    }
    let mut text = String::new();
    if let Some((finding, _)) = &relaxed.failure {
        text.push_str(&terminal::finding(finding, 1, 1, terminal::Style::PLAIN));
    }
    let program = match changed {
        [] => "the program has not changed".to_owned(),
        changed => changed.join(", and "),
    };
    text.push_str(&format!(
        "{program}; {} of {} switches were made at their lines",
        relaxed.made, relaxed.switches
    ));
    if !relaxed.lost.is_empty() {
        text.push_str(&format!("; gone: {}", relaxed.lost.join(", ")));
    }
    text.push_str(&match &relaxed.failure {
        Some((_, true)) => "\nthe failure happens again in the recorded order\n".to_owned(),
        Some((_, false)) => format!(
            "\nthe failure happens again, in another order ({} were run, those with switches at these lines first)\n",
            relaxed.others
        ),
        None => format!(
            "\nno {} any more: neither the recorded order fails nor any of {} others, those with switches at these lines first; `raddle explore` looks further\n",
            recording.kind, relaxed.others
        ),
    });
    message::result(&text)?;
    Ok(match relaxed.failure {
        Some(_) => Code::Findings,
        None => Code::Clean,
    })
}

fn check(
    recording: &Recording,
    replayed: &Replayed,
    replayer: &mut Replayer<'_>,
) -> Result<(), Failure> {
    if replayed.same_run && replayed.same_failure {
        return Ok(());
    }
    if recording.ordinary.is_some() {
        return Err(anyhow!(
            "the replay diverges from the recorded run, although no file has changed: `raddle replay` without other options says how"
        )
        .into());
    }
    let what = if !replayed.same_start {
        format!(
            "the run of `{}` differs already before the snapshot, although no file has changed: another raddle or another machine may have made the recording",
            recording.inputs.program
        )
    } else if replayed.missed > 0 {
        format!(
            "{} of {} switches could not be made where they were recorded",
            replayed.missed,
            recording.schedule.len()
        )
    } else {
        match replayer.divergence() {
            (from, Some(to)) => format!(
                "it leaves the recorded run between instruction {from} and {to} after the snapshot"
            ),
            (from, None) => format!(
                "it leaves the recorded run after instruction {from} of {} after the snapshot",
                replayed.steps
            ),
        }
    };
    Err(anyhow!(
        "the replay diverges: {what} (recorded failure: {})",
        recording.failure
    )
    .into())
}
