//! Boot snapshots on disk: compressed, with a checksum, named by everything that the boot depends on.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use raddle_pc::boot::BootConfig;
use raddle_pc::wire::{Damaged, Reader, Wire};
use raddle_stdx::Digest;
use raddle_stdx::width::{low_u32, to_u64};

use crate::program::Program;
use crate::world::KernelWorld;

const MAGIC: &[u8; 16] = b"raddle-boot 001\n";
/// Raised whenever machine, agent protocol or layout change the meaning of a saved state.
const SEMANTICS: u64 = 1;
/// Uncompressed bytes of one piece.
const PIECE: usize = 4 << 20;

/// Digest of everything that a boot depends on.
pub fn key(kernel: &[u8], initramfs: &[u8], config: &BootConfig) -> u64 {
    let mut digest = Digest::default();
    digest.word(SEMANTICS);
    digest.bytes(kernel);
    digest.bytes(initramfs);
    digest.word(to_u64(config.cpus));
    digest.word(config.memory);
    digest.bytes(config.command_line.as_bytes());
    digest.word(config.seed);
    digest.value()
}

/// Where the snapshot with this key lies in a folder.
pub fn path(folder: &Path, key: u64) -> PathBuf {
    folder.join(format!("{key:016x}.boot"))
}

/// A booted guest as plain bytes, from which worlds are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootSnapshot {
    pub key: u64,
    bytes: Vec<u8>,
    modules: OnceLock<BTreeMap<String, u64>>,
}

/// Why a file is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("the file cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("the file is no boot snapshot of this raddle")]
    Foreign,
    #[error("the file was made for another kernel, configuration or agent")]
    OtherKey,
    #[error("the file is damaged: {0}")]
    Damaged(&'static str),
}

impl BootSnapshot {
    /// Takes it from a guest that has booted.
    pub fn take(world: &KernelWorld, key: u64) -> Self {
        let mut bytes = Vec::new();
        world.save(&mut bytes);
        Self::new(key, bytes)
    }

    fn new(key: u64, bytes: Vec<u8>) -> Self {
        Self {
            key,
            bytes,
            modules: OnceLock::new(),
        }
    }

    /// The loadable modules of a guest that has just booted, with the address of their text.
    ///
    /// A guest of its own is asked for them, so that no test depends on whether they were asked for.
    pub fn modules(&self) -> &BTreeMap<String, u64> {
        self.modules.get_or_init(|| {
            let Ok(mut world) = self.world() else {
                return BTreeMap::new();
            };
            // The agent has no threads to start, so it tells and comes to its end, which is no test.
            let _ended = world.begin_test(&Program::tells_modules(), 0);
            world.info().modules.clone()
        })
    }

    /// Makes a guest that has just booted.
    pub fn world(&self) -> Result<KernelWorld, raddle_pc::machine::LoadError> {
        KernelWorld::load(&mut Reader::new(&self.bytes))
    }

    /// Size without compression.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for piece in self.bytes.chunks(PIECE) {
            let packed = lz4_flex::block::compress(piece);
            low_u32(to_u64(piece.len())).store(&mut body);
            low_u32(to_u64(packed.len())).store(&mut body);
            body.extend_from_slice(&packed);
        }
        let mut file = MAGIC.to_vec();
        self.key.store(&mut file);
        to_u64(self.bytes.len()).store(&mut file);
        Digest::of(&body).store(&mut file);
        file.extend_from_slice(&body);
        file
    }

    /// Reads a file's bytes.
    pub fn decode(file: &[u8], key: u64) -> Result<Self, SnapshotError> {
        let Some(rest) = file.strip_prefix(MAGIC) else {
            return Err(SnapshotError::Foreign);
        };
        let cut = |_: Damaged| SnapshotError::Damaged("it is cut off");
        let mut reader = Reader::new(rest);
        let found = u64::fetch(&mut reader).map_err(cut)?;
        let size = u64::fetch(&mut reader).map_err(cut)?;
        let stated = u64::fetch(&mut reader).map_err(cut)?;
        let body = &rest[24..];
        if Digest::of(body) != stated {
            return Err(SnapshotError::Damaged("its checksum is wrong"));
        }
        if found != key {
            return Err(SnapshotError::OtherKey);
        }
        // Nothing that a stranger states reserves memory.
        let mut bytes = Vec::new();
        while !reader.is_empty() {
            let length = u32::fetch(&mut reader).map_err(cut)? as usize;
            if length > PIECE {
                return Err(SnapshotError::Damaged("a piece is too large"));
            }
            let packed = u32::fetch(&mut reader).map_err(cut)? as usize;
            let packed = reader.take(packed).map_err(cut)?;
            let piece = lz4_flex::block::decompress(packed, length)
                .map_err(|_| SnapshotError::Damaged("a piece does not unpack"))?;
            bytes.extend_from_slice(&piece);
        }
        if to_u64(bytes.len()) != size {
            return Err(SnapshotError::Damaged("its size is wrong"));
        }
        Ok(Self::new(key, bytes))
    }

    /// Writes the file whole or not at all.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let unfinished = path.with_extension(format!("{}.tmp", std::process::id()));
        std::fs::write(&unfinished, self.encode())?;
        std::fs::rename(&unfinished, path)
    }

    pub fn read(path: &Path, key: u64) -> Result<Self, SnapshotError> {
        Self::decode(&std::fs::read(path)?, key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> BootSnapshot {
        let bytes = (0..10_000_000_u32)
            .map(|i| (i >> 7).to_le_bytes()[0])
            .collect();
        BootSnapshot::new(7, bytes)
    }

    #[test]
    fn a_file_comes_back_and_is_smaller() {
        let file = sample().encode();
        assert!(file.len() < sample().bytes.len() / 10);
        assert_eq!(BootSnapshot::decode(&file, 7).unwrap(), sample());
    }

    #[test]
    fn every_kind_of_damage_is_noticed() {
        let file = sample().encode();
        let error = |file: &[u8], key| BootSnapshot::decode(file, key).unwrap_err().to_string();
        assert!(error(&file, 8).contains("another kernel"));
        assert!(error(b"ELF", 7).contains("no boot snapshot"));
        assert!(error(&file[..file.len() / 2], 7).contains("checksum"));
        assert!(error(&file[..20], 7).contains("cut off"));
        let mut flipped = file.clone();
        *flipped.last_mut().unwrap() ^= 1;
        assert!(error(&flipped, 7).contains("checksum"));
    }
}
