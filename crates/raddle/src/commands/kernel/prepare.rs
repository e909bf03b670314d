//! From options to a booted guest: out of the cache, or by booting.

use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressStyle};
use raddle_kernel::guest::{BootModule, GuestFile, initramfs};
use raddle_kernel::recording::MachineInputs;
use raddle_kernel::store::{self, BootSnapshot, SnapshotError};
use raddle_kernel::symbols::Symbols;
use raddle_kernel::world::{BootFailure, KernelWorld};
use raddle_pc::boot::{BootImage, ImageError, KernelImage};
use raddle_stdx::Digest;

use super::guest_options::{GuestOptions, absolute, guest_files, read};
use crate::exit::{Code, Failure};
use crate::message;

/// Console lines shown when a boot fails.
const LAST_LINES: usize = 25;

/// A booted guest and what it was made of.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) boot: Arc<BootSnapshot>,
    pub(crate) inputs: MachineInputs,
    pub(crate) symbols: Symbols,
    pub(crate) sources: SymbolSources,
    /// Content of the modules that are loaded before the boot snapshot.
    pub(crate) modules: Vec<Vec<u8>>,
    /// File of the snapshot.
    pub(crate) snapshot: PathBuf,
    /// How long booting or loading took.
    pub(crate) elapsed: Duration,
    pub(crate) was_cached: bool,
}

/// What the names of a kernel's functions are read from.
#[derive(Debug)]
pub(crate) struct SymbolSources {
    /// The image, as it was given.
    pub(crate) kernel: Vec<u8>,
    /// A file beside it, or one that the user named: a System.map or an unstripped vmlinux.
    pub(crate) file: Option<Vec<u8>>,
}

/// Where the console goes while booting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConsoleTo {
    Stdout,
    Nowhere,
}

/// What a guest is made of, with content.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) kernel: Vec<u8>,
    /// Program that brings its own test.
    pub(crate) program: Option<Vec<u8>>,
    pub(crate) files: Vec<GuestFile>,
    /// Modules that are loaded before the boot snapshot.
    pub(crate) modules: Vec<BootModule>,
    pub(crate) initramfs: Vec<u8>,
    pub(crate) inputs: MachineInputs,
}

/// Reads everything that a guest is made of.
pub(crate) fn contents(options: &GuestOptions) -> anyhow::Result<Contents> {
    let kernel = read(&options.kernel)?;
    let file_pairs = options.file_pairs()?;
    let files = guest_files(&file_pairs)?;
    let program = options.agent_program.as_deref();
    let program = program.map(read).transpose()?;
    let (module_inputs, modules): (Vec<_>, Vec<_>) = options.boot_modules()?.into_iter().unzip();
    let initramfs = initramfs(program.as_deref(), &files, &modules);
    let config = options.config();
    let inputs = MachineInputs {
        kernel: absolute(&options.kernel)?,
        kernel_digest: Digest::of(&kernel),
        cpus: config.cpus,
        memory: config.memory,
        command_line: config.command_line,
        seed: config.seed,
        initramfs_digest: Digest::of(&initramfs),
        program: options.agent_program.as_deref().map(absolute).transpose()?,
        files: file_pairs,
        modules: module_inputs,
    };
    Ok(Contents {
        kernel,
        program,
        files,
        modules,
        initramfs,
        inputs,
    })
}

pub(crate) fn prepare(options: &GuestOptions, console: ConsoleTo) -> Result<Prepared, Failure> {
    let Contents {
        kernel,
        modules,
        initramfs,
        inputs,
        ..
    } = contents(options)?;
    let image =
        KernelImage::parse(&kernel).map_err(|error| image_failure(&options.kernel, error))?;
    let config = options.config();
    let layout = BootImage::new(&image, &initramfs, &config)?;
    let key = store::key(&kernel, &initramfs, &config);
    let file = symbol_file(options)?;
    let symbols = symbols_of(&image, file.as_deref());
    let path = store::path(&options.cache_folder(), key);
    let begun = Instant::now();
    let (boot, was_cached) = match cached(&path, key, options.fresh) {
        Some(boot) => (boot, true),
        None => (boot(&layout, options, key, &path, console)?, false),
    };
    Ok(Prepared {
        boot: Arc::new(boot),
        inputs,
        symbols,
        sources: SymbolSources { kernel, file },
        modules: modules.into_iter().map(|module| module.content).collect(),
        snapshot: path,
        elapsed: begun.elapsed(),
        was_cached,
    })
}

fn cached(path: &Path, key: u64, fresh: bool) -> Option<BootSnapshot> {
    if fresh || !path.exists() {
        return None;
    }
    match BootSnapshot::read(path, key) {
        Ok(boot) if boot.world().is_err() => {
            message::warning(&format!(
                "the boot snapshot {} was made by another version of raddle; booting again",
                path.display()
            ));
            None
        }
        Ok(boot) => Some(boot),
        Err(
            error @ (SnapshotError::Damaged(_) | SnapshotError::Foreign | SnapshotError::OtherKey),
        ) => {
            message::warning(&format!(
                "the boot snapshot {} cannot be used ({error}); booting again",
                path.display()
            ));
            None
        }
        Err(SnapshotError::Io(error)) => {
            message::warning(&format!(
                "the boot snapshot {} cannot be read ({error}); booting again",
                path.display()
            ));
            None
        }
    }
}

fn boot(
    layout: &BootImage,
    options: &GuestOptions,
    key: u64,
    path: &Path,
    console: ConsoleTo,
) -> Result<BootSnapshot, Failure> {
    let bar = spinner();
    let config = options.config();
    let booted = KernelWorld::boot(layout, config.cpus, config.memory, &mut |progress| {
        if console == ConsoleTo::Stdout {
            // A closed pipe ends the show, not the boot.
            drop(std::io::stdout().write_all(progress.console));
            drop(std::io::stdout().flush());
        }
        bar.set_message(format!(
            "booting: {} million instructions (a distribution kernel takes 350 to 850)",
            progress.steps / 1_000_000
        ));
        bar.tick();
    });
    bar.finish_and_clear();
    let world = booted.map_err(|failure| boot_failure(&options.kernel, &failure))?;
    let boot = BootSnapshot::take(&world, key);
    if let Err(error) = boot.write(path) {
        message::warning(&format!(
            "the boot snapshot cannot be kept in {} ({error}); the next start boots again",
            path.display()
        ));
    }
    Ok(boot)
}

fn spinner() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    bar
}

fn image_failure(path: &Path, error: ImageError) -> Failure {
    let code = match error {
        ImageError::Unsupported { .. } | ImageError::UnknownCompression { .. } => Code::Unsupported,
        _ => Code::Usage,
    };
    Failure {
        code,
        error: anyhow!(error).context(format!("cannot boot {}", path.display())),
    }
}

fn boot_failure(path: &Path, failure: &BootFailure) -> Failure {
    let mut text = format!("cannot boot {}: {failure}", path.display());
    if let Some(console) = failure.console() {
        let lines: Vec<&str> = console.lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        text.push_str("\nthe end of its console:\n");
        for line in last {
            text.push_str("  ");
            text.push_str(line);
            text.push('\n');
        }
    }
    let code = match failure {
        BootFailure::Unsupported { .. } => Code::Unsupported,
        _ => Code::Usage,
    };
    Failure {
        code,
        error: anyhow!(text.trim_end().to_owned()),
    }
}

/// The symbols of a file, or else those in the image, with the types in it.
pub(crate) fn symbols_of(image: &KernelImage, file: Option<&[u8]>) -> Symbols {
    let given = file.and_then(symbols_in);
    let names = given.or_else(|| Symbols::from_elf(&image.elf));
    let names = names.unwrap_or_else(|| Symbols::from_image(&image.elf));
    names.with_types_of(&image.elf)
}

/// The kernel's symbols of a System.map or a vmlinux, if it has any.
fn symbols_in(file: &[u8]) -> Option<Symbols> {
    let symbols = if file.starts_with(b"\x7FELF") {
        Symbols::from_elf(file)
    } else {
        Some(Symbols::new(Some(&String::from_utf8_lossy(file))))
    };
    symbols.filter(Symbols::has_kernel)
}

/// The file with symbols that the user named, or the System.map beside the image.
fn symbol_file(options: &GuestOptions) -> anyhow::Result<Option<Vec<u8>>> {
    if let Some(path) = &options.symbols {
        let content = read(path)?;
        anyhow::ensure!(
            symbols_in(&content).is_some(),
            "{} has no kernel symbols",
            path.display()
        );
        return Ok(Some(content));
    }
    let name = options
        .kernel
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let beside = ["vmlinuz", "bzImage", "vmlinux"].iter().find_map(|prefix| {
        let version = name.strip_prefix(prefix)?;
        let map = format!("System.map{version}");
        Some(options.kernel.with_file_name(map))
    });
    // Debian ships a System.map of one line that says where the real one is.
    Ok(beside.and_then(|path| read(&path).ok()))
}
