//! Reading ELF program files: pure functions over bytes, every error a value.

use thiserror::Error;

/// Bytes of the ELF header.
pub(crate) const HEADER_SIZE: usize = 64;
/// Bytes of one program header.
pub(crate) const SEGMENT_SIZE: usize = 56;
/// More program headers than any linker writes.
const SEGMENTS_MAX: u16 = 1024;
/// First address that a program cannot use.
pub(crate) const USER_END: u64 = 0x7FFF_FFFF_F000;

/// Why a file is no program for us.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ElfError {
    #[error("it is not an ELF file")]
    NotElf,
    #[error("it is cut off: {0}")]
    Truncated(&'static str),
    #[error(
        "it is for another machine: {0}; raddle runs 64-bit little-endian x86-64 Linux programs"
    )]
    Foreign(String),
    #[error("it is an ELF {0}, not a program")]
    NotProgram(&'static str),
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// What the ELF header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Loadable anywhere (ET_DYN), or only at its own addresses (ET_EXEC).
    pub(crate) is_relocatable: bool,
    pub(crate) entry: u64,
    pub(crate) segments_at: u64,
    pub(crate) segment_count: u16,
}

/// One loadable part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) addr: u64,
    pub(crate) offset: u64,
    pub(crate) file_size: u64,
    pub(crate) memory_size: u64,
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) execute: bool,
}

/// All that the loader needs of the program headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// By address, not overlapping.
    pub(crate) segments: Vec<Segment>,
    /// File offset and size of the interpreter's name.
    pub(crate) interpreter: Option<(u64, u64)>,
    /// Where the program headers are in memory, if a segment or PT_PHDR holds them.
    pub(crate) headers_addr: Option<u64>,
    pub(crate) has_executable_stack: bool,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

/// Reads the header from the first bytes of a file of `file_size` bytes.
pub(crate) fn header(bytes: &[u8], file_size: u64) -> Result<Header, ElfError> {
    if !bytes.starts_with(b"\x7FELF") {
        return Err(ElfError::NotElf);
    }
    if bytes.len() < HEADER_SIZE {
        return Err(ElfError::Truncated("the ELF header is not complete"));
    }
    if bytes[4] != 2 {
        return Err(ElfError::Foreign("its class is not 64-bit".into()));
    }
    if bytes[5] != 1 {
        return Err(ElfError::Foreign(
            "its byte order is not little-endian".into(),
        ));
    }
    let machine = u16_at(bytes, 18);
    if machine != 62 {
        return Err(ElfError::Foreign(format!(
            "its machine number is {machine}"
        )));
    }
    let is_relocatable = match u16_at(bytes, 16) {
        2 => false,
        3 => true,
        1 => return Err(ElfError::NotProgram("object file")),
        4 => return Err(ElfError::NotProgram("core file")),
        other => return Err(ElfError::Damaged(format!("its type is {other}"))),
    };
    let segment_count = u16_at(bytes, 56);
    let segments_at = u64_at(bytes, 32);
    if usize::from(u16_at(bytes, 54)) != SEGMENT_SIZE {
        return Err(ElfError::Damaged(
            "the size of a program header is not 56".into(),
        ));
    }
    if segment_count == 0 || segment_count > SEGMENTS_MAX {
        return Err(ElfError::Damaged(format!(
            "it has {segment_count} program headers"
        )));
    }
    let table_end = segments_at.checked_add(u64::from(segment_count) * 56);
    if table_end.is_none_or(|end| end > file_size) {
        return Err(ElfError::Truncated(
            "the program headers lie beyond its end",
        ));
    }
    Ok(Header {
        is_relocatable,
        entry: u64_at(bytes, 24),
        segments_at,
        segment_count,
    })
}

/// Reads the table of program headers.
pub(crate) fn program(header: &Header, table: &[u8], file_size: u64) -> Result<Program, ElfError> {
    if table.len() < usize::from(header.segment_count) * SEGMENT_SIZE {
        return Err(ElfError::Truncated("the program headers are not complete"));
    }
    let mut program = Program {
        segments: Vec::new(),
        interpreter: None,
        headers_addr: None,
        has_executable_stack: false,
    };
    for entry in table
        .chunks_exact(SEGMENT_SIZE)
        .take(usize::from(header.segment_count))
    {
        let (kind, flags) = (u32_at(entry, 0), u32_at(entry, 4));
        let (offset, addr) = (u64_at(entry, 8), u64_at(entry, 16));
        let (file_part, memory_part) = (u64_at(entry, 32), u64_at(entry, 40));
        match kind {
            1 if memory_part > 0 => program.segments.push(Segment {
                addr,
                offset,
                file_size: file_part,
                memory_size: memory_part,
                read: flags & 4 != 0,
                write: flags & 2 != 0,
                execute: flags & 1 != 0,
            }),
            3 => program.interpreter = Some((offset, file_part)),
            6 => program.headers_addr = Some(addr),
            0x6474_E551 => program.has_executable_stack = flags & 1 != 0,
            _ => {}
        }
    }
    check_segments(&program.segments, file_size)?;
    if program.headers_addr.is_none() {
        program.headers_addr = headers_in_segment(header, &program.segments);
    }
    Ok(program)
}

fn headers_in_segment(header: &Header, segments: &[Segment]) -> Option<u64> {
    segments
        .iter()
        .find(|segment| {
            segment.offset <= header.segments_at
                && header.segments_at - segment.offset < segment.file_size
        })
        .map(|segment| segment.addr + (header.segments_at - segment.offset))
}

fn check_segments(segments: &[Segment], file_size: u64) -> Result<(), ElfError> {
    if segments.is_empty() {
        return Err(ElfError::Damaged("it has nothing to load".into()));
    }
    let mut end_before = 0;
    for (index, segment) in segments.iter().enumerate() {
        let damaged = |what: &str| Err(ElfError::Damaged(format!("segment {index} {what}")));
        if segment.addr & 0xFFF != segment.offset & 0xFFF {
            return damaged("has an address and an offset that do not agree");
        }
        if segment.file_size > segment.memory_size {
            return damaged("is larger in the file than in memory");
        }
        let Some(end) = segment.addr.checked_add(segment.memory_size) else {
            return damaged("wraps around the end of memory");
        };
        if end > USER_END {
            return damaged("lies beyond the memory of a program");
        }
        if segment.addr & !0xFFF < end_before {
            return damaged("overlaps the one before it or is out of order");
        }
        if segment
            .offset
            .checked_add(segment.file_size)
            .is_none_or(|end| end > file_size)
        {
            return Err(ElfError::Truncated("a segment lies beyond its end"));
        }
        end_before = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small valid file: one segment with everything.
    fn sample() -> Vec<u8> {
        let mut file = vec![0; 0x2000];
        file[..6].copy_from_slice(b"\x7FELF\x02\x01");
        file[16..18].copy_from_slice(&3_u16.to_le_bytes());
        file[18..20].copy_from_slice(&62_u16.to_le_bytes());
        file[24..32].copy_from_slice(&0x1000_u64.to_le_bytes());
        file[32..40].copy_from_slice(&64_u64.to_le_bytes());
        file[54..56].copy_from_slice(&56_u16.to_le_bytes());
        file[56..58].copy_from_slice(&1_u16.to_le_bytes());
        file[64..68].copy_from_slice(&1_u32.to_le_bytes());
        file[68..72].copy_from_slice(&5_u32.to_le_bytes());
        file[96..104].copy_from_slice(&0x2000_u64.to_le_bytes());
        file[104..112].copy_from_slice(&0x3000_u64.to_le_bytes());
        file
    }

    fn read(file: &[u8]) -> Result<Program, ElfError> {
        let size = raddle_stdx::width::to_u64(file.len());
        let header = header(&file[..file.len().min(HEADER_SIZE)], size)?;
        let start = raddle_stdx::width::to_usize(header.segments_at);
        let end = start + usize::from(header.segment_count) * SEGMENT_SIZE;
        program(&header, &file[start..end], size)
    }

    #[test]
    fn a_valid_file_is_read() {
        let program = read(&sample()).unwrap();
        assert_eq!(program.segments.len(), 1);
        assert_eq!(program.headers_addr, Some(64));
        assert!(program.segments[0].execute && !program.segments[0].write);
    }

    #[test]
    fn every_cut_is_an_error_or_harmless() {
        let file = sample();
        for length in 0..file.len() {
            assert!(read(&file[..length]).is_err(), "cut at {length}");
        }
    }

    #[test]
    fn foreign_files_are_named() {
        let mut file = sample();
        file[4] = 1;
        assert!(matches!(read(&file), Err(ElfError::Foreign(_))));
        let mut file = sample();
        file[18] = 183;
        let error = read(&file).unwrap_err().to_string();
        assert!(error.contains("machine number is 183"), "{error}");
        assert_eq!(read(b"#!/bin/sh\n"), Err(ElfError::NotElf));
    }

    #[test]
    fn random_damage_never_panics_and_never_passes_a_bad_segment() {
        let mut prng = raddle_stdx::Prng::new(2);
        let mut accepted = 0;
        for _ in 0..200_000 {
            let mut file = sample();
            for _ in 0..=prng.below(6) {
                let at = raddle_stdx::width::to_usize(prng.below(128));
                file[at] = raddle_stdx::width::low_u8(prng.next_u64());
            }
            let Ok(program) = read(&file) else {
                continue;
            };
            accepted += 1;
            for segment in &program.segments {
                assert!(segment.addr + segment.memory_size <= USER_END);
                assert!(segment.offset + segment.file_size <= 0x2000);
            }
        }
        assert!(accepted > 1000, "the damage was always fatal: {accepted}");
    }
}
