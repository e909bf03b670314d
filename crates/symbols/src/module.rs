//! One executable or shared library with everything its file and its debug file say about it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use object::LittleEndian as LE;
use object::elf::{self, FileHeader64};
use object::read::SymbolIndex;
use object::read::elf::{Sym as _, SymbolTable as ElfSymbols, VersionTable};
use rustc_hash::FxHashMap;

use crate::debug_file::{BuildId, DebugRequest, crc32};
use crate::demangle::demangle;
use crate::dwarf::{DebugInfo, FunctionPlace, LinePlace};
use crate::elf::{Elf, LinkAddr, Sections, Segment, section_is_code};
use crate::error::{Incomplete, ModuleError, Part, Reason};
use crate::plt::{self, SlotTarget, Slots};
use crate::symbol::{Binding, Symbol, SymbolKind, SymbolTable, Version, split_version};
use crate::unwind::CallFrames;

/// A callback that brings separate debug files; `None` where there is none.
pub type FetchDebugFile<'a> = &'a mut dyn FnMut(&DebugRequest) -> Option<Vec<u8>>;

/// A parsed ELF file. Debug information is read on demand, unit by unit, and then kept.
#[derive(Debug)]
pub struct Module {
    elf: Elf,
    symbols: SymbolTable,
    imports: Vec<Import>,
    /// What relocations of the module against itself store, by ascending place.
    pointers: Vec<(LinkAddr, LinkAddr)>,
    debug: Option<Debug>,
    frames: OnceLock<CallFrames>,
    /// Answers of [`Module::place_of`], which is a pure function of the address.
    places: Mutex<FxHashMap<LinkAddr, Arc<CodePlace>>>,
}

/// Debug information. The sections are large, and often nothing is asked of them: they are taken from the file, and
/// expanded, with the first question.
#[derive(Debug)]
struct Debug {
    /// The file that has the sections, if it is not the module itself.
    separate: Option<Elf>,
    /// The file that several debug files share.
    shared: Option<Elf>,
    info: OnceLock<Result<DebugInfo, Reason>>,
}

/// A slot of the global offset table and what the dynamic linker will put there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    pub slot: LinkAddr,
    pub name: String,
}

/// A call of `mmap` on a module's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMapping {
    /// The run-time address where the mapping begins.
    pub at: u64,
    pub file_offset: u64,
    pub is_writable: bool,
    pub is_executable: bool,
    /// The bias of the mapping of the same file before this one: a loader maps all of a file with one.
    pub bias_before: Option<u64>,
}

/// What is known about one code address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodePlace {
    /// The symbol that contains the address, as the linker knows it, and the distance from its start.
    pub symbol: Option<(Arc<str>, u64)>,
    /// The functions by debug information, innermost inlined one first; empty without debug information.
    pub scopes: Vec<FunctionPlace>,
    /// The line of the instruction itself.
    pub line: Option<LinePlace>,
}

impl Module {
    /// Parses a file and asks `fetch` for the debug files that it names.
    pub fn parse(
        bytes: impl Into<Arc<[u8]>>,
        fetch: FetchDebugFile<'_>,
    ) -> Result<Self, ModuleError> {
        let mut elf = Elf::parse(bytes.into())?;
        let debug_elf = if has_section(&elf, ".debug_info") {
            None
        } else {
            separate_debug_file(&mut elf, fetch)
        };
        let slots = Slots::read(&elf).unwrap_or_else(|source| {
            elf.note(Part::Relocations, source);
            Slots::default()
        });
        let symbols = read_all_symbols(&mut elf, debug_elf.as_ref(), &slots);
        let imports = imports(&slots, &symbols);
        let debug = debug_files(&elf, debug_elf, fetch);
        Ok(Self {
            elf,
            symbols,
            imports,
            pointers: own_pointers(&slots),
            debug,
            frames: OnceLock::new(),
            places: Mutex::default(),
        })
    }

    /// Parses a file for what it contains itself.
    pub fn parse_alone(bytes: impl Into<Arc<[u8]>>) -> Result<Self, ModuleError> {
        Self::parse(bytes, &mut |_| None)
    }

    pub fn build_id(&self) -> Option<&BuildId> {
        self.elf.build_id.as_ref()
    }

    /// The parts that the loader maps, in file order.
    pub fn segments(&self) -> &[Segment] {
        &self.elf.segments
    }

    pub fn entry(&self) -> LinkAddr {
        self.elf.entry
    }

    /// Whether the file is position-independent: a shared library or a PIE.
    pub fn is_position_independent(&self) -> bool {
        self.elf.is_dynamic
    }

    /// The dynamic linker that the file asks for.
    pub fn interpreter(&self) -> Option<&str> {
        self.elf.interpreter.as_deref()
    }

    pub fn soname(&self) -> Option<&str> {
        self.elf.soname.as_deref()
    }

    /// The libraries that the file asks for.
    pub fn needed(&self) -> &[String] {
        &self.elf.needed
    }

    pub fn symbols(&self) -> &SymbolTable {
        &self.symbols
    }

    /// Import slots by ascending address.
    pub fn imports(&self) -> &[Import] {
        &self.imports
    }

    /// What the import slot at this address will hold.
    pub fn import_at(&self, slot: LinkAddr) -> Option<&Import> {
        let index = self.imports.binary_search_by_key(&slot, |i| i.slot).ok()?;
        self.imports.get(index)
    }

    /// The address in the module itself that the loader stores at `place`.
    pub fn pointer_at(&self, place: LinkAddr) -> Option<LinkAddr> {
        if self.is_position_independent() {
            let index = self.pointers.binary_search_by_key(&place, |&(at, _)| at);
            return self.pointers.get(index.ok()?).map(|&(_, target)| target);
        }
        // Without a bias to add, the linker has stored the pointer itself.
        let bytes = self.bytes_at(place, 8).first_chunk()?;
        let target = LinkAddr(u64::from_le_bytes(*bytes));
        let is_own = |segment: &Segment| segment.range().contains(&target.0);
        self.segments().iter().any(is_own).then_some(target)
    }

    /// Whether the program cannot change what is at an address once the loader has done its work.
    pub fn is_constant(&self, address: LinkAddr) -> bool {
        let is_relocated = self
            .elf
            .relocated
            .iter()
            .any(|range| range.contains(&address.0));
        let is_read_only =
            |segment: &Segment| !segment.is_writable && segment.range().contains(&address.0);
        is_relocated || self.segments().iter().any(is_read_only)
    }

    /// Where the stubs lie through which functions of other modules are called, as link addresses.
    pub fn stub_ranges(&self) -> Vec<Range<u64>> {
        plt::stub_ranges(&self.elf)
    }

    /// Whether there is debug information; it may turn out to be broken.
    pub fn has_debug_info(&self) -> bool {
        self.debug.is_some()
    }

    pub fn debug_info(&self) -> Option<&DebugInfo> {
        let debug = self.debug.as_ref()?;
        let read = || {
            let code = self.elf.segments.iter().filter(|part| part.is_executable);
            let code = code.map(Segment::range).collect();
            let source = debug.separate.as_ref().unwrap_or(&self.elf);
            DebugInfo::read(source, debug.shared.as_ref(), code)
        };
        debug.info.get_or_init(read).as_ref().ok()
    }

    /// What could not be read, and why; of debug information, what the questions asked so far have met.
    pub fn incomplete(&self) -> Vec<Incomplete> {
        let mut all = self.elf.incomplete.clone();
        match self.debug.as_ref().and_then(|debug| debug.info.get()) {
            Some(Ok(info)) => all.extend(info.incomplete()),
            Some(Err(reason)) => all.push(Incomplete {
                part: Part::DebugSections,
                reason: *reason,
            }),
            None => {}
        }
        all
    }

    /// Up to `len` bytes of the file as it would lie at `address`; fewer at the end of a segment.
    pub fn bytes_at(&self, address: LinkAddr, len: usize) -> &[u8] {
        self.elf.bytes_at(address, len)
    }

    /// Whether an executable segment contains the address.
    pub fn is_code(&self, address: LinkAddr) -> bool {
        self.elf.is_code(address.0)
    }

    /// What a program that maps a part of this file adds to the link addresses in that part.
    pub fn bias_of_mapping(&self, mapping: FileMapping) -> Option<u64> {
        let FileMapping {
            at, file_offset, ..
        } = mapping;
        // The kernel maps whole pages, so a mapping may begin up to a page before its segment.
        let first_page = |segment: &Segment| segment.file_offset & !0xFFF;
        let holds = |segment: &&Segment| {
            let end = segment.file_offset.saturating_add(segment.file_size);
            (first_page(segment)..end).contains(&file_offset)
        };
        let bias = |segment: &Segment| {
            let into = file_offset.wrapping_sub(segment.file_offset);
            at.wrapping_sub(segment.address.0.wrapping_add(into))
        };
        // The last page of one segment and the first of the next may be one page of the file.
        let mismatch = |segment: &&Segment| {
            (
                mapping
                    .bias_before
                    .is_some_and(|known| known != bias(segment)),
                first_page(segment) != file_offset,
                segment.is_writable != mapping.is_writable
                    || segment.is_executable != mapping.is_executable,
            )
        };
        let candidates = self.elf.segments.iter().filter(holds);
        candidates.min_by_key(mismatch).map(bias)
    }

    /// The call frame information, indexed on first use.
    pub fn call_frames(&self) -> &CallFrames {
        self.frames.get_or_init(|| CallFrames::read(&self.elf))
    }

    /// Everything known about a code address; computed once per address.
    pub fn place_of(&self, address: LinkAddr) -> Arc<CodePlace> {
        let lock = || self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = lock().get(&address) {
            return Arc::clone(place);
        }
        let place = Arc::new(self.compute_place(address));
        lock().insert(address, Arc::clone(&place));
        place
    }

    fn compute_place(&self, address: LinkAddr) -> CodePlace {
        let symbol = self.symbols.function_at(address).map(|symbol| {
            let name = Arc::from(&*symbol.name);
            (name, address.0 - symbol.address.0)
        });
        let debug = self.debug_info();
        CodePlace {
            symbol,
            scopes: debug.map_or_else(Vec::new, |debug| debug.scopes_at(address)),
            line: debug.and_then(|debug| debug.line_at(address)),
        }
    }
}

impl CodePlace {
    /// The name of the innermost function for people.
    pub fn function(&self) -> Option<String> {
        match (self.scopes.first(), &self.symbol) {
            (Some(scope), _) => Some(scope.name.to_string()),
            (None, Some((name, _))) => Some(demangle(name).into_owned()),
            (None, None) => None,
        }
    }
}

fn has_section(elf: &Elf, name: &str) -> bool {
    let found = elf.sections().section_by_name(LE, name.as_bytes());
    found.is_some_and(|(_, section)| section.sh_type.get(LE) != elf::SHT_NOBITS)
}

/// By build-id first, as debuggers do; then by link name.
fn separate_debug_file(elf: &mut Elf, fetch: FetchDebugFile<'_>) -> Option<Elf> {
    if let Some(id) = elf.build_id.clone()
        && let Some(bytes) = fetch(&DebugRequest::BuildId(id.clone()))
    {
        match Elf::parse(bytes.into()) {
            Ok(debug) if debug.build_id.as_ref() == Some(&id) => return Some(debug),
            _ => elf.note(Part::DebugFile, Reason::WrongFile),
        }
    }
    let request = match elf.section(".gnu_debuglink") {
        Ok(section) => DebugRequest::from_link(section?.1.as_slice())?,
        Err(reason) => {
            elf.note(Part::DebugLink, reason);
            return None;
        }
    };
    let bytes = fetch(&request)?;
    let DebugRequest::Link { crc, .. } = request else {
        return None;
    };
    if crc32(&bytes) != crc {
        elf.note(Part::DebugFile, Reason::WrongFile);
        return None;
    }
    Elf::parse(bytes.into()).ok()
}

/// Where the debug information of a module is.
fn debug_files(elf: &Elf, separate: Option<Elf>, fetch: FetchDebugFile<'_>) -> Option<Debug> {
    let source = separate.as_ref().unwrap_or(elf);
    if !has_section(source, ".debug_info") {
        return None;
    }
    let shared = shared_debug_file(source, fetch);
    Some(Debug {
        separate,
        shared,
        info: OnceLock::new(),
    })
}

fn shared_debug_file(elf: &Elf, fetch: FetchDebugFile<'_>) -> Option<Elf> {
    let (_, section) = elf.section(".gnu_debugaltlink").ok()??;
    let request = DebugRequest::from_shared_link(section.as_slice())?;
    let shared = Elf::parse_any_type(fetch(&request)?.into()).ok()?;
    let DebugRequest::Shared { build_id, .. } = request else {
        return None;
    };
    (shared.build_id == Some(build_id)).then_some(shared)
}

fn read_all_symbols(elf: &mut Elf, debug_elf: Option<&Elf>, slots: &Slots) -> SymbolTable {
    let mut symbols = Vec::new();
    let tables = [
        (elf::SHT_SYMTAB, Part::Symbols),
        (elf::SHT_DYNSYM, Part::DynamicSymbols),
    ];
    let mut errors = Vec::new();
    for (kind, part) in tables {
        if let Err(source) = read_symbols(elf, kind, &mut symbols) {
            errors.push((part, source));
        }
    }
    if let Some(debug) = debug_elf
        && let Err(source) = read_symbols(debug, elf::SHT_SYMTAB, &mut symbols)
    {
        errors.push((Part::DebugFile, source));
    }
    for (part, source) in errors {
        elf.note(part, source);
    }
    let resolvers = resolver_names(slots, &symbols);
    let stubs = slots.stubs(elf, |resolver| resolvers.get(&resolver).cloned());
    symbols.extend(stubs);
    let ends = section_ends(&elf.sections());
    SymbolTable::new(symbols, |address| {
        let next = ends.partition_point(|range| range.end <= address.0);
        ends.get(next).map_or(address.0, |range| range.end)
    })
}

/// The best name of each function that a relocation uses as a resolver.
fn resolver_names(slots: &Slots, symbols: &[Symbol]) -> BTreeMap<LinkAddr, String> {
    let resolvers: BTreeSet<LinkAddr> = slots
        .by_address
        .values()
        .filter_map(|target| match target {
            SlotTarget::Resolver(at) => Some(*at),
            SlotTarget::Name(_) | SlotTarget::Own(_) => None,
        })
        .collect();
    let mut best: BTreeMap<LinkAddr, &Symbol> = BTreeMap::new();
    let order = |s: &Symbol| {
        (
            s.kind != SymbolKind::IndirectFunction,
            s.binding,
            s.name.starts_with('_'),
            s.name.clone(),
        )
    };
    for symbol in symbols.iter().filter(|s| resolvers.contains(&s.address)) {
        let entry = best.entry(symbol.address).or_insert(symbol);
        if order(symbol) < order(entry) {
            *entry = symbol;
        }
    }
    best.iter()
        .map(|(&at, symbol)| (at, symbol.name.to_string()))
        .collect()
}

/// Sections that are in memory, by ascending end.
fn section_ends(sections: &Sections<'_>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = sections
        .iter()
        .filter(|section| section.sh_flags.get(LE) & u64::from(elf::SHF_ALLOC) != 0)
        .map(|section| {
            let start = section.sh_addr.get(LE);
            start..start.saturating_add(section.sh_size.get(LE))
        })
        .collect();
    ranges.sort_by_key(|range| (range.end, range.start));
    ranges
}

fn read_symbols(elf: &Elf, kind: u32, into: &mut Vec<Symbol>) -> Result<(), object::read::Error> {
    let sections = elf.sections();
    let table = sections.symbols(LE, &*elf.bytes, kind)?;
    let versions = match kind {
        elf::SHT_DYNSYM => sections.versions(LE, &*elf.bytes)?,
        _ => None,
    };
    for (index, raw) in table.enumerate() {
        into.extend(read_symbol(
            &sections,
            &table,
            versions.as_ref(),
            (index, raw),
        ));
    }
    Ok(())
}

fn read_symbol(
    sections: &Sections<'_>,
    table: &ElfSymbols<'_, FileHeader64<LE>>,
    versions: Option<&VersionTable<'_, FileHeader64<LE>>>,
    (index, raw): (SymbolIndex, &elf::Sym64<LE>),
) -> Option<Symbol> {
    if raw.is_undefined(LE) {
        return None;
    }
    let text = String::from_utf8_lossy(table.symbol_name(LE, raw).ok()?);
    if text.is_empty() {
        return None;
    }
    let kind = symbol_kind(sections, table, index, raw)?;
    let (name, mut version) = match split_version(&text) {
        Some((base, version)) => (base.into(), Some(version)),
        None => (Box::from(&*text), None),
    };
    if let Some(versions) = versions {
        version = symbol_version(versions, index).or(version);
    }
    Some(Symbol {
        name,
        version,
        address: LinkAddr(raw.st_value(LE)),
        size: raw.st_size(LE),
        kind,
        binding: match raw.st_bind() {
            elf::STB_LOCAL => Binding::Local,
            elf::STB_WEAK => Binding::Weak,
            _ => Binding::Global,
        },
    })
}

fn symbol_kind(
    sections: &Sections<'_>,
    table: &ElfSymbols<'_, FileHeader64<LE>>,
    index: SymbolIndex,
    raw: &elf::Sym64<LE>,
) -> Option<SymbolKind> {
    match raw.st_type() {
        elf::STT_FUNC => Some(SymbolKind::Function),
        elf::STT_GNU_IFUNC => Some(SymbolKind::IndirectFunction),
        elf::STT_OBJECT | elf::STT_COMMON => Some(SymbolKind::Object),
        elf::STT_TLS => Some(SymbolKind::ThreadLocal),
        elf::STT_NOTYPE => {
            let section = table.symbol_section(LE, raw, index).ok().flatten();
            let section = section.and_then(|index| sections.section(index).ok());
            Some(if section.is_some_and(section_is_code) {
                SymbolKind::Label
            } else {
                SymbolKind::Marker
            })
        }
        _ => None,
    }
}

fn symbol_version(
    versions: &VersionTable<'_, FileHeader64<LE>>,
    index: SymbolIndex,
) -> Option<Version> {
    let version_index = versions.version_index(LE, index);
    let version = versions.version(version_index).ok()??;
    Some(Version {
        name: String::from_utf8_lossy(version.name()).into(),
        is_default: !version_index.is_hidden(),
    })
}

fn own_pointers(slots: &Slots) -> Vec<(LinkAddr, LinkAddr)> {
    let own = |(place, target): (&LinkAddr, &SlotTarget)| match target {
        SlotTarget::Own(address) => Some((*place, *address)),
        SlotTarget::Name(_) | SlotTarget::Resolver(_) => None,
    };
    slots.by_address.iter().filter_map(own).collect()
}

fn imports(slots: &Slots, symbols: &SymbolTable) -> Vec<Import> {
    let name = |target: &SlotTarget| match target {
        SlotTarget::Name(name) => Some(name.clone()),
        SlotTarget::Own(_) => None,
        SlotTarget::Resolver(at) => symbols.starting_at(*at).first().map(|s| s.name.to_string()),
    };
    let import = |(slot, target): (&LinkAddr, &SlotTarget)| {
        name(target).map(|name| Import { slot: *slot, name })
    };
    slots.by_address.iter().filter_map(import).collect()
}
