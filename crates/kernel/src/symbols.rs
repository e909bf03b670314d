//! Names of the kernel's functions: from System.map or the symbol table of a vmlinux, and from modules' files.

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use raddle_symbols::{KernelSymbols, LinkAddr};

use crate::world::GuestInfo;

/// A function and how far into it an address lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub function: String,
    pub offset: u64,
    /// Loadable module, if it is one's.
    pub module: Option<String>,
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}+{:#x}", self.function, self.offset)?;
        match &self.module {
            Some(module) => write!(f, " [{module}]"),
            None => Ok(()),
        }
    }
}

/// The functions of one module's text.
#[derive(Debug, Clone)]
struct ModuleText {
    name: String,
    base: u64,
    size: u64,
    /// Start and name, ascending.
    functions: Vec<(u64, String)>,
}

/// All names of a guest.
#[derive(Debug, Default)]
pub struct Symbols {
    kernel: Option<KernelSymbols>,
    modules: Vec<ModuleText>,
}

impl Symbols {
    /// From the text of a System.map, if there is one.
    pub fn new(system_map: Option<&str>) -> Self {
        Self {
            kernel: system_map.and_then(|text| KernelSymbols::parse(text).ok()),
            modules: Vec::new(),
        }
    }

    /// From the table that a kernel carries for its own messages.
    pub fn from_image(image: &[u8]) -> Self {
        Self::new(raddle_symbols::kallsyms::system_map(image).as_deref())
    }

    /// From a vmlinux that still has its symbols.
    pub fn from_elf(elf: &[u8]) -> Option<Self> {
        let file = object::File::parse(elf).ok()?;
        let mut lines: Vec<String> = file
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() != 0)
            .filter_map(|symbol| {
                Some(format!(
                    "{:016x} t {}",
                    symbol.address(),
                    symbol.name().ok()?
                ))
            })
            .collect();
        lines.sort_unstable();
        (!lines.is_empty()).then(|| Self::new(Some(&lines.join("\n"))))
    }

    pub fn has_kernel(&self) -> bool {
        self.kernel.is_some()
    }

    /// Adds the names of a module's file, where the guest says it was loaded.
    pub fn add_module(&mut self, file: &[u8], info: &GuestInfo) {
        let Some(name) = crate::module::name(file) else {
            return;
        };
        let Ok(file) = object::File::parse(file) else {
            return;
        };
        let (Some(base), Some(text)) = (info.modules.get(&name), file.section_by_name(".text"))
        else {
            return;
        };
        let mut functions: Vec<(u64, String)> = file
            .symbols()
            .filter(|symbol| {
                symbol.kind() == SymbolKind::Text && symbol.section_index() == Some(text.index())
            })
            .filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?.to_owned())))
            .collect();
        functions.sort();
        self.modules.push(ModuleText {
            name,
            base: *base,
            size: text.size(),
            functions,
        });
    }

    /// The function at an address of the kernel.
    pub fn name(&self, pc: u64) -> Option<Named> {
        for module in &self.modules {
            if (module.base..module.base + module.size).contains(&pc) {
                let offset = pc - module.base;
                let index = module
                    .functions
                    .partition_point(|(start, _)| *start <= offset);
                let (start, function) = module.functions.get(index.checked_sub(1)?)?;
                return Some(Named {
                    function: function.clone(),
                    offset: offset - start,
                    module: Some(module.name.clone()),
                });
            }
        }
        let symbol = self.kernel.as_ref()?.symbols().function_at(LinkAddr(pc))?;
        Some(Named {
            function: symbol.name.to_string(),
            offset: pc - symbol.address.0,
            module: None,
        })
    }

    /// The name, or the bare address.
    pub fn show(&self, pc: u64) -> String {
        self.name(pc)
            .map_or_else(|| format!("{pc:#x}"), |named| named.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_functions() {
        let map =
            "ffffffff81000000 T _stext\nffffffff81000100 t do_work\nffffffff81000200 T done\n";
        let symbols = Symbols::new(Some(map));
        assert_eq!(symbols.show(0xffff_ffff_8100_0123), "do_work+0x23");
        assert_eq!(symbols.show(0x10), "0x10");
        assert!(!Symbols::new(None).has_kernel());
    }
}
