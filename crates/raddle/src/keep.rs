//! Files that must not be lost: each is complete or not there, and a folder that cannot be written to is noticed before
//! hours are spent on what should go there.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use raddle_stdx::regular_file;
use raddle_trace::Enveloped;
use tempfile::{Builder, NamedTempFile};

use crate::message;

/// Recordings of different subjects that may have one name; more are not looked at.
const NAMES_MAX: u32 = 1000;
/// Characters of a file name before its id.
const STEM_MAX: usize = 100;
/// Bytes of a recording that is read; a schedule of a million deviations has less.
pub(crate) const RECORDING_BYTES_MAX: u64 = 256 << 20;

/// Writes a file beside its place and moves it there: whatever happens, the old content or the new one is there, whole.
/// A link that stands at its place is replaced and not followed.
pub(crate) fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut file = unfinished(folder.unwrap_or(Path::new(".")))
        .and_then(|mut file| file.write_all(content).map(|()| file))
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.as_file_mut()
        .sync_all()
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.persist(path)
        .map(drop)
        .map_err(|error| error.error)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Tries whether a file can be written to its place later.
///
/// # Errors
/// It cannot, or something stands there that is no file.
pub(crate) fn try_place(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    if let Ok(there) = path.symlink_metadata()
        && !(there.is_file() || there.is_symlink())
    {
        bail!(
            "cannot write {shown}: it is there already, and not a regular file; name another one"
        );
    }
    ensure!(
        path.file_name().is_some(),
        "cannot write `{shown}`: that is no name of a file"
    );
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    unfinished(folder.unwrap_or(Path::new(".")))
        .map(drop)
        .with_context(|| {
            format!("cannot write {shown}: name a file in a folder that can be written to")
        })
}

/// As [`write()`], for what only the user may read.
pub(crate) fn write_secret(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    write(path, b"")?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))
        .and_then(|()| std::fs::write(path, content))
        .with_context(|| format!("cannot write {}", path.display()))
}

fn unfinished(folder: &Path) -> std::io::Result<NamedTempFile> {
    Builder::new()
        .prefix(".raddle-")
        .suffix(".unfinished")
        // The user's mask takes away from it, as from every file.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
}

/// The folder of a campaign's recordings.
#[derive(Debug)]
pub(crate) struct Keeper {
    folder: PathBuf,
    /// Where recordings go that could not be written to the folder.
    refuge: PathBuf,
}

impl Keeper {
    /// Makes the folder, if need be, and tries it.
    pub(crate) fn open(folder: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)
            .and_then(|()| unfinished(folder))
            .with_context(|| {
                format!(
                    "recordings cannot be written to {}: name another folder with `--output DIR`",
                    folder.display()
                )
            })?;
        Ok(Self {
            folder: folder.to_path_buf(),
            refuge: std::env::temp_dir(),
        })
    }

    /// Keeps a recording under a name made of these two parts, and says where. If the folder does not take it, it goes
    /// to the folder for temporary files; if that does not take it either, the error says so.
    pub(crate) fn keep<R: Enveloped>(
        &self,
        stem: &str,
        id: &str,
        recording: &R,
    ) -> anyhow::Result<PathBuf> {
        let text = recording.to_text();
        let path = free_name::<R>(&self.folder, stem, id, &recording.subject());
        let Err(error) = write(&path, text.as_bytes()) else {
            return Ok(path);
        };
        let refuge = free_name::<R>(&self.refuge, stem, id, &recording.subject());
        if write(&refuge, text.as_bytes()).is_err() {
            return Err(error);
        }
        message::warning(&format!(
            "{error:#}; the recording is in {} instead",
            refuge.display()
        ));
        Ok(refuge)
    }
}

/// The first name that is free, that has a recording of the same subject, or one that cannot be read any more.
fn free_name<R: Enveloped>(folder: &Path, stem: &str, id: &str, subject: &str) -> PathBuf {
    let stem = file_name(stem);
    let name = |number: u32| match number {
        1 => folder.join(format!("{stem}-{id}.{}", R::EXTENSION)),
        _ => folder.join(format!("{stem}-{id}-{number}.{}", R::EXTENSION)),
    };
    let is_free = |path: &PathBuf| {
        let Ok(text) = regular_file::read(path, RECORDING_BYTES_MAX) else {
            return path.symlink_metadata().is_err();
        };
        let text = String::from_utf8_lossy(&text);
        match R::parse(&text) {
            Ok(other) => other.subject() == subject,
            Err(_) => R::is_kind_of(&text),
        }
    };
    (1..NAMES_MAX)
        .map(name)
        .find(is_free)
        .unwrap_or_else(|| name(NAMES_MAX))
}

/// Names of programs and tests as part of a file's name: nothing that leads to another folder, nothing that a shell
/// would not take as it is.
fn file_name(name: &str) -> String {
    let plain = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' | '+' => character,
        _ => '-',
    };
    let name: String = name.chars().map(plain).take(STEM_MAX).collect();
    match name.trim_start_matches(['.', '-']) {
        "" => "recording".to_owned(),
        name => name.to_owned(),
    }
}

/// A path as a word of a command that the user may copy.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let text = text.strip_prefix("./").unwrap_or(&text).to_owned();
    shell_quoted(&text)
}

/// A text as one word of a shell command.
pub(crate) fn shell_quoted(text: &str) -> String {
    // Only a NUL cannot be quoted, and neither paths nor arguments have one.
    shlex::try_quote(text).map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct Small {
        semantics: u32,
        subject: String,
        text: String,
    }

    impl Enveloped for Small {
        const MAGIC: &'static str = "small";
        const EXTENSION: &'static str = "small";
        const FORMAT: u32 = 1;
        const SEMANTICS: u32 = 1;

        fn semantics(&self) -> u32 {
            self.semantics
        }

        fn subject(&self) -> String {
            self.subject.clone()
        }

        fn nonsense(&self) -> Option<&'static str> {
            None
        }
    }

    fn small(subject: &str, text: &str) -> Small {
        let [subject, text] = [subject, text].map(str::to_owned);
        Small {
            semantics: 1,
            subject,
            text,
        }
    }

    #[test]
    fn a_recording_replaces_only_one_of_its_own_subject() {
        let folder = tempfile::tempdir().unwrap();
        let keeper = Keeper::open(folder.path()).unwrap();
        let keep = |subject, text| keeper.keep("prog", "C-1", &small(subject, text)).unwrap();
        let first = keep("one", "a");
        assert_eq!(first, folder.path().join("prog-C-1.small"));
        let other = keep("two", "b");
        assert_eq!(other, folder.path().join("prog-C-1-2.small"));
        assert_eq!(keep("one", "c"), first);
        assert_eq!(keep("two", "d"), other);
        let text = std::fs::read_to_string(first).unwrap();
        assert!(text.contains("\"c\""), "{text}");
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 2, "nothing unfinished stays: {left:?}");
    }

    #[test]
    fn a_planted_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        std::fs::write(&outside, "mine").unwrap();
        let output = folder.path().join("output");
        let keeper = Keeper::open(&output).unwrap();
        std::os::unix::fs::symlink(&outside, output.join("prog-C-1.small")).unwrap();
        let kept = keeper.keep("prog", "C-1", &small("one", "a")).unwrap();
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "mine");
        assert!(kept.is_file());
    }

    #[test]
    fn a_folder_that_takes_nothing_is_refused_at_the_start_and_survived_later() {
        let error = Keeper::open(Path::new("/proc/nowhere")).unwrap_err();
        assert!(error.to_string().contains("--output DIR"), "{error}");
        let refuge = tempfile::tempdir().unwrap();
        let keeper = Keeper {
            folder: "/proc".into(),
            refuge: refuge.path().into(),
        };
        let kept = keeper.keep("prog", "C-1", &small("one", "a")).unwrap();
        assert_eq!(kept, refuge.path().join("prog-C-1.small"));
    }

    #[test]
    fn names_of_tests_do_not_lead_elsewhere() {
        assert_eq!(file_name("bank-tests::a b"), "bank-tests--a-b");
        assert_eq!(file_name("../../etc/x"), "etc-x");
        assert_eq!(file_name("/"), "recording");
        assert_eq!(file_name(&"x".repeat(300)).len(), STEM_MAX);
        assert_eq!(shell_word(Path::new("./a b.raddle")), "'a b.raddle'");
    }
}
