//! What a world has learned of its host, written down: with it the same world can be had on another machine, of which
//! nothing is seen then.
//!
//! A [`Catalogue`] names every path that was looked at, also those where nothing is, and the content of the files that
//! were read by its digest. What it does not name was never asked for: a world that lives on a catalogue ends there
//! with [`raddle_world::Unsupported::Elsewhere`], since nothing it could answer would be sure to be true.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::host::{HostNode, Owner};
use super::inode::{Name, Timestamp};

/// The digest by which content is known, in hexadecimal digits; who makes and checks it is not this crate's business.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ContentId(String);

impl ContentId {
    /// Digits of a name.
    const LENGTH: usize = 64;

    /// Nothing if this is not such a name: it becomes the name of a file.
    pub fn new(digits: String) -> Option<Self> {
        let id = Self(digits);
        id.is_possible().then_some(id)
    }

    fn is_possible(&self) -> bool {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        self.0.len() == Self::LENGTH && self.0.bytes().all(is_digit)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A moment of a file, never later than the beginning of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moment {
    seconds: i64,
    nanos: u32,
}

impl From<Timestamp> for Moment {
    fn from(Timestamp { seconds, nanos }: Timestamp) -> Self {
        Self { seconds, nanos }
    }
}

impl From<Moment> for Timestamp {
    fn from(Moment { seconds, nanos }: Moment) -> Self {
        Self::clamped(seconds, i64::from(nanos))
    }
}

/// The bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Content {
    /// Some of them were read.
    Known(ContentId),
    /// The host refused to open it, with this number.
    Refused(u16),
    /// The file was seen and not read.
    Unread,
}

/// What is at a path of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Listed {
    Absent,
    Denied,
    Directory {
        owner: Owner,
        mode: u32,
        links: u32,
        modified: Moment,
    },
    File {
        size: u64,
        owner: Owner,
        mode: u32,
        modified: Moment,
        content: Content,
    },
    Symlink {
        target: String,
        owner: Owner,
    },
    Fifo {
        owner: Owner,
        mode: u32,
        modified: Moment,
    },
}

/// What is known of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Catalogue {
    pub(crate) nodes: BTreeMap<PathBuf, Listed>,
    /// Names in the directories that were read.
    pub(crate) listings: BTreeMap<PathBuf, Vec<String>>,
    /// Where mapped paths lead.
    pub(crate) real_paths: BTreeMap<PathBuf, PathBuf>,
    /// Files that were looked at for debug information.
    pub(crate) debug_files: BTreeMap<PathBuf, Option<ContentId>>,
}

impl Catalogue {
    /// The content that a world needs which lives on it.
    pub fn contents(&self) -> BTreeSet<&ContentId> {
        let files = self.nodes.values().filter_map(|listed| match listed {
            Listed::File {
                content: Content::Known(id),
                ..
            } => Some(id),
            _ => None,
        });
        files.chain(self.debug_files.values().flatten()).collect()
    }

    /// Why this cannot have been made by a world: it may come from a stranger.
    pub fn nonsense(&self) -> Option<String> {
        let plain = |path: &Path| {
            let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
            path.is_absolute() && path.components().all(is_plain)
        };
        let nodes = self.nodes.keys().chain(self.listings.keys());
        let mut paths = nodes.chain(self.debug_files.keys());
        if let Some(path) = paths.find(|path| !plain(path)) {
            return Some(format!("`{}` is not a whole path", path.display()));
        }
        if let Some(id) = self.contents().into_iter().find(|id| !id.is_possible()) {
            return Some(format!("`{}` is not a digest", id.as_str()));
        }
        let names = self.listings.values().flatten();
        let is_name = |name: &String| !name.is_empty() && !name.contains(['/', '\0']);
        let mut names = names.filter(|name| !is_name(name));
        names
            .next()
            .map(|name| format!("`{name}` is no name in a directory"))
    }
}

/// A catalogue, and the folder that has its contents under their digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    pub catalogue: Catalogue,
    pub folder: PathBuf,
    /// The first path that a world asked for in vain.
    missed: OnceLock<PathBuf>,
}

impl Elsewhere {
    pub fn new(catalogue: Catalogue, folder: PathBuf) -> Self {
        Self {
            catalogue,
            folder,
            missed: OnceLock::new(),
        }
    }

    /// The first path that a world asked for in vain, if one did: what came of its run says nothing.
    pub fn missed(&self) -> Option<&Path> {
        self.missed.get().map(PathBuf::as_path)
    }

    pub(crate) fn note_missed(&self, path: &Path) {
        self.missed.get_or_init(|| path.to_owned());
    }

    pub(crate) fn content_path(&self, id: &ContentId) -> PathBuf {
        self.folder.join(id.as_str())
    }
}

/// How a node is written down.
///
/// # Errors
/// A link leads to a name that is no text.
pub(super) fn listed(node: &HostNode, content: Content) -> Result<Listed, NotText> {
    Ok(match node {
        HostNode::Absent => Listed::Absent,
        HostNode::Denied => Listed::Denied,
        HostNode::Directory {
            owner,
            mode,
            links,
            modified,
        } => Listed::Directory {
            owner: *owner,
            mode: *mode,
            links: *links,
            modified: (*modified).into(),
        },
        HostNode::File {
            size,
            owner,
            mode,
            modified,
            ..
        } => Listed::File {
            size: *size,
            owner: *owner,
            mode: *mode,
            modified: (*modified).into(),
            content,
        },
        HostNode::Symlink { target, owner } => Listed::Symlink {
            target: text(target)?,
            owner: *owner,
        },
        HostNode::Fifo {
            owner,
            mode,
            modified,
        } => Listed::Fifo {
            owner: *owner,
            mode: *mode,
            modified: (*modified).into(),
        },
    })
}

/// A name that is no text, and so cannot be written down.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not UTF-8, and only text can be written down; rename it")]
pub struct NotText(String);

pub(super) fn text(name: &Name) -> Result<String, NotText> {
    let not_text = || NotText(String::from_utf8_lossy(name).into_owned());
    String::from_utf8(name.to_vec()).map_err(|_| not_text())
}

/// A path as text, for serialisation to succeed later.
pub(super) fn check_path(path: &Path) -> Result<(), NotText> {
    match path.to_str() {
        Some(_) => Ok(()),
        None => text(&Name::from(path.as_os_str().as_bytes())).map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strange_catalogues_are_told() {
        let mut catalogue = Catalogue::default();
        assert_eq!(catalogue.nonsense(), None);
        let id = ContentId::new("ab".repeat(32)).unwrap();
        assert_eq!(ContentId::new("../../../etc/passwd".into()), None);
        catalogue.debug_files.insert("/a".into(), Some(id.clone()));
        catalogue.nodes.insert("/a/b".into(), Listed::Absent);
        assert_eq!(catalogue.nonsense(), None);
        assert_eq!(catalogue.contents(), BTreeSet::from([&id]));
        let text = serde_json::to_string(&catalogue).unwrap();
        assert_eq!(serde_json::from_str::<Catalogue>(&text).unwrap(), catalogue);
        let wrong = text.replace(&"ab".repeat(32), "../x");
        let wrong: Catalogue = serde_json::from_str(&wrong).unwrap();
        assert_eq!(wrong.nonsense().unwrap(), "`../x` is not a digest");
        catalogue.nodes.insert("/a/../b".into(), Listed::Absent);
        assert_eq!(
            catalogue.nonsense().unwrap(),
            "`/a/../b` is not a whole path"
        );
    }
}
