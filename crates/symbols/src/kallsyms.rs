//! A kernel's own symbol list: `/proc/kallsyms` and `System.map`, and the table in its image.

mod image;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::elf::LinkAddr;
use crate::symbol::{Binding, Symbol, SymbolKind, SymbolTable};
pub use image::system_map;

/// Why a line of the list is not a symbol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KallsymsError {
    #[error("line {line}: expected `ADDRESS TYPE NAME [MODULE]`, found {text:?}")]
    Malformed { line: usize, text: String },
    #[error(
        "all {symbols} addresses are zero: read the list as root or with kernel.kptr_restrict=0"
    )]
    Hidden { symbols: usize },
    #[error("the list is empty")]
    Empty,
}

/// The symbols of a running kernel and its modules, at their run-time addresses.
#[derive(Debug)]
pub struct KernelSymbols {
    /// Link addresses are run-time addresses here.
    symbols: SymbolTable,
    /// Start addresses of symbols that belong to a module.
    module_at: BTreeMap<LinkAddr, Arc<str>>,
}

/// An absolute symbol below is a per-CPU variable, whose address is the offset in each processor's copy.
pub(crate) const PER_CPU_MAX: u64 = 1 << 24;

/// The longest stretch of code that a last function without size may claim.
const LAST_FUNCTION_MAX: u64 = 1 << 16;

impl KernelSymbols {
    /// Parses the whole text; both formats have the same columns.
    pub fn parse(text: &str) -> Result<Self, KallsymsError> {
        let mut symbols = Vec::new();
        let mut module_at = BTreeMap::new();
        let mut names: BTreeMap<&str, Arc<str>> = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let malformed = || KallsymsError::Malformed {
                line: index + 1,
                text: line.chars().take(80).collect(),
            };
            let (symbol, module) = parse_line(line).ok_or_else(malformed)?;
            if let Some(module) = module {
                let name = names.entry(module).or_insert_with(|| Arc::from(module));
                module_at.insert(symbol.address, Arc::clone(name));
            }
            symbols.push(symbol);
        }
        if symbols.is_empty() {
            return Err(KallsymsError::Empty);
        }
        if symbols.iter().all(|symbol| symbol.address.0 == 0) {
            return Err(KallsymsError::Hidden {
                symbols: symbols.len(),
            });
        }
        // Per-CPU offsets and zeroed entries are not addresses of code.
        symbols.retain(|symbol| symbol.address.0 != 0);
        Ok(Self {
            symbols: SymbolTable::new(symbols, |at| at.0.saturating_add(LAST_FUNCTION_MAX)),
            module_at,
        })
    }

    pub fn symbols(&self) -> &SymbolTable {
        &self.symbols
    }

    /// The loadable module that a symbol belongs to; `None` for the kernel proper.
    pub fn module_of(&self, symbol: &Symbol) -> Option<&Arc<str>> {
        self.module_at.get(&symbol.address)
    }
}

fn parse_line(line: &str) -> Option<(Symbol, Option<&str>)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let mut letters = words.next()?.chars();
    let letter = letters.next().filter(|_| letters.next().is_none())?;
    let name = words.next()?;
    let module = match words.next() {
        Some(word) => Some(word.strip_prefix('[')?.strip_suffix(']')?),
        None => None,
    };
    if words.next().is_some() {
        return None;
    }
    let (kind, binding) = match classify(letter)? {
        (SymbolKind::Marker, binding) if address < PER_CPU_MAX => (SymbolKind::Object, binding),
        known => known,
    };
    let symbol = Symbol {
        name: name.into(),
        version: None,
        address: LinkAddr(address),
        size: 0,
        kind,
        binding,
    };
    Some((symbol, module))
}

/// The letters of `nm(1)`.
fn classify(letter: char) -> Option<(SymbolKind, Binding)> {
    let binding = match letter {
        'W' | 'w' | 'V' | 'v' => Binding::Weak,
        upper if upper.is_ascii_uppercase() => Binding::Global,
        _ => Binding::Local,
    };
    let kind = match letter.to_ascii_lowercase() {
        't' | 'w' => SymbolKind::Function,
        'i' => SymbolKind::IndirectFunction,
        'd' | 'b' | 'r' | 'g' | 's' | 'c' | 'v' | 'u' => SymbolKind::Object,
        'a' | 'n' | 'p' | '?' => SymbolKind::Marker,
        _ => return None,
    };
    Some((kind, binding))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
0000000000000000 A fixed_percpu_data
0000000000030a40 A runqueues
ffffffff81000000 T _stext
ffffffff81000000 T startup_64
ffffffff81000040 t do_one_thing
ffffffff82000000 D jiffies
ffffffffc0000000 t ext4_read\t[ext4]
ffffffffc0000100 t ext4_write\t[ext4]
";

    fn name_at(kernel: &KernelSymbols, at: u64) -> Option<String> {
        let symbol = kernel.symbols().function_at(LinkAddr(at))?;
        Some(symbol.name.to_string())
    }

    #[test]
    fn functions_reach_to_the_next_one() {
        let kernel = KernelSymbols::parse(LIST).unwrap();
        assert_eq!(
            name_at(&kernel, 0xffff_ffff_8100_003f).as_deref(),
            Some("startup_64")
        );
        assert_eq!(
            name_at(&kernel, 0xffff_ffff_8100_0041).as_deref(),
            Some("do_one_thing")
        );
        assert_eq!(name_at(&kernel, 0xffff_ffff_8000_0000), None);
        assert_eq!(name_at(&kernel, 0xffff_ffff_c001_0100), None);
    }

    #[test]
    fn modules_and_data_are_told_apart() {
        let kernel = KernelSymbols::parse(LIST).unwrap();
        let of = |name: &str| {
            let symbol = kernel.symbols().by_name(name)[0];
            kernel.module_of(symbol).map(|module| module.to_string())
        };
        assert_eq!(of("ext4_write").as_deref(), Some("ext4"));
        assert_eq!(of("do_one_thing"), None);
        let object = kernel.symbols().object_at(LinkAddr(0xffff_ffff_8200_0004));
        assert_eq!(object.map(|symbol| &*symbol.name), Some("jiffies"));
        let per_cpu = kernel.symbols().object_at(LinkAddr(0x3_0a50));
        assert_eq!(per_cpu.map(|symbol| &*symbol.name), Some("runqueues"));
    }

    #[test]
    fn bad_lists_are_refused_with_the_line() {
        let line_two = KernelSymbols::parse("ffffffff81000000 T a\nnonsense\n");
        assert_eq!(
            line_two.err().map(|error| error.to_string()).as_deref(),
            Some("line 2: expected `ADDRESS TYPE NAME [MODULE]`, found \"nonsense\"")
        );
        let hidden = KernelSymbols::parse("0000000000000000 T a\n0000000000000000 t b\n");
        assert_eq!(hidden.err(), Some(KallsymsError::Hidden { symbols: 2 }));
        assert_eq!(KernelSymbols::parse("\n").err(), Some(KallsymsError::Empty));
        for bad in ["1 TT a", "1 T", "1 T a [m", "1 T a [m] x", "g T a", "1 Q a"] {
            assert!(KernelSymbols::parse(bad).is_err(), "{bad}");
        }
    }
}
