//! Import slots and the stubs that jump through them (System V ABI for x86-64, section 5.2).

use std::collections::BTreeMap;
use std::ops::Range;

use object::LittleEndian as LE;
use object::elf::{self, FileHeader64};
use object::read::elf::{Rela as _, SectionHeader as _, SymbolTable as ElfSymbols};
use raddle_stdx::width::{sign_extend_32, to_u64};

use crate::elf::{Elf, LinkAddr};
use crate::symbol::{Binding, Symbol, SymbolKind, split_version};

const STUB_SECTIONS: &[&str] = &[".plt", ".plt.sec", ".plt.got", ".iplt"];

/// Stubs are 8 or 16 bytes long, and linkers do not always say which.
const STUB_STEP: usize = 8;
const STUB_SIZE_MAX: u64 = 16;

/// What a slot of the global offset table will hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SlotTarget {
    /// The imported symbol of this name.
    Name(String),
    /// What the resolver at this address returns.
    Resolver(LinkAddr),
    /// This address of the module itself.
    Own(LinkAddr),
}

/// All relocations that fill slots.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    pub(crate) by_address: BTreeMap<LinkAddr, SlotTarget>,
    /// The slots of `.rela.plt` in file order: a lazy stub pushes its index into this list.
    lazy: Vec<LinkAddr>,
}

impl Slots {
    /// Reads every relocation section against the dynamic symbols.
    pub(crate) fn read(elf: &Elf) -> Result<Self, object::read::Error> {
        let sections = elf.sections();
        let symbols = sections.symbols(LE, &*elf.bytes, elf::SHT_DYNSYM)?;
        let mut slots = Self::default();
        for section in sections.iter() {
            let Some((relocations, _)) = section.rela(LE, &*elf.bytes)? else {
                continue;
            };
            let name = sections.section_name(LE, section).unwrap_or_default();
            let is_lazy = name == b".rela.plt";
            for relocation in relocations {
                let slot = LinkAddr(relocation.r_offset(LE));
                if is_lazy {
                    slots.lazy.push(slot);
                }
                if let Some(target) = target(relocation, &symbols) {
                    slots.by_address.insert(slot, target);
                }
            }
        }
        Ok(slots)
    }

    /// The stubs of all stub sections, named after what they jump to.
    pub(crate) fn stubs(
        &self,
        elf: &Elf,
        name_of: impl Fn(LinkAddr) -> Option<String>,
    ) -> Vec<Symbol> {
        let sections = elf.sections();
        let mut stubs: Vec<Symbol> = Vec::new();
        for section_name in STUB_SECTIONS {
            let Some((_, section)) = sections.section_by_name(LE, section_name.as_bytes()) else {
                continue;
            };
            let Ok(bytes) = section.data(LE, &*elf.bytes) else {
                continue;
            };
            let start = LinkAddr(section.sh_addr.get(LE));
            let first = stubs.len();
            for at in (0..bytes.len()).step_by(STUB_STEP) {
                let address = start.plus(to_u64(at));
                let name = match self.target_of(address, &bytes[at..]) {
                    Some(SlotTarget::Name(name)) => Some(name.clone()),
                    Some(&SlotTarget::Resolver(resolver)) => name_of(resolver),
                    Some(SlotTarget::Own(_)) | None => None,
                };
                stubs.extend(name.map(|name| stub_symbol(&name, address)));
            }
            for index in first..stubs.len().saturating_sub(1) {
                let distance = stubs[index + 1].address.0 - stubs[index].address.0;
                stubs[index].size = stubs[index].size.min(distance);
            }
        }
        stubs
    }

    fn target_of(&self, address: LinkAddr, stub: &[u8]) -> Option<&SlotTarget> {
        let slot = jump_slot(address, stub).or_else(|| {
            let index = pushed_index(stub)?;
            self.lazy.get(index).copied()
        })?;
        self.by_address.get(&slot)
    }
}

/// Where the stubs of a file lie.
pub(crate) fn stub_ranges(elf: &Elf) -> Vec<Range<u64>> {
    let sections = elf.sections();
    let range = |name: &&str| {
        let (_, section) = sections.section_by_name(LE, name.as_bytes())?;
        let start = section.sh_addr.get(LE);
        Some(start..start.saturating_add(section.sh_size.get(LE)))
    };
    STUB_SECTIONS.iter().filter_map(range).collect()
}

fn target(
    relocation: &elf::Rela64<LE>,
    symbols: &ElfSymbols<'_, FileHeader64<LE>>,
) -> Option<SlotTarget> {
    match relocation.r_type(LE, false) {
        elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_GLOB_DAT | elf::R_X86_64_64 => {
            let symbol = symbols.symbol(relocation.symbol(LE, false)?).ok()?;
            let name = symbols.symbol_name(LE, symbol).ok()?;
            let is_named = !name.is_empty() && relocation.r_addend(LE) == 0;
            is_named.then(|| SlotTarget::Name(String::from_utf8_lossy(name).into_owned()))
        }
        elf::R_X86_64_IRELATIVE => {
            let resolver = LinkAddr(relocation.r_addend(LE).cast_unsigned());
            Some(SlotTarget::Resolver(resolver))
        }
        elf::R_X86_64_RELATIVE => {
            let own = LinkAddr(relocation.r_addend(LE).cast_unsigned());
            Some(SlotTarget::Own(own))
        }
        _ => None,
    }
}

fn stub_symbol(name: &str, address: LinkAddr) -> Symbol {
    let base = split_version(name).map_or(name, |(base, _)| base);
    Symbol {
        name: format!("{base}@plt").into(),
        version: None,
        address,
        size: STUB_SIZE_MAX,
        kind: SymbolKind::Plt,
        binding: Binding::Local,
    }
}

const ENDBR64: [u8; 4] = [0xF3, 0x0F, 0x1E, 0xFA];

/// The slot of `[endbr64] [bnd] jmp *slot(%rip)`.
fn jump_slot(address: LinkAddr, stub: &[u8]) -> Option<LinkAddr> {
    let mut rest = stub.strip_prefix(&ENDBR64).unwrap_or(stub);
    rest = rest.strip_prefix(&[0xF2]).unwrap_or(rest);
    let (displacement, after) = rest.strip_prefix(&[0xFF, 0x25])?.split_first_chunk()?;
    let next = address.plus(to_u64(stub.len() - after.len()));
    let displacement = u64::from(u32::from_le_bytes(*displacement));
    Some(next.plus(sign_extend_32(displacement)))
}

/// The index that a lazy stub `[endbr64] push $index; jmp` gives to the dynamic linker.
fn pushed_index(stub: &[u8]) -> Option<usize> {
    let rest = stub.strip_prefix(&ENDBR64).unwrap_or(stub);
    let (index, _) = rest.strip_prefix(&[0x68])?.split_first_chunk()?;
    usize::try_from(u32::from_le_bytes(*index)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_of_each_shape_name_their_slot() {
        let plain = [0xFF, 0x25, 0x10, 0, 0, 0, 0x66, 0x90];
        assert_eq!(jump_slot(LinkAddr(0x1000), &plain), Some(LinkAddr(0x1016)));
        let tracked = [
            0xF3, 0x0F, 0x1E, 0xFA, 0xF2, 0xFF, 0x25, 0xF5, 0xFF, 0xFF, 0xFF,
        ];
        assert_eq!(
            jump_slot(LinkAddr(0x1000), &tracked),
            Some(LinkAddr(0x1000))
        );
        assert_eq!(jump_slot(LinkAddr(0), &[0xFF, 0x25, 1]), None);
        assert_eq!(jump_slot(LinkAddr(0), &[0xE9, 0, 0, 0, 0]), None);
    }

    #[test]
    fn lazy_stubs_push_their_index() {
        let stub = [
            0xF3, 0x0F, 0x1E, 0xFA, 0x68, 3, 0, 0, 0, 0xE9, 0, 0, 0, 0, 0x66, 0x90,
        ];
        assert_eq!(pushed_index(&stub), Some(3));
        assert_eq!(pushed_index(&[0xFF, 0x35]), None);
    }
}
