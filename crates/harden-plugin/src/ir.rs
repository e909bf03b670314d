//! LLVM's C interface and our C++ shim, as small copyable handles.
//!
//! JUSTIFICATION: LLVM is a C++ library; there is no other way in. The handles are plain pointers into a module that
//! the caller of the pass keeps alive and that only this crate, on this thread, changes while the pass runs. No handle
//! outlives the pass, and no handle of a deleted instruction is used again: `erase` takes the handle by value.

#![expect(unsafe_code, reason = "LLVM FFI: the one module that talks to LLVM")]

use std::ffi::{CStr, CString, c_char, c_uint, c_void};

use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMIntPredicate, LLVMLinkage, LLVMOpcode, LLVMTypeKind};

/// Calls LLVM. All arguments are live handles of the module under the pass, see the module documentation.
macro_rules! llvm {
    ($call:expr) => {
        // SAFETY: every handle is alive and belongs to the module that the pass was given.
        unsafe { $call }
    };
}

/// Who decides where an exception that comes by a function stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Personality {
    None,
    Cpp,
    Rust,
    Other,
}

mod builder;
mod query;

pub(crate) use builder::Builder;

pub(crate) type Opcode = LLVMOpcode;
pub(crate) type Predicate = LLVMIntPredicate;

unsafe extern "C" {
    fn rdl_may_write(value: LLVMValueRef) -> bool;
    fn rdl_may_read(value: LLVMValueRef) -> bool;
    fn rdl_underlying(pointer: LLVMValueRef) -> LLVMValueRef;
    fn rdl_constant_offset(
        pointer: LLVMValueRef,
        base: *mut LLVMValueRef,
        offset: *mut i64,
    ) -> bool;
    fn rdl_is_private(slot: LLVMValueRef) -> bool;
    fn rdl_is_static_slot(slot: LLVMValueRef) -> bool;
    fn rdl_dominators_new(function: LLVMValueRef) -> *mut c_void;
    fn rdl_dominators_free(tree: *mut c_void);
    fn rdl_dominates(tree: *mut c_void, above: LLVMValueRef, below: LLVMValueRef) -> bool;
    fn rdl_known_nonzero(tree: *mut c_void, pointer: LLVMValueRef, at: LLVMValueRef) -> bool;
    fn rdl_nonzero_input(tree: *mut c_void, phi: LLVMValueRef, number: c_uint) -> bool;
    fn rdl_has_invariant_load(load: LLVMValueRef) -> bool;
    fn rdl_is_volatile(value: LLVMValueRef) -> bool;
    fn rdl_is_unsupported(function: LLVMValueRef) -> bool;
    fn rdl_can_be_invoke(value: LLVMValueRef) -> bool;
    fn rdl_demangle(name: *const c_char, length: usize, text: *mut c_char, size: usize) -> usize;
    fn rdl_is_library_function(function: LLVMValueRef) -> bool;
    fn rdl_store_size(store: LLVMValueRef) -> u64;
    fn rdl_slot_size(slot: LLVMValueRef) -> u64;
    fn rdl_strip_constant(
        pointer: LLVMValueRef,
        module: LLVMModuleRef,
        offset: *mut i64,
    ) -> LLVMValueRef;
    fn rdl_is_closed_variable(global: LLVMValueRef) -> bool;
    fn rdl_is_closed_lock(global: LLVMValueRef) -> bool;
    fn rdl_is_open(function: LLVMValueRef) -> bool;
    fn rdl_is_exact(function: LLVMValueRef) -> bool;
    fn rdl_is_the_definition(function: LLVMValueRef) -> bool;
    fn rdl_keeps_no_pointers(function: LLVMValueRef);
    fn rdl_split_before(value: LLVMValueRef, name: *const c_char) -> LLVMBasicBlockRef;
    fn rdl_to_invoke(value: LLVMValueRef, pad: LLVMBasicBlockRef) -> LLVMBasicBlockRef;
    fn rdl_rust_pad(
        value: LLVMValueRef,
        marker: LLVMValueRef,
        pad: *mut LLVMBasicBlockRef,
    ) -> LLVMBasicBlockRef;
    fn rdl_repair_ssa(function: LLVMValueRef);
    fn rdl_promote(function: LLVMValueRef, slots: *mut LLVMValueRef, count: usize);
    fn rdl_cold_edge(branch: LLVMValueRef, first_is_cold: bool);
    fn rdl_mark_changed(function: LLVMValueRef, may_unwind: bool);
    fn rdl_mark_failing(
        terminator: LLVMValueRef,
        number: c_uint,
        data: LLVMValueRef,
        levels: c_uint,
    );
    fn rdl_allow_faults(function: LLVMValueRef);
    fn rdl_keeps_registers(call: LLVMValueRef);
    fn rdl_redirect(module: LLVMModuleRef, from: *const c_char, to: *const c_char) -> bool;
    fn rdl_offset_from(
        pointer: LLVMValueRef,
        base: LLVMValueRef,
        module: LLVMModuleRef,
        offset: *mut i64,
    ) -> bool;
    fn rdl_place(
        value: LLVMValueRef,
        depth: c_uint,
        line: *mut c_uint,
        folder: *mut *const c_char,
        folder_length: *mut usize,
        file: *mut *const c_char,
        file_length: *mut usize,
    ) -> bool;
    fn rdl_set_location_of(target: LLVMValueRef, from: LLVMValueRef, function: LLVMValueRef);
    fn rdl_strip_debug(module: LLVMModuleRef) -> bool;
    fn rdl_verify(module: LLVMModuleRef) -> bool;
    fn rdl_returns_twice(call: LLVMValueRef);
}

/// Any LLVM value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Value(LLVMValueRef);

/// A basic block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Block(LLVMBasicBlockRef);

/// A type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Type(LLVMTypeRef);

/// The module under the pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Module(LLVMModuleRef);

/// Where an instruction comes from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    pub(crate) file: String,
    pub(crate) folder: String,
    pub(crate) line: u32,
}

impl Place {
    /// Whether this is the user's own code rather than a library's that was inlined into it.
    pub(crate) fn is_users(&self) -> bool {
        let whole = self.path();
        let starts = ["/usr/", "/rustc/"];
        let holds = ["/.cargo/registry/", "/lib/rustlib/src/"];
        !starts.iter().any(|part| whole.starts_with(part))
            && !holds.iter().any(|part| whole.contains(part))
    }

    /// The whole path.
    pub(crate) fn path(&self) -> String {
        std::path::Path::new(&self.folder)
            .join(&self.file)
            .to_string_lossy()
            .into_owned()
    }
}

/// LLVM's dominator tree of a function that is not being changed.
#[derive(Debug)]
pub(crate) struct Dominators(*mut c_void);

impl Dominators {
    pub(crate) fn new(function: Value) -> Self {
        Self(llvm!(rdl_dominators_new(function.0)))
    }

    pub(crate) fn dominates(&self, above: Value, below: Value) -> bool {
        llvm!(rdl_dominates(self.0, above.0, below.0))
    }

    pub(crate) fn known_nonzero(&self, pointer: Value, at: Value) -> bool {
        llvm!(rdl_known_nonzero(self.0, pointer.0, at.0))
    }

    /// The predecessors from which the phi takes something that is not null.
    pub(crate) fn nonzero_from(&self, phi: Value) -> Vec<Block> {
        (0..llvm!(LLVMCountIncoming(phi.0)))
            .filter(|&number| llvm!(rdl_nonzero_input(self.0, phi.0, number)))
            .map(|number| Block(llvm!(LLVMGetIncomingBlock(phi.0, number))))
            .collect()
    }
}

impl Drop for Dominators {
    fn drop(&mut self) {
        llvm!(rdl_dominators_free(self.0));
    }
}

fn text(start: *const c_char, length: usize) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: LLVM gave start and length of one of its strings, which lives as long as the module.
    let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).into_owned()
}

impl Module {
    /// Takes the module that LLVM handed to the pass.
    pub(crate) fn new(raw: LLVMModuleRef) -> Self {
        Self(raw)
    }

    pub(crate) fn context(self) -> LLVMContextRef {
        llvm!(LLVMGetModuleContext(self.0))
    }

    /// Calls of a function of another module go to `to` instead.
    pub(crate) fn redirect(self, from: &str, to: &str) -> bool {
        let (from, to) = (c_string(from), c_string(to));
        llvm!(rdl_redirect(self.0, from.as_ptr(), to.as_ptr()))
    }

    pub(crate) fn source_name(self) -> String {
        let mut length = 0;
        let start = llvm!(LLVMGetSourceFileName(self.0, &raw mut length));
        text(start, length)
    }

    pub(crate) fn target(self) -> String {
        let start = llvm!(LLVMGetTarget(self.0));
        // SAFETY: LLVM returns a string that ends with zero and lives as long as the module.
        unsafe { CStr::from_ptr(start) }
            .to_string_lossy()
            .into_owned()
    }

    pub(crate) fn functions(self) -> Vec<Value> {
        let mut found = Vec::new();
        let mut at = llvm!(LLVMGetFirstFunction(self.0));
        while !at.is_null() {
            found.push(Value(at));
            at = llvm!(LLVMGetNextFunction(at));
        }
        found
    }

    pub(crate) fn function(self, name: &str, ty: Type) -> Value {
        let name = c_string(name);
        let known = llvm!(LLVMGetNamedFunction(self.0, name.as_ptr()));
        if known.is_null() {
            Value(llvm!(LLVMAddFunction(self.0, name.as_ptr(), ty.0)))
        } else {
            Value(known)
        }
    }

    pub(crate) fn named_global(self, name: &str) -> Option<Value> {
        let name = c_string(name);
        let known = llvm!(LLVMGetNamedGlobal(self.0, name.as_ptr()));
        (!known.is_null()).then_some(Value(known))
    }

    pub(crate) fn add_global(self, name: &str, ty: Type) -> Value {
        let name = c_string(name);
        Value(llvm!(LLVMAddGlobal(self.0, ty.0, name.as_ptr())))
    }

    pub(crate) fn strip_debug(self) {
        llvm!(rdl_strip_debug(self.0));
    }

    pub(crate) fn is_valid(self) -> bool {
        llvm!(rdl_verify(self.0))
    }

    pub(crate) fn pointer_type(self) -> Type {
        Type(llvm!(LLVMPointerTypeInContext(self.context(), 0)))
    }

    pub(crate) fn int_type(self, bits: u32) -> Type {
        Type(llvm!(LLVMIntTypeInContext(self.context(), bits)))
    }

    pub(crate) fn void_type(self) -> Type {
        Type(llvm!(LLVMVoidTypeInContext(self.context())))
    }

    pub(crate) fn function_type(self, result: Type, parameters: &[Type]) -> Type {
        let mut raw: Vec<LLVMTypeRef> = parameters.iter().map(|ty| ty.0).collect();
        let count = c_uint::try_from(raw.len()).expect("few parameters");
        Type(llvm!(LLVMFunctionType(
            result.0,
            raw.as_mut_ptr(),
            count,
            0
        )))
    }

    pub(crate) fn struct_type(self, fields: &[Type]) -> Type {
        let mut raw: Vec<LLVMTypeRef> = fields.iter().map(|ty| ty.0).collect();
        let count = c_uint::try_from(raw.len()).expect("few fields");
        Type(llvm!(LLVMStructTypeInContext(
            self.context(),
            raw.as_mut_ptr(),
            count,
            0
        )))
    }

    pub(crate) fn array_type(self, element: Type, count: u64) -> Type {
        Type(llvm!(LLVMArrayType2(element.0, count)))
    }

    pub(crate) fn struct_constant(self, fields: &[Value]) -> Value {
        let mut raw: Vec<LLVMValueRef> = fields.iter().map(|value| value.0).collect();
        let count = c_uint::try_from(raw.len()).expect("few fields");
        Value(llvm!(LLVMConstStructInContext(
            self.context(),
            raw.as_mut_ptr(),
            count,
            0
        )))
    }

    pub(crate) fn string_constant(self, content: &str) -> Value {
        Value(llvm!(LLVMConstStringInContext2(
            self.context(),
            content.as_ptr().cast(),
            content.len(),
            0
        )))
    }

    /// A value of a global's bytes: `base + offset`, as a constant.
    pub(crate) fn constant_offset(self, base: Value, offset: u64) -> Value {
        let mut index = self.int_type(64).constant(offset).0;
        Value(llvm!(LLVMConstGEP2(
            self.int_type(8).0,
            base.0,
            &raw mut index,
            1
        )))
    }
}

fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).expect("no zero byte is left")
}

impl Type {
    pub(crate) fn constant(self, value: u64) -> Value {
        Value(llvm!(LLVMConstInt(self.0, value, 0)))
    }

    pub(crate) fn null(self) -> Value {
        Value(llvm!(LLVMConstNull(self.0)))
    }

    pub(crate) fn is_pointer(self) -> bool {
        llvm!(LLVMGetTypeKind(self.0)) == LLVMTypeKind::LLVMPointerTypeKind
    }

    pub(crate) fn is_void(self) -> bool {
        llvm!(LLVMGetTypeKind(self.0)) == LLVMTypeKind::LLVMVoidTypeKind
    }

    pub(crate) fn is_integer(self) -> bool {
        llvm!(LLVMGetTypeKind(self.0)) == LLVMTypeKind::LLVMIntegerTypeKind
    }

    /// Bits of an integer.
    pub(crate) fn bits(self) -> u32 {
        llvm!(LLVMGetIntTypeWidth(self.0))
    }

    pub(crate) fn is_first_class_scalar(self) -> bool {
        matches!(
            llvm!(LLVMGetTypeKind(self.0)),
            LLVMTypeKind::LLVMIntegerTypeKind
                | LLVMTypeKind::LLVMPointerTypeKind
                | LLVMTypeKind::LLVMFloatTypeKind
                | LLVMTypeKind::LLVMDoubleTypeKind
                | LLVMTypeKind::LLVMVectorTypeKind
        )
    }
}

impl Value {
    pub(crate) fn key(self) -> usize {
        self.0.addr()
    }

    pub(crate) fn name(self) -> String {
        let mut length = 0;
        let start = llvm!(LLVMGetValueName2(self.0, &raw mut length));
        text(start, length)
    }

    pub(crate) fn ty(self) -> Type {
        Type(llvm!(LLVMTypeOf(self.0)))
    }

    pub(crate) fn is_instruction(self) -> bool {
        !llvm!(LLVMIsAInstruction(self.0)).is_null()
    }

    pub(crate) fn is_constant(self) -> bool {
        llvm!(LLVMIsConstant(self.0)) != 0
    }

    pub(crate) fn is_null(self) -> bool {
        llvm!(LLVMIsNull(self.0)) != 0
    }

    pub(crate) fn is_constant_global(self) -> bool {
        !llvm!(LLVMIsAGlobalVariable(self.0)).is_null() && llvm!(LLVMIsGlobalConstant(self.0)) != 0
    }

    pub(crate) fn is_thread_local(self) -> bool {
        !llvm!(LLVMIsAGlobalVariable(self.0)).is_null() && llvm!(LLVMIsThreadLocal(self.0)) != 0
    }

    pub(crate) fn is_function(self) -> bool {
        !llvm!(LLVMIsAFunction(self.0)).is_null()
    }

    pub(crate) fn is_inline_asm(self) -> bool {
        !llvm!(LLVMIsAInlineAsm(self.0)).is_null()
    }

    pub(crate) fn opcode(self) -> Opcode {
        llvm!(LLVMGetInstructionOpcode(self.0))
    }

    pub(crate) fn operands(self) -> Vec<Value> {
        let count = c_uint::try_from(llvm!(LLVMGetNumOperands(self.0))).unwrap_or(0);
        (0..count)
            .map(|index| Value(llvm!(LLVMGetOperand(self.0, index))))
            .filter(|value| !value.0.is_null())
            .collect()
    }

    pub(crate) fn operand(self, index: u32) -> Value {
        Value(llvm!(LLVMGetOperand(self.0, index)))
    }

    pub(crate) fn arguments(self) -> Vec<Value> {
        (0..llvm!(LLVMGetNumArgOperands(self.0)))
            .map(|index| Value(llvm!(LLVMGetArgOperand(self.0, index))))
            .collect()
    }

    pub(crate) fn called(self) -> Value {
        Value(llvm!(LLVMGetCalledValue(self.0)))
    }

    pub(crate) fn callee_name(self) -> Option<String> {
        let called = self.called();
        called.is_function().then(|| called.name())
    }

    pub(crate) fn parameters(self) -> Vec<Value> {
        (0..llvm!(LLVMCountParams(self.0)))
            .map(|index| Value(llvm!(LLVMGetParam(self.0, index))))
            .collect()
    }

    pub(crate) fn is_declaration(self) -> bool {
        llvm!(LLVMIsDeclaration(self.0)) != 0
    }

    pub(crate) fn blocks(self) -> Vec<Block> {
        let mut found = Vec::new();
        let mut at = llvm!(LLVMGetFirstBasicBlock(self.0));
        while !at.is_null() {
            found.push(Block(at));
            at = llvm!(LLVMGetNextBasicBlock(at));
        }
        found
    }

    pub(crate) fn block(self) -> Block {
        Block(llvm!(LLVMGetInstructionParent(self.0)))
    }

    pub(crate) fn next(self) -> Value {
        Value(llvm!(LLVMGetNextInstruction(self.0)))
    }

    pub(crate) fn successors(self) -> Vec<Block> {
        (0..llvm!(LLVMGetNumSuccessors(self.0)))
            .map(|index| Block(llvm!(LLVMGetSuccessor(self.0, index))))
            .collect()
    }

    pub(crate) fn erase(self) {
        llvm!(LLVMInstructionEraseFromParent(self.0));
    }

    pub(crate) fn replace_with(self, other: Value) {
        llvm!(LLVMReplaceAllUsesWith(self.0, other.0));
    }

    /// Adds an edge to a phi.
    pub(crate) fn add_incoming(self, value: Value, block: Block) {
        let (mut value, mut block) = (value.0, block.0);
        llvm!(LLVMAddIncoming(self.0, &raw mut value, &raw mut block, 1));
    }

    pub(crate) fn may_write(self) -> bool {
        llvm!(rdl_may_write(self.0))
    }

    pub(crate) fn may_read(self) -> bool {
        llvm!(rdl_may_read(self.0))
    }

    pub(crate) fn underlying(self) -> Value {
        Value(llvm!(rdl_underlying(self.0)))
    }

    pub(crate) fn constant_offset(self) -> Option<(Value, i64)> {
        let mut base = std::ptr::null_mut();
        let mut offset = 0;
        llvm!(rdl_constant_offset(self.0, &raw mut base, &raw mut offset))
            .then_some((Value(base), offset))
    }

    pub(crate) fn is_private_slot(self) -> bool {
        self.is_static_slot() && llvm!(rdl_is_private(self.0))
    }

    pub(crate) fn is_static_slot(self) -> bool {
        self.is_instruction() && llvm!(rdl_is_static_slot(self.0))
    }

    pub(crate) fn has_invariant_load(self) -> bool {
        llvm!(rdl_has_invariant_load(self.0))
    }

    pub(crate) fn is_volatile(self) -> bool {
        llvm!(rdl_is_volatile(self.0))
    }

    pub(crate) fn is_atomic(self) -> bool {
        llvm!(LLVMIsAtomic(self.0)) != 0
    }

    pub(crate) fn is_unsupported(self) -> bool {
        llvm!(rdl_is_unsupported(self.0))
    }

    pub(crate) fn can_be_invoke(self) -> bool {
        llvm!(rdl_can_be_invoke(self.0))
    }

    pub(crate) fn places(self) -> Vec<Place> {
        (0..).map_while(|depth| self.place(depth)).collect()
    }

    fn place(self, depth: c_uint) -> Option<Place> {
        let (mut line, mut folder, mut file) = (0, std::ptr::null(), std::ptr::null());
        let (mut folder_length, mut file_length) = (0, 0);
        llvm!(rdl_place(
            self.0,
            depth,
            &raw mut line,
            &raw mut folder,
            &raw mut folder_length,
            &raw mut file,
            &raw mut file_length
        ))
        .then(|| Place {
            file: text(file, file_length),
            folder: text(folder, folder_length),
            line,
        })
    }

    pub(crate) fn personality(self) -> Personality {
        if llvm!(LLVMHasPersonalityFn(self.0)) == 0 {
            return Personality::None;
        }
        match Value(llvm!(LLVMGetPersonalityFn(self.0))).name().as_str() {
            "__gxx_personality_v0" => Personality::Cpp,
            "rust_eh_personality" => Personality::Rust,
            _ => Personality::Other,
        }
    }

    pub(crate) fn set_personality(self, routine: Value) {
        llvm!(LLVMSetPersonalityFn(self.0, routine.0));
    }

    pub(crate) fn set_initializer(self, value: Value) {
        llvm!(LLVMSetInitializer(self.0, value.0));
    }

    pub(crate) fn set_section(self, name: &str) {
        let name = c_string(name);
        llvm!(LLVMSetSection(self.0, name.as_ptr()));
    }

    pub(crate) fn set_internal(self) {
        llvm!(LLVMSetLinkage(self.0, LLVMLinkage::LLVMInternalLinkage));
    }

    /// Not seen by other shared libraries.
    pub(crate) fn set_hidden(self) {
        llvm!(LLVMSetVisibility(
            self.0,
            llvm_sys::LLVMVisibility::LLVMHiddenVisibility
        ));
    }

    pub(crate) fn set_once_hidden(self) {
        llvm!(LLVMSetLinkage(self.0, LLVMLinkage::LLVMWeakODRLinkage));
        llvm!(LLVMSetVisibility(
            self.0,
            llvm_sys::LLVMVisibility::LLVMHiddenVisibility
        ));
    }

    pub(crate) fn set_constant(self) {
        llvm!(LLVMSetGlobalConstant(self.0, 1));
    }

    pub(crate) fn set_thread_local(self) {
        llvm!(LLVMSetThreadLocal(self.0, 1));
    }

    pub(crate) fn split_before(self, name: &str) -> Block {
        let name = c_string(name);
        Block(llvm!(rdl_split_before(self.0, name.as_ptr())))
    }

    /// Turns a call into an invoke; returns the block where it goes on.
    pub(crate) fn to_invoke(self, pad: Block) -> Block {
        Block(llvm!(rdl_to_invoke(self.0, pad.0)))
    }

    /// A landing pad for a call in a Rust function, and the block in it to which only the runtime comes.
    pub(crate) fn rust_pad(self, marker: Value) -> (Block, Block) {
        let mut pad = std::ptr::null_mut();
        let again = llvm!(rdl_rust_pad(self.0, marker.0, &raw mut pad));
        (Block(pad), Block(again))
    }

    pub(crate) fn repair_ssa(self) {
        llvm!(rdl_repair_ssa(self.0));
    }

    pub(crate) fn promote(self, slots: &[Value]) {
        let mut raw: Vec<LLVMValueRef> = slots.iter().map(|slot| slot.0).collect();
        llvm!(rdl_promote(self.0, raw.as_mut_ptr(), raw.len()));
    }

    pub(crate) fn mark_changed(self, may_unwind: bool) {
        llvm!(rdl_mark_changed(self.0, may_unwind));
    }

    /// This terminator ends the failing edge of a site, which a fault may replace.
    pub(crate) fn mark_failing(self, number: u32, data: Value, levels: u32) {
        llvm!(rdl_mark_failing(self.0, number, data.0, levels));
    }

    /// Checks of this function may be left to the access itself.
    pub(crate) fn allow_faults(self) {
        llvm!(rdl_allow_faults(self.0));
    }

    /// The called function keeps all registers, so that the passing path pays nothing for this call.
    pub(crate) fn set_keeps_registers(self) {
        llvm!(rdl_keeps_registers(self.0));
    }

    /// How far this pointer is from `base`, if the distance is constant.
    pub(crate) fn offset_from(self, base: Value, module: Module) -> Option<i64> {
        let mut offset = 0;
        let is_constant = llvm!(rdl_offset_from(self.0, base.0, module.0, &raw mut offset));
        is_constant.then_some(offset)
    }

    pub(crate) fn set_operand(self, number: u32, value: Value) {
        llvm!(LLVMSetOperand(self.0, number, value.0));
    }

    pub(crate) fn cold_edge(self, first_is_cold: bool) {
        llvm!(rdl_cold_edge(self.0, first_is_cold));
    }

    pub(crate) fn set_location_of(self, from: Value, function: Value) {
        llvm!(rdl_set_location_of(self.0, from.0, function.0));
    }

    pub(crate) fn set_returns_twice(self) {
        llvm!(rdl_returns_twice(self.0));
    }

    pub(crate) fn append_block(self, name: &str) -> Block {
        let context = llvm!(LLVMGetModuleContext(LLVMGetGlobalParent(self.0)));
        let name = c_string(name);
        Block(llvm!(LLVMAppendBasicBlockInContext(
            context,
            self.0,
            name.as_ptr()
        )))
    }
}

impl Block {
    pub(crate) fn key(self) -> usize {
        self.0.addr()
    }

    pub(crate) fn instructions(self) -> Vec<Value> {
        let mut found = Vec::new();
        let mut at = llvm!(LLVMGetFirstInstruction(self.0));
        while !at.is_null() {
            found.push(Value(at));
            at = llvm!(LLVMGetNextInstruction(at));
        }
        found
    }

    pub(crate) fn first(self) -> Value {
        Value(llvm!(LLVMGetFirstInstruction(self.0)))
    }

    pub(crate) fn terminator(self) -> Value {
        Value(llvm!(LLVMGetBasicBlockTerminator(self.0)))
    }
}

/// What the host calls to learn about the plugin.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct PluginInfo {
    version: u32,
    name: *const c_char,
    plugin_version: *const c_char,
    register: *const c_void,
    before_code_generation: *const c_void,
}

unsafe extern "C" {
    fn rdl_plugin_info(info: *mut PluginInfo);
}

/// The symbol that clang, opt and lld look up.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn llvmGetPassPluginInfo() -> PluginInfo {
    let mut info = PluginInfo {
        version: 0,
        name: std::ptr::null(),
        plugin_version: std::ptr::null(),
        register: std::ptr::null(),
        before_code_generation: std::ptr::null(),
    };
    // SAFETY: the layout is that of llvm::PassPluginLibraryInfo, and the shim writes every field.
    unsafe { rdl_plugin_info(&raw mut info) };
    info
}

/// Called by the shim for the name of a function.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn raddle_harden_synchronises(name: *const c_char, length: usize) -> bool {
    crate::names::synchronises(&text(name, length))
}

/// Called by the shim for the name of a function.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn raddle_harden_is_around(name: *const c_char, length: usize) -> bool {
    crate::names::is_around_synchronisation(&text(name, length))
}

/// Called by the shim for each module. Returns whether anything changed.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn raddle_harden_module(module: LLVMModuleRef) -> bool {
    crate::pass::guarded(Module::new(module))
}
