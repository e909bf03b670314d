//! Several modules at their places in one address space.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::demangle::demangle;
use crate::dwarf::LinePlace;
use crate::elf::LinkAddr;
use crate::kallsyms::KernelSymbols;
use crate::module::{CodePlace, Module};
use crate::unwind::{Frame, Machine, ReadWord, Registers, step_by_frame_pointer};

/// Which modules a program has mapped where. Cheap to clone: modules and what they have computed are shared.
#[derive(Debug, Clone, Default)]
pub struct SymbolSpace {
    /// Disjoint mappings by start address.
    mappings: BTreeMap<u64, Mapping>,
    kernel: Option<Arc<KernelSymbols>>,
}

/// A stretch of a module in memory.
#[derive(Debug, Clone)]
pub struct Mapping {
    pub end: u64,
    /// What was added to the module's link addresses.
    pub bias: u64,
    pub name: Arc<str>,
    pub module: Arc<Module>,
}

/// An address as people want to read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbolised {
    /// The name under which the module was mapped.
    pub module: Arc<str>,
    /// The innermost function, inlined or not.
    pub function: Option<Arc<str>>,
    /// The linker symbol that contains the address, and the distance from its start.
    pub symbol: Option<(Arc<str>, u64)>,
    pub line: Option<LinePlace>,
    /// The callers into which the function was inlined, from the inside out, each with the place of its call.
    pub inlined_by: Vec<InlinedBy>,
}

/// A caller whose call was replaced by the body of the function called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlinedBy {
    pub function: Arc<str>,
    /// The line of the call in that function.
    pub line: Option<LinePlace>,
}

/// A data address as people want to read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPlace {
    pub module: Arc<str>,
    /// The variable with the path to the field, such as `obj.queue.head`.
    pub path: String,
    /// Bytes from the start of that field to the address.
    pub rest: u64,
    /// Zero when unknown.
    pub size: u64,
    /// Empty when unknown.
    pub type_name: String,
    pub declared_at: Option<LinePlace>,
    /// Whether the language says that accesses are atomic.
    pub is_atomic: bool,
}

impl SymbolSpace {
    /// Maps a stretch of a module, replacing what was there.
    pub fn map(&mut self, start: u64, mapping: Mapping) {
        self.unmap(start..mapping.end);
        if start < mapping.end {
            self.mappings.insert(start, mapping);
        }
    }

    /// Maps all segments of a module as a loader does, in whole pages.
    pub fn map_module(&mut self, name: &str, bias: u64, module: &Arc<Module>) {
        const PAGE: u64 = 4096;
        let name: Arc<str> = Arc::from(name);
        for segment in module.segments() {
            let range = segment.range();
            let start = bias.wrapping_add(range.start & !(PAGE - 1));
            let end = bias.wrapping_add(range.end.saturating_add(PAGE - 1) & !(PAGE - 1));
            let (name, module) = (Arc::clone(&name), Arc::clone(module));
            self.map(
                start,
                Mapping {
                    end,
                    bias,
                    name,
                    module,
                },
            );
        }
    }

    /// Removes everything in a range; mappings that reach beyond it are cut.
    pub fn unmap(&mut self, range: Range<u64>) {
        let before = self.mappings.range(..range.end).rev();
        let starts: Vec<u64> = before
            .take_while(|(_, mapping)| mapping.end > range.start)
            .map(|(&start, _)| start)
            .collect();
        for start in starts {
            let Some(mapping) = self.mappings.remove(&start) else {
                continue;
            };
            if mapping.end > range.end {
                self.mappings.insert(range.end, mapping.clone());
            }
            if start < range.start {
                let end = range.start;
                self.mappings.insert(start, Mapping { end, ..mapping });
            }
        }
    }

    /// The symbols for addresses that no module covers.
    pub fn set_kernel(&mut self, kernel: Arc<KernelSymbols>) {
        self.kernel = Some(kernel);
    }

    /// The mapping that contains an address.
    pub fn mapping_at(&self, address: u64) -> Option<&Mapping> {
        let (_, mapping) = self.mappings.range(..=address).next_back()?;
        (address < mapping.end).then_some(mapping)
    }

    /// The module at an address, with the address as its file states it.
    pub fn module_at(&self, address: u64) -> Option<(&Arc<Module>, LinkAddr)> {
        let mapping = self.mapping_at(address)?;
        Some((&mapping.module, mapping.link(address)))
    }

    /// All mappings by ascending address.
    pub fn mappings(&self) -> impl Iterator<Item = (Range<u64>, &Mapping)> {
        self.mappings
            .iter()
            .map(|(&start, mapping)| (start..mapping.end, mapping))
    }

    /// Each mapped module once, by its lowest address, with its bias.
    pub fn modules(&self) -> Vec<&Mapping> {
        let mut seen: Vec<&Mapping> = Vec::new();
        for mapping in self.mappings.values() {
            let is_known = seen.iter().any(|other| {
                other.bias == mapping.bias && Arc::ptr_eq(&other.module, &mapping.module)
            });
            if !is_known {
                seen.push(mapping);
            }
        }
        seen
    }

    /// The run-time addresses of all functions with this linker name in all modules, in the order of the modules.
    pub fn addresses_of(&self, name: &str) -> Vec<u64> {
        let mut addresses = Vec::new();
        for mapping in self.modules() {
            for symbol in mapping.module.symbols().by_name(name) {
                if symbol.kind.is_code() {
                    addresses.push(symbol.address.0.wrapping_add(mapping.bias));
                }
            }
        }
        if let Some(kernel) = &self.kernel {
            let symbols = kernel.symbols().by_name(name);
            let code = symbols.iter().filter(|symbol| symbol.kind.is_code());
            addresses.extend(code.map(|symbol| symbol.address.0));
        }
        addresses
    }

    /// The code of all functions with this name, as the linker has it or as a readable path.
    pub fn ranges_of_function(&self, name: &str) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        for mapping in self.modules() {
            let symbols = mapping.module.symbols();
            let by_name = symbols.by_name(name);
            let found = if by_name.is_empty() {
                symbols.by_path(name)
            } else {
                by_name
            };
            for symbol in found.iter().filter(|symbol| symbol.kind.is_code()) {
                let start = symbol.address.0.wrapping_add(mapping.bias);
                ranges.push(start..start.wrapping_add(symbol.size.max(1)));
            }
        }
        ranges
    }

    /// The run-time addresses of all functions with this readable path, such as `std::mutex::lock`.
    pub fn addresses_of_path(&self, path: &str) -> Vec<u64> {
        let mut addresses = Vec::new();
        for mapping in self.modules() {
            let symbols = mapping.module.symbols().by_path(path);
            addresses.extend(
                symbols
                    .iter()
                    .map(|s| s.address.0.wrapping_add(mapping.bias)),
            );
        }
        addresses
    }

    /// What is known about a code address; `None` where nothing is mapped.
    pub fn symbolise(&self, address: u64) -> Option<Symbolised> {
        let Some(mapping) = self.mapping_at(address) else {
            return self.symbolise_kernel(address);
        };
        let place = mapping.module.place_of(mapping.link(address));
        Some(Symbolised::new(&mapping.name, &place))
    }

    /// The variable at a data address, by debug information or else by symbol; `None` for heap, stack and the like.
    pub fn data_at(&self, address: u64) -> Option<DataPlace> {
        let mapping = self.mapping_at(address)?;
        let at = mapping.link(address);
        if let Some(debug) = mapping.module.debug_info()
            && let Some((variable, offset)) = debug.variable_at(at)
        {
            let field = variable.field_at(debug, offset);
            let scope = match &*variable.scope {
                "" => String::new(),
                scope => format!("{scope}::"),
            };
            return Some(DataPlace {
                module: Arc::clone(&mapping.name),
                path: scope + &field.path,
                rest: field.rest,
                size: field.size,
                type_name: field.type_name,
                declared_at: variable.declared_at.clone(),
                is_atomic: field.is_atomic,
            });
        }
        let symbol = mapping.module.symbols().object_at(at)?;
        Some(DataPlace {
            module: Arc::clone(&mapping.name),
            path: symbol.demangled().into_owned(),
            rest: at.0 - symbol.address.0,
            size: symbol.size,
            type_name: String::new(),
            declared_at: None,
            is_atomic: false,
        })
    }

    /// The run-time addresses of the instructions of a source line in all modules.
    ///
    /// A line without code stands for the next one that has code, in each module on its own.
    pub fn ranges_of_line(&self, file: &str, line: u32) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        for mapping in self.modules() {
            let debug = mapping.module.debug_info();
            let found = debug.map(|debug| debug.addresses_of_line(file, line));
            for range in found.into_iter().flat_map(|found| found.ranges) {
                let at = |link: LinkAddr| link.0.wrapping_add(mapping.bias);
                ranges.push(at(range.start)..at(range.end));
            }
        }
        ranges
    }

    /// The stack of a thread, innermost frame first, at most `frames_max` frames.
    pub fn unwind(
        &self,
        registers: Registers,
        read: ReadWord<'_>,
        frames_max: usize,
    ) -> Vec<Frame> {
        let mut frames = vec![Frame::innermost(registers)];
        frames.truncate(frames_max);
        while frames.len() < frames_max
            && let Some(last) = frames.last_mut()
            && let Some(caller) = self.caller(last, read)
        {
            frames.push(caller);
        }
        frames
    }

    /// The caller of a frame, whose canonical frame address is filled in on the way.
    fn caller(&self, frame: &mut Frame, read: ReadWord<'_>) -> Option<Frame> {
        let address = frame.lookup_address()?;
        let stack = frame.registers.get(crate::unwind::RSP)?;
        let mut machine = Machine {
            registers: frame.registers,
            cfa: None,
            read,
        };
        let mapping = self.mapping_at(address)?;
        let at = mapping.link(address);
        let frames = mapping.module.call_frames();
        let step = if frames.covers(at) {
            frames.step(at, mapping.bias, &mut machine)?
        } else {
            step_by_frame_pointer(&mut machine)?
        };
        frame.cfa = Some(step.cfa);
        // A stack grows down: a caller that lies lower is garbage, except across signal stacks.
        let is_higher = step.cfa > stack || step.is_signal;
        let has_pc = step.caller.pc().is_some_and(|pc| pc != 0);
        (is_higher && has_pc).then_some(Frame {
            registers: step.caller,
            cfa: None,
            is_exact: step.is_signal,
        })
    }

    fn symbolise_kernel(&self, address: u64) -> Option<Symbolised> {
        let kernel = self.kernel.as_ref()?;
        let symbol = kernel.symbols().function_at(LinkAddr(address))?;
        let module = kernel.module_of(symbol);
        let name: Arc<str> = Arc::from(&*symbol.name);
        Some(Symbolised {
            module: module.map_or_else(|| Arc::from("kernel"), Arc::clone),
            function: Some(Arc::from(&*demangle(&name))),
            symbol: Some((name, address - symbol.address.0)),
            line: None,
            inlined_by: Vec::new(),
        })
    }
}

impl Mapping {
    /// A run-time address as the module's file states it.
    pub fn link(&self, address: u64) -> LinkAddr {
        LinkAddr(address.wrapping_sub(self.bias))
    }
}

impl Symbolised {
    fn new(module: &Arc<str>, place: &CodePlace) -> Self {
        let callers = place.scopes.iter().skip(1);
        // Each scope knows where its own call was, which is a line of the scope around it.
        let calls = place.scopes.iter().map(|scope| scope.called_at.clone());
        Self {
            module: Arc::clone(module),
            function: place.function().map(Arc::from),
            symbol: place.symbol.clone(),
            line: place.line.clone(),
            inlined_by: callers
                .zip(calls)
                .map(|(caller, line)| InlinedBy {
                    function: Arc::clone(&caller.name),
                    line,
                })
                .collect(),
        }
    }
}

impl fmt::Display for Symbolised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.function, &self.symbol, &self.line) {
            (Some(function), _, Some(line)) => {
                write!(f, "{function} at {}:{}", line.file, line.line)
            }
            (Some(function), Some((_, offset)), None) => {
                write!(f, "{function}+{offset:#x} in {}", self.module)
            }
            (Some(function), None, None) => write!(f, "{function} in {}", self.module),
            (None, _, Some(line)) => write!(f, "{}:{}", line.file, line.line),
            (None, _, None) => write!(f, "{}", self.module),
        }
    }
}
