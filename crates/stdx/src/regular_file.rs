//! Files whose names come from strangers: from a recording, from debug information, from a source tree.
//!
//! Such a name may be that of a device that never ends, of a pipe that never answers, or of a file that fills all
//! memory. Only regular files are opened, without waiting, and no more is read than the caller allows.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::width::to_u64;

/// `O_NONBLOCK | O_NOCTTY`: opening a pipe or a terminal neither waits nor takes possession of it.
const WITHOUT_WAITING: i32 = 0o4000 | 0o400;

/// Opens a regular file for reading.
///
/// # Errors
/// It cannot be opened, or it is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(WITHOUT_WAITING)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ))
    }
}

/// Reads a regular file of at most so many bytes.
///
/// # Errors
/// It cannot be read, is not a regular file, or is larger.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let too_large = |size: u64| {
        let text = format!("it has {size} bytes; at most {bytes_max} are read");
        io::Error::new(io::ErrorKind::FileTooLarge, text)
    };
    let file = open(path)?;
    let size = file.metadata()?.len();
    if size > bytes_max {
        return Err(too_large(size));
    }
    let mut content = Vec::new();
    // It may grow while it is read.
    file.take(bytes_max.saturating_add(1))
        .read_to_end(&mut content)?;
    if to_u64(content.len()) > bytes_max {
        return Err(too_large(to_u64(content.len())));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let path = std::env::temp_dir().join(format!("raddle-regular-{}", std::process::id()));
        std::fs::write(&path, b"12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        let error = read(&path, 4).unwrap_err();
        assert_eq!(error.to_string(), "it has 5 bytes; at most 4 are read");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn devices_and_folders_are_refused_at_once() {
        for path in ["/dev/zero", "/dev/null", "/proc"] {
            let error = read(Path::new(path), 1 << 20).unwrap_err();
            assert_eq!(error.to_string(), "it is not a regular file", "{path}");
        }
    }
}
