//! `raddle kernel replay`: runs a recording again and checks that it is the same run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Args;
use raddle_kernel::campaign::{
    RaceRules, Session, Target, TraceOptions, repeat, replay, trace_functions,
};
use raddle_kernel::recording::KernelRecording;
use raddle_kernel::test_case::TestCase;
use raddle_report::render::{json, terminal};
use raddle_stdx::Digest;
use raddle_trace::Enveloped;

use super::explore::{start_failure, style};
use super::guest_options::GuestOptions;
use super::modules::Modules;
use super::prepare::{ConsoleTo, prepare};
use crate::exit::{Code, Failure};
use crate::message;

/// Run a recording of a kernel again and check that it is the same run.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Recording, or the folder of a bundle.
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    /// The kernel, if it is not where the recording says.
    #[arg(long, value_name = "IMAGE")]
    kernel: Option<PathBuf>,
    /// How often to run it; all runs must be the same.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    times: u64,
    /// Compare the runs by every memory access, instruction and value, on so many workers with guests of their own.
    #[arg(long, value_name = "N")]
    traced_on: Option<usize>,
    /// Show what the kernel printed during the test.
    #[arg(long)]
    console: bool,
    /// Write what each processor and interrupt did, function by function, to this file.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write each access to memory into the trace too.
    #[arg(long, requires = "trace")]
    accesses: bool,
    /// Write who called whom, for Graphviz, to this file.
    #[arg(long, value_name = "FILE")]
    call_graph: Option<PathBuf>,
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

/// Name of the recording in a bundle.
pub(crate) const IN_BUNDLE: &str = "recording.kraddle";

/// Folder of the guest's files in a bundle.
pub(crate) const FILES_IN_BUNDLE: &str = "files";

/// Reads a recording; a folder is a bundle.
pub(crate) fn read_recording(path: &Path) -> anyhow::Result<(KernelRecording, PathBuf)> {
    let file = if path.is_dir() {
        path.join(IN_BUNDLE)
    } else {
        path.to_path_buf()
    };
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let recording = KernelRecording::parse(&text)
        .with_context(|| format!("cannot replay {}", file.display()))?;
    Ok((recording, file))
}

impl Replay {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let (recording, file) = read_recording(&self.recording)?;
        let guest = self.guest(&recording, &file);
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
        let target = Target {
            boot: prepared.boot,
            test: read_test(&recording, &file)?,
            symbols: Arc::new(prepared.symbols),
            modules: prepared.modules,
            race_rules: RaceRules::default(),
            time_max: recording.time_max,
        };
        let mut session = Session::start(&target).map_err(start_failure)?;
        if session.start_digest() != recording.start_digest {
            message::warning(
                "the guest at the start line is not that of the recording: the run may differ",
            );
        }
        if let Some(workers) = self.traced_on {
            return self.repeat(&target, &recording, workers);
        }
        let code = self.replay(&mut session, &recording)?;
        self.trace(&mut session, &recording)?;
        Ok(code)
    }

    fn trace(&self, session: &mut Session<'_>, recording: &KernelRecording) -> anyhow::Result<()> {
        if self.trace.is_none() && self.call_graph.is_none() {
            return Ok(());
        }
        let options = TraceOptions {
            accesses: self.accesses,
        };
        let traced = trace_functions(session, &recording.schedule, recording.rules, options);
        for (path, text) in [
            (&self.trace, traced.text.clone()),
            (&self.call_graph, traced.graph()),
        ] {
            if let Some(path) = path {
                std::fs::write(path, text)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                message::note(&format!("wrote {}", path.display()));
            }
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
            repeat(target, schedule, rules, self.times, workers).map_err(start_failure)?;
        let Some((trace, _)) = digests.first_key_value().filter(|_| digests.len() == 1) else {
            return Err(anyhow!(
                "{} replays of the same recording had {} different traces: please report this",
                self.times,
                digests.len()
            )
            .into());
        };
        message::note(&format!(
            "replayed {} times on {workers} workers: the same {} accesses each time, digest {:016x}",
            self.times, trace.accesses, trace.digest
        ));
        Ok(Code::Clean)
    }

    /// A bundle has its files beside the recording.
    fn guest(&self, recording: &KernelRecording, file: &Path) -> GuestOptions {
        let folder = file.parent().unwrap_or(Path::new("."));
        let bundled = Path::new(&recording.machine.kernel)
            .file_name()
            .map(|name| folder.join(name))
            .filter(|path| path.is_file());
        let kernel = self.kernel.clone().or(bundled);
        let mut machine = recording.machine.clone();
        for (guest, host) in &mut machine.files {
            let bundled = folder.join(FILES_IN_BUNDLE).join(guest);
            if bundled.is_file() {
                *host = bundled.display().to_string();
            }
        }
        for module in &mut machine.modules {
            let name = Path::new(&module.path).file_name().map(Path::new);
            if let Some(bundled) = name
                .map(|name| folder.join(name))
                .filter(|path| path.is_file())
            {
                module.path = bundled.display().to_string();
            }
        }
        GuestOptions {
            symbols: self.symbols.clone(),
            ..GuestOptions::of_recording(&machine, kernel, self.cache.clone())
        }
    }

    fn replay(
        &self,
        session: &mut Session<'_>,
        recording: &KernelRecording,
    ) -> Result<Code, Failure> {
        let mut replayed = replay(session, &recording.schedule, recording.rules);
        for _ in 1..self.times {
            let again = replay(session, &recording.schedule, recording.rules);
            let is_same = again.run_digest == replayed.run_digest
                && again.state_digest == replayed.state_digest;
            if !is_same {
                return Err(Failure {
                    code: Code::Usage,
                    error: anyhow!("two replays of the same recording differ: please report this"),
                });
            }
        }
        if let Some(finding) = &mut replayed.finding {
            finding.replay = Some(format!("raddle kernel replay {}", self.recording.display()));
        }
        if self.json {
            let findings: Vec<_> = replayed.finding.iter().cloned().collect();
            message::result(&format!("{}\n", json::document(&findings, ())?))?;
        } else if let Some(finding) = &replayed.finding {
            message::result(&terminal::finding(finding, 1, 1, style()))?;
        }
        if self.console {
            message::result(&replayed.console)?;
        }
        let same_run = replayed.run_digest == recording.run_digest
            && replayed.state_digest == recording.state_digest;
        let same_failure = replayed
            .finding
            .as_ref()
            .is_some_and(|finding| finding.fingerprint == recording.fingerprint);
        message::note(&format!(
            "replayed {} times: {} instructions, {} switches; {}; {} (run {:016x})",
            self.times,
            replayed.steps,
            replayed.switches,
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
            replayed.run_digest
        ));
        Ok(if replayed.finding.is_some() {
            Code::Findings
        } else {
            Code::Clean
        })
    }
}

/// The test of a recording, with its modules from where they were or from beside the recording.
fn read_test(recording: &KernelRecording, file: &Path) -> Result<Option<TestCase>, Failure> {
    let Some(text) = &recording.test else {
        return Ok(None);
    };
    let folder = file.parent().unwrap_or(Path::new("."));
    let test = TestCase::parse(&recording.test_path, text, &mut |name| {
        let known = recording
            .modules
            .iter()
            .find(|module| module.name == name)
            .ok_or_else(|| format!("the recording does not name the module `{name}`"))?;
        let path = Path::new(&known.path);
        let bundled = path.file_name().map(|name| folder.join(name));
        let path = match bundled {
            Some(bundled) if bundled.is_file() => bundled,
            _ => path.to_path_buf(),
        };
        let mut modules = Modules::new(Path::new(""), Path::new(""), None);
        let content = modules.load(&path.display().to_string())?;
        if Digest::of(&content) != known.digest {
            return Err(format!(
                "{} is not the module of the recording: it was built again",
                path.display()
            ));
        }
        Ok(content)
    })?;
    Ok(Some(test))
}
