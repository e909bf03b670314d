//! Mapping a program file into an address space.

use std::sync::Arc;

use raddle_mem::{Backing, GuestAddr, ObjectId, PAGE_SIZE, PageNo, Perm, Vma};
use raddle_stdx::width::{to_u64, to_usize};

use crate::credentials::Privileges;
use crate::elf::{self, ElfError, Program, Segment};
use crate::errno::Errno;
use crate::exec::ExecError;
use crate::files;
use crate::kernel::Kernel;
use crate::mm;
use crate::process::SpaceId;
use crate::thread::Tid;

/// Where position-independent programs go.
const PIE_BASE: u64 = 0x5555_5555_4000;
/// Longest name of an interpreter.
const INTERPRETER_MAX: u64 = 4096;

/// A program file, opened and read.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) object: ObjectId,
    pub(crate) path: Arc<[u8]>,
    pub(crate) header: elf::Header,
    pub(crate) program: Program,
    /// Ids that its mode brings.
    pub(crate) privileges: Privileges,
}

/// Where a program ended up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// What was added to every address of the file.
    pub(crate) bias: u64,
    pub(crate) entry: u64,
    pub(crate) headers: u64,
    pub(crate) header_count: u64,
    /// First address after the last segment.
    pub(crate) end: u64,
}

/// Opens a program file and reads its headers.
pub(crate) fn open(kernel: &mut Kernel, tid: Tid, path: &[u8]) -> Result<File, ExecError> {
    let found = files::open_for_exec(kernel, tid, path)?;
    let mut start = vec![0; elf::HEADER_SIZE];
    let count = read_fully(kernel, found.object, 0, &mut start)?;
    let header = elf::header(&start[..count], found.size)?;
    let mut table = vec![0; usize::from(header.segment_count) * elf::SEGMENT_SIZE];
    let count = read_fully(kernel, found.object, header.segments_at, &mut table)?;
    let program = elf::program(&header, &table[..count], found.size)?;
    Ok(File {
        object: found.object,
        path: found.path.into(),
        privileges: found.privileges,
        header,
        program,
    })
}

/// Reads until the buffer is full or the object ends.
pub(crate) fn read_fully(
    kernel: &mut Kernel,
    object: ObjectId,
    offset: u64,
    into: &mut [u8],
) -> Result<usize, Errno> {
    let mut done = 0;
    while done < into.len() {
        let count = files::read_object(kernel, object, offset + to_u64(done), &mut into[done..])?;
        if count == 0 {
            break;
        }
        done += count;
    }
    Ok(done)
}

/// The name in PT_INTERP.
pub(crate) fn interpreter(kernel: &mut Kernel, file: &File) -> Result<Option<Vec<u8>>, ExecError> {
    let Some((offset, size)) = file.program.interpreter else {
        return Ok(None);
    };
    let damaged = || ElfError::Damaged("the name of its interpreter is not a string".into());
    if !(2..=INTERPRETER_MAX).contains(&size) {
        return Err(damaged().into());
    }
    let mut name = vec![0; to_usize(size)];
    let count = read_fully(kernel, file.object, offset, &mut name)?;
    if count < name.len() || name.pop() != Some(0) || name.contains(&0) {
        return Err(damaged().into());
    }
    Ok(Some(name))
}

/// Maps all segments. A program goes to its own place, an interpreter to the top of the mapping area.
pub(crate) fn map(
    kernel: &mut Kernel,
    id: SpaceId,
    file: &File,
    is_interpreter: bool,
) -> Result<Loaded, ExecError> {
    let segments = &file.program.segments;
    let low = segments.first().map_or(0, |segment| segment.addr & !0xFFF);
    let high = segments
        .last()
        .map_or(0, |segment| segment.addr + segment.memory_size);
    let bias = place(kernel, id, file, low, high, is_interpreter)?;
    for segment in segments {
        map_segment(kernel, id, file, segment, bias)?;
    }
    Ok(Loaded {
        bias,
        entry: file.header.entry.wrapping_add(bias),
        headers: file
            .program
            .headers_addr
            .map_or(0, |addr| addr.wrapping_add(bias)),
        header_count: u64::from(file.header.segment_count),
        end: high.wrapping_add(bias),
    })
}

fn place(
    kernel: &mut Kernel,
    id: SpaceId,
    file: &File,
    low: u64,
    high: u64,
    is_interpreter: bool,
) -> Result<u64, ExecError> {
    let is_taken = |kernel: &mut Kernel, start: u64, end: u64| {
        let pages = PageNo(start >> 12)..PageNo(end.div_ceil(4096));
        let (_, space) = kernel.memory(id);
        space
            .map
            .vmas()
            .iter()
            .any(|vma| vma.start < pages.end && pages.start < vma.end)
    };
    if !file.header.is_relocatable {
        if low < mm::LOWEST || is_taken(kernel, low, high) {
            return Err(ElfError::Damaged("its addresses are not free".into()).into());
        }
        return Ok(0);
    }
    let size = high - low;
    let base = if is_interpreter {
        let (_, space) = kernel.memory(id);
        mm::find_free(&space.map, size)
            .ok_or(Errno::ENOMEM)?
            .start()
            .0
    } else {
        PIE_BASE
    };
    let end = base.checked_add(size).ok_or(Errno::ENOMEM)?;
    if end > mm::MMAP_TOP || is_taken(kernel, base, end) {
        return Err(Errno::ENOMEM.into());
    }
    Ok(base.wrapping_sub(low))
}

fn map_segment(
    kernel: &mut Kernel,
    id: SpaceId,
    file: &File,
    segment: &Segment,
    bias: u64,
) -> Result<(), ExecError> {
    let start = segment.addr.wrapping_add(bias);
    let file_end = start + segment.file_size;
    let memory_end = start + segment.memory_size;
    let perm = Perm {
        read: segment.read || segment.write || segment.execute,
        write: segment.write,
        execute: segment.execute,
    };
    let label: Arc<str> = String::from_utf8_lossy(&file.path).into();
    let first = GuestAddr(start).page();
    let file_last = PageNo(file_end.div_ceil(to_u64(PAGE_SIZE)));
    let memory_last = PageNo(memory_end.div_ceil(to_u64(PAGE_SIZE)));
    let (frames, space) = kernel.memory(id);
    let zero_from = if segment.file_size > 0 {
        space.map.map(
            frames,
            Vma {
                start: first,
                end: file_last,
                perm,
                shared: false,
                backing: Backing::Object {
                    object: file.object,
                    first_page: segment.offset >> raddle_mem::PAGE_BITS,
                },
                label,
            },
        );
        file_last
    } else {
        first
    };
    if zero_from < memory_last {
        space.map.map(
            frames,
            Vma {
                start: zero_from,
                end: memory_last,
                perm,
                shared: false,
                backing: Backing::Anonymous,
                label: "".into(),
            },
        );
    }
    // The whole rest of the page, as Linux does: the dynamic linker allocates its first objects there.
    let tail_end = file_last.start().0;
    let has_tail = segment.memory_size > segment.file_size && file_end < tail_end;
    if segment.write && segment.file_size > 0 && has_tail {
        let zeros = vec![0; to_usize(tail_end - file_end)];
        kernel.write_space(id, GuestAddr(file_end), &zeros)?;
    }
    Ok(())
}
