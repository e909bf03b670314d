//! Where a distribution keeps the debug information that it stripped from its programs.

use std::fmt;
use std::path::{Path, PathBuf};

use raddle_stdx::regular_file;

/// No distribution has a larger one; a program may name any file.
const DEBUG_FILE_BYTES_MAX: u64 = 16 << 30;

/// The identity a linker gives to its output; equal ids mean equal code.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId(pub Box<[u8]>);

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// A separate file that a module would like to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DebugRequest {
    /// The debug file of the module with this build-id.
    BuildId(BuildId),
    /// The file that `.gnu_debuglink` names; its bytes must have this CRC-32.
    Link { name: String, crc: u32 },
    /// The file with what several debug files share (`dwz`), which `.gnu_debugaltlink` names.
    Shared { name: String, build_id: BuildId },
}

impl DebugRequest {
    /// Reads `.gnu_debuglink`: a name, padding to a multiple of four, a checksum.
    pub(crate) fn from_link(section: &[u8]) -> Option<Self> {
        let end = section.iter().position(|&byte| byte == 0)?;
        let crc = section
            .get((end + 1).next_multiple_of(4)..)?
            .first_chunk()?;
        Some(Self::Link {
            name: String::from_utf8_lossy(&section[..end]).into_owned(),
            crc: u32::from_le_bytes(*crc),
        })
    }

    /// Reads `.gnu_debugaltlink`: a name and a build-id.
    pub(crate) fn from_shared_link(section: &[u8]) -> Option<Self> {
        let end = section.iter().position(|&byte| byte == 0)?;
        Some(Self::Shared {
            name: String::from_utf8_lossy(&section[..end]).into_owned(),
            build_id: BuildId(section[end + 1..].into()),
        })
    }
}

/// Finds debug files in a tree laid out as `/usr/lib/debug` is.
#[derive(Debug, Clone)]
pub struct DebugFileFinder {
    root: PathBuf,
    /// The folder of the module itself, for debug links.
    module_folder: Option<PathBuf>,
}

impl Default for DebugFileFinder {
    fn default() -> Self {
        Self::new("/usr/lib/debug")
    }
}

impl DebugFileFinder {
    /// Looks below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            module_folder: None,
        }
    }

    /// Also looks where debug links point: beside the module, in its `.debug` folder, and below the root.
    #[must_use]
    pub fn beside(mut self, module: &Path) -> Self {
        self.module_folder = module.parent().map(Path::to_owned);
        self
    }

    /// The bytes of the first candidate that can be read; the module checks that they are the right ones.
    pub fn fetch(&self, request: &DebugRequest) -> Option<Vec<u8>> {
        self.candidates(request)
            .iter()
            .find_map(|path| regular_file::read(path, DEBUG_FILE_BYTES_MAX).ok())
    }

    /// The places where the file may be, best first.
    pub fn candidates(&self, request: &DebugRequest) -> Vec<PathBuf> {
        match request {
            DebugRequest::BuildId(id) => self.by_build_id(id).into_iter().collect(),
            DebugRequest::Link { name, .. } => self.by_link(name),
            DebugRequest::Shared { name, build_id } => {
                let mut paths: Vec<PathBuf> = self.by_build_id(build_id).into_iter().collect();
                paths.push(self.root.join(".build-id/").join(name));
                // The name is relative to the debug file, which lies two folders deep, or absolute.
                let tail = name.trim_start_matches("../").trim_start_matches('/');
                paths.push(self.root.join(tail));
                paths.push(PathBuf::from(name));
                paths
            }
        }
    }

    fn by_build_id(&self, id: &BuildId) -> Option<PathBuf> {
        let text = id.to_string();
        let (folder, file) = text.split_at_checked(2)?;
        Some(
            self.root
                .join(".build-id")
                .join(folder)
                .join(format!("{file}.debug")),
        )
    }

    fn by_link(&self, name: &str) -> Vec<PathBuf> {
        // A link is a bare file name; anything else would let a file of unknown origin choose what we read.
        if name.contains('/') || name == ".." {
            return Vec::new();
        }
        let Some(folder) = &self.module_folder else {
            return Vec::new();
        };
        let below_root = self.root.join(folder.strip_prefix("/").unwrap_or(folder));
        vec![
            folder.join(name),
            folder.join(".debug").join(name),
            below_root.join(name),
        ]
    }
}

/// CRC-32 with the reflected polynomial of IEEE 802.3, as `.gnu_debuglink` uses it.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = crc_table();
    let mut crc = u32::MAX;
    for &byte in bytes {
        let [low, ..] = crc.to_le_bytes();
        crc = (crc >> 8) ^ TABLE[usize::from(low ^ byte)];
    }
    !crc
}

const fn crc_table() -> [u32; 256] {
    let mut table = [0_u32; 256];
    let mut index = 0;
    let mut seed = 0_u32;
    while index < 256 {
        let mut value = seed;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                (value >> 1) ^ 0xEDB8_8320
            } else {
                value >> 1
            };
            bit += 1;
        }
        table[index] = value;
        index += 1;
        seed += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_has_the_standard_check_value() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn build_ids_name_a_folder_and_a_file() {
        let finder = DebugFileFinder::default();
        let request = DebugRequest::BuildId(BuildId(Box::new([0xab, 0xcd, 0x01])));
        assert_eq!(
            finder.candidates(&request),
            [PathBuf::from("/usr/lib/debug/.build-id/ab/cd01.debug")]
        );
    }

    #[test]
    fn links_are_searched_beside_the_module_and_must_be_bare_names() {
        let finder = DebugFileFinder::new("/d").beside(Path::new("/usr/bin/x"));
        let link = |name: &str| DebugRequest::Link {
            name: name.to_owned(),
            crc: 0,
        };
        assert_eq!(
            finder.candidates(&link("x.debug")),
            [
                "/usr/bin/x.debug",
                "/usr/bin/.debug/x.debug",
                "/d/usr/bin/x.debug"
            ]
            .map(PathBuf::from)
        );
        assert!(finder.candidates(&link("../../etc/passwd")).is_empty());
    }

    #[test]
    fn shared_files_are_found_by_id_or_by_their_relative_name() {
        let finder = DebugFileFinder::new("/d");
        let request = DebugRequest::Shared {
            name: "../../.dwz/x86_64-linux-gnu/a.debug".to_owned(),
            build_id: BuildId(Box::new([1, 2])),
        };
        let candidates = finder.candidates(&request);
        assert!(candidates.contains(&PathBuf::from("/d/.build-id/01/02.debug")));
        assert!(candidates.contains(&PathBuf::from("/d/.dwz/x86_64-linux-gnu/a.debug")));
    }
}
