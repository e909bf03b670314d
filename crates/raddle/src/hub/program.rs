//! A program on its way to workers: what it is given, and what its first run has learned of this machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use raddle_campaign::{Cancel, Leave, Options, Stage};
use raddle_explore::{About, Cut, Program, Session};
use raddle_hub::{Bench, Cache, Identity, Manifest, SubjectBench, content};
use raddle_linearize::Linearize;
use raddle_linux::{Catalogue, ContentId, Elsewhere};
use raddle_stdx::{Digest, regular_file};
use raddle_trace::{Checks, Inputs, SerialRules};
use raddle_world::Fault;
use serde::{Deserialize, Serialize};

use super::serial::{Histories, JudgedBench};
use crate::commands::judge;

/// Name of this kind of subject in manifests.
pub(crate) const KIND: &str = "program";

/// What a worker is told of a program.
#[derive(Debug, Serialize, Deserialize)]
struct ProgramManifest {
    inputs: Inputs,
    snapshot_at: String,
    checks: Checks,
    expected_output: Option<String>,
    /// What contexts may meet: some of it decides where a program stops.
    faults: Vec<Fault>,
    /// How runs are compared with serial orders, if they are.
    serial: Option<SerialRules>,
    catalogue: Catalogue,
}

/// Writes down a program whose first run is over; `files` gets the content of everything it has read.
pub(super) fn manifest(
    program: &Program,
    session: &Session,
    name: &str,
    identity: &Identity,
    files: &mut BTreeMap<ContentId, Vec<u8>>,
) -> anyhow::Result<Manifest> {
    let changed = session.world().host_files();
    if let Some(file) = changed.into_iter().find(|file| file.changed) {
        anyhow::bail!(
            "{} has changed since the program read it: start again",
            file.path.display()
        );
    }
    let mut keep = |path: &Path| -> anyhow::Result<ContentId> {
        let bytes = regular_file::read(path, content::CONTENT_BYTES_MAX)
            .with_context(|| format!("cannot read {}, which workers need", path.display()))?;
        let id = content::id_of(&bytes);
        files.insert(id.clone(), bytes);
        Ok(id)
    };
    let catalogue = session.world().catalogue(&mut keep)?;
    let about = &program.about;
    let contents = catalogue.contents().into_iter().cloned().collect();
    let what = ProgramManifest {
        inputs: about.inputs.clone(),
        snapshot_at: about.snapshot_at.to_string(),
        checks: about.checks,
        expected_output: about.expected_output.clone(),
        faults: program.options.faults.clone(),
        serial: about.serial.clone(),
        catalogue,
    };
    Ok(Manifest {
        identity: identity.clone(),
        kind: KIND.to_owned(),
        name: name.to_owned(),
        what: serde_json::to_value(what)?,
        contents,
    })
}

/// Stands for everything that decides which jobs there will be, besides the program.
pub(super) fn campaign_seed(program: &Program) -> u64 {
    let options = &program.options;
    let text = format!(
        "{} {:?} {} {} {} {:?} {} {:?} {:?} {:?} {:?}",
        options.seed,
        options.algorithm,
        options.races,
        options.varies_time,
        options.every_instruction,
        options.faults,
        options.coverage,
        program.expected_exit,
        program.steps_max,
        program.cut,
        program.focus,
    );
    Digest::of(text.as_bytes())
}

/// What a worker gives to any program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) memory_max: u64,
    pub(crate) processes_max: usize,
}

/// A program that came from a hub. It sees nothing but what came with it.
pub(crate) fn bench(
    manifest: &Manifest,
    cache: &Cache,
    cancel: &Cancel,
    limits: Limits,
) -> Result<Box<dyn Bench>, String> {
    let what: ProgramManifest =
        serde_json::from_value(manifest.what.clone()).map_err(|error| error.to_string())?;
    check(&what, manifest, limits)?;
    let ProgramManifest {
        inputs,
        snapshot_at,
        checks,
        expected_output,
        faults,
        serial,
        catalogue,
    } = what;
    let Ok(snapshot_at) = snapshot_at.parse();
    let files = || Arc::new(Elsewhere::new(catalogue.clone(), cache.folder().to_owned()));
    let about = About {
        inputs,
        snapshot_at,
        checks,
        judge: judge(expected_output.as_deref(), None),
        expected_output,
        oracle: None,
        serial: None,
        is_ordinary: false,
        modules: Arc::default(),
        elsewhere: Some(files()),
    };
    let options = worker_options(cancel, faults);
    let Some(rules) = serial else {
        return Ok(Box::new(start(about, options)?));
    };
    let elsewhere = files();
    let serial = About {
        elsewhere: Some(Arc::clone(&elsewhere)),
        ..about.clone()
    };
    let oracle = Linearize::start(&serial, &rules, Leave::to_explore(cancel));
    let histories = Histories::of(oracle.map_err(|why| why.to_string())?);
    let judged = About {
        judge: Some(histories.judge()),
        serial: Some(rules),
        ..about
    };
    let bench = start(judged, options)?.telling(move || histories.tell());
    Ok(Box::new(JudgedBench { bench, elsewhere }))
}

/// Whether a program makes sense, and wants no more than a worker gives.
fn check(what: &ProgramManifest, manifest: &Manifest, limits: Limits) -> Result<(), String> {
    let ProgramManifest {
        inputs, catalogue, ..
    } = what;
    if let Some(nonsense) = inputs.nonsense() {
        return Err(nonsense.to_owned());
    }
    if let Some(nonsense) = catalogue.nonsense() {
        return Err(nonsense);
    }
    if catalogue
        .contents()
        .into_iter()
        .any(|id| !manifest.contents.contains(id))
    {
        return Err("it needs files that it does not name".into());
    }
    if inputs.memory_max > limits.memory_max || inputs.processes_max > limits.processes_max {
        return Err(format!(
            "it wants {} MiB of memory and {} processes; this worker gives {} MiB and {}",
            inputs.memory_max >> 20,
            inputs.processes_max,
            limits.memory_max >> 20,
            limits.processes_max
        ));
    }
    Ok(())
}

fn start(about: About, options: Options) -> Result<SubjectBench<Program>, String> {
    let program = Program {
        options,
        about: Arc::new(about),
        expected_exit: None,
        steps_max: None,
        cut: Cut::Never,
        exhaustive: false,
        focus: Vec::new(),
    };
    SubjectBench::start(program).map_err(|failure| failure.to_string())
}

/// What a worker does is in its jobs; of these only the faults and the wish to end count.
pub(super) fn worker_options(cancel: &Cancel, faults: Vec<Fault>) -> Options {
    Options {
        schedules: 0,
        until_found: false,
        workers: 1,
        seed: 0,
        algorithm: None,
        races: false,
        findings_max: 0,
        varies_time: false,
        every_instruction: false,
        faults,
        coverage: false,
        cancel: cancel.clone(),
        clock: None,
    }
}
