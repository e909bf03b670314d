//! Questions about values that the analysis asks beyond LLVM's C interface.

use super::{
    Module, Opcode, Value, rdl_demangle, rdl_is_closed_lock, rdl_is_closed_variable, rdl_is_exact,
    rdl_is_library_function, rdl_is_open, rdl_is_the_definition, rdl_keeps_no_pointers,
    rdl_slot_size, rdl_store_size, rdl_strip_constant,
};

/// Names are cut to so many bytes for the log and the report.
const NAME_MAX: usize = 200;

impl Value {
    /// The name of a function as its programmer wrote it.
    pub(crate) fn readable_name(self) -> String {
        let name = self.name();
        let mut text = vec![0_u8; NAME_MAX];
        let length = llvm!(rdl_demangle(
            name.as_ptr().cast(),
            name.len(),
            text.as_mut_ptr().cast(),
            text.len()
        ));
        text.truncate(length);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// What an instruction that only computes depends on beside its operands: its type and, where addresses are computed,
    /// that of the elements counted. None for other instructions.
    pub(crate) fn computes_with(self) -> Option<[usize; 2]> {
        let counted = match self.opcode() {
            Opcode::LLVMGetElementPtr => {
                llvm!(llvm_sys::core::LLVMGetGEPSourceElementType(self.0)).addr()
            }
            Opcode::LLVMAdd
            | Opcode::LLVMSub
            | Opcode::LLVMMul
            | Opcode::LLVMAnd
            | Opcode::LLVMOr
            | Opcode::LLVMXor
            | Opcode::LLVMShl
            | Opcode::LLVMLShr
            | Opcode::LLVMAShr
            | Opcode::LLVMZExt
            | Opcode::LLVMSExt
            | Opcode::LLVMTrunc
            | Opcode::LLVMSelect
            | Opcode::LLVMPtrToInt
            | Opcode::LLVMIntToPtr => 0,
            _ => return None,
        };
        Some([self.ty().0.addr(), counted])
    }

    /// The pointer without constant offsets, and their sum.
    pub(crate) fn without_offset(self, module: Module) -> (Value, i64) {
        let mut offset = 0;
        let base = llvm!(rdl_strip_constant(self.0, module.0, &raw mut offset));
        (Value(base), offset)
    }

    /// Bytes that a store writes.
    pub(crate) fn store_size(self) -> u64 {
        llvm!(rdl_store_size(self.0))
    }

    /// Bytes of a stack slot, if that is a constant.
    pub(crate) fn slot_size(self) -> Option<u64> {
        Some(llvm!(rdl_slot_size(self.0))).filter(|&size| size != u64::MAX)
    }

    /// Whether this is a variable that only loads, stores and copies of the module can reach.
    pub(crate) fn is_closed_variable(self) -> bool {
        llvm!(rdl_is_closed_variable(self.0))
    }

    /// Whether this is a lock that only calls of lock functions of the module can reach.
    pub(crate) fn is_closed_lock(self) -> bool {
        llvm!(rdl_is_closed_lock(self.0))
    }

    /// Whether the function may have callers that the module does not show.
    pub(crate) fn is_open(self) -> bool {
        llvm!(rdl_is_open(self.0))
    }

    /// Whether no other definition may take the place of this function.
    pub(crate) fn is_exact(self) -> bool {
        llvm!(rdl_is_exact(self.0))
    }

    /// Whether this code is what is called, and not that of another object which defines the function, too.
    pub(crate) fn is_the_definition(self) -> bool {
        llvm!(rdl_is_the_definition(self.0))
    }

    /// The declared function keeps no pointer beyond its return.
    pub(crate) fn set_keeps_no_pointers(self) {
        llvm!(rdl_keeps_no_pointers(self.0));
    }

    /// What an instruction does, for a report.
    pub(crate) fn in_words(self) -> String {
        let line = self.places().first().map_or(0, |place| place.line);
        let what = match self.opcode() {
            Opcode::LLVMStore => "a write".to_owned(),
            Opcode::LLVMAtomicRMW | Opcode::LLVMAtomicCmpXchg => "an atomic update".to_owned(),
            Opcode::LLVMCall | Opcode::LLVMInvoke => match self.callee_name() {
                Some(name) => format!("a call of {name}"),
                None => "an indirect call".to_owned(),
            },
            _ => "an instruction that cannot be repeated".to_owned(),
        };
        format!("{what} (line {line})")
    }

    /// Whether the linker sees this function under its name and no other definition is as good.
    pub(crate) fn is_strong_external(self) -> bool {
        llvm!(llvm_sys::core::LLVMGetLinkage(self.0)) == llvm_sys::LLVMLinkage::LLVMExternalLinkage
    }

    /// Whether this is a function of the C library that LLVM knows.
    pub(crate) fn is_library_function(self) -> bool {
        llvm!(rdl_is_library_function(self.0))
    }

    pub(crate) fn is_weak(self) -> bool {
        llvm!(llvm_sys::core::LLVMGetLinkage(self.0)) != llvm_sys::LLVMLinkage::LLVMExternalLinkage
    }

    /// A symbol that is zero unless some object defines it.
    pub(crate) fn set_weak_reference(self) {
        llvm!(llvm_sys::core::LLVMSetLinkage(
            self.0,
            llvm_sys::LLVMLinkage::LLVMExternalWeakLinkage
        ));
    }

    /// Whether the program ends in the block of this instruction.
    pub(crate) fn ends_in_nothing(self) -> bool {
        self.block().terminator().opcode() == Opcode::LLVMUnreachable
    }
}
