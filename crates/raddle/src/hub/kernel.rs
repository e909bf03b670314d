//! The subject "test of a kernel" on its way to workers: the booted guest, what its functions are called, and the test,
//! by content. A worker boots nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use raddle_campaign::Cancel;
use raddle_hub::{Bench, Cache, DistantBench, Identity, Manifest, SubjectBench, content};
use raddle_kernel::campaign::{ContextSet, KernelTest, Origin, RaceRules, Target};
use raddle_kernel::store::BootSnapshot;
use raddle_kernel::test_case::TestCase;
use raddle_linux::ContentId;
use raddle_pc::boot::KernelImage;
use raddle_stdx::{Digest, regular_file};
use serde::{Deserialize, Serialize};

use super::program::{Limits, worker_options};
use crate::commands::kernel::prepare::{SymbolSources, symbols_of};

/// Name of this kind of subject in manifests.
pub(crate) const KIND: &str = "kernel-test";

/// Processors of a guest at most.
const CPUS_MAX: usize = 64;

/// What a worker is told of a test of a kernel.
#[derive(Debug, Serialize, Deserialize)]
struct KernelManifest {
    /// The booted guest, as its file has it, and the key in it.
    boot: ContentId,
    boot_key: u64,
    /// Image and file that name the kernel's functions.
    image: ContentId,
    symbols: Option<ContentId>,
    /// Modules that are loaded before the boot snapshot.
    modules: Vec<ContentId>,
    test: Option<TestManifest>,
    race_rules: RaceRules,
    contexts: Option<ContextSet>,
    time_max: u64,
    origin: Origin,
}

/// A test case with the modules that it loads, by the names that it has for them.
#[derive(Debug, Serialize, Deserialize)]
struct TestManifest {
    path: String,
    text: String,
    modules: Vec<(String, ContentId)>,
}

/// Writes down a test; `files` gets everything that workers need.
pub(super) fn manifest(
    target: &Target,
    sources: &SymbolSources,
    identity: &Identity,
    files: &mut BTreeMap<ContentId, Vec<u8>>,
) -> anyhow::Result<Manifest> {
    let mut keep = |bytes: &[u8]| {
        let id = content::id_of(bytes);
        files.entry(id.clone()).or_insert_with(|| bytes.to_vec());
        id
    };
    let test = target.test.as_ref().map(|test| {
        let names = target
            .origin
            .modules
            .iter()
            .map(|module| module.name.clone());
        TestManifest {
            path: test.path.clone(),
            text: test.text.clone(),
            modules: names
                .zip(test.modules.iter().map(|module| keep(module)))
                .collect(),
        }
    });
    let what = KernelManifest {
        test,
        boot: keep(&target.boot.encode()),
        boot_key: target.boot.key,
        image: keep(&sources.kernel),
        symbols: sources.file.as_deref().map(&mut keep),
        modules: target.modules.iter().map(|module| keep(module)).collect(),
        race_rules: target.race_rules.clone(),
        contexts: target.contexts.clone(),
        time_max: target.time_max,
        origin: target.origin.clone(),
    };
    Ok(Manifest {
        identity: identity.clone(),
        kind: KIND.to_owned(),
        name: target.test_path().to_owned(),
        what: serde_json::to_value(what)?,
        contents: files.keys().cloned().collect(),
    })
}

/// Stands for everything that decides which jobs there will be, besides the test.
pub(super) fn campaign_seed(test: &KernelTest<'_>) -> u64 {
    let options = &test.options;
    let text = format!(
        "{} {:?} {} {:?} {} {} {} {:?} {} {:?}",
        options.seed,
        options.algorithm,
        options.races,
        test.races,
        test.patience,
        test.pause_window,
        test.loop_window,
        test.liveness,
        test.interrupts,
        test.focus,
    );
    Digest::of(text.as_bytes())
}

/// Tests that the threads of a worker have open, so that they hold one copy of a guest.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    open: Mutex<BTreeMap<ContentId, Weak<Target>>>,
}

impl Targets {
    /// A test that came from a hub, on a guest of its own.
    pub(crate) fn bench(
        &self,
        manifest: &Manifest,
        cache: &Cache,
        cancel: &Cancel,
        limits: Limits,
    ) -> Result<Box<dyn Bench>, String> {
        let target = self.target(manifest, cache, limits)?;
        let options = worker_options(cancel, Vec::new());
        let bench = DistantBench::start(move |desk| {
            // What decides about runs is in the jobs.
            let test = KernelTest::new(&target, options);
            match SubjectBench::start(test) {
                Ok(mut bench) => desk.serve(&mut bench),
                Err(failure) => desk.refuse(failure.to_string()),
            }
        })?;
        Ok(Box::new(bench))
    }

    fn target(
        &self,
        manifest: &Manifest,
        cache: &Cache,
        limits: Limits,
    ) -> Result<Arc<Target>, String> {
        let text = serde_json::to_vec(manifest).map_err(|error| error.to_string())?;
        let id = content::id_of(&text);
        // The other threads of the worker wait for the one that reads the guest.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, target| target.strong_count() > 0);
        if let Some(target) = open.get(&id).and_then(Weak::upgrade) {
            return Ok(target);
        }
        let target = Arc::new(read(manifest, cache, limits)?);
        open.insert(id, Arc::downgrade(&target));
        Ok(target)
    }
}

/// Reads a test that came from a hub.
fn read(manifest: &Manifest, cache: &Cache, limits: Limits) -> Result<Target, String> {
    let what: KernelManifest =
        serde_json::from_value(manifest.what.clone()).map_err(|error| error.to_string())?;
    let fetch = |id: &ContentId| {
        if !manifest.contents.contains(id) {
            return Err("it needs files that it does not name".to_owned());
        }
        let path = cache.folder().join(id.as_str());
        let bytes = regular_file::read(&path, content::CONTENT_BYTES_MAX);
        bytes.map_err(|error| format!("a file is gone from the cache: {error}"))
    };
    let all =
        |ids: &[ContentId]| -> Result<Vec<Vec<u8>>, String> { ids.iter().map(fetch).collect() };
    let boot = BootSnapshot::decode(&fetch(&what.boot)?, what.boot_key)
        .map_err(|error| format!("its boot snapshot: {error}"))?;
    let guest = boot.world();
    let guest = guest.map_err(|error| format!("its boot snapshot: {error}"))?;
    let (memory, cpus) = (guest.machine().memory(), guest.machine().cpus());
    if memory > limits.memory_max || cpus > CPUS_MAX {
        return Err(format!(
            "its guest has {} MiB of memory and {cpus} processors; this worker gives {} MiB and {CPUS_MAX}",
            memory >> 20,
            limits.memory_max >> 20,
        ));
    }
    drop(guest);
    let image = fetch(&what.image)?;
    let image = KernelImage::parse(&image).map_err(|error| format!("its kernel: {error}"))?;
    let file = what.symbols.as_ref().map(fetch).transpose()?;
    let test = what.test.as_ref().map(|test| {
        let mut load = |name: &str| {
            let known = test.modules.iter().find(|(known, _)| known == name);
            let (_, id) =
                known.ok_or_else(|| format!("the module {name} did not travel with it"))?;
            fetch(id)
        };
        TestCase::parse(&test.path, &test.text, &mut load).map_err(|error| error.to_string())
    });
    Ok(Target {
        test: test.transpose()?,
        boot: Arc::new(boot),
        symbols: Arc::new(symbols_of(&image, file.as_deref())),
        race_rules: what.race_rules,
        modules: all(&what.modules)?,
        contexts: what.contexts,
        time_max: what.time_max,
        judge: None,
        origin: what.origin,
    })
}
