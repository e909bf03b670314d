//! Writes instructions into the module under the pass.

use std::ffi::{CStr, c_uint};

use llvm_sys::core::*;
use llvm_sys::prelude::*;

use super::{Block, Module, Predicate, Type, Value, c_string};

/// Writes instructions; new ones carry no debug location unless one is set.
#[derive(Debug)]
pub(crate) struct Builder {
    raw: LLVMBuilderRef,
    module: Module,
}

impl Drop for Builder {
    fn drop(&mut self) {
        llvm!(LLVMDisposeBuilder(self.raw));
    }
}

const UNNAMED: &CStr = c"";

impl Builder {
    pub(crate) fn new(module: Module) -> Self {
        let raw = llvm!(LLVMCreateBuilderInContext(module.context()));
        Self { raw, module }
    }

    pub(crate) fn before(&self, inst: Value) {
        llvm!(LLVMPositionBuilderBefore(self.raw, inst.0));
        self.clear_location();
    }

    pub(crate) fn at_end(&self, block: Block) {
        llvm!(LLVMPositionBuilderAtEnd(self.raw, block.0));
        self.clear_location();
    }

    fn clear_location(&self) {
        llvm!(LLVMSetCurrentDebugLocation2(self.raw, std::ptr::null_mut()));
    }

    pub(crate) fn alloca(&self, ty: Type, name: &str) -> Value {
        let name = c_string(name);
        Value(llvm!(LLVMBuildAlloca(self.raw, ty.0, name.as_ptr())))
    }

    pub(crate) fn load(&self, ty: Type, pointer: Value) -> Value {
        Value(llvm!(LLVMBuildLoad2(
            self.raw,
            ty.0,
            pointer.0,
            UNNAMED.as_ptr()
        )))
    }

    pub(crate) fn store(&self, value: Value, pointer: Value) -> Value {
        Value(llvm!(LLVMBuildStore(self.raw, value.0, pointer.0)))
    }

    /// Copies bytes between two places that do not overlap.
    pub(crate) fn copy(&self, from: Value, to: Value, bytes: u64) {
        let size = self.module.int_type(64).constant(bytes);
        llvm!(LLVMBuildMemCpy(self.raw, to.0, 1, from.0, 1, size.0));
    }

    pub(crate) fn compare(&self, how: Predicate, a: Value, b: Value) -> Value {
        Value(llvm!(LLVMBuildICmp(
            self.raw,
            how,
            a.0,
            b.0,
            UNNAMED.as_ptr()
        )))
    }

    pub(crate) fn select(&self, condition: Value, yes: Value, no: Value) -> Value {
        Value(llvm!(LLVMBuildSelect(
            self.raw,
            condition.0,
            yes.0,
            no.0,
            UNNAMED.as_ptr()
        )))
    }

    pub(crate) fn or(&self, a: Value, b: Value) -> Value {
        Value(llvm!(LLVMBuildOr(self.raw, a.0, b.0, UNNAMED.as_ptr())))
    }

    pub(crate) fn and(&self, a: Value, b: Value) -> Value {
        Value(llvm!(LLVMBuildAnd(self.raw, a.0, b.0, UNNAMED.as_ptr())))
    }

    pub(crate) fn add(&self, a: Value, b: Value) -> Value {
        Value(llvm!(LLVMBuildAdd(self.raw, a.0, b.0, UNNAMED.as_ptr())))
    }

    pub(crate) fn byte_offset(&self, base: Value, offset: i64) -> Value {
        let mut index = self.module.int_type(64).constant(offset.cast_unsigned()).0;
        Value(llvm!(LLVMBuildGEP2(
            self.raw,
            self.module.int_type(8).0,
            base.0,
            &raw mut index,
            1,
            UNNAMED.as_ptr()
        )))
    }

    pub(crate) fn pointer_to_int(&self, pointer: Value) -> Value {
        Value(llvm!(LLVMBuildPtrToInt(
            self.raw,
            pointer.0,
            self.module.int_type(64).0,
            UNNAMED.as_ptr()
        )))
    }

    /// An integer of at most 64 bits, or a pointer, as a signed number of 64.
    pub(crate) fn signed(&self, value: Value) -> Value {
        let long = self.module.int_type(64);
        if value.ty().is_pointer() {
            self.pointer_to_int(value)
        } else if value.ty() == long {
            value
        } else {
            Value(llvm!(LLVMBuildSExt(
                self.raw,
                value.0,
                long.0,
                UNNAMED.as_ptr()
            )))
        }
    }

    pub(crate) fn branch(&self, to: Block) -> Value {
        Value(llvm!(LLVMBuildBr(self.raw, to.0)))
    }

    pub(crate) fn branch_if(&self, condition: Value, yes: Block, no: Block) -> Value {
        Value(llvm!(LLVMBuildCondBr(self.raw, condition.0, yes.0, no.0)))
    }

    pub(crate) fn switch(&self, on: Value, otherwise: Block, cases: &[(Value, Block)]) -> Value {
        let count = c_uint::try_from(cases.len()).expect("few cases");
        let switch = llvm!(LLVMBuildSwitch(self.raw, on.0, otherwise.0, count));
        for (value, block) in cases {
            llvm!(LLVMAddCase(switch, value.0, block.0));
        }
        Value(switch)
    }

    pub(crate) fn unreachable(&self) {
        llvm!(LLVMBuildUnreachable(self.raw));
    }

    pub(crate) fn call(&self, ty: Type, function: Value, arguments: &[Value]) -> Value {
        let mut raw: Vec<LLVMValueRef> = arguments.iter().map(|value| value.0).collect();
        let count = c_uint::try_from(raw.len()).expect("few arguments");
        Value(llvm!(LLVMBuildCall2(
            self.raw,
            ty.0,
            function.0,
            raw.as_mut_ptr(),
            count,
            UNNAMED.as_ptr()
        )))
    }

    pub(crate) fn phi(&self, ty: Type, incoming: &[(Value, Block)]) -> Value {
        let phi = llvm!(LLVMBuildPhi(self.raw, ty.0, UNNAMED.as_ptr()));
        let mut values: Vec<LLVMValueRef> = incoming.iter().map(|(value, _)| value.0).collect();
        let mut blocks: Vec<LLVMBasicBlockRef> =
            incoming.iter().map(|(_, block)| block.0).collect();
        let count = c_uint::try_from(incoming.len()).expect("few predecessors");
        llvm!(LLVMAddIncoming(
            phi,
            values.as_mut_ptr(),
            blocks.as_mut_ptr(),
            count
        ));
        Value(phi)
    }

    pub(crate) fn extract(&self, aggregate: Value, index: u32) -> Value {
        Value(llvm!(LLVMBuildExtractValue(
            self.raw,
            aggregate.0,
            index,
            UNNAMED.as_ptr()
        )))
    }

    pub(crate) fn landing_pad(&self, catches: Value) -> Value {
        let result = self
            .module
            .struct_type(&[self.module.pointer_type(), self.module.int_type(32)]);
        let pad = llvm!(LLVMBuildLandingPad(
            self.raw,
            result.0,
            std::ptr::null_mut(),
            1,
            UNNAMED.as_ptr()
        ));
        llvm!(LLVMAddClause(pad, catches.0));
        Value(pad)
    }

    /// Inline assembly that may do anything to memory and nothing to registers that its constraints do not name.
    pub(crate) fn assembly(
        &self,
        code: &str,
        constraints: &str,
        ty: Type,
        arguments: &[Value],
    ) -> Value {
        let asm = llvm!(LLVMGetInlineAsm(
            ty.0,
            code.as_ptr().cast(),
            code.len(),
            constraints.as_ptr().cast(),
            constraints.len(),
            1,
            0,
            llvm_sys::LLVMInlineAsmDialect::LLVMInlineAsmDialectATT,
            0
        ));
        self.call(ty, Value(asm), arguments)
    }
}
