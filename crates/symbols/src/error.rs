//! What can be wrong with a file, as values.

use std::fmt;

/// A piece of a file that can be missing or broken on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    Header,
    Segments,
    Sections,
    Symbols,
    DynamicSymbols,
    Versions,
    Dynamic,
    Relocations,
    Notes,
    DebugLink,
    DebugFile,
    DebugSections,
    DebugUnits,
    Lines,
    Functions,
    Variables,
    Frames,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "file header",
            Self::Segments => "program headers",
            Self::Sections => "section headers",
            Self::Symbols => "symbol table",
            Self::DynamicSymbols => "dynamic symbol table",
            Self::Versions => "symbol versions",
            Self::Dynamic => "dynamic section",
            Self::Relocations => "relocations",
            Self::Notes => "notes",
            Self::DebugLink => "debug link",
            Self::DebugFile => "separate debug file",
            Self::DebugSections => "debug sections",
            Self::DebugUnits => "debug units",
            Self::Lines => "line table",
            Self::Functions => "function tree",
            Self::Variables => "variables",
            Self::Frames => "call frame information",
        })
    }
}

/// Why a file is not a module at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModuleError {
    #[error("not an ELF file: it begins with {magic:02x?} instead of [7f, 45, 4c, 46]")]
    NotElf { magic: Vec<u8> },
    #[error(
        "ELF class {class} with data encoding {encoding} is not 64-bit little-endian (class 2, encoding 1)"
    )]
    UnsupportedClass { class: u8, encoding: u8 },
    #[error("machine {machine} is not x86-64 (62)")]
    UnsupportedMachine { machine: u16 },
    #[error("ELF type {kind} is neither an executable (2) nor a shared object (3)")]
    UnsupportedType { kind: u16 },
    #[error("the {part} cannot be read")]
    Malformed {
        part: Part,
        #[source]
        source: object::read::Error,
    },
}

/// Why a part of an otherwise good file gave nothing; the module works without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incomplete {
    pub part: Part,
    pub reason: Reason,
}

/// The datum behind an [`Incomplete`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error(transparent)]
    Elf(#[from] object::read::Error),
    #[error(transparent)]
    Dwarf(#[from] gimli::Error),
    #[error("more than {limit} steps of work for its size")]
    TooMuchWork { limit: u64 },
    #[error("it claims to expand from {compressed} to {expanded} bytes")]
    Expansion { compressed: u64, expanded: u64 },
    #[error("the build-id or checksum differs")]
    WrongFile,
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.reason)
    }
}
