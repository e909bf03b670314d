//! Names of the kernel's functions and variables: from System.map or the symbol table of a vmlinux, and from modules'
//! files; and source lines, where such a file has debug information.

use std::collections::BTreeMap;
use std::ops::Range;

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use raddle_campaign::Focus;
use raddle_symbols::dwarf::LinePlace;
use raddle_symbols::{Btf, CodeSection, KernelSymbols, LinkAddr, LockPart, Module};

use crate::world::KERNEL_HALF;

/// Where the per-CPU variables end that have names.
const PER_CPU_END: &str = "__per_cpu_end";

/// Bytes of the last function of a section, whose end nothing tells.
const LAST_BYTES: u64 = 4096;

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
#[derive(Debug)]
struct ModuleText {
    name: String,
    base: u64,
    size: u64,
    /// Start and name, ascending.
    functions: Vec<(u64, String)>,
    /// The file at its place in the guest, if it has debug information.
    debug: Option<Module>,
}

/// All names of a guest.
#[derive(Debug, Default)]
pub struct Symbols {
    kernel: Option<KernelSymbols>,
    /// The kernel's file, if it has debug information.
    debug: Option<Module>,
    /// Types of per-CPU variables.
    types: Option<Btf>,
    modules: Vec<ModuleText>,
}

impl Symbols {
    /// From the text of a System.map, if there is one.
    pub fn new(system_map: Option<&str>) -> Self {
        Self {
            kernel: system_map.and_then(|text| KernelSymbols::parse(text).ok()),
            ..Self::default()
        }
    }

    /// From the table that a kernel carries for its own messages.
    pub fn from_image(image: &[u8]) -> Self {
        Self::new(raddle_symbols::kallsyms::system_map(image).as_deref())
    }

    /// From a vmlinux that still has its symbols, with its debug information.
    pub fn from_elf(elf: &[u8]) -> Option<Self> {
        let file = object::File::parse(elf).ok()?;
        let mut lines: Vec<String> = file
            .symbols()
            .filter(|symbol| symbol.address() != 0)
            .filter_map(|symbol| {
                let letter = match symbol.kind() {
                    SymbolKind::Text => 't',
                    SymbolKind::Data => 'd',
                    _ => return None,
                };
                let name = symbol.name().ok()?;
                Some(format!("{:016x} {letter} {name}", symbol.address()))
            })
            .collect();
        lines.sort_unstable();
        (!lines.is_empty()).then(|| Self {
            debug: with_lines(elf),
            ..Self::new(Some(&lines.join("\n")))
        })
    }

    /// With the types that the kernel's file has for BPF programs.
    pub fn with_types_of(mut self, elf: &[u8]) -> Self {
        let file = object::File::parse(elf).ok();
        let section = file.as_ref().and_then(|file| file.section_by_name(".BTF"));
        self.types = section.and_then(|section| Btf::parse(section.data().ok()?));
        self
    }

    pub fn has_kernel(&self) -> bool {
        self.kernel.is_some()
    }

    /// Adds the names of a module's file, if it is one of those that are loaded, with the address of their text.
    pub fn add_module(&mut self, file: &[u8], loaded: &BTreeMap<String, u64>) {
        let Some(name) = crate::module::name(file) else {
            return;
        };
        let content = file;
        let Ok(file) = object::File::parse(content) else {
            return;
        };
        let (Some(base), Some(text)) = (loaded.get(&name), file.section_by_name(".text")) else {
            return;
        };
        let placed = raddle_symbols::executable_at(content, *base);
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
            debug: placed.and_then(|placed| with_lines(&placed)),
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

    /// Where the kernel's functions of this name begin.
    pub fn functions_named(&self, name: &str) -> Vec<u64> {
        let table = self.kernel.as_ref().map(|kernel| kernel.symbols());
        let found = table.map_or_else(Vec::new, |table| table.by_name(name));
        let code = found.into_iter().filter(|symbol| symbol.kind.is_code());
        code.map(|symbol| symbol.address.0).collect()
    }

    /// The source line of an address of the kernel, if debug information tells.
    pub fn line(&self, pc: u64) -> Option<LinePlace> {
        let modules = self
            .modules
            .iter()
            .filter_map(|module| module.debug.as_ref());
        let mut files = modules.chain(&self.debug);
        files.find_map(|file| file.debug_info()?.line_at(LinkAddr(pc)))
    }

    /// The code of a function, which reaches to the next one, or of a line, if debug information tells.
    pub fn code_of(&self, place: &Focus) -> Vec<Range<u64>> {
        match place {
            Focus::Function(name) => {
                let sections = self.code();
                let functions = sections.iter().flat_map(|section| {
                    let starts = section.functions.iter().map(|(start, _)| *start);
                    let last = section.functions.last();
                    let end = last.map_or(0, |(start, _)| start.saturating_add(LAST_BYTES));
                    section.functions.iter().zip(starts.skip(1).chain([end]))
                });
                let wanted = functions.filter(|((_, known), _)| known == name);
                wanted.map(|((start, _), end)| *start..end).collect()
            }
            Focus::Line { file, line } => {
                let modules = self.modules.iter().filter_map(|m| m.debug.as_ref());
                let known = modules.chain(&self.debug);
                known
                    .filter_map(|module| module.debug_info())
                    .flat_map(|debug| debug.addresses_of_line(file, *line).ranges)
                    .map(|range| range.start.0..range.end.0)
                    .collect()
            }
        }
    }

    /// All functions: of the kernel, then of each module, with the name of the section they are in.
    pub fn code(&self) -> Vec<CodeSection> {
        let kernel = self.kernel.iter().map(|kernel| CodeSection {
            name: ".text".to_owned(),
            functions: (kernel.symbols().iter())
                .filter(|symbol| symbol.kind.is_code())
                .map(|symbol| (symbol.address.0, symbol.name.to_string()))
                .collect(),
        });
        let modules = self.modules.iter().map(|module| CodeSection {
            name: format!(".text.{}", module.name),
            functions: (module.functions.iter())
                .map(|(start, name)| (module.base + start, name.clone()))
                .collect(),
        });
        kernel.chain(modules).collect()
    }

    /// Variables of the kernel that exist once, as far as it carries their names.
    pub fn data(&self) -> Vec<(u64, String)> {
        let symbols = self
            .kernel
            .iter()
            .flat_map(|kernel| kernel.symbols().iter());
        symbols
            .filter(|symbol| symbol.kind == raddle_symbols::SymbolKind::Object)
            .filter(|symbol| symbol.address.0 >= KERNEL_HALF)
            .map(|symbol| (symbol.address.0, symbol.name.to_string()))
            .collect()
    }

    /// The variable of the kernel at an address, with its part or the offset in it: `rename_lock+0x4`, or
    /// `runqueues+0xa28 of CPU 1`; none for what is allocated, and for the data of modules.
    ///
    /// `per_cpu` is where each processor has its copies of the variables that are linked once for all of them.
    pub fn variable(&self, addr: u64, per_cpu: &[u64]) -> Option<String> {
        if addr < KERNEL_HALF {
            return None;
        }
        if let Some(name) = self.linked_variable(addr) {
            return Some(name);
        }
        per_cpu.iter().enumerate().find_map(|(cpu, base)| {
            let offset = addr
                .checked_sub(*base)
                .filter(|offset| *offset < KERNEL_HALF)?;
            Some(format!("{} of CPU {cpu}", self.linked_variable(offset)?))
        })
    }

    /// The lock at an offset of a block of this size that the code at an address allocated, if its function returns a
    /// pointer to such a structure.
    pub fn lock_in_block(&self, allocated_at: u64, size: u64, offset: u64) -> Option<LockPart> {
        let function = self.name(allocated_at)?;
        if function.module.is_some() {
            return None;
        }
        let types = self.types.as_ref()?;
        types.returned_lock_at(&function.function, size, offset)
    }

    /// The lock in a per-CPU variable at an address, with its processor.
    pub fn per_cpu_lock(&self, addr: u64, per_cpu: &[u64]) -> Option<(LockPart, usize)> {
        let types = self.types.as_ref()?;
        let mut processors = per_cpu.iter().enumerate();
        processors.find_map(|(cpu, base)| {
            let offset = addr.checked_sub(*base)?;
            Some((types.per_cpu_lock_at(offset)?, cpu))
        })
    }

    fn linked_variable(&self, at: u64) -> Option<String> {
        let with_offset = |name: &str, offset| match offset {
            0 => name.to_owned(),
            offset => format!("{name}+{offset:#x}"),
        };
        let debug = self.debug.as_ref().and_then(Module::debug_info);
        if let Some(debug) = debug
            && let Some((variable, offset)) = debug.variable_at(LinkAddr(at))
        {
            let field = variable.field_at(debug, offset);
            return Some(with_offset(&field.path, field.rest));
        }
        if at < KERNEL_HALF
            && let Some((path, rest)) = self.types.as_ref().and_then(|btf| btf.per_cpu_at(at))
        {
            return Some(with_offset(&path, rest));
        }
        let symbol = self.kernel.as_ref()?.symbols().object_at(LinkAddr(at))?;
        if &*symbol.name == PER_CPU_END {
            return None;
        }
        Some(with_offset(&symbol.name, at - symbol.address.0))
    }

    /// The name, or the bare address.
    pub fn show(&self, pc: u64) -> String {
        self.name(pc)
            .map_or_else(|| format!("{pc:#x}"), |named| named.to_string())
    }
}

/// A file, if it has debug information.
fn with_lines(elf: &[u8]) -> Option<Module> {
    let file = Module::parse_alone(elf).ok()?;
    file.debug_info().is_some().then_some(file)
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

    #[test]
    fn variables_have_names_too_and_per_cpu_ones_a_processor() {
        let symbols = Symbols::new(Some(
            "0000000000030a40 A runqueues\n0000000000032000 A __per_cpu_end\n\
             ffffffff81000000 T _stext\nffffffff82000000 D jiffies\nffffffff82000008 d jiffies_lock\n",
        ));
        let per_cpu = [0xffff_8880_0fc0_0000, 0xffff_8880_0fd0_0000];
        let name = |addr| symbols.variable(addr, &per_cpu);
        assert_eq!(name(0xffff_ffff_8200_0000).as_deref(), Some("jiffies"));
        assert_eq!(
            name(0xffff_ffff_8200_000c).as_deref(),
            Some("jiffies_lock+0x4")
        );
        assert_eq!(
            name(per_cpu[1] + 0x3_0a48).as_deref(),
            Some("runqueues+0x8 of CPU 1")
        );
        assert_eq!(name(per_cpu[1] + 0x3_2008), None, "allocated later");
        assert_eq!(name(0xffff_8880_0500_0000), None, "allocated");
        assert_eq!(name(0x3_0a48), None, "no address of the kernel");
        let of_gdb: Vec<_> = symbols.data().into_iter().map(|(_, name)| name).collect();
        assert_eq!(of_gdb, ["jiffies", "jiffies_lock"]);
    }
}
