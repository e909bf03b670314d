//! Names for the code of a guest, the kernel's and that of the modules that are loaded in it, and for its variables.

use std::ops::Range;

use raddle_campaign::Focus;
use raddle_report::Place;
use raddle_trace::facts::Within;

use super::session::Session;
use crate::symbols::{Named, Symbols};

/// Names of the kernel and of the loaded modules.
#[derive(Debug)]
pub struct Names<'a> {
    kernel: &'a Symbols,
    modules: Symbols,
    /// Where each processor has its per-CPU variables.
    per_cpu: Vec<u64>,
}

impl<'a> Names<'a> {
    /// Of the guest as it stands at the start line.
    pub(super) fn of(session: &Session<'a>) -> Self {
        let target = session.target;
        let mut modules = Symbols::default();
        for module in &target.modules {
            modules.add_module(module, target.boot.modules());
        }
        for module in target.test.iter().flat_map(|test| &test.modules) {
            modules.add_module(module, &session.world.info().modules);
        }
        Self {
            kernel: &target.symbols,
            modules,
            per_cpu: session.world.per_cpu(),
        }
    }

    pub(super) fn name(&self, pc: u64) -> Option<Named> {
        self.modules.name(pc).or_else(|| self.kernel.name(pc))
    }

    /// The function, or the bare address.
    pub(super) fn function(&self, pc: u64) -> String {
        let named = self.name(pc);
        named.map_or_else(|| format!("{pc:#x}"), |named| named.function)
    }

    /// The function with offset and module, or the bare address.
    pub(super) fn show(&self, pc: u64) -> String {
        let named = self.name(pc);
        named.map_or_else(|| format!("{pc:#x}"), |named| named.to_string())
    }

    /// The code of a function or line.
    pub(super) fn code_of(&self, place: &Focus) -> Vec<Range<u64>> {
        let both = [self.kernel, &self.modules];
        both.iter().flat_map(|names| names.code_of(place)).collect()
    }

    /// The kernel's variable at an address.
    pub(super) fn variable(&self, addr: u64) -> Option<String> {
        self.kernel.variable(addr, &self.per_cpu)
    }

    /// A lock of the kernel: a variable, or a part of an allocated block, with its type where BTF tells.
    pub(super) fn lock(&self, addr: u64, block: Option<Within<'_>>) -> Option<String> {
        if let Some((part, cpu)) = self.kernel.per_cpu_lock(addr, &self.per_cpu) {
            return Some(format!("`{}` of CPU {cpu} ({})", part.path, part.type_name));
        }
        if let Some(name) = self.variable(addr) {
            return Some(format!("`{name}`"));
        }
        let block = block?;
        let (site, size) = (block.allocation.site.pc(), block.allocation.size);
        let name = block.name(&self.describe(site));
        let part = self.kernel.lock_in_block(site, size, block.offset);
        Some(match part {
            Some(part) => format!("`{}` ({}) in `{name}`", part.path, part.type_name),
            None => format!("`{name}`"),
        })
    }

    /// Where an instruction of the kernel is: function with offset and module, and its line if that is known.
    pub(super) fn place(&self, pc: u64) -> Place {
        let function = self.show(pc);
        let line = self.modules.line(pc).or_else(|| self.kernel.line(pc));
        match line {
            Some(line) => Place {
                file: line.file.to_string(),
                line: line.line,
                column: line.column,
                function,
            },
            None => Place {
                function,
                ..Place::default()
            },
        }
    }

    /// As [`Self::place`], in words: `pipe.c:120 pipe_read+0x12`.
    pub(super) fn describe(&self, pc: u64) -> String {
        self.place(pc).describe()
    }

    /// All names as an ELF file, for a debugger.
    pub fn symbol_file(&self) -> Vec<u8> {
        let code = [self.kernel.code(), self.modules.code()].concat();
        raddle_symbols::symbol_file(&code, &self.kernel.data())
    }
}
