//! Which plain accesses a language calls atomic: known by the type of the variable, or by the function that a
//! compiler has inlined, or by the library that it belongs to. On x86 a release store and an acquire load are plain moves.

use std::ops::Range;

use raddle_symbols::SymbolSpace;
use rustc_hash::FxHashMap;

use crate::stack::{is_openmp_runtime, place_of};

/// Answers by instruction and by address, each looked up once.
#[derive(Debug, Default)]
pub(crate) struct Atomics {
    symbols: SymbolSpace,
    /// Code whose accesses are all there to put threads in order.
    runtimes: Vec<Range<u64>>,
    instructions: FxHashMap<u64, bool>,
    variables: FxHashMap<u64, bool>,
}

impl Atomics {
    pub(crate) fn new(symbols: SymbolSpace) -> Self {
        let mappings = symbols.mappings();
        let runtimes = mappings.filter(|(_, mapping)| is_openmp_runtime(&mapping.name));
        Self {
            runtimes: runtimes.map(|(range, _)| range).collect(),
            symbols,
            ..Self::default()
        }
    }

    /// Whether an instruction belongs to a runtime library that only puts threads in order.
    pub(crate) fn is_runtime(&self, pc: u64) -> bool {
        self.runtimes.iter().any(|range| range.contains(&pc))
    }

    pub(crate) fn is_atomic(&mut self, pc: u64, addr: u64) -> bool {
        if self.is_runtime(pc) {
            return true;
        }
        let symbols = &self.symbols;
        let by_code = *self
            .instructions
            .entry(pc)
            .or_insert_with(|| is_atomic_code(symbols, pc));
        // Heap and stacks have no variables: not worth remembering.
        by_code
            || (symbols.mapping_at(addr).is_some()
                && *self.variables.entry(addr).or_insert_with(|| {
                    let data = symbols.data_at(addr);
                    data.is_some_and(|data| data.is_atomic)
                }))
    }
}

/// Whether an instruction is the inlined body of an atomic operation of the standard library of Rust or C++.
pub(crate) fn is_atomic_code(symbols: &SymbolSpace, pc: u64) -> bool {
    const FILES: [&str; 4] = [
        "/core/src/sync/atomic.rs",
        "/bits/atomic_base.h",
        "/bits/atomic_wait.h",
        "/c++/atomic",
    ];
    let place = place_of(symbols, pc);
    FILES.iter().any(|file| place.file.ends_with(file))
        || (place.file.contains("/include/c++/") && place.file.ends_with("/atomic"))
}
