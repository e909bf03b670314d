//! Where the files of a recording are: beside it, as in a bundle, or where they were when it was made.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use raddle_kernel::recording::{KernelRecording, MachineInputs};

use super::guest_options::guest_path;

/// Folder of the guest's files in a bundle.
pub(super) const FILES_IN_BUNDLE: &str = "files";
/// Folder of the program that brings its own test.
pub(super) const PROGRAM_IN_BUNDLE: &str = "program";

/// Looks for the files that a recording names.
#[derive(Debug)]
pub(super) struct Whereabouts {
    /// The folder of the recording.
    folder: PathBuf,
    /// Only what is in that folder counts.
    is_sealed: bool,
}

impl Whereabouts {
    pub(super) fn of(recording: &Path, is_sealed: bool) -> Self {
        let folder = recording.parent().unwrap_or(Path::new("."));
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        Self {
            folder: folder.to_path_buf(),
            is_sealed,
        }
    }

    /// A file that lies beside the recording under its last name, or where it was.
    pub(super) fn find(&self, recorded: &str) -> anyhow::Result<PathBuf> {
        let name = Path::new(recorded).file_name();
        self.find_as(name.map(Path::new), recorded)
    }

    /// The machine of a recording, with the paths at which its files are now.
    pub(super) fn machine(
        &self,
        recording: &KernelRecording,
        kernel: Option<&Path>,
    ) -> anyhow::Result<MachineInputs> {
        let mut machine = recording.machine.clone();
        machine.kernel = match kernel {
            Some(kernel) => kernel.display().to_string(),
            None => shown(&self.find(&machine.kernel)?),
        };
        for (guest, host) in &mut machine.files {
            let bundled = Path::new(FILES_IN_BUNDLE).join(guest_path(guest)?);
            *host = shown(&self.find_as(Some(&bundled), host)?);
        }
        for module in &mut machine.modules {
            module.path = shown(&self.find(&module.path)?);
        }
        if let Some(program) = &mut machine.program {
            let name = Path::new(program.as_str()).file_name();
            let bundled = name.map(|name| Path::new(PROGRAM_IN_BUNDLE).join(name));
            *program = shown(&self.find_as(bundled.as_deref(), program)?);
        }
        Ok(machine)
    }

    fn find_as(&self, bundled: Option<&Path>, recorded: &str) -> anyhow::Result<PathBuf> {
        let bundled = bundled.map(|name| self.folder.join(name));
        match bundled.filter(|path| self.is_inside(path)) {
            Some(path) => Ok(path),
            None if self.is_sealed => Err(anyhow!(
                "{recorded} is not beside the recording, and with --sealed nothing else is read: make a bundle with `raddle kernel bundle`, name a kernel with --kernel, or leave out --sealed"
            )),
            None => Ok(PathBuf::from(recorded)),
        }
    }

    /// Whether it is a file; with `--sealed`, one that no link leads out of the folder for.
    fn is_inside(&self, path: &Path) -> bool {
        let is_below = || {
            let folder = self.folder.canonicalize().ok()?;
            Some(path.canonicalize().ok()?.starts_with(folder))
        };
        path.is_file() && (!self.is_sealed || is_below() == Some(true))
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_a_seal_nothing_outside_of_the_folder_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("bundle");
        std::fs::create_dir(&bundle).unwrap();
        std::fs::write(bundle.join("inside"), "").unwrap();
        let outside = folder.path().join("outside");
        std::fs::write(&outside, "").unwrap();
        std::os::unix::fs::symlink(&outside, bundle.join("link")).unwrap();
        let recording = bundle.join("recording.kraddle");
        let [sealed, open] = [true, false].map(|is_sealed| Whereabouts::of(&recording, is_sealed));
        assert_eq!(sealed.find("/x/inside").unwrap(), bundle.join("inside"));
        assert_eq!(open.find("/x/link").unwrap(), bundle.join("link"));
        sealed.find("/x/link").unwrap_err();
        let outside = outside.display().to_string();
        assert_eq!(open.find(&outside).unwrap(), Path::new(&outside));
        let error = sealed.find(&outside).unwrap_err().to_string();
        assert!(error.contains("not beside the recording"), "{error}");
    }
}
