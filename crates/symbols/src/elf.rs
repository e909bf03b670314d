//! The ELF file itself: headers, segments, sections, dynamic section, notes, relocations.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};
use object::read::elf::{
    Dyn as _, FileHeader as _, ProgramHeader as _, SectionHeader as _, SectionTable,
};
use raddle_stdx::width::{to_u64, to_usize};

use crate::debug_file::BuildId;
use crate::error::{Incomplete, ModuleError, Part, Reason};

pub(crate) type Sections<'a> = SectionTable<'a, FileHeader64<LE>>;

/// Deflate cannot do better than about 1032:1, so a section that claims more is a lie.
const EXPANSION_MAX: u64 = 1100;

/// An address as the file states it, before any run-time bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LinkAddr(pub u64);

impl LinkAddr {
    /// The address `bytes` further on, wrapping as machine addresses do.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl fmt::Display for LinkAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A part of the file that the loader maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub address: LinkAddr,
    /// Size in memory; what the file does not fill is zero.
    pub size: u64,
    pub file_offset: u64,
    pub file_size: u64,
    pub is_readable: bool,
    pub is_writable: bool,
    pub is_executable: bool,
}

impl Segment {
    /// The addresses in memory as the file states them.
    pub fn range(&self) -> Range<u64> {
        self.address.0..self.address.0.saturating_add(self.size)
    }
}

/// The bytes of a section: a part of the file, or what it expands to.
#[derive(Debug, Clone)]
pub(crate) enum SectionBytes {
    InFile(Arc<[u8]>, Range<usize>),
    Expanded(Box<[u8]>),
}

impl SectionBytes {
    pub(crate) fn empty() -> Self {
        Self::Expanded(Box::default())
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::InFile(file, range) => file.get(range.clone()).unwrap_or(&[]),
            Self::Expanded(bytes) => bytes,
        }
    }
}

/// What the headers say; everything optional is empty when it is absent or broken.
#[derive(Debug)]
pub(crate) struct Elf {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) is_dynamic: bool,
    pub(crate) entry: LinkAddr,
    pub(crate) segments: Vec<Segment>,
    /// What the loader makes read-only after it has applied relocations (`PT_GNU_RELRO`).
    pub(crate) relocated: Vec<Range<u64>>,
    pub(crate) interpreter: Option<String>,
    pub(crate) soname: Option<String>,
    pub(crate) needed: Vec<String>,
    pub(crate) build_id: Option<BuildId>,
    pub(crate) incomplete: Vec<Incomplete>,
}

impl Elf {
    pub(crate) fn parse(bytes: Arc<[u8]>) -> Result<Self, ModuleError> {
        let kind = check_header(&bytes)?.e_type.get(LE);
        if kind != elf::ET_EXEC && kind != elf::ET_DYN {
            return Err(ModuleError::UnsupportedType { kind });
        }
        Self::parse_any_type(bytes)
    }

    /// For files that only hold debug information: `dwz` marks those as relocatable.
    pub(crate) fn parse_any_type(bytes: Arc<[u8]>) -> Result<Self, ModuleError> {
        let header = check_header(&bytes)?;
        let malformed = |part| move |source| ModuleError::Malformed { part, source };
        let programs = header
            .program_headers(LE, &*bytes)
            .map_err(malformed(Part::Segments))?;
        let mut elf = Self {
            is_dynamic: header.e_type.get(LE) == elf::ET_DYN,
            entry: LinkAddr(header.e_entry.get(LE)),
            segments: programs.iter().filter_map(segment).collect(),
            relocated: Vec::new(),
            interpreter: None,
            soname: None,
            needed: Vec::new(),
            build_id: None,
            incomplete: Vec::new(),
            bytes: Arc::clone(&bytes),
        };
        for program in programs {
            elf.read_program_header(program, &bytes);
        }
        if let Err(source) = elf.read_sections(header, &bytes) {
            elf.note(Part::Sections, source);
        }
        Ok(elf)
    }

    /// The section table, or an empty one if it is broken (which `parse` has noted).
    pub(crate) fn sections(&self) -> Sections<'_> {
        FileHeader64::<LE>::parse(&*self.bytes)
            .and_then(|header| header.sections(LE, &*self.bytes))
            .unwrap_or_default()
    }

    pub(crate) fn note(&mut self, part: Part, reason: impl Into<Reason>) {
        self.incomplete.push(Incomplete {
            part,
            reason: reason.into(),
        });
    }

    /// The bytes of a named section with its address; compressed ones are expanded.
    pub(crate) fn section(&self, name: &str) -> Result<Option<(LinkAddr, SectionBytes)>, Reason> {
        let sections = self.sections();
        let Some((_, section)) = sections.section_by_name(LE, name.as_bytes()) else {
            return Ok(None);
        };
        let address = LinkAddr(section.sh_addr.get(LE));
        if let Some((header, start, size)) = section.compression(LE, &*self.bytes)? {
            let expanded = expand(&self.bytes, header.ch_type.get(LE), start, size, {
                header.ch_size.get(LE)
            })?;
            return Ok(Some((address, SectionBytes::Expanded(expanded))));
        }
        let Some((start, size)) = section.file_range(LE) else {
            return Ok(None);
        };
        // Checks that the range lies in the file.
        section.data(LE, &*self.bytes)?;
        let start = to_usize(start);
        let range = start..start + to_usize(size);
        Ok(Some((
            address,
            SectionBytes::InFile(Arc::clone(&self.bytes), range),
        )))
    }

    /// File bytes at a link address; shorter than asked at the end of the file's part of the segment.
    pub(crate) fn bytes_at(&self, address: LinkAddr, len: usize) -> &[u8] {
        let found = self.segments.iter().find_map(|segment| {
            let skip = address.0.checked_sub(segment.address.0)?;
            let left = segment
                .file_size
                .checked_sub(skip)
                .filter(|&left| left > 0)?;
            let start = to_usize(segment.file_offset.checked_add(skip)?);
            let tail = self.bytes.get(start..)?;
            tail.get(..len.min(to_usize(left)).min(tail.len()))
        });
        found.unwrap_or(&[])
    }

    pub(crate) fn is_code(&self, address: u64) -> bool {
        let is_in = |segment: &Segment| segment.is_executable && segment.range().contains(&address);
        self.segments.iter().any(is_in)
    }

    fn read_program_header(&mut self, program: &ProgramHeader64<LE>, bytes: &[u8]) {
        if program.p_type.get(LE) == elf::PT_GNU_RELRO {
            let start = program.p_vaddr.get(LE);
            let end = start.saturating_add(program.p_memsz.get(LE));
            self.relocated.push(start..end);
        }
        if let Ok(Some(path)) = program.interpreter(LE, bytes) {
            self.interpreter = Some(String::from_utf8_lossy(path).into_owned());
        }
        match program.notes(LE, bytes) {
            Ok(Some(notes)) if self.build_id.is_none() => self.build_id = build_id_in(notes),
            Ok(_) => {}
            Err(source) => self.note(Part::Notes, source),
        }
    }

    fn read_sections(
        &mut self,
        header: &FileHeader64<LE>,
        bytes: &[u8],
    ) -> Result<(), object::read::Error> {
        let sections = header.sections(LE, bytes)?;
        for section in sections.iter() {
            if self.build_id.is_none()
                && let Ok(Some(notes)) = section.notes(LE, bytes)
            {
                self.build_id = build_id_in(notes);
            }
        }
        match sections.dynamic(LE, bytes) {
            Ok(Some((entries, strings))) => {
                let strings = sections.strings(LE, bytes, strings).unwrap_or_default();
                let text = |value| {
                    let name = strings.get(u32::try_from(value).ok()?).ok()?;
                    Some(String::from_utf8_lossy(name).into_owned())
                };
                for entry in entries {
                    match entry.tag32(LE) {
                        Some(elf::DT_SONAME) => self.soname = text(entry.d_val.get(LE)),
                        Some(elf::DT_NEEDED) => self.needed.extend(text(entry.d_val.get(LE))),
                        Some(elf::DT_NULL) => break,
                        _ => {}
                    }
                }
            }
            Ok(None) => {}
            Err(source) => self.note(Part::Dynamic, source),
        }
        Ok(())
    }
}

fn check_header(bytes: &[u8]) -> Result<&FileHeader64<LE>, ModuleError> {
    let ident = bytes.get(..6).unwrap_or(bytes);
    if !ident.starts_with(&elf::ELFMAG) || ident.len() < 6 {
        return Err(ModuleError::NotElf {
            magic: ident[..ident.len().min(4)].to_vec(),
        });
    }
    if (ident[4], ident[5]) != (elf::ELFCLASS64, elf::ELFDATA2LSB) {
        return Err(ModuleError::UnsupportedClass {
            class: ident[4],
            encoding: ident[5],
        });
    }
    let header = FileHeader64::<LE>::parse(bytes).map_err(|source| ModuleError::Malformed {
        part: Part::Header,
        source,
    })?;
    let machine = header.e_machine.get(LE);
    if machine != elf::EM_X86_64 {
        return Err(ModuleError::UnsupportedMachine { machine });
    }
    Ok(header)
}

fn segment(program: &ProgramHeader64<LE>) -> Option<Segment> {
    let flags = program.p_flags.get(LE);
    (program.p_type.get(LE) == elf::PT_LOAD).then(|| Segment {
        address: LinkAddr(program.p_vaddr.get(LE)),
        size: program.p_memsz.get(LE),
        file_offset: program.p_offset.get(LE),
        file_size: program.p_filesz.get(LE),
        is_readable: flags & elf::PF_R != 0,
        is_writable: flags & elf::PF_W != 0,
        is_executable: flags & elf::PF_X != 0,
    })
}

fn build_id_in(
    mut notes: object::read::elf::NoteIterator<'_, FileHeader64<LE>>,
) -> Option<BuildId> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(LE) == elf::NT_GNU_BUILD_ID {
            return Some(BuildId(note.desc().into()));
        }
    }
    None
}

fn expand(
    file: &[u8],
    kind: u32,
    start: u64,
    size: u64,
    expanded: u64,
) -> Result<Box<[u8]>, Reason> {
    let range = to_usize(start)..to_usize(start.saturating_add(size));
    let data = file.get(range).unwrap_or(&[]);
    let compressed = to_u64(data.len());
    if expanded > compressed.saturating_mul(EXPANSION_MAX) {
        return Err(Reason::Expansion {
            compressed,
            expanded,
        });
    }
    let format = match kind {
        elf::ELFCOMPRESS_ZLIB => object::CompressionFormat::Zlib,
        elf::ELFCOMPRESS_ZSTD => object::CompressionFormat::Zstandard,
        _ => object::CompressionFormat::Unknown,
    };
    let compressed = object::CompressedData {
        format,
        data,
        uncompressed_size: expanded,
    };
    Ok(compressed.decompress()?.into_owned().into_boxed_slice())
}

/// Kept apart so that other files need not name the header type.
pub(crate) fn section_is_code(section: &SectionHeader64<LE>) -> bool {
    section.sh_flags.get(LE) & u64::from(elf::SHF_EXECINSTR) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_that_claim_to_expand_beyond_reason_are_refused() {
        let bomb = expand(&[0; 100], elf::ELFCOMPRESS_ZLIB, 0, 100, 1 << 40);
        let expected = Reason::Expansion {
            compressed: 100,
            expanded: 1 << 40,
        };
        assert_eq!(bomb, Err(expected));
        // "abc" as one stored block of a zlib stream, with its Adler-32 checksum.
        let stored = [
            0x78, 0x01, 0x01, 3, 0, 0xFC, 0xFF, b'a', b'b', b'c', 0x02, 0x4D, 0x01, 0x27,
        ];
        let good = expand(&stored, elf::ELFCOMPRESS_ZLIB, 0, 14, 3);
        assert_eq!(good.as_deref(), Ok(&b"abc"[..]));
    }
}
