//! The host as a catalogue has it: what is seen there, and how what was learned is written down.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use raddle_stdx::regular_file;
use raddle_symbols::Lookup;

use super::{HostFile, HostFiles, HostNode};
use crate::files::catalogue::{self, Catalogue, Content, ContentId, Elsewhere, Listed, NotText};
use crate::files::inode::Name;

/// Bytes of a file with debug information at most; no distribution has a larger one.
const DEBUG_FILE_BYTES_MAX: u64 = 16 << 30;

impl HostFiles {
    pub(super) fn pin_listed(&mut self, elsewhere: &Elsewhere, listed: &Listed) -> HostNode {
        match listed {
            Listed::Absent => HostNode::Absent,
            Listed::Denied => HostNode::Denied,
            Listed::Directory {
                owner,
                mode,
                links,
                modified,
            } => HostNode::Directory {
                owner: *owner,
                mode: *mode,
                links: *links,
                modified: (*modified).into(),
            },
            Listed::Symlink { target, owner } => HostNode::Symlink {
                owner: *owner,
                target: Name::from(target.as_bytes()),
            },
            Listed::Fifo {
                owner,
                mode,
                modified,
            } => HostNode::Fifo {
                owner: *owner,
                mode: *mode,
                modified: (*modified).into(),
            },
            Listed::File {
                size,
                owner,
                mode,
                modified,
                content,
            } => {
                let (path, refusal) = match content {
                    Content::Known(id) => (elsewhere.content_path(id), None),
                    Content::Refused(number) => (PathBuf::new(), Some(*number)),
                    Content::Unread => (PathBuf::new(), None),
                };
                let file = self.add(HostFile {
                    path,
                    refusal,
                    size: *size,
                    mode: *mode,
                    modified: (0, 0),
                    handle: None,
                    pages: BTreeMap::new(),
                });
                HostNode::File {
                    file,
                    size: *size,
                    owner: *owner,
                    mode: *mode,
                    modified: (*modified).into(),
                }
            }
        }
    }

    /// Where a path leads that the user wants to be mapped.
    pub(crate) fn real_path(&mut self, path: &Path) -> io::Result<PathBuf> {
        let real = match &self.elsewhere {
            Some(elsewhere) => elsewhere.catalogue.real_paths.get(path).cloned(),
            None => Some(path.canonicalize()?),
        };
        let Some(real) = real else {
            self.miss(path);
            return Err(io::ErrorKind::NotFound.into());
        };
        self.real_paths.insert(path.to_owned(), real.clone());
        Ok(real)
    }

    /// A file with debug information, if there is one.
    pub(crate) fn debug_file(&mut self, path: &Path) -> Lookup {
        let at = match &self.elsewhere {
            None => path.to_owned(),
            Some(elsewhere) => match elsewhere.catalogue.debug_files.get(path) {
                Some(Some(content)) => elsewhere.content_path(content),
                Some(None) => return Lookup::Absent,
                None => {
                    self.miss(path);
                    return Lookup::Unknown;
                }
            },
        };
        regular_file::read(&at, DEBUG_FILE_BYTES_MAX).map_or(Lookup::Absent, Lookup::Here)
    }

    /// Files that symbols depend on.
    pub(crate) fn note_debug_files(&mut self, asked: &[(PathBuf, bool)]) {
        self.debug_files.extend(asked.iter().cloned());
    }

    /// All that was learned of the host so far; `keep` is given the path of each file whose content belongs to it, and
    /// says by which digest it is known.
    pub(crate) fn catalogue<E: From<NotText>>(
        &self,
        keep: &mut dyn FnMut(&Path) -> Result<ContentId, E>,
    ) -> Result<Catalogue, E> {
        let mut catalogue = Catalogue {
            real_paths: self.real_paths.clone(),
            ..Catalogue::default()
        };
        for (path, node) in &self.nodes {
            catalogue::check_path(path)?;
            let content = match node {
                HostNode::File { file, .. } => match &self.files[file.0 as usize] {
                    HostFile {
                        refusal: Some(number),
                        ..
                    } => Content::Refused(*number),
                    file if file.handle.is_some() => Content::Known(keep(path)?),
                    _ => Content::Unread,
                },
                _ => Content::Unread,
            };
            let listed = catalogue::listed(node, content)?;
            catalogue.nodes.insert(path.clone(), listed);
        }
        for (path, names) in &self.listings {
            catalogue::check_path(path)?;
            let names = names
                .iter()
                .map(catalogue::text)
                .collect::<Result<_, _>>()?;
            catalogue.listings.insert(path.clone(), names);
        }
        for (path, is_there) in &self.debug_files {
            catalogue::check_path(path)?;
            let content = is_there.then(|| keep(path)).transpose()?;
            catalogue.debug_files.insert(path.clone(), content);
        }
        Ok(catalogue)
    }
}
