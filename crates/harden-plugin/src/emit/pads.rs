//! Landing pads in callers, to which the runtime comes when a callee has failed. A mark in the exception table says that
//! a pad is ours; each language has its own way to keep it out of the way of exceptions.

use raddle_harden::analysis::interproc::Mark;
use raddle_harden::analysis::model::InstId;

use super::Emitter;
use crate::ir::{Opcode, Personality, Value};

impl Emitter<'_> {
    /// Turns a call into one from which a failing callee may come back.
    pub(super) fn pad(&mut self, call: InstId, mark: &Mark) {
        let function = self.extracted.function;
        let name = match mark {
            Mark::Pad(_) => "raddle_harden_marker",
            Mark::Through => "raddle_harden_through",
        };
        let inst = self.extracted.insts[call];
        let personality = function.personality();
        let (pad, again) = if personality == Personality::Rust {
            inst.rust_pad(self.marker(name))
        } else {
            let pad = function.append_block("raddle.pad");
            self.builder.at_end(pad);
            self.builder.landing_pad(match personality {
                Personality::Cpp => self.marker_type(name),
                _ => self.marker(name),
            });
            (pad, pad)
        };
        if personality == Personality::None {
            let ty = self.module.function_type(self.module.int_type(32), &[]);
            function.set_personality(self.module.function("raddle_harden_personality", ty));
        }
        // The debug location of the call survives in the invoke.
        self.builder.at_end(again);
        match mark {
            Mark::Through => self.builder.unreachable(),
            Mark::Pad(plan) => {
                let ty = self.module.function_type(self.module.void_type(), &[]);
                self.builder.assembly("", "~{memory}", ty, &[]);
                self.undo(plan, inst);
            }
        }
        if inst.opcode() == Opcode::LLVMCall {
            inst.to_invoke(pad);
        }
    }

    /// A mark in the exception tables of C and Rust.
    fn marker(&self, name: &str) -> Value {
        self.module
            .named_global(name)
            .unwrap_or_else(|| self.module.add_global(name, self.module.int_type(64)))
    }

    /// A C++ type that no code throws, as a mark in exception tables.
    fn marker_type(&self, name: &str) -> Value {
        let symbol = format!("{name}_type");
        if let Some(known) = self.module.named_global(&symbol) {
            return known;
        }
        let pointer = self.module.pointer_type();
        let table_name = "_ZTVN10__cxxabiv117__class_type_infoE";
        let table = self
            .module
            .named_global(table_name)
            .unwrap_or_else(|| self.module.add_global(table_name, pointer));
        let label = self.text(&format!("{}{name}", name.len()));
        let fields = [self.module.constant_offset(table, 16), label];
        let marker = self
            .module
            .add_global(&symbol, self.module.struct_type(&[pointer, pointer]));
        marker.set_initializer(self.module.struct_constant(&fields));
        marker.set_constant();
        marker.set_once_hidden();
        marker
    }
}
