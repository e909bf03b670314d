//! `raddle kernel bundle`: everything that somebody else needs to see a finding, in one folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;

use super::replay::{FILES_IN_BUNDLE, IN_BUNDLE, read_recording};
use crate::exit::{Code, Failure};
use crate::message;

/// Put a recording, its test case, modules and kernel into one folder.
#[derive(Debug, Args)]
pub(crate) struct Bundle {
    /// Recording of a finding.
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    /// Folder to make; default: the recording's name with `.bundle`.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Leave the kernel image out; its digest stays in the recording.
    #[arg(long)]
    without_kernel: bool,
}

impl Bundle {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let (recording, file) = read_recording(&self.recording)?;
        let folder = self
            .output
            .clone()
            .unwrap_or_else(|| self.recording.with_extension("bundle"));
        if folder.exists() {
            return Err(anyhow!("{} exists and is not overwritten", folder.display()).into());
        }
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        copy(&file, &folder.join(IN_BUNDLE))?;
        if let Some(test) = &recording.test {
            write(&folder.join("test.ktest"), test)?;
        }
        for module in &recording.modules {
            copy_into(Path::new(&module.path), &folder)?;
        }
        for (guest, host) in &recording.machine.files {
            let to = folder.join(FILES_IN_BUNDLE).join(guest);
            if let Some(parent) = to.parent() {
                std::fs::create_dir_all(parent)
                    .with_context(|| format!("cannot make {}", parent.display()))?;
            }
            copy(Path::new(host), &to)?;
        }
        for module in &recording.machine.modules {
            copy_into(Path::new(&module.path), &folder)?;
        }
        if !self.without_kernel {
            copy_into(Path::new(&recording.machine.kernel), &folder)?;
        }
        let machine = &recording.machine;
        let readme = format!(
            "# {}\n\nReplay it with\n\n```console\nraddle kernel replay {}{}\n```\n\n\
             Kernel: `{}`, digest {:016x}, {} processors, {} MiB.\n\
             Command line: `{}`\n\
             Schedule: {} deviations from the default order.\n",
            recording.failure,
            folder.display(),
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
        );
        write(&folder.join("README.md"), &readme)?;
        message::note(&format!(
            "wrote {}; replay it with: raddle kernel replay {}",
            folder.display(),
            folder.display()
        ));
        Ok(Code::Clean)
    }
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::copy(from, to)
        .map(drop)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

fn copy_into(from: &Path, folder: &Path) -> anyhow::Result<()> {
    let name = from
        .file_name()
        .with_context(|| format!("{} is no file", from.display()))?;
    copy(from, &folder.join(name))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
