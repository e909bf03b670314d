//! The archive format of initial file systems ("newc" cpio; Documentation/driver-api/early-userspace/buffer-format.rst).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use raddle_stdx::width::{low_u32, to_u64};

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// An archive that is being written. All times and owners are zero, so that equal content gives equal bytes.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    folders: BTreeSet<String>,
}

impl Archive {
    pub fn folder(&mut self, path: &str, mode: u32) {
        if self.folders.insert(path.to_owned()) {
            self.entry(path, FOLDER | mode, &[], (0, 0));
        }
    }

    pub fn file(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.entry(path, FILE | mode, content, (0, 0));
    }

    pub fn character_device(&mut self, path: &str, mode: u32, major: u32, minor: u32) {
        self.entry(path, CHARACTER_DEVICE | mode, &[], (major, minor));
    }

    /// The folders that a path needs.
    pub fn parents(&mut self, path: &str) {
        for (at, _) in path.match_indices('/').filter(|(at, _)| *at > 0) {
            self.folder(&path[..at], 0o755);
        }
    }

    /// The archive with its end marker.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[], (0, 0));
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8], device: (u32, u32)) {
        self.entries += 1;
        let links = if mode & FOLDER != 0 { 2 } else { 1 };
        let length = |bytes: usize| low_u32(to_u64(bytes));
        let fields = [
            self.entries,
            mode,
            0,
            0,
            links,
            0,
            length(content.len()),
            0,
            0,
            device.0,
            device.1,
            length(path.len() + 1),
            0,
        ];
        let mut header = String::from("070701");
        for field in fields {
            write!(header, "{field:08x}").expect("a string takes everything");
        }
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_and_content_are_aligned() {
        let mut archive = Archive::default();
        archive.file("a", 0o644, b"xyz");
        let bytes = archive.finish();
        assert_eq!(&bytes[..6], b"070701");
        assert_eq!(&bytes[14..22], b"000081a4", "regular file, 0644");
        assert_eq!(&bytes[54..62], b"00000003", "size");
        assert_eq!(&bytes[110..112], b"a\0");
        assert_eq!(&bytes[112..116], b"xyz\0");
        assert_eq!(&bytes[116..122], b"070701");
        assert_eq!(bytes.len() % 512, 0);
    }

    #[test]
    fn parents_are_made_once() {
        let mut archive = Archive::default();
        archive.parents("lib/modules/a.ko");
        archive.parents("lib/modules/b.ko");
        let text = String::from_utf8(archive.finish()).unwrap();
        assert_eq!(text.matches("lib/modules\0").count(), 1);
        assert_eq!(text.matches("lib\0").count(), 1);
    }
}
