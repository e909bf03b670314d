//! What all commands say about the machine.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use raddle_kernel::guest::{BootModule, GuestFile, with_libraries};
use raddle_kernel::recording::{BootModuleInput, MachineInputs};
use raddle_pc::boot::{BootConfig, DEFAULT_COMMAND_LINE};
use raddle_stdx::regular_file;

use super::modules::Modules;

/// The machine and its kernel.
#[derive(Debug, Clone, Args)]
pub(crate) struct GuestOptions {
    /// Kernel to boot: a vmlinuz, bzImage or vmlinux for x86-64.
    #[arg(long, value_name = "IMAGE")]
    pub(crate) kernel: PathBuf,
    /// Processors of the machine.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) cpus: usize,
    /// RAM of the machine in MiB, or with a unit: 512M, 2G.
    #[arg(long, value_name = "SIZE", default_value_t = 256, value_parser = crate::units::mebibytes)]
    pub(crate) memory: u64,
    /// Words to add to the kernel's command line.
    #[arg(long, value_name = "WORDS", default_value = "")]
    pub(crate) append: String,
    /// System.map or an unstripped vmlinux; default: the System.map beside the image.
    #[arg(long, value_name = "FILE")]
    pub(crate) symbols: Option<PathBuf>,
    /// Folder with the kernel's modules; default: `lib/modules` beside the image's folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) modules: Option<PathBuf>,
    /// A static program that brings its own test and uses raddle.h, instead of a test case.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) agent_program: Option<PathBuf>,
    /// A module to load before the boot snapshot, with its parameters: "brd rd_nr=1"; may be given several times.
    #[arg(long, value_name = "NAME [PARAMETERS]")]
    pub(crate) module: Vec<String>,
    /// A program of the host for the guest, with the libraries it needs; may be given several times.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) program: Vec<PathBuf>,
    /// A host file for the guest, as GUEST=HOST; may be given several times.
    #[arg(long, value_name = "GUEST=HOST")]
    pub(crate) file: Vec<String>,
    /// Let test cases load only modules of the kernel's own and files beside the test case; everything else that the guest
    /// gets is named on the command line anyway.
    #[arg(long)]
    pub(crate) sealed: bool,
    /// Folder for boot snapshots; default: `raddle/kernel` in the user's cache folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Boot again, even if there is a snapshot.
    #[arg(long)]
    pub(crate) fresh: bool,
}

impl GuestOptions {
    pub(crate) fn config(&self) -> BootConfig {
        let command_line = format!("{DEFAULT_COMMAND_LINE} {}", self.append);
        BootConfig {
            cpus: self.cpus,
            memory: self.memory << 20,
            command_line: command_line.trim_end().to_owned(),
            seed: 1,
        }
    }

    /// Files for the guest, as guest path and host path: those named, and programs with their libraries.
    pub(crate) fn file_pairs(&self) -> anyhow::Result<Vec<(String, String)>> {
        let mut pairs = Vec::new();
        for pair in &self.file {
            let (guest, host) = pair
                .split_once('=')
                .ok_or_else(|| anyhow!("--file wants GUEST=HOST, not `{pair}`"))?;
            let guest = guest_path(guest)?;
            pairs.push((guest, absolute(Path::new(host))?));
        }
        for program in &self.program {
            for (guest, host) in with_libraries(program)? {
                if pairs.iter().all(|(known, _)| *known != guest) {
                    pairs.push((guest, absolute(&host)?));
                }
            }
        }
        Ok(pairs)
    }

    /// The modules that are loaded before the boot snapshot, each behind what it depends on.
    pub(crate) fn boot_modules(&self) -> anyhow::Result<Vec<(BootModuleInput, BootModule)>> {
        if let Some(folder) = &self.modules {
            let is_there = folder.is_dir();
            anyhow::ensure!(is_there, "--modules {}: no such folder", folder.display());
        }
        let mut modules = Modules::new(Path::new(""), &self.kernel, self.modules.as_deref());
        for wanted in &self.module {
            let (name, parameters) = wanted.split_once(' ').unwrap_or((wanted.as_str(), ""));
            modules
                .load_for_boot(name, parameters, 0)
                .map_err(|error| anyhow!("--module {name}: {error}"))?;
        }
        Ok(modules.for_boot)
    }

    /// The same machine as a recording's.
    pub(crate) fn of_recording(inputs: &MachineInputs, cache: Option<PathBuf>) -> Self {
        let append = inputs
            .command_line
            .strip_prefix(DEFAULT_COMMAND_LINE)
            .unwrap_or_default();
        Self {
            kernel: inputs.kernel.clone().into(),
            cpus: inputs.cpus,
            memory: inputs.memory >> 20,
            append: append.trim().to_owned(),
            symbols: None,
            modules: None,
            agent_program: inputs.program.as_ref().map(PathBuf::from),
            module: inputs
                .modules
                .iter()
                .map(|module| format!("{} {}", module.path, module.parameters))
                .collect(),
            program: Vec::new(),
            file: inputs
                .files
                .iter()
                .map(|(guest, host)| format!("{guest}={host}"))
                .collect(),
            sealed: false,
            cache,
            fresh: false,
        }
    }

    pub(crate) fn cache_folder(&self) -> PathBuf {
        if let Some(folder) = &self.cache {
            return folder.clone();
        }
        let base = std::env::var_os("XDG_CACHE_HOME").map_or_else(
            || {
                let home = std::env::var_os("HOME").map_or_else(std::env::temp_dir, PathBuf::from);
                home.join(".cache")
            },
            PathBuf::from,
        );
        base.join("raddle").join("kernel")
    }
}

/// A path that means the same from every folder: recordings keep paths of this kind only.
pub(crate) fn absolute(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path)
        .with_context(|| format!("{} has no absolute path", path.display()))?;
    Ok(path.display().to_string())
}

/// The path of a guest's file, from the guest's root on; it leads nowhere else, neither in a guest nor in a bundle.
pub(crate) fn guest_path(path: &str) -> anyhow::Result<String> {
    let mut names = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
            Component::ParentDir | Component::Prefix(_) => {
                return Err(anyhow!("`{path}` is no path of a file in the guest"));
            }
        }
    }
    anyhow::ensure!(
        !names.is_empty(),
        "`{path}` is no path of a file in the guest"
    );
    Ok(names.join("/"))
}

/// Reads the files that the guest gets.
pub(crate) fn guest_files(pairs: &[(String, String)]) -> anyhow::Result<Vec<GuestFile>> {
    pairs
        .iter()
        .map(|(guest, host)| {
            Ok(GuestFile {
                path: guest.clone(),
                mode: 0o755,
                content: read(Path::new(host))?,
            })
        })
        .collect()
}

/// Bytes of a file for a guest at most: a kernel image or program has much less, and the guest has no more memory.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// Reads a file, which a recording may have named; the error names it.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    regular_file::read(path, FILE_BYTES_MAX)
        .with_context(|| format!("cannot read {}", path.display()))
}
