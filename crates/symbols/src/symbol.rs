//! Symbols of one file or of a kernel, by address and by name.

use std::cmp::Reverse;
use std::fmt;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::demangle::{demangle, path_of};
use crate::elf::LinkAddr;
use crate::flat::{Flat, Span};

/// What a symbol names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SymbolKind {
    Function,
    /// A resolver that returns the address of the function to use (`STT_GNU_IFUNC`).
    IndirectFunction,
    /// A stub that jumps to an imported function.
    Plt,
    /// A name without type in an executable section, as assembly code has.
    Label,
    Object,
    ThreadLocal,
    /// A name without type outside code, such as `_end`.
    Marker,
}

impl SymbolKind {
    /// Whether the symbol names instructions.
    pub fn is_code(self) -> bool {
        matches!(
            self,
            Self::Function | Self::IndirectFunction | Self::Plt | Self::Label
        )
    }
}

/// Who sees the symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Binding {
    Global,
    Weak,
    Local,
}

/// The version of a dynamic symbol: `@@GLIBC_2.34` is the default one, `@GLIBC_2.2.5` an old one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    pub name: Box<str>,
    pub is_default: bool,
}

/// One defined symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// As the linker knows it, without the version.
    pub name: Box<str>,
    pub version: Option<Version>,
    pub address: LinkAddr,
    /// Zero when the file does not say.
    pub size: u64,
    pub kind: SymbolKind,
    pub binding: Binding,
}

impl Symbol {
    /// The name for people.
    pub fn demangled(&self) -> std::borrow::Cow<'_, str> {
        demangle(&self.name)
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.version {
            Some(version) if version.is_default => write!(f, "@@{}", version.name),
            Some(version) => write!(f, "@{}", version.name),
            None => Ok(()),
        }
    }
}

/// The symbols of one file; answers do not depend on the order in which the file lists them.
#[derive(Debug)]
pub struct SymbolTable {
    /// Invariant: sorted by address, then by how good the name is, best first; no two entries are equal.
    symbols: Vec<Symbol>,
    code: Flat<u32>,
    /// Names without type: they answer only where no function does.
    labels: Flat<u32>,
    data: Flat<u32>,
    by_name: FxHashMap<Box<str>, Vec<u32>>,
    /// Built on the first question by readable name.
    by_path: OnceLock<FxHashMap<String, Vec<u32>>>,
}

impl SymbolTable {
    /// `end_of` bounds a symbol without size at the end of its section or mapping.
    pub(crate) fn new(mut symbols: Vec<Symbol>, end_of: impl Fn(LinkAddr) -> u64) -> Self {
        symbols.sort_by(|a, b| rank(a).cmp(&rank(b)));
        symbols.dedup_by(|later, first| merge(first, later));
        // An index is 32 bits wide; no linker makes more symbols than that.
        symbols.truncate(to_index(usize::MAX) as usize);
        let mut by_name: FxHashMap<Box<str>, Vec<u32>> = FxHashMap::default();
        for (index, symbol) in symbols.iter().enumerate() {
            by_name
                .entry(symbol.name.clone())
                .or_default()
                .push(to_index(index));
        }
        let code = flatten(&symbols, &end_of, |kind| {
            kind.is_code() && kind != SymbolKind::Label
        });
        let labels = flatten(&symbols, &end_of, |kind| kind == SymbolKind::Label);
        let data = flatten(&symbols, &end_of, |kind| kind == SymbolKind::Object);
        Self {
            symbols,
            code,
            labels,
            data,
            by_name,
            by_path: OnceLock::new(),
        }
    }

    /// All symbols by ascending address; of those at one address, the best name first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Symbol> {
        self.symbols.iter()
    }

    /// The function, stub or label that contains an address, under its best name.
    pub fn function_at(&self, address: LinkAddr) -> Option<&Symbol> {
        let found = self
            .code
            .at(address.0)
            .or_else(|| self.labels.at(address.0));
        found.map(|index| self.at_index(index))
    }

    /// The data object that contains an address.
    pub fn object_at(&self, address: LinkAddr) -> Option<&Symbol> {
        self.data.at(address.0).map(|index| self.at_index(index))
    }

    /// All symbols that begin exactly here: a function and its aliases.
    pub fn starting_at(&self, address: LinkAddr) -> &[Symbol] {
        let from = self.symbols.partition_point(|s| s.address < address);
        let to = self.symbols.partition_point(|s| s.address <= address);
        &self.symbols[from..to]
    }

    /// All symbols with this linker name: `name` in any version, or `name@VERSION`, or `name@plt`.
    pub fn by_name(&self, name: &str) -> Vec<&Symbol> {
        let found = self.indices(name);
        if !found.is_empty() {
            return found.iter().map(|&index| self.at_index(index)).collect();
        }
        let Some((base, version)) = split_version(name) else {
            return Vec::new();
        };
        let has_version = |symbol: &&Symbol| symbol.version.as_ref() == Some(&version);
        let is_any = |symbol: &&Symbol| {
            // `name@V` is what people write for the default version as well.
            let same = |own: &Version| own.name == version.name && !version.is_default;
            symbol.version.as_ref().is_some_and(same)
        };
        self.indices(base)
            .iter()
            .map(|&index| self.at_index(index))
            .filter(|symbol| has_version(symbol) || is_any(symbol))
            .collect()
    }

    /// All functions with this readable path, such as `std::mutex::lock`, whatever their arguments.
    pub fn by_path(&self, path: &str) -> Vec<&Symbol> {
        let index = self.by_path.get_or_init(|| self.index_paths());
        let found = index.get(path).map_or(&[][..], Vec::as_slice);
        found.iter().map(|&index| self.at_index(index)).collect()
    }

    fn index_paths(&self) -> FxHashMap<String, Vec<u32>> {
        let mut index: FxHashMap<String, Vec<u32>> = FxHashMap::default();
        for (at, symbol) in self.symbols.iter().enumerate() {
            if symbol.kind.is_code() {
                let path = path_of(&symbol.demangled());
                index.entry(path).or_default().push(to_index(at));
            }
        }
        index
    }

    fn indices(&self, name: &str) -> &[u32] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    fn at_index(&self, index: u32) -> &Symbol {
        &self.symbols[index as usize]
    }
}

/// Splits `name@@VERSION` and `name@VERSION`; a stub's `name@plt` is not a version.
pub(crate) fn split_version(name: &str) -> Option<(&str, Version)> {
    let (base, version) = name.split_once('@')?;
    let (version, is_default) = match version.strip_prefix('@') {
        Some(version) => (version, true),
        None => (version, false),
    };
    let is_version = !base.is_empty() && !version.is_empty() && version != "plt";
    is_version.then(|| {
        let name = version.into();
        (base, Version { name, is_default })
    })
}

fn to_index(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Sorts symbols by address and, at one address, the name that people know before its aliases.
fn rank(symbol: &Symbol) -> impl Ord + '_ {
    // Mangled names begin with an underscore too, but those are the true names.
    let is_mangled = symbol.name.starts_with("_Z") || symbol.name.starts_with("_R");
    let underscores = symbol.name.chars().take_while(|&c| c == '_' && !is_mangled);
    (
        symbol.address,
        symbol.kind,
        (symbol.size == 0, symbol.binding),
        (symbol.name.contains('.'), underscores.count()),
        (&symbol.name, symbol.size),
        symbol
            .version
            .as_ref()
            .map(|v| (Reverse(v.is_default), &v.name)),
    )
}

/// Whether `later` says nothing that `first` does not; a version known from only one of them is kept.
fn merge(first: &mut Symbol, later: &mut Symbol) -> bool {
    let same = first.name == later.name
        && first.address == later.address
        && first.kind == later.kind
        && first.size == later.size;
    if !same {
        return false;
    }
    match (&first.version, &later.version) {
        (Some(own), Some(other)) => own == other,
        (None, Some(_)) => {
            first.version = later.version.take();
            true
        }
        (_, None) => true,
    }
}

fn flatten(
    symbols: &[Symbol],
    end_of: &impl Fn(LinkAddr) -> u64,
    wanted: impl Fn(SymbolKind) -> bool,
) -> Flat<u32> {
    let mut spans = Vec::new();
    let (mut current, mut next) = (u64::MAX, u64::MAX);
    // Backwards: of equal spans the last one, which is the best name, wins.
    for (index, symbol) in symbols.iter().enumerate().rev() {
        if !wanted(symbol.kind) {
            continue;
        }
        let start = symbol.address.0;
        if start != current {
            (current, next) = (start, current);
        }
        let end = match symbol.size {
            0 => end_of(symbol.address).min(next),
            size => start.saturating_add(size),
        };
        spans.push(Span {
            start,
            end,
            depth: 0,
            value: to_index(index),
        });
    }
    Flat::new(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &str, address: u64, size: u64, kind: SymbolKind) -> Symbol {
        Symbol {
            name: name.into(),
            version: None,
            address: LinkAddr(address),
            size,
            kind,
            binding: Binding::Global,
        }
    }

    fn at(table: &SymbolTable, address: u64) -> Option<&str> {
        table.function_at(LinkAddr(address)).map(|s| &*s.name)
    }

    #[test]
    fn sizes_bound_functions_and_gaps_have_no_name() {
        let f = symbol("f", 0x10, 4, SymbolKind::Function);
        let g = symbol("g", 0x20, 0, SymbolKind::Function);
        let table = SymbolTable::new(vec![g, f], |_| 0x30);
        let names: Vec<_> = [0x0f, 0x10, 0x13, 0x14, 0x20, 0x2f, 0x30]
            .map(|a| at(&table, a))
            .into();
        assert_eq!(
            names,
            [None, Some("f"), Some("f"), None, Some("g"), Some("g"), None]
        );
    }

    #[test]
    fn aliases_answer_with_the_plain_name_and_are_all_listed() {
        let names = ["__lock", "lock", "___lock"];
        let table = SymbolTable::new(
            names
                .map(|name| symbol(name, 8, 8, SymbolKind::Function))
                .to_vec(),
            |_| 0,
        );
        assert_eq!(at(&table, 9), Some("lock"));
        let all: Vec<_> = table
            .starting_at(LinkAddr(8))
            .iter()
            .map(|s| &*s.name)
            .collect();
        assert_eq!(all, ["lock", "__lock", "___lock"]);
    }

    #[test]
    fn labels_inside_a_function_do_not_hide_it() {
        let table = SymbolTable::new(
            vec![
                symbol("f", 0, 16, SymbolKind::Function),
                symbol("inner", 4, 0, SymbolKind::Label),
                symbol("outer", 20, 0, SymbolKind::Label),
            ],
            |_| 32,
        );
        assert_eq!([5, 21].map(|a| at(&table, a)), [Some("f"), Some("outer")]);
    }

    #[test]
    fn versions_select_and_default_versions_answer_to_one_at_sign() {
        let mut old = symbol("f", 0, 4, SymbolKind::Function);
        old.version = split_version("f@V1").map(|(_, version)| version);
        let mut new = symbol("f", 8, 4, SymbolKind::Function);
        new.version = split_version("f@@V2").map(|(_, version)| version);
        let table = SymbolTable::new(vec![old, new], |_| 0);
        let addresses =
            |name: &str| -> Vec<u64> { table.by_name(name).iter().map(|s| s.address.0).collect() };
        assert_eq!(addresses("f"), [0, 8]);
        assert_eq!(addresses("f@V1"), [0]);
        assert_eq!(addresses("f@V2"), [8]);
        assert_eq!(addresses("f@@V2"), [8]);
        assert_eq!(addresses("f@@V1"), [0; 0]);
        assert_eq!(addresses("g"), [0; 0]);
    }

    #[test]
    fn the_same_symbol_of_two_tables_is_one_and_keeps_its_version() {
        let plain = symbol("f", 0, 4, SymbolKind::Function);
        let mut versioned = plain.clone();
        versioned.version = split_version("f@@V").map(|(_, version)| version);
        let table = SymbolTable::new(vec![versioned, plain], |_| 0);
        assert_eq!(
            table.iter().map(Symbol::to_string).collect::<Vec<_>>(),
            ["f@@V"]
        );
    }
}
