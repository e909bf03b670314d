//! `raddle kernel replay`: runs a recording again and checks that it is the same run.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Args;
use raddle_campaign::Leave;
use raddle_kernel::campaign::{
    InstructionOptions, Origin, RaceRules, Recorded, Session, Target, TraceOptions, repeat, replay,
    trace_functions, trace_instructions,
};
use raddle_kernel::recording::{KernelRecording, ModuleInput};
use raddle_kernel::test_case::TestCase;
use raddle_linearize::LinearizeKernel;
use raddle_report::render::{json, terminal};
use raddle_report::words::{counted, printable};
use raddle_report::{Finding, RecordingFile};
use raddle_sched::travel::Rerun as _;
use raddle_stdx::width::to_u64;
use raddle_stdx::{Digest, regular_file};
use raddle_trace::Enveloped;

use super::explore::{start_failure, style};
use super::guest_options::GuestOptions;
use super::modules::Modules;
use super::prepare::{ConsoleTo, prepare};
use super::whereabouts::Whereabouts;
use crate::commands::linearize::cannot_judge;
use crate::exit::{Code, Failure};
use crate::gdb;
use crate::keep::{self, RECORDING_BYTES_MAX, shell_quoted, shell_word};
use crate::message;
use crate::output::{Destination, Output};

/// Run a recording of a kernel again and check that it is the same run.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Recording, or the folder of a bundle.
    #[arg(value_name = "RECORDING")]
    pub(crate) recording: PathBuf,
    /// How often to run it; all runs must be the same.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) times: u32,
    /// Serve the run to gdb on this port of this machine, forwards and backwards; 0 chooses a port.
    #[arg(long, value_name = "PORT", conflicts_with_all = ["times", "traced_on", "trace", "call_graph", "json"])]
    pub(crate) gdb: Option<u16>,
    /// Write what each processor and interrupt did, function by function, to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<Destination>,
    /// Read nothing but what lies beside the recording, as in a bundle, and what is named here.
    #[arg(long)]
    pub(crate) sealed: bool,
    #[command(flatten)]
    pub(crate) inspection: Inspection,
}

/// What only runs of kernels have to show.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct Inspection {
    /// The kernel, if it is not where the recording says.
    #[arg(long, value_name = "IMAGE")]
    kernel: Option<PathBuf>,
    /// Compare the runs by every memory access, instruction and value, on so many workers with guests of their own.
    #[arg(long, value_name = "N")]
    traced_on: Option<usize>,
    /// Show what the kernel printed during the test.
    #[arg(long)]
    console: bool,
    /// Write each access to memory into the trace too.
    #[arg(long, requires = "trace")]
    accesses: bool,
    /// Write each instruction into the trace instead of each function.
    #[arg(long, requires = "trace")]
    instructions: bool,
    /// Write the registers that each instruction changes too.
    #[arg(long, requires = "instructions")]
    registers: bool,
    /// First instruction to write, counted from the start line over all processors; default: 0.
    #[arg(long, value_name = "N", requires = "instructions")]
    from: Option<u64>,
    /// Instructions to write at most; default: 100000.
    #[arg(long, value_name = "N", requires = "instructions")]
    limit: Option<u64>,
    /// Write who called whom, for Graphviz, to this file.
    #[arg(long, value_name = "FILE")]
    call_graph: Option<Destination>,
    /// System.map or an unstripped vmlinux; default: as when it was recorded.
    #[arg(long, value_name = "FILE")]
    symbols: Option<PathBuf>,
    /// Folder for boot snapshots.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Instructions of a trace at most, unless told otherwise.
const TRACED_MAX: u64 = 100_000;

/// Name of the recording in a bundle.
pub(crate) const IN_BUNDLE: &str = "recording.kraddle";

/// Ending of the file with names for gdb.
const SYMBOL_FILE: &str = "symbols";

/// Whether this is a recording of a kernel, or a bundle with one; none of ours if it cannot be read.
pub(crate) fn is_recording(path: &Path) -> bool {
    let begins_so = |file: File| {
        let mut start = Vec::new();
        let wanted = to_u64(KernelRecording::MAGIC.len()) + 1;
        file.take(wanted).read_to_end(&mut start).is_ok()
            && KernelRecording::is_kind_of(&String::from_utf8_lossy(&start))
    };
    regular_file::open(&file_of(path)).is_ok_and(begins_so)
}

/// The file of a recording; a folder is a bundle.
fn file_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        path.join(IN_BUNDLE)
    } else {
        path.to_path_buf()
    }
}

/// Reads a recording; a folder is a bundle.
pub(crate) fn read_recording(path: &Path) -> anyhow::Result<(KernelRecording, PathBuf)> {
    let file = file_of(path);
    let text = regular_file::read(&file, RECORDING_BYTES_MAX)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let recording = KernelRecording::parse(&String::from_utf8_lossy(&text))
        .with_context(|| format!("cannot replay {}", file.display()))?;
    Ok((recording, file))
}

impl Replay {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let (recording, file) = read_recording(&self.recording)?;
        let target = target(&recording, &file, self.sealed, &self.inspection)?;
        let mut session = start(&target, &recording)?;
        if let Some(workers) = self.inspection.traced_on {
            return self.repeat(&target, &recording, workers);
        }
        if let Some(port) = self.gdb {
            return serve_gdb(session, &recording, &file, port);
        }
        let code = self.replay(&mut session, &recording)?;
        self.trace(&mut session, &recording)?;
        Ok(code)
    }

    fn trace(&self, session: &mut Session<'_>, recording: &KernelRecording) -> anyhow::Result<()> {
        if let Some(path) = self.trace.as_ref().filter(|_| self.inspection.instructions) {
            self.trace_instructions(session, recording, path)?;
        }
        let functions = self
            .trace
            .as_ref()
            .filter(|_| !self.inspection.instructions);
        if functions.is_none() && self.inspection.call_graph.is_none() {
            return Ok(());
        }
        let options = TraceOptions {
            accesses: self.inspection.accesses,
        };
        let traced = trace_functions(session, &recording.schedule, recording.rules, options);
        if let Some(path) = functions {
            let mut output = Output::open(path)?;
            output.write(&traced.text)?;
            output.close()?;
        }
        if let Some(path) = &self.inspection.call_graph {
            let mut output = Output::open(path)?;
            output.write(&traced.graph())?;
            output.close()?;
        }
        Ok(())
    }

    fn trace_instructions(
        &self,
        session: &mut Session<'_>,
        recording: &KernelRecording,
        to: &Destination,
    ) -> anyhow::Result<()> {
        let from = self.inspection.from.unwrap_or(0);
        let options = InstructionOptions {
            range: from..from.saturating_add(self.inspection.limit.unwrap_or(TRACED_MAX)),
            registers: self.inspection.registers,
            accesses: self.inspection.accesses,
        };
        let mut output = Output::open(to)?;
        let (schedule, rules) = (&recording.schedule, recording.rules);
        let digest = trace_instructions(session, schedule, rules, &options, &mut |line| {
            output.write(line)
        })?;
        output.close()?;
        if digest != recording.run_digest {
            message::warning("the traced run is not the recorded one");
        }
        Ok(())
    }

    /// Runs the recording again and again and compares the traces.
    fn repeat(
        &self,
        target: &Target,
        recording: &KernelRecording,
        workers: usize,
    ) -> Result<Code, Failure> {
        let (schedule, rules) = (&recording.schedule, recording.rules);
        let digests =
            repeat(target, schedule, rules, self.times.into(), workers).map_err(start_failure)?;
        let Some((trace, _)) = digests.first_key_value().filter(|_| digests.len() == 1) else {
            return Err(anyhow!(
                "{} replays of the same recording had {} different traces: please report this",
                self.times,
                digests.len()
            )
            .into());
        };
        message::note(&format!(
            "replayed {} on {workers} workers: the same {} accesses each time, digest {:016x}",
            counted(self.times.into(), "time"),
            trace.accesses,
            trace.digest
        ));
        Ok(Code::Clean)
    }

    fn replay(
        &self,
        session: &mut Session<'_>,
        recording: &KernelRecording,
    ) -> Result<Code, Failure> {
        let (schedule, rules) = (&recording.schedule, recording.rules);
        let mut run = || replay(session, schedule, rules, &recording.fingerprint);
        let mut replayed = run();
        for _ in 1..self.times {
            let again = run();
            let is_same = again.digests == replayed.digests;
            if !is_same {
                return Err(Failure {
                    code: Code::Usage,
                    error: anyhow!("two replays of the same recording differ: please report this"),
                });
            }
        }
        if let Some(finding) = &mut replayed.finding {
            named(finding, recording, &self.recording);
        }
        if self.inspection.json {
            let findings: Vec<_> = replayed.finding.iter().cloned().collect();
            message::result(&json::document(findings, serde_json::Value::Null)?)?;
        } else if let Some(finding) = &replayed.finding {
            message::result(&terminal::finding(finding, 1, 1, style()))?;
        }
        if self.inspection.console {
            message::result(&printable(&replayed.console))?;
        }
        let same_run = replayed.digests.run == recording.run_digest
            && replayed.digests.state == recording.state_digest;
        let same_failure = replayed
            .finding
            .as_ref()
            .is_some_and(|finding| finding.fingerprint == recording.fingerprint);
        message::note(&format!(
            "replayed {}: {} instructions, {}; {}; {} (run {:016x})",
            counted(self.times.into(), "time"),
            replayed.steps,
            counted(replayed.switches, "switch"),
            if same_run {
                "the same run as recorded, bit for bit"
            } else {
                "NOT the recorded run"
            },
            if same_failure {
                "the same failure"
            } else {
                "not the recorded failure"
            },
            replayed.digests.run
        ));
        Ok(if replayed.finding.is_some() {
            Code::Findings
        } else {
            Code::Clean
        })
    }
}

/// The guest of a recording.
fn target(
    recording: &KernelRecording,
    file: &Path,
    is_sealed: bool,
    inspection: &Inspection,
) -> Result<Target, Failure> {
    let whereabouts = Whereabouts::of(file, is_sealed);
    let machine = whereabouts.machine(recording, inspection.kernel.as_deref())?;
    let guest = GuestOptions {
        symbols: inspection.symbols.clone(),
        ..GuestOptions::of_recording(&machine, inspection.cache.clone())
    };
    let prepared = prepare(&guest, ConsoleTo::Nowhere)?;
    let machine = &recording.machine;
    if prepared.inputs.kernel_digest != machine.kernel_digest {
        return Err(anyhow!(
            "{} is not the kernel of the recording (its digest is {:016x}, that of the recording {:016x}): name the right one with --kernel",
            guest.kernel.display(),
            prepared.inputs.kernel_digest,
            machine.kernel_digest
        )
        .into());
    }
    if prepared.inputs.initramfs_digest != machine.initramfs_digest {
        message::warning(
            "the agent or a file of the guest is not that of the recording: the run may differ",
        );
    }
    let mut target = Target {
        boot: prepared.boot,
        test: read_test(recording, &whereabouts)?,
        symbols: Arc::new(prepared.symbols),
        modules: prepared.modules,
        race_rules: RaceRules::default(),
        contexts: None,
        time_max: recording.time_max,
        judge: None,
        origin: Origin {
            machine: recording.machine.clone(),
            modules: recording.modules.clone(),
        },
    };
    if let Some(rules) = &recording.serial {
        let oracle = LinearizeKernel::start(target.clone(), rules, Leave::endless());
        target.judge = Some(oracle.map_err(cannot_judge)?.judge());
    }
    Ok(target)
}

/// The guest where the recorded run begins.
fn start<'t>(target: &'t Target, recording: &KernelRecording) -> Result<Session<'t>, Failure> {
    let mut session = Session::start(target).map_err(start_failure)?;
    if session.start_digest() != recording.start_digest {
        message::warning(
            "the guest at the start line is not that of the recording: the run may differ",
        );
    }
    Ok(session)
}

/// Replays a recording and tells its failure, for those who show it in another way.
pub(crate) fn explained(path: &Path) -> Result<Finding, Failure> {
    let (recording, file) = read_recording(path)?;
    let target = target(&recording, &file, false, &Inspection::default())?;
    let mut session = start(&target, &recording)?;
    let (schedule, rules) = (&recording.schedule, recording.rules);
    let replayed = replay(&mut session, schedule, rules, &recording.fingerprint);
    let shown = path.display();
    if replayed.digests.run != recording.run_digest {
        return Err(anyhow!(
            "the replay of {shown} is not the recorded run; `raddle kernel replay {}` says what it is",
            shell_word(path)
        )
        .into());
    }
    let mut finding = replayed.finding.ok_or_else(|| {
        anyhow!(
            "{shown} is the recording of a run in which nothing fails: there is no finding to tell"
        )
    })?;
    named(&mut finding, &recording, path);
    Ok(finding)
}

/// Says which test a finding is of, and how to have it again.
fn named(finding: &mut Finding, recording: &KernelRecording, path: &Path) {
    finding.test = recording.test.clone().unwrap_or_default();
    finding.recording = Some(RecordingFile {
        file: path.display().to_string(),
        command: format!("raddle kernel replay {}", shell_word(path)),
    });
}

/// Waits for gdb, with the names of all functions in a file beside the recording.
fn serve_gdb(
    session: Session<'_>,
    recording: &KernelRecording,
    file: &Path,
    port: u16,
) -> Result<Code, Failure> {
    let recorded = Recorded::new(session, &recording.schedule, recording.rules);
    let symbols = file.with_extension(SYMBOL_FILE);
    keep::write(&symbols, &recorded.names().symbol_file()).context("there are no names for gdb")?;
    for (name, text) in &recorded.world().info().modules {
        message::note(&format!(
            "if {name} has debug information: add-symbol-file {name}.ko {text:#x}"
        ));
    }
    let options = format!(
        "-ex {}",
        shell_quoted(&format!("symbol-file {}", symbols.display()))
    );
    gdb::serve(recorded, port, &options)?;
    Ok(Code::Clean)
}

/// The test of a recording, with its modules from where they were or from beside the recording.
fn read_test(
    recording: &KernelRecording,
    whereabouts: &Whereabouts,
) -> Result<Option<TestCase>, Failure> {
    let Some(text) = &recording.test else {
        return Ok(None);
    };
    let test = TestCase::parse(&recording.test_path, text, &mut |name| {
        let known = recording
            .modules
            .iter()
            .find(|module| module.name == name)
            .ok_or_else(|| format!("the recording does not name the module `{name}`"))?;
        recorded_module(known, whereabouts)
            .map(|(content, _)| content)
            .map_err(|error| format!("{error:#}"))
    })?;
    Ok(Some(test))
}

/// The content of a module that a recording names, and where it is.
pub(super) fn recorded_module(
    module: &ModuleInput,
    whereabouts: &Whereabouts,
) -> anyhow::Result<(Vec<u8>, PathBuf)> {
    let path = whereabouts.find(&module.path)?;
    let mut modules = Modules::new(Path::new(""), Path::new(""), None);
    let content = modules
        .load(&path.display().to_string())
        .map_err(|error| anyhow!(error))?;
    anyhow::ensure!(
        Digest::of(&content) == module.digest,
        "{} is not the module of the recording: it was built again",
        path.display()
    );
    Ok((content, path))
}
