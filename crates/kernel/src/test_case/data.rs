//! The data area of a test: constants, variables and buffers, laid out while the text is read.

use std::collections::BTreeMap;

use super::Buffer;

/// A name that the test has given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// Eight bytes.
    Variable {
        offset: usize,
    },
    Buffer {
        offset: usize,
        size: usize,
    },
}

/// Bytes with names.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) bytes: Vec<u8>,
    names: BTreeMap<String, Name>,
}

impl Data {
    /// Room for `size` bytes, aligned so that no structure of any call minds.
    pub(super) fn reserve(&mut self, size: usize) -> usize {
        let offset = self.bytes.len().next_multiple_of(16);
        self.bytes.resize(offset + size.max(1), 0);
        offset
    }

    pub(super) fn constant(&mut self, bytes: &[u8]) -> usize {
        let offset = self.reserve(bytes.len());
        self.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
        offset
    }

    pub(super) fn name(&self, name: &str) -> Option<Name> {
        self.names.get(name).copied()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// All buffers, by their names.
    pub(super) fn buffers(&self) -> Vec<Buffer> {
        let buffer = |(name, known): (&String, &Name)| match known {
            Name::Variable { .. } => None,
            Name::Buffer { offset, size } => Some(Buffer {
                name: name.clone(),
                offset: *offset,
                size: *size,
            }),
        };
        self.names.iter().filter_map(buffer).collect()
    }

    /// The place of a variable, which is made if there is none; none if the name is a buffer's.
    pub(super) fn variable(&mut self, name: &str) -> Option<usize> {
        match self.name(name) {
            Some(Name::Variable { offset }) => Some(offset),
            Some(Name::Buffer { .. }) => None,
            None => {
                let offset = self.reserve(8);
                self.names
                    .insert(name.to_owned(), Name::Variable { offset });
                Some(offset)
            }
        }
    }

    pub(super) fn buffer(&mut self, name: &str, size: usize) {
        let offset = self.reserve(size);
        self.names
            .insert(name.to_owned(), Name::Buffer { offset, size });
    }
}
