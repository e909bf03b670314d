//! Where campaigns lie: a folder for each, in which every file is written beside its place and moved there.
//!
//! ```text
//!   campaign.json   what is known              known.toml     findings that are accepted, with reasons
//!   classes/        digests of classes         findings/      recordings, by subject
//!   work/           rounds that are under way  metrics.txt    for a collector of metrics
//!   paused          there if it shall end      lock           held by the process that runs it
//! ```

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use raddle_stdx::regular_file;

use super::state::{State, VERSION};
use super::subjects::is_name;
use crate::keep;

/// Bytes of a file of a campaign at most.
const FILE_BYTES_MAX: u64 = 1 << 30;

const STATE: &str = "campaign.json";
/// How often, and how long between, it is tried to be the one who runs a campaign.
const LOCK_TRIES: u32 = 10;
const LOCK_WAIT: Duration = Duration::from_millis(20);

/// A folder with campaigns.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    pub(super) fn at(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            folder: std::path::absolute(folder)?,
        })
    }

    /// Makes a campaign; it is there whole, or not at all.
    pub(super) fn create(&self, name: &str, state: &State) -> anyhow::Result<Place> {
        let folder = self.folder.join(name);
        let shown = folder.display().to_string();
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot make {}", self.folder.display()))?;
        ensure!(
            folder.symlink_metadata().is_err(),
            "{shown} is there already: choose another name, or `raddle campaign delete {name}`"
        );
        let unfinished = tempfile::Builder::new()
            .prefix(".new-")
            .tempdir_in(&self.folder);
        let unfinished = unfinished.with_context(|| format!("cannot make {shown}"))?;
        Place {
            folder: unfinished.path().to_owned(),
        }
        .write(state)?;
        let made = std::fs::set_permissions(
            unfinished.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        );
        made.and_then(|()| std::fs::rename(unfinished.path(), &folder))
            .with_context(|| format!("cannot make {shown}"))?;
        Ok(Place { folder })
    }

    pub(super) fn find(&self, name: &str) -> anyhow::Result<Place> {
        let folder = self.folder.join(name);
        ensure!(
            is_name(name) && folder.join(STATE).is_file(),
            "there is no campaign `{name}` in {}: make it with `raddle campaign create {name} CORPUS.toml`, or name another folder with --store",
            self.folder.display()
        );
        Ok(Place { folder })
    }

    /// All campaigns, by name.
    pub(super) fn all(&self) -> anyhow::Result<Vec<Place>> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let entries = self.folder.read_dir();
        let entries = entries.with_context(|| format!("cannot read {}", self.folder.display()))?;
        let mut places = Vec::new();
        for entry in entries {
            let folder = entry?.path();
            let name = folder.file_name().and_then(|name| name.to_str());
            if name.is_some_and(is_name) && folder.join(STATE).is_file() {
                places.push(Place { folder });
            }
        }
        places.sort_by(|one, other| one.folder.cmp(&other.folder));
        Ok(places)
    }
}

/// The folder of a campaign.
#[derive(Debug)]
pub(super) struct Place {
    folder: PathBuf,
}

impl Place {
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn read(&self) -> anyhow::Result<State> {
        let path = self.folder.join(STATE);
        let shown = path.display();
        let bytes = regular_file::read(&path, FILE_BYTES_MAX)
            .with_context(|| format!("cannot read {shown}"))?;
        let state: State = serde_json::from_slice(&bytes)
            .map_err(|error| anyhow!("{shown} is no campaign of this raddle: {error}"))?;
        ensure!(
            state.version == VERSION,
            "{shown} has the form {}; this raddle reads {VERSION}",
            state.version
        );
        Ok(state)
    }

    pub(super) fn write(&self, state: &State) -> anyhow::Result<()> {
        let text = serde_json::to_vec_pretty(state)?;
        keep::write(&self.folder.join(STATE), &text)
    }

    /// What keeps others from running it; none if another process does.
    pub(super) fn lock(&self) -> anyhow::Result<Option<File>> {
        for _ in 0..LOCK_TRIES {
            if let Some(lock) = self.try_lock()? {
                return Ok(Some(lock));
            }
            // Another process may only have looked whether it is running.
            std::thread::park_timeout(LOCK_WAIT);
        }
        Ok(None)
    }

    /// Whether some process runs it.
    pub(super) fn is_busy(&self) -> anyhow::Result<bool> {
        Ok(self.try_lock()?.is_none())
    }

    fn try_lock(&self) -> anyhow::Result<Option<File>> {
        let path = self.folder.join("lock");
        let file = File::options().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => {
                Err(anyhow!(error).context(format!("cannot lock {}", path.display())))
            }
        }
    }

    pub(super) fn set_paused(&self, wanted: bool) -> anyhow::Result<()> {
        let path = self.folder.join("paused");
        if wanted {
            return keep::write(&path, b"");
        }
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                bail!("cannot remove {}: {error}", path.display())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.folder.join("paused").exists()
    }

    pub(super) fn delete(&self) -> anyhow::Result<()> {
        // Without its state it is no campaign any more, however much of it is left.
        std::fs::remove_file(self.folder.join(STATE))
            .and_then(|()| std::fs::remove_dir_all(&self.folder))
            .with_context(|| format!("cannot remove {}", self.folder.display()))
    }

    /// Folders of rounds that were not finished.
    pub(super) fn unfinished(&self) -> anyhow::Result<Vec<PathBuf>> {
        let work = self.folder.join("work");
        if !work.exists() {
            return Ok(Vec::new());
        }
        let entries = work.read_dir();
        let entries = entries.with_context(|| format!("cannot read {}", work.display()))?;
        let mut folders = Vec::new();
        for entry in entries {
            folders.push(entry?.path());
        }
        folders.sort();
        Ok(folders)
    }

    /// A folder for a round; nothing that another process does meets it.
    pub(super) fn workplace(&self, subject: &str) -> anyhow::Result<PathBuf> {
        let work = self.folder.join("work");
        std::fs::create_dir_all(&work)
            .and_then(|()| {
                let prefix = format!("{subject}@");
                tempfile::Builder::new().prefix(&prefix).tempdir_in(&work)
            })
            .map(tempfile::TempDir::keep)
            .with_context(|| format!("cannot make a folder in {}", work.display()))
    }

    /// Moves a recording to the findings of a subject, and says where it is then, below the campaign's folder.
    pub(super) fn keep_recording(&self, subject: &str, file: &Path) -> anyhow::Result<PathBuf> {
        let name = file.file_name().context("a recording is a file")?;
        let below = Path::new("findings").join(subject);
        let folder = self.folder.join(&below);
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::rename(file, folder.join(name)))
            .with_context(|| format!("cannot move {} to {}", file.display(), folder.display()))?;
        Ok(below.join(name))
    }

    /// The digests in a file of classes.
    pub(super) fn classes(&self, file: Option<&str>) -> anyhow::Result<BTreeSet<u64>> {
        let Some(file) = file else {
            return Ok(BTreeSet::new());
        };
        ensure!(is_name(file), "`{file}` is no name of a file of classes");
        let path = self.folder.join("classes").join(file);
        let bytes = regular_file::read(&path, FILE_BYTES_MAX)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let (words, rest) = bytes.as_chunks();
        ensure!(rest.is_empty(), "{} is cut off", path.display());
        Ok(words.iter().copied().map(u64::from_le_bytes).collect())
    }

    /// Writes digests to a new file; the old one stays until the state names the new one.
    pub(super) fn write_classes(&self, file: &str, classes: &BTreeSet<u64>) -> anyhow::Result<()> {
        let folder = self.folder.join("classes");
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        let bytes: Vec<u8> = classes
            .iter()
            .flat_map(|class| class.to_le_bytes())
            .collect();
        keep::write(&folder.join(file), &bytes)
    }

    /// Removes files of classes that no subject names any more.
    pub(super) fn forget_classes(&self, state: &State) {
        let named = |name: &str| {
            let mut files = state
                .subjects
                .iter()
                .filter_map(|one| one.class_file.as_deref());
            files.any(|file| file == name)
        };
        let Ok(entries) = self.folder.join("classes").read_dir() else {
            return;
        };
        for entry in entries.flatten() {
            if !entry.file_name().to_str().is_some_and(named) {
                // It only takes room.
                drop(std::fs::remove_file(entry.path()));
            }
        }
    }
}
