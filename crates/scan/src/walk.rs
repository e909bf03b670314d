//! Which files to read: those asked for, and those that give context.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use raddle_stdx::regular_file;

use crate::analyse::program::Source;
use crate::idioms::glob_matches;

/// Files in a fixed order, and what could not be looked at.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) sources: Vec<Source>,
    pub(crate) notes: Vec<String>,
    seen: BTreeSet<PathBuf>,
}

impl Walk {
    /// Everything below `paths`, then the headers of the tree around them.
    pub(crate) fn new(paths: &[PathBuf], exclude: &[String]) -> Self {
        let mut walk = Self::default();
        for path in paths {
            walk.add(path, true, exclude, true);
        }
        let roots: BTreeSet<PathBuf> = paths.iter().filter_map(|path| tree_root(path)).collect();
        for root in roots {
            walk.add(&root.join("include"), false, exclude, false);
        }
        for folder in paths.iter().filter_map(|path| architecture(path)) {
            walk.add(&folder.join("include"), false, exclude, false);
        }
        for path in paths {
            walk.context(path, exclude);
        }
        walk
    }

    /// What stands beside a path and says what its code means: private headers, in the folder and the one above,
    /// and in a tree with an `include` folder the other files of a driver or module of which one file was named.
    fn context(&mut self, path: &Path, exclude: &[String]) {
        let is_in_tree = tree_root(path).is_some();
        let folder = if path.is_file() {
            path.parent().map(Path::to_path_buf)
        } else {
            Some(path.to_path_buf())
        };
        let Some(folder) = folder.map(|folder| {
            if folder.as_os_str().is_empty() {
                PathBuf::from(".")
            } else {
                folder
            }
        }) else {
            return;
        };
        if path.is_file() {
            self.files_beside(&folder, exclude, is_in_tree);
        }
        if let Some(above) = folder.parent().filter(|above| tree_root(above).is_some()) {
            self.files_beside(above, exclude, false);
        }
    }

    fn add(&mut self, path: &Path, wanted: bool, exclude: &[String], named: bool) {
        let shown = path.to_string_lossy().replace('\\', "/");
        let shown = shown.strip_prefix("./").unwrap_or(&shown).to_owned();
        if exclude
            .iter()
            .any(|glob| glob_matches(glob.as_bytes(), shown.as_bytes()))
        {
            return;
        }
        // Symbolic links inside a tree lead elsewhere or in circles; only named ones are followed.
        let metadata = if named {
            fs::metadata(path)
        } else {
            fs::symlink_metadata(path)
        };
        let metadata = match metadata {
            Ok(metadata) => metadata,
            Err(error) => {
                self.notes.push(format!("{shown}: {error}"));
                return;
            }
        };
        if metadata.is_dir() {
            self.folder(path, wanted, exclude, &shown);
        } else if metadata.is_file() && (named || is_c(path)) && (wanted || is_header(path)) {
            let key = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
            if self.seen.insert(key) {
                self.sources.push(Source {
                    shown,
                    path: path.to_path_buf(),
                    wanted,
                });
            }
        }
    }

    fn folder(&mut self, path: &Path, wanted: bool, exclude: &[String], shown: &str) {
        let mut entries: Vec<PathBuf> = match fs::read_dir(path) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
            Err(error) => {
                self.notes.push(format!("{shown}: {error}"));
                return;
            }
        };
        entries.sort();
        for entry in entries {
            let is_hidden = entry
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with('.'));
            if !is_hidden {
                self.add(&entry, wanted, exclude, false);
            }
        }
    }

    fn files_beside(&mut self, folder: &Path, exclude: &[String], with_sources: bool) {
        let Ok(entries) = fs::read_dir(folder) else {
            return;
        };
        let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        entries.retain(|entry| is_header(entry) || (with_sources && is_c(entry)));
        for entry in entries.into_iter().filter(|entry| entry.is_file()) {
            self.add_context(&entry, exclude);
        }
    }

    /// A file that is read but not reported about.
    fn add_context(&mut self, path: &Path, exclude: &[String]) {
        let known = self.sources.len();
        // Headers are taken as they are, other files as if they had been named.
        self.add(path, !is_header(path), exclude, false);
        for source in &mut self.sources[known..] {
            source.wanted = false;
        }
    }
}

/// Why there is nothing to scan at a path that was named.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    #[error("cannot scan {}: {reason}", path.display())]
    Unreadable {
        path: PathBuf,
        reason: std::io::Error,
    },
    #[error("cannot scan {}: there is no C file (`.c` or `.h`) in it", path.display())]
    NoSource { path: PathBuf },
}

/// Whether there is something to scan at a path: a file, or a folder with a C file somewhere below.
///
/// # Errors
/// It is not there, cannot be read, or has no C file.
pub fn check_path(path: &Path) -> Result<(), PathError> {
    let unreadable = |reason| PathError::Unreadable {
        path: path.to_path_buf(),
        reason,
    };
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        return regular_file::open(path).map(drop).map_err(unreadable);
    }
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(reason) if folder == path => return Err(unreadable(reason)),
            entries => entries,
        };
        for entry in entries.into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() && is_c(&entry.path()) => return Ok(()),
                _ => {}
            }
        }
    }
    Err(PathError::NoSource {
        path: path.to_path_buf(),
    })
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension()
        .is_some_and(|extension| extension == wanted)
}

fn is_header(path: &Path) -> bool {
    has_extension(path, "h")
}

fn is_c(path: &Path) -> bool {
    has_extension(path, "c") || is_header(path)
}

/// The top of the source tree around `path`: the nearest folder above with `include/linux`.
fn tree_root(path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).ok()?;
    let mut here = Some(path.as_path());
    while let Some(folder) = here {
        if folder.join("include/linux").is_dir() {
            return Some(relative(folder));
        }
        here = folder.parent();
    }
    None
}

/// The folder `arch/NAME` that the path is in, if it has headers of its own.
fn architecture(path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).ok()?;
    let folder = path.ancestors().find(|folder| {
        folder
            .parent()
            .and_then(Path::file_name)
            .is_some_and(|name| name == "arch")
    })?;
    folder.join("include").is_dir().then(|| relative(folder))
}

/// As seen from the current folder, if it is below or above it; names stay short and stable that way.
fn relative(folder: &Path) -> PathBuf {
    let Ok(current) = std::env::current_dir() else {
        return folder.to_path_buf();
    };
    if let Ok(below) = folder.strip_prefix(&current) {
        return if below.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            below.to_path_buf()
        };
    }
    folder.to_path_buf()
}
