//! Relocatable files, such as kernel modules: their debug information refers to places that a loader chooses.

use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, ProgramHeader64, Rela64};
use object::pod::bytes_of;
use object::read::elf::{FileHeader as _, Rela as _, SectionHeader as _, Sym as _, SymbolTable};
use object::{SectionIndex, U16, U32, U64};

use raddle_stdx::width::{to_u64, to_usize};

/// Name of the section that has a place.
const TEXT: &[u8] = b".text";

/// A copy of a relocatable file as an executable one whose `.text` lies at an address, with its debug information
/// relocated accordingly. Code in other sections has no place. None if the file is not relocatable, has no `.text`,
/// or is damaged.
pub fn executable_at(file: &[u8], text_at: u64) -> Option<Vec<u8>> {
    let header = FileHeader64::<LE>::parse(file).ok()?;
    if header.e_type.get(LE) != elf::ET_REL {
        return None;
    }
    let sections = header.sections(LE, file).ok()?;
    let (text, text_header) = sections.section_by_name(LE, TEXT)?;
    let symbols = sections.symbols(LE, file, elf::SHT_SYMTAB).ok()?;
    let mut placed = file.to_vec();
    for section in sections.iter() {
        let Some((relocations, _)) = section.rela(LE, file).ok()? else {
            continue;
        };
        let target = sections.section(section.info_link(LE)).ok()?;
        let is_debug = sections
            .section_name(LE, target)
            .ok()?
            .starts_with(b".debug_");
        let is_plain = target.sh_flags.get(LE) & u64::from(elf::SHF_COMPRESSED) == 0;
        if !is_debug || !is_plain {
            continue;
        }
        let (start, size) = target.file_range(LE)?;
        let content = placed.get_mut(to_usize(start)..to_usize(start.checked_add(size)?))?;
        for relocation in relocations {
            relocate(content, relocation, &symbols, (text, text_at))?;
        }
    }
    add_segment(&mut placed, text_header, text_at)?;
    Some(placed)
}

/// Writes one address or offset.
fn relocate(
    content: &mut [u8],
    relocation: &Rela64<LE>,
    symbols: &SymbolTable<'_, FileHeader64<LE>>,
    text: (SectionIndex, u64),
) -> Option<()> {
    let value = match relocation.symbol(LE, false) {
        Some(index) => {
            let symbol = symbols.symbol(index).ok()?;
            let section = symbols.symbol_section(LE, symbol, index).ok()?;
            let base = if section == Some(text.0) { text.1 } else { 0 };
            base.wrapping_add(symbol.st_value(LE))
        }
        None => 0,
    };
    let value = value.wrapping_add_signed(relocation.r_addend(LE));
    let bytes = value.to_le_bytes();
    let size = match relocation.r_type(LE, false) {
        elf::R_X86_64_64 => 8,
        elf::R_X86_64_32 | elf::R_X86_64_32S => 4,
        _ => return Some(()),
    };
    let at = to_usize(relocation.r_offset(LE));
    let place = content.get_mut(at..at.checked_add(size)?)?;
    place.copy_from_slice(&bytes[..size]);
    Some(())
}

/// Appends a program header for the code and turns the file into an executable.
fn add_segment(file: &mut Vec<u8>, text: &elf::SectionHeader64<LE>, text_at: u64) -> Option<()> {
    let word = |value| U64::new(LE, value);
    let size = text.sh_size.get(LE);
    let segment = ProgramHeader64::<LE> {
        p_type: U32::new(LE, elf::PT_LOAD),
        p_flags: U32::new(LE, elf::PF_R | elf::PF_X),
        p_offset: word(text.sh_offset.get(LE)),
        p_vaddr: word(text_at),
        p_paddr: word(text_at),
        p_filesz: word(size),
        p_memsz: word(size),
        p_align: word(1),
    };
    let mut header = *FileHeader64::<LE>::parse(&**file).ok()?;
    file.resize(file.len().next_multiple_of(8), 0);
    header.e_type = U16::new(LE, elf::ET_EXEC);
    header.e_phoff = word(to_u64(file.len()));
    header.e_phentsize = U16::new(LE, u16::try_from(bytes_of(&segment).len()).ok()?);
    header.e_phnum = U16::new(LE, 1);
    file.extend_from_slice(bytes_of(&segment));
    let bytes = bytes_of(&header);
    file.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(())
}
