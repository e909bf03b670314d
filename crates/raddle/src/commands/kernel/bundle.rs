//! `raddle kernel bundle`: everything that another user needs to see a finding, in one folder.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use raddle_kernel::recording::KernelRecording;
use raddle_trace::Enveloped;

use super::guest_options::{GuestOptions, guest_path, read};
use super::prepare::{Contents, contents};
use super::replay::{IN_BUNDLE, read_recording, recorded_module};
use super::whereabouts::{FILES_IN_BUNDLE, PROGRAM_IN_BUNDLE, Whereabouts};
use crate::exit::{Code, Failure};
use crate::keep::shell_word;
use crate::message;

/// Put a recording, its test case or program, modules, files and kernel into one folder.
#[derive(Debug, Args)]
pub(crate) struct Bundle {
    /// Recording of a finding.
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    /// Folder to make; default: the recording's name with `.bundle`.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The kernel, if it is not where the recording says.
    #[arg(long, value_name = "IMAGE")]
    kernel: Option<PathBuf>,
    /// Leave the kernel image out; its digest stays in the recording.
    #[arg(long)]
    without_kernel: bool,
}

impl Bundle {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let (recording, file) = read_recording(&self.recording)?;
        let machine = &recording.machine;
        let whereabouts = Whereabouts::of(&file, false);
        let now = whereabouts.machine(&recording, self.kernel.as_deref())?;
        let contents = contents(&GuestOptions::of_recording(&now, None))?;
        check(&recording, &contents)?;
        let modules = module_paths(&recording, &whereabouts)?;
        let folder = self
            .output
            .clone()
            .unwrap_or_else(|| self.recording.with_extension("bundle"));
        if folder.exists() {
            return Err(anyhow!("{} exists and is not overwritten", folder.display()).into());
        }
        let bundle = Writer::new(&folder)?;
        bundle.write(IN_BUNDLE, recording.to_text().as_bytes())?;
        if let Some(test) = &recording.test {
            bundle.write("test.ktest", test.as_bytes())?;
        }
        for module in &modules {
            bundle.write(&last_name(module)?, &read(Path::new(module))?)?;
        }
        for file in &contents.files {
            bundle.write(&format!("{FILES_IN_BUNDLE}/{}", file.path), &file.content)?;
        }
        if let (Some(path), Some(program)) = (&machine.program, &contents.program) {
            let name = format!("{PROGRAM_IN_BUNDLE}/{}", last_name(path)?);
            bundle.write(&name, program)?;
        }
        if !self.without_kernel {
            bundle.write(&last_name(&machine.kernel)?, &contents.kernel)?;
        }
        bundle.write("README.md", self.readme(&recording, &folder).as_bytes())?;
        message::note(&format!(
            "wrote {}; replay it with: raddle kernel replay {}",
            folder.display(),
            shell_word(&folder)
        ));
        Ok(Code::Clean)
    }

    fn readme(&self, recording: &KernelRecording, folder: &Path) -> String {
        let machine = &recording.machine;
        format!(
            "# {}\n\nReplay it with\n\n```console\nraddle kernel replay {}{}\n```\n\n\
             Kernel: `{}`, digest {:016x}, {} processors, {} MiB.\n\
             Command line: `{}`\n\
             Schedule: {} deviations from the default order.\n",
            recording.failure,
            shell_word(folder),
            if self.without_kernel {
                " --kernel IMAGE"
            } else {
                ""
            },
            machine.kernel,
            machine.kernel_digest,
            machine.cpus,
            machine.memory >> 20,
            machine.command_line,
            recording.schedule.len(),
        )
    }
}

/// A recording names files of this machine. An author elsewhere may have named files that are none of theirs, and a
/// bundle is made to be given away: it takes only what the recording was made with.
fn check(recording: &KernelRecording, contents: &Contents) -> anyhow::Result<()> {
    let machine = &recording.machine;
    anyhow::ensure!(
        contents.inputs.kernel_digest == machine.kernel_digest,
        "{} is not the kernel of the recording; name the right one with --kernel. Nothing was bundled",
        contents.inputs.kernel
    );
    anyhow::ensure!(
        contents.inputs.initramfs_digest == machine.initramfs_digest,
        "the agent program, a file or a module of the guest is not what the recording was made with ({}). Nothing was bundled",
        named_files(recording).join(", ")
    );
    Ok(())
}

/// The host files that a guest was made of, besides the kernel.
fn named_files(recording: &KernelRecording) -> Vec<String> {
    let machine = &recording.machine;
    let files = machine.files.iter().map(|(_, host)| host.clone());
    let modules = machine.modules.iter().map(|module| module.path.clone());
    machine
        .program
        .iter()
        .cloned()
        .chain(files)
        .chain(modules)
        .collect()
}

/// Where the modules are that the test loads and that are loaded before the boot snapshot, each once. Those of the boot
/// are checked as part of the initial file system.
fn module_paths(
    recording: &KernelRecording,
    whereabouts: &Whereabouts,
) -> anyhow::Result<BTreeSet<String>> {
    let mut paths = BTreeSet::new();
    for module in &recording.modules {
        let (_, path) = recorded_module(module, whereabouts).context("nothing was bundled")?;
        paths.insert(path.display().to_string());
    }
    for module in &recording.machine.modules {
        paths.insert(whereabouts.find(&module.path)?.display().to_string());
    }
    Ok(paths)
}

/// Writes the files of a bundle, each only once.
struct Writer<'a> {
    folder: &'a Path,
}

impl<'a> Writer<'a> {
    fn new(folder: &'a Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self { folder })
    }

    /// `name` leads to no other folder: it is a path of the guest, or the last name of one.
    fn write(&self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        let path = self.folder.join(guest_path(name)?);
        let parent = path.parent().unwrap_or(self.folder);
        std::fs::create_dir_all(parent)
            .with_context(|| format!("cannot make {}", parent.display()))?;
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        file.and_then(|mut file| file.write_all(content))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

fn last_name(path: &str) -> anyhow::Result<String> {
    let name = Path::new(path).file_name();
    let name = name.with_context(|| format!("{path} is no file"))?;
    Ok(name.to_string_lossy().into_owned())
}
