//! Files by digest on the disk of a worker: a folder of bounded size, in which what was not used for longest goes first.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use raddle_linux::ContentId;
use raddle_stdx::regular_file;
use raddle_stdx::width::to_u64;

use crate::content::{CONTENT_BYTES_MAX, id_of};

/// The folder.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    bytes_max: u64,
}

impl Cache {
    /// Makes the folder, if need be.
    ///
    /// # Errors
    /// It cannot be made or written to.
    pub fn open(folder: &Path, bytes_max: u64) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        tempfile::NamedTempFile::new_in(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            bytes_max,
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether it has the content, whole; if so, it was used now.
    pub fn has(&self, id: &ContentId) -> bool {
        let path = self.folder.join(id.as_str());
        let bytes = regular_file::read(&path, CONTENT_BYTES_MAX);
        let is_right = bytes.is_ok_and(|bytes| id_of(&bytes) == *id);
        if is_right && let Ok(file) = File::options().append(true).open(&path) {
            // A clock that cannot be set makes the cache forget it a little earlier.
            drop(file.set_modified(now()));
        }
        is_right
    }

    /// Keeps content under its digest: it is there whole, or not at all.
    ///
    /// # Errors
    /// It cannot be written, or is larger than the whole cache.
    pub fn put(&self, id: &ContentId, bytes: &[u8]) -> io::Result<()> {
        let size = to_u64(bytes.len());
        if size > self.bytes_max {
            let text = format!(
                "a file of {size} bytes does not fit into the cache of {}; give it more with --cache-size",
                self.bytes_max
            );
            return Err(io::Error::new(io::ErrorKind::StorageFull, text));
        }
        self.make_room(size)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        io::Write::write_all(&mut file, bytes)?;
        file.persist(self.folder.join(id.as_str()))?;
        Ok(())
    }

    /// Removes what was not used for longest until so many bytes have room.
    fn make_room(&self, size: u64) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in self.folder.read_dir()? {
            let entry = entry?;
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let name = entry.file_name().to_string_lossy().into_owned();
            if metadata.is_file() && ContentId::new(name).is_some() {
                files.push((metadata.modified()?, entry.path(), metadata.len()));
            }
        }
        files.sort();
        let mut used: u64 = files.iter().map(|(_, _, length)| length).sum();
        for (_, path, length) in files {
            if used + size <= self.bytes_max {
                break;
            }
            std::fs::remove_file(path)?;
            used -= length;
        }
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the age of files decides which of them go, and no result"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first_and_damage_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), 25).unwrap();
        let texts = [b"0123456789", b"abcdefghij", b"ABCDEFGHIJ"];
        let ids = texts.map(|text| id_of(text));
        for ((id, text), age) in ids.iter().zip(texts).zip([30, 20, 10]) {
            cache.put(id, text).unwrap();
            let path = folder.path().join(id.as_str());
            let file = File::options().append(true).open(path).unwrap();
            let before = now() - std::time::Duration::from_secs(age);
            file.set_modified(before).unwrap();
        }
        assert!(!cache.has(&ids[0]) && cache.has(&ids[1]) && cache.has(&ids[2]));
        std::fs::write(folder.path().join(ids[1].as_str()), b"abcdefghiX").unwrap();
        assert!(!cache.has(&ids[1]));
        cache.put(&ids[0], &[0; 26]).unwrap_err();
    }
}
