//! Names as an ELF file without content, for debuggers that read names from such files only.

use object::elf;

/// Functions that lie together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeSection {
    pub name: String,
    /// Address and name.
    pub functions: Vec<(u64, String)>,
}

/// Bytes that the last function of a section is taken to have.
const LAST_FUNCTION: u64 = 4096;
const HEADER_SIZE: u16 = 64;
const SECTION_SIZE: u16 = 64;
const SYMBOL_SIZE: u16 = 24;
/// Readers want the table of sections at a multiple of this.
const TABLE_ALIGNMENT: usize = 8;
/// Sections besides those of code: the empty first one, symbols, names of symbols, names of sections.
const OTHER_SECTIONS: u16 = 4;

/// An executable for x86-64 that has symbols and nothing else. Data is said to lie in no section.
pub fn symbol_file(code: &[CodeSection], data: &[(u64, String)]) -> Vec<u8> {
    let mut file = SymbolFile::default();
    for section in code {
        file.code(section);
    }
    for (address, name) in data {
        file.symbol(name, elf::STT_OBJECT, elf::SHN_ABS, *address);
    }
    file.finish()
}

/// Texts, each with a zero behind it.
#[derive(Debug)]
struct Texts(Vec<u8>);

impl Default for Texts {
    fn default() -> Self {
        Self(vec![0])
    }
}

impl Texts {
    /// Adds a text and gives its offset.
    fn add(&mut self, text: &str) -> u32 {
        let at = u32::try_from(self.0.len()).unwrap_or(0);
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(0);
        at
    }
}

/// One line of the table of sections.
#[derive(Debug, Default)]
struct Section {
    name: u32,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
    info: u32,
    entry_size: u64,
}

impl Section {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.name.to_le_bytes());
        to.extend(self.kind.to_le_bytes());
        for word in [self.flags, self.address, self.offset, self.size] {
            to.extend(word.to_le_bytes());
        }
        to.extend(self.link.to_le_bytes());
        to.extend(self.info.to_le_bytes());
        // Alignment.
        to.extend(1_u64.to_le_bytes());
        to.extend(self.entry_size.to_le_bytes());
    }
}

#[derive(Debug, Default)]
struct SymbolFile {
    sections: Vec<Section>,
    section_names: Texts,
    symbols: Vec<u8>,
    names: Texts,
}

impl SymbolFile {
    fn code(&mut self, section: &CodeSection) {
        let addresses = || section.functions.iter().map(|(address, _)| *address);
        let (Some(first), Some(last)) = (addresses().min(), addresses().max()) else {
            return;
        };
        let name = self.section_names.add(&section.name);
        self.sections.push(Section {
            name,
            kind: elf::SHT_NOBITS,
            flags: u64::from(elf::SHF_ALLOC | elf::SHF_EXECINSTR),
            address: first,
            offset: u64::from(HEADER_SIZE),
            size: (last - first).saturating_add(LAST_FUNCTION),
            ..Section::default()
        });
        let number = u16::try_from(self.sections.len()).unwrap_or(elf::SHN_ABS);
        for (address, name) in &section.functions {
            self.symbol(name, elf::STT_FUNC, number, *address);
        }
    }

    fn symbol(&mut self, name: &str, kind: u8, section: u16, address: u64) {
        let name = self.names.add(name);
        let to = &mut self.symbols;
        to.extend(name.to_le_bytes());
        to.push(elf::STB_GLOBAL << 4 | kind);
        to.push(elf::STV_DEFAULT);
        to.extend(section.to_le_bytes());
        to.extend(address.to_le_bytes());
        // Size: not known.
        to.extend(0_u64.to_le_bytes());
    }

    /// Header, symbols, names, names of sections, table of sections.
    fn finish(mut self) -> Vec<u8> {
        let count = u16::try_from(self.sections.len()).unwrap_or(0);
        let mut symbols = vec![0; usize::from(SYMBOL_SIZE)];
        symbols.append(&mut self.symbols);
        let [symtab, strtab, shstrtab] =
            [".symtab", ".strtab", ".shstrtab"].map(|name| self.section_names.add(name));
        let mut body = Vec::new();
        let mut add = |name, kind, content: &[u8]| {
            let offset = u64::from(HEADER_SIZE) + raddle_stdx::width::to_u64(body.len());
            body.extend_from_slice(content);
            Section {
                name,
                kind,
                offset,
                size: raddle_stdx::width::to_u64(content.len()),
                ..Section::default()
            }
        };
        let symbols = Section {
            // The names follow; the first symbol alone is local.
            link: u32::from(count) + 2,
            info: 1,
            entry_size: u64::from(SYMBOL_SIZE),
            ..add(symtab, elf::SHT_SYMTAB, &symbols)
        };
        let names = add(strtab, elf::SHT_STRTAB, &self.names.0);
        let section_names = add(shstrtab, elf::SHT_STRTAB, &self.section_names.0);
        body.resize(body.len().next_multiple_of(TABLE_ALIGNMENT), 0);
        let table = u64::from(HEADER_SIZE) + raddle_stdx::width::to_u64(body.len());
        let mut file = header(table, count + OTHER_SECTIONS);
        file.append(&mut body);
        Section::default().write(&mut file);
        let all = self.sections.iter();
        for section in all.chain([&symbols, &names, &section_names]) {
            section.write(&mut file);
        }
        file
    }
}

/// The ELF header. The names of sections are in the last one.
fn header(table: u64, sections: u16) -> Vec<u8> {
    let mut to = Vec::from(elf::ELFMAG);
    to.extend([elf::ELFCLASS64, elf::ELFDATA2LSB, elf::EV_CURRENT]);
    to.resize(16, 0);
    to.extend(elf::ET_EXEC.to_le_bytes());
    to.extend(elf::EM_X86_64.to_le_bytes());
    to.extend(u32::from(elf::EV_CURRENT).to_le_bytes());
    // No entry, no program headers.
    for word in [0, 0, table] {
        to.extend(word.to_le_bytes());
    }
    to.extend(0_u32.to_le_bytes());
    for half in [HEADER_SIZE, 0, 0, SECTION_SIZE, sections, sections - 1] {
        to.extend(half.to_le_bytes());
    }
    to
}

#[cfg(test)]
mod tests {
    use object::{Object, ObjectSection, ObjectSymbol};

    use super::*;

    #[test]
    fn names_can_be_read_back() {
        let code = [
            CodeSection {
                name: ".text".into(),
                functions: vec![(0x2000, "late".into()), (0x1000, "early".into())],
            },
            CodeSection {
                name: ".text.empty".into(),
                functions: Vec::new(),
            },
            CodeSection {
                name: ".text.mine".into(),
                functions: vec![(0x9000, "init".into())],
            },
        ];
        let bytes = symbol_file(&code, &[(0x5000, "jiffies".into())]);
        let file = object::File::parse(&*bytes).unwrap();
        let text = file.section_by_name(".text").unwrap();
        assert_eq!((text.address(), text.size()), (0x1000, 0x2000));
        assert!(file.section_by_name(".text.empty").is_none());
        let mine = file.section_by_name(".text.mine").unwrap();
        let found: Vec<_> = file
            .symbols()
            .map(|symbol| {
                (
                    symbol.name().unwrap(),
                    symbol.address(),
                    symbol.section_index(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("late", 0x2000, Some(text.index())),
                ("early", 0x1000, Some(text.index())),
                ("init", 0x9000, Some(mine.index())),
                ("jiffies", 0x5000, None),
            ]
        );
    }
}
