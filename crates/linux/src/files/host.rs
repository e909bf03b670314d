//! Host files underneath: read-only, each pinned at its first use.
//!
//! What the guest once learned of the host (an entry exists, its size and mode, a page of its content) stays
//! so for the life of the world, also across restores. Pages are kept in pinned frames. All of it can be written down
//! as a [`super::catalogue::Catalogue`], and a world that is given one sees nothing of the machine it runs on.

mod catalogued;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use raddle_mem::{FrameId, Frames, PAGE_SIZE};
use raddle_stdx::width::{low_u32, to_u64};
use raddle_stdx::{Digest, regular_file};

use super::catalogue::Elsewhere;
use super::inode::{Name, Timestamp};
use super::seal::{Seal, Sight};
use crate::errno::Errno;

/// Number of a pinned host file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostFileId(u32);

/// User and group of a host file, as the guest sees them.
pub(crate) type Owner = (u32, u32);

/// What is at a host path.
#[derive(Debug, Clone)]
pub(crate) enum HostNode {
    Absent,
    Denied,
    Directory {
        owner: Owner,
        mode: u32,
        links: u32,
        modified: Timestamp,
    },
    File {
        file: HostFileId,
        size: u64,
        owner: Owner,
        mode: u32,
        modified: Timestamp,
    },
    Symlink {
        target: Name,
        owner: Owner,
    },
    /// A pipe by name: the guest sees one of its own there.
    Fifo {
        owner: Owner,
        mode: u32,
        modified: Timestamp,
    },
}

impl HostNode {
    /// Hard links of a directory, which tell how many directories it holds. Other links of a host file are not
    /// known to be the same file here.
    pub(crate) fn links(&self) -> u32 {
        match self {
            Self::Directory { links, .. } => *links,
            _ => 1,
        }
    }

    pub(crate) fn owner(&self) -> Owner {
        match self {
            Self::Absent | Self::Denied => (0, 0),
            Self::Directory { owner, .. }
            | Self::File { owner, .. }
            | Self::Symlink { owner, .. }
            | Self::Fifo { owner, .. } => *owner,
        }
    }
}

/// A directory of a sealed world of which no more is told than that it leads somewhere.
const ON_THE_WAY: HostNode = HostNode::Directory {
    owner: (0, 0),
    mode: 0o755,
    links: 2,
    modified: Timestamp::EPOCH,
};

#[derive(Debug)]
struct HostFile {
    /// Where its bytes are; empty for a file whose content is given, or which a catalogue does not have.
    path: PathBuf,
    /// The host did not let us open it, with this number.
    refusal: Option<u16>,
    size: u64,
    mode: u32,
    modified: (i64, i64),
    handle: Option<File>,
    pages: BTreeMap<u64, FrameId>,
}

/// A host file that the run depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedFile {
    pub path: PathBuf,
    pub size: u64,
    pub mode: u32,
    /// Digest of the content; absent if it cannot be read any more.
    pub digest: Option<u64>,
    /// The file is no longer what it was when the world first used it.
    pub changed: bool,
}

/// Host files pinned at first use.
#[derive(Debug, Default)]
pub(crate) struct HostFiles {
    /// The user and group that read the host's files: the guest's superuser stands for them, as in a user
    /// namespace. What belongs to others keeps its owner.
    reader: Owner,
    nodes: BTreeMap<PathBuf, HostNode>,
    listings: BTreeMap<PathBuf, Arc<[Name]>>,
    files: Vec<HostFile>,
    /// What can be seen; none for everything.
    seal: Option<Seal>,
    /// Where mapped paths lead, as far as it was asked.
    real_paths: BTreeMap<PathBuf, PathBuf>,
    /// Files that were looked at for debug information, and whether they were there.
    debug_files: BTreeMap<PathBuf, bool>,
    /// What is seen instead of the host.
    elsewhere: Option<Arc<Elsewhere>>,
    /// What the catalogue does not have and the guest asked for since the last restore.
    pub(crate) missed: Option<PathBuf>,
}

impl HostFiles {
    /// A host of which only these files and directories can be seen; all of it if nothing is said.
    pub(crate) fn showing(visible: Option<&[PathBuf]>) -> Self {
        let seal = visible.map(|paths| {
            let mut seal = Seal::default();
            paths.iter().for_each(|path| seal.show(path));
            seal
        });
        let reader = Path::new("/proc/self")
            .metadata()
            .map_or((0, 0), |own| (own.uid(), own.gid()));
        Self {
            reader,
            seal,
            ..Self::default()
        }
    }

    /// What a catalogue says and nothing else.
    pub(crate) fn of_catalogue(elsewhere: Arc<Elsewhere>, is_sealed: bool) -> Self {
        Self {
            seal: is_sealed.then(Seal::default),
            elsewhere: Some(elsewhere),
            ..Self::default()
        }
    }

    fn miss(&mut self, path: &Path) {
        self.missed.get_or_insert_with(|| path.to_owned());
        if let Some(elsewhere) = &self.elsewhere {
            elsewhere.note_missed(path);
        }
    }

    /// Whether only some of the host can be seen.
    pub(crate) fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    fn sight(&self, path: &Path) -> Sight {
        self.seal
            .as_ref()
            .map_or(Sight::Whole, |seal| seal.sight(path))
    }

    /// What is at this path; symbolic links are not followed.
    pub(crate) fn node(&mut self, path: &Path) -> HostNode {
        if let Some(node) = self.nodes.get(path) {
            return node.clone();
        }
        if let Some(elsewhere) = self.elsewhere.clone() {
            let Some(listed) = elsewhere.catalogue.nodes.get(path) else {
                self.miss(path);
                return HostNode::Absent;
            };
            let node = self.pin_listed(&elsewhere, listed);
            self.nodes.insert(path.to_owned(), node.clone());
            return node;
        }
        let node = match path.symlink_metadata() {
            _ if self.sight(path) == Sight::Nothing => HostNode::Absent,
            _ if self.sight(path) == Sight::Way => ON_THE_WAY,
            Ok(metadata) => self.pin(path, &metadata),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => HostNode::Denied,
            Err(_) => HostNode::Absent,
        };
        self.nodes.insert(path.to_owned(), node.clone());
        node
    }

    fn owner(&self, metadata: &std::fs::Metadata) -> Owner {
        let shown = |id, own| if id == own { 0 } else { id };
        let (user, group) = self.reader;
        (shown(metadata.uid(), user), shown(metadata.gid(), group))
    }

    fn add(&mut self, file: HostFile) -> HostFileId {
        let id = HostFileId(low_u32(to_u64(self.files.len())));
        self.files.push(file);
        id
    }

    fn pin(&mut self, path: &Path, metadata: &std::fs::Metadata) -> HostNode {
        let owner = self.owner(metadata);
        let mode = metadata.mode() & 0o7777;
        let modified = Timestamp::clamped(metadata.mtime(), metadata.mtime_nsec());
        let kind = metadata.file_type();
        if kind.is_dir() {
            HostNode::Directory {
                owner,
                mode,
                links: u32::try_from(metadata.nlink()).unwrap_or(1),
                modified,
            }
        } else if kind.is_symlink() {
            match path.read_link() {
                Ok(target) => HostNode::Symlink {
                    target: Name::from(target.into_os_string().into_vec()),
                    owner,
                },
                Err(_) => HostNode::Denied,
            }
        } else if kind.is_file() {
            let file = self.add(HostFile {
                path: path.to_owned(),
                refusal: None,
                size: metadata.size(),
                mode,
                modified: (metadata.mtime(), metadata.mtime_nsec()),
                handle: None,
                pages: BTreeMap::new(),
            });
            HostNode::File {
                file,
                size: metadata.size(),
                owner,
                mode,
                modified,
            }
        } else if kind.is_fifo() {
            HostNode::Fifo {
                owner,
                mode,
                modified,
            }
        } else {
            // Devices and sockets of the host have no place in the guest's world.
            HostNode::Absent
        }
    }

    /// The names in a directory, sorted, without what the guest cannot use.
    pub(crate) fn list(&mut self, path: &Path) -> Arc<[Name]> {
        if let Some(names) = self.listings.get(path) {
            return Arc::clone(names);
        }
        if let Some(elsewhere) = self.elsewhere.clone() {
            let Some(names) = elsewhere.catalogue.listings.get(path) else {
                self.miss(path);
                return Arc::default();
            };
            return names
                .iter()
                .map(|name| Name::from(name.as_bytes()))
                .collect();
        }
        let mut names: Vec<Name> = path
            .read_dir()
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .filter(|entry| self.sight(&entry.path()) != Sight::Nothing)
            .filter(|entry| {
                entry.file_type().is_ok_and(|kind| {
                    !(kind.is_socket() || kind.is_block_device() || kind.is_char_device())
                })
            })
            .map(|entry| Name::from(entry.file_name().into_vec()))
            .collect();
        names.sort();
        let names: Arc<[Name]> = names.into();
        self.listings.insert(path.to_owned(), Arc::clone(&names));
        names
    }

    /// The pinned frame of a page below the file's size.
    pub(crate) fn page(
        &mut self,
        frames: &mut Frames,
        file: HostFileId,
        page: u64,
    ) -> Result<FrameId, Errno> {
        if let Some(frame) = self.files[file.0 as usize].pages.get(&page) {
            return Ok(*frame);
        }
        let mut content = [0; PAGE_SIZE];
        read_page(&mut self.files[file.0 as usize], page, &mut content)
            .map_err(|error| self.unreadable(file, &error))?;
        let frame = frames.alloc_pinned(&content).map_err(|_| Errno::ENOMEM)?;
        self.files[file.0 as usize].pages.insert(page, frame);
        Ok(frame)
    }

    /// Tries to open the file, so that `open` fails where Linux lets it fail.
    pub(crate) fn check_readable(&mut self, file: HostFileId) -> Result<(), Errno> {
        open_handle(&mut self.files[file.0 as usize])
            .map(|_| ())
            .map_err(|error| self.unreadable(file, &error))
    }

    /// What the guest is told of a file that cannot be read. A catalogue knows which files its host refused to open; if
    /// any other cannot be read, its content did not travel, or is gone.
    fn unreadable(&mut self, id: HostFileId, error: &io::Error) -> Errno {
        let file = &mut self.files[id.0 as usize];
        let was_refused = file.refusal.is_some() && file.path.as_os_str().is_empty();
        if self.elsewhere.is_some() && !was_refused {
            file.refusal = None;
            let holds =
                |node: &HostNode| matches!(node, HostNode::File { file, .. } if *file == id);
            let named = self.nodes.iter().find(|(_, node)| holds(node));
            let path = named.map(|(path, _)| path.clone()).unwrap_or_default();
            self.miss(&path);
        }
        errno_of(error)
    }

    /// A file whose content is given, not read from the host (standard input).
    pub(crate) fn add_fixed(
        &mut self,
        frames: &mut Frames,
        content: &[u8],
    ) -> Result<HostFileId, Errno> {
        let mut pages = BTreeMap::new();
        for (page, bytes) in (0..).zip(content.chunks(PAGE_SIZE)) {
            let frame = frames.alloc_pinned(bytes).map_err(|_| Errno::ENOMEM)?;
            pages.insert(page, frame);
        }
        Ok(self.add(HostFile {
            path: PathBuf::new(),
            refusal: None,
            size: to_u64(content.len()),
            mode: 0o600,
            modified: (0, 0),
            handle: None,
            pages,
        }))
    }

    /// Every host file the world has used so far, by path, with the digest of its present content.
    pub(crate) fn pinned(&self) -> Vec<PinnedFile> {
        let mut files: Vec<PinnedFile> = self
            .files
            .iter()
            .filter(|file| !file.path.as_os_str().is_empty() && !file.pages.is_empty())
            .map(describe)
            .collect();
        files.sort_by(|left, right| left.path.cmp(&right.path));
        files
    }
}

fn describe(file: &HostFile) -> PinnedFile {
    let changed = file.path.symlink_metadata().map_or(true, |metadata| {
        metadata.size() != file.size || (metadata.mtime(), metadata.mtime_nsec()) != file.modified
    });
    let digest = regular_file::read(&file.path, file.size)
        .ok()
        .map(|bytes| Digest::of(&bytes));
    PinnedFile {
        path: file.path.clone(),
        size: file.size,
        mode: file.mode,
        digest,
        changed,
    }
}

fn open_handle(file: &mut HostFile) -> io::Result<&File> {
    if let Some(number) = file.refusal {
        return Err(io::Error::from_raw_os_error(i32::from(number)));
    }
    if file.handle.is_none() && !file.path.as_os_str().is_empty() {
        let opened = regular_file::open(&file.path);
        let refusal = opened.as_ref().err().and_then(io::Error::raw_os_error);
        file.refusal = refusal.and_then(|number| u16::try_from(number).ok());
        file.handle = Some(opened?);
    }
    file.handle
        .as_ref()
        .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}

/// Reads one page; what lies beyond the pinned size reads as zero.
fn read_page(file: &mut HostFile, page: u64, into: &mut [u8; PAGE_SIZE]) -> io::Result<()> {
    let start = page * to_u64(PAGE_SIZE);
    let visible = file.size.saturating_sub(start).min(to_u64(PAGE_SIZE));
    let visible = raddle_stdx::width::to_usize(visible);
    let handle = open_handle(file)?;
    let mut done = 0;
    while done < visible {
        match handle.read_at(&mut into[done..visible], start + to_u64(done)) {
            // The host file shrank since it was pinned.
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn errno_of(error: &io::Error) -> Errno {
    error
        .raw_os_error()
        .and_then(|code| u16::try_from(code).ok())
        .map_or(Errno::EIO, Errno)
}

/// The host path of an entry of a host directory.
pub(crate) fn join(directory: &Path, name: &[u8]) -> PathBuf {
    directory.join(OsStr::from_bytes(name))
}
